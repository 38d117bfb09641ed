//! The command line. Nothing here panics when standard output or standard error is closed.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::errors::{ErrorKind, RunnerError, USAGE_STATUS};
use crate::identity::Identity;
use crate::run;

const USAGE: &str = "\
usage: replay-parity-runner identity
       replay-parity-runner run --config CONFIG.json --output DIR

identity  print what this binary is, as one JSON line
run       replay the row of CONFIG.json and write its record into the empty folder DIR
";

/// What the arguments ask for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// Print the usage.
    Help,
    /// Print the identity.
    Identity,
    /// Replay a row.
    Run {
        /// Configuration of the row.
        config: PathBuf,
        /// Existing, empty folder.
        output: PathBuf,
    },
}

/// Runs the program on its arguments, without the program's name, and returns its exit status.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match parse(arguments) {
        Ok(Command::Help) => status_of_print(USAGE),
        Ok(Command::Identity) => {
            let line = serde_json::to_string(&Identity::compiled_in());
            line.map_or(ExitCode::from(ErrorKind::IoError.status()), |line| {
                status_of_print(&format!("{line}\n"))
            })
        }
        Ok(Command::Run { config, output }) => {
            run::run(&config, &output).map_or_else(|error| report(&error), |()| ExitCode::SUCCESS)
        }
        Err(message) => {
            tell(&format!("replay-parity-runner: {message}\n{USAGE}"));
            ExitCode::from(USAGE_STATUS)
        }
    }
}

/// Reads the arguments.
///
/// # Errors
/// In words, when they are not one of the forms of the usage.
pub fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let command = arguments.next().ok_or("no command was given")?;
    match command.to_str() {
        Some("-h" | "--help") => Ok(Command::Help),
        Some("identity") => match arguments.next() {
            None => Ok(Command::Identity),
            Some(extra) => Err(unexpected(&extra)),
        },
        Some("run") => parse_run(arguments),
        _ => Err(unexpected(&command)),
    }
}

fn parse_run(mut arguments: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let (mut config, mut output) = (None, None);
    while let Some(argument) = arguments.next() {
        let (name, slot) = match argument.to_str() {
            Some("-h" | "--help") => return Ok(Command::Help),
            Some(name @ "--config") => (name, &mut config),
            Some(name @ "--output") => (name, &mut output),
            _ => return Err(unexpected(&argument)),
        };
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} needs a path"))?;
        if slot.replace(PathBuf::from(value)).is_some() {
            return Err(format!("{name} was given twice"));
        }
    }
    Ok(Command::Run {
        config: config.ok_or("run needs --config")?,
        output: output.ok_or("run needs --output")?,
    })
}

fn unexpected(argument: &OsStr) -> String {
    format!("unexpected argument {}", argument.display())
}

fn report(error: &RunnerError) -> ExitCode {
    tell(&format!("{}\n", error.to_json()));
    ExitCode::from(error.kind.status())
}

fn status_of_print(text: &str) -> ExitCode {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(ErrorKind::IoError.status()),
    }
}

/// Says it if anybody listens: the exit status and `error.json` say it too.
fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command, String> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn the_forms_of_the_usage_are_read() {
        assert_eq!(parsed(&["identity"]), Ok(Command::Identity));
        let run = Command::Run {
            config: "c".into(),
            output: "o".into(),
        };
        assert_eq!(parsed(&["run", "--output", "o", "--config", "c"]), Ok(run));
        for help in [&["--help"][..], &["run", "-h"]] {
            assert_eq!(parsed(help), Ok(Command::Help));
        }
    }

    #[test]
    fn anything_else_is_told_apart() {
        for (arguments, words) in [
            (&[][..], "no command"),
            (&["walk"], "walk"),
            (&["identity", "now"], "now"),
            (&["run", "--output", "o"], "needs --config"),
            (&["run", "--config", "c"], "needs --output"),
            (&["run", "--config"], "needs a path"),
            (&["run", "--config", "c", "--config", "d"], "twice"),
            (&["run", "c", "o"], "unexpected argument c"),
        ] {
            assert!(
                parsed(arguments).is_err_and(|error| error.contains(words)),
                "{arguments:?}"
            );
        }
    }
}
