//! The output folder: files appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::errors::RunnerError;

/// A folder that was empty when the run began.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
}

impl OutputFolder {
    /// Takes an existing, empty folder.
    ///
    /// # Errors
    /// `bad_config` when it is no folder or holds anything; nothing is written there then.
    pub fn take(path: &Path) -> Result<Self, RunnerError> {
        let shown = path.display();
        let mut entries = fs::read_dir(path).map_err(|error| {
            RunnerError::bad_config(format!("the output folder {shown} cannot be read: {error}"))
        })?;
        if entries.next().is_some() {
            return Err(RunnerError::bad_config(format!(
                "the output folder {shown} is not empty; give each run a folder of its own"
            )));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Writes a file whole: under another name, flushed to the disk, then renamed.
    ///
    /// # Errors
    /// `io_error`, for example when the disk is full; no part of the file is left.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), RunnerError> {
        let partial = self.path.join(format!(".{name}.partial"));
        write_then_rename(&partial, &self.path.join(name), content)
            .and_then(|()| File::open(&self.path)?.sync_all())
            .map_err(|error| {
                // The first error is the one to tell.
                let _ = fs::remove_file(&partial);
                RunnerError::io(format!(
                    "cannot write {name} in {}: {error}",
                    self.path.display()
                ))
            })
    }

    /// Writes one JSON document and a newline.
    ///
    /// # Errors
    /// `io_error`, as [`Self::write`].
    pub fn write_json(&self, name: &str, document: &impl Serialize) -> Result<(), RunnerError> {
        let mut line = serde_json::to_vec(document)
            .map_err(|error| RunnerError::io(format!("cannot serialise {name}: {error}")))?;
        line.push(b'\n');
        self.write(name, &line)
    }

    /// Removes a file that a failure has made meaningless; a file that is not there is fine.
    pub fn discard(&self, name: &str) {
        let _ = fs::remove_file(self.path.join(name));
    }
}

fn write_then_rename(partial: &Path, target: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(partial)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    fs::rename(partial, target)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // Scratch folders of a test.
mod tests {
    use super::*;
    use crate::errors::ErrorKind;

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("runner-output-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn only_an_existing_empty_folder_is_taken() {
        let path = scratch("take");
        assert!(OutputFolder::take(&path).is_ok());
        fs::write(path.join("x"), b"").unwrap();
        let error = OutputFolder::take(&path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadConfig);
        assert!(error.message.contains("not empty"));
        assert!(OutputFolder::take(&path.join("x")).is_err());
        assert!(OutputFolder::take(&path.join("missing")).is_err());
    }

    #[test]
    fn files_are_written_whole_and_nothing_else_is_left() {
        let path = scratch("write");
        let folder = OutputFolder::take(&path).unwrap();
        folder.write("a", b"content").unwrap();
        folder.write_json("b.json", &[1, 2]).unwrap();
        assert_eq!(fs::read(path.join("a")).unwrap(), b"content");
        assert_eq!(fs::read(path.join("b.json")).unwrap(), b"[1,2]\n");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
        folder.discard("a");
        folder.discard("a");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_is_an_io_error_and_leaves_no_part() {
        let path = scratch("fail");
        let folder = OutputFolder::take(&path).unwrap();
        // A folder in the file's place lets everything but the rename succeed.
        fs::create_dir(path.join("a")).unwrap();
        let error = folder.write("a", b"content").unwrap_err();
        assert_eq!(error.kind, ErrorKind::IoError);
        assert!(
            error.message.contains("cannot write a"),
            "{}",
            error.message
        );
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    }
}
