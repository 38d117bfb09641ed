//! Proof that a trace file is the named one, in one pass and without holding it in memory.
//!
//! A row is a request: a line that is not blank, and not the header of an agentic trace. Blank lines and carriage
//! returns at line ends are what the engine's loader tolerates, so they do not change the count; the checksum is over
//! the bytes as they are, so a trace whose line ends were converted is still another trace.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::config::{TraceConfig, TraceFormat};
use crate::errors::RunnerError;

/// What one pass over a trace finds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Observed {
    /// SHA-256 of all bytes, lower-case hexadecimal.
    pub sha256: String,
    /// Lines that are not blank.
    pub lines: u64,
}

/// Checks a trace against its configuration.
///
/// # Errors
/// `io_error` when the file cannot be read; `trace_mismatch` when its checksum or its rows differ.
pub fn verify(trace: &TraceConfig) -> Result<(), RunnerError> {
    let path = trace.path.display();
    let observed = observe(&trace.path)
        .map_err(|error| RunnerError::io(format!("cannot read the trace {path}: {error}")))?;
    if observed.sha256 != trace.sha256 {
        return Err(RunnerError::trace_mismatch(format!(
            "the trace {path} has SHA-256 {}; the configuration names {}",
            observed.sha256, trace.sha256
        )));
    }
    let rows = rows(observed.lines, trace.format);
    if rows != trace.rows {
        return Err(RunnerError::trace_mismatch(format!(
            "the trace {path} has {rows} rows; the configuration names {}",
            trace.rows
        )));
    }
    Ok(())
}

/// Reads a whole trace, line by line.
///
/// # Errors
/// The operating system's, when the file cannot be opened or read.
pub fn observe(path: &Path) -> std::io::Result<Observed> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut digest = Sha256::new();
    let mut lines = 0;
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        digest.update(&line);
        lines += u64::from(!is_blank(&line));
        line.clear();
    }
    Ok(Observed {
        sha256: hexadecimal(&digest.finalize()),
        lines,
    })
}

/// Lower-case hexadecimal digits of `bytes`.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| DIGITS[usize::from(digit)])
        .collect()
}

fn rows(lines: u64, format: TraceFormat) -> u64 {
    match format {
        TraceFormat::Mooncake => lines,
        TraceFormat::AgenticMooncake => lines.saturating_sub(1),
    }
}

/// Blank in the sense of the engine's loader, which trims Unicode white space.
fn is_blank(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|text| text.trim().is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // Scratch files of a test.
mod tests {
    use super::*;
    use crate::config::tests::{config, valid};
    use crate::errors::ErrorKind;

    fn file(name: &str, content: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("runner-trace-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        path
    }

    fn lines(name: &str, content: &[u8]) -> u64 {
        let path = file(name, content);
        let observed = observe(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        observed.lines
    }

    fn named(path: std::path::PathBuf, rows: u64, format: TraceFormat) -> TraceConfig {
        let mut trace = config(&valid()).trace;
        trace.sha256 = observe(&path).map_or_else(|_| "0".repeat(64), |observed| observed.sha256);
        trace.path = path;
        trace.rows = rows;
        trace.format = format;
        trace
    }

    #[test]
    fn the_checksum_is_that_of_the_bytes() {
        let path = file("sum", b"abc");
        let observed = observe(&path).unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((observed.sha256.as_str(), observed.lines), (expected, 1));
    }

    #[test]
    fn lines_are_counted_as_the_loader_sees_them() {
        assert_eq!(lines("empty", b""), 0);
        assert_eq!(lines("end", b"{}\n{}"), 2);
        assert_eq!(lines("crlf", b"{}\r\n{}\r\n"), 2);
        assert_eq!(lines("blank", b"\n{}\n \t\n\r\n{}\n\n"), 2);
        assert_eq!(lines("unicode", "{}\n\u{a0}\n".as_bytes()), 1);
        assert_eq!(lines("binary", b"\xff\xfe\n"), 1);
    }

    #[test]
    fn the_header_of_an_agentic_trace_is_no_row() {
        let path = file("agentic", b"{\"schema\":1}\n{}\n{}\n");
        assert!(verify(&named(path.clone(), 2, TraceFormat::AgenticMooncake)).is_ok());
        assert!(verify(&named(path, 3, TraceFormat::Mooncake)).is_ok());
        assert_eq!(rows(0, TraceFormat::AgenticMooncake), 0);
    }

    #[test]
    fn another_checksum_or_row_count_is_a_mismatch() {
        let path = file("mismatch", b"{}\n");
        let mut trace = named(path, 1, TraceFormat::Mooncake);
        assert!(verify(&trace).is_ok());
        trace.rows = 2;
        let error = verify(&trace).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TraceMismatch);
        assert!(error.message.contains("has 1 rows"));
        trace.sha256 = "0".repeat(64);
        assert!(verify(&trace).unwrap_err().message.contains("SHA-256"));
    }

    #[test]
    fn a_missing_trace_is_an_io_error() {
        let trace = named("/nowhere/trace.jsonl".into(), 1, TraceFormat::Mooncake);
        assert_eq!(verify(&trace).unwrap_err().kind, ErrorKind::IoError);
    }
}
