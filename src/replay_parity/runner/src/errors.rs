//! What can go wrong, with the exit status and the JSON line that the caller reads.

use aisimulate_core::replay::ReplayError;
use serde::Serialize;
use serde_json::{Value, json};

/// Schema of `error.json`.
pub const ERROR_SCHEMA: &str = "replay-parity.runner-error.v1";

/// Exit status of a command line that is not understood.
pub const USAGE_STATUS: u8 = 2;

/// Variants of `ReplayError` that a caller may rely on; any other is reported as `Other`.
const KNOWN_VARIANTS: [&str; 8] = [
    "InvalidSpec",
    "Engine",
    "Placement",
    "Scaling",
    "Telemetry",
    "Deadlock",
    "ResourceLimited",
    "Invariant",
];

/// Name of every failure that is not one of the known variants of `ReplayError`.
const OTHER_VARIANT: &str = "Other";

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The row's configuration is refused by the runner, whatever the revision.
    BadConfig,
    /// The trace file is not the one that the configuration names.
    TraceMismatch,
    /// The revision of the engine refuses the row, or fails while replaying it.
    EngineRefused,
    /// A file could not be read or written.
    IoError,
}

impl ErrorKind {
    /// Exit status of the process.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::BadConfig => 10,
            Self::TraceMismatch => 11,
            Self::EngineRefused => 12,
            Self::IoError => 13,
        }
    }
}

/// When the engine refused: before virtual time started, or after.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// While the specification, the trace or the replayer was set up.
    New,
    /// While the replay ran or its record was built.
    Run,
}

/// A failure with all that `error.json` says about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunnerError {
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// Set for [`ErrorKind::EngineRefused`] only.
    pub phase: Option<Phase>,
    /// Name of the engine's error variant; set for [`ErrorKind::EngineRefused`] only.
    pub variant: Option<&'static str>,
    /// One sentence; for the engine's own errors, its whole message.
    pub message: String,
}

impl RunnerError {
    /// A configuration that the runner refuses.
    pub fn bad_config(message: impl Into<String>) -> Self {
        Self::plain(ErrorKind::BadConfig, message)
    }

    /// A trace that is not the named one.
    pub fn trace_mismatch(message: impl Into<String>) -> Self {
        Self::plain(ErrorKind::TraceMismatch, message)
    }

    /// A file that could not be read or written.
    pub fn io(message: impl Into<String>) -> Self {
        Self::plain(ErrorKind::IoError, message)
    }

    /// A specification that this revision cannot express, in the words of the runner.
    pub fn invalid_spec(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::EngineRefused,
            phase: Some(Phase::New),
            variant: Some("InvalidSpec"),
            message: message.into(),
        }
    }

    /// The engine's own typed error.
    #[must_use]
    pub fn from_replay(phase: Phase, error: &ReplayError) -> Self {
        Self {
            kind: ErrorKind::EngineRefused,
            phase: Some(phase),
            variant: Some(variant_name(&format!("{error:?}"))),
            message: error.to_string(),
        }
    }

    /// An error of the engine's libraries, which may or may not carry a typed one.
    #[must_use]
    pub fn from_engine(phase: Phase, error: &anyhow::Error) -> Self {
        let typed = error
            .chain()
            .find_map(|cause| cause.downcast_ref::<ReplayError>());
        typed.map_or_else(
            || Self {
                kind: ErrorKind::EngineRefused,
                phase: Some(phase),
                variant: Some(OTHER_VARIANT),
                message: format!("{error:#}"),
            },
            |typed| Self::from_replay(phase, typed),
        )
    }

    /// The same failure with the machine's path taken out of the message: two machines must report equal messages.
    #[must_use]
    pub fn without_path(mut self, path: &std::path::Path) -> Self {
        self.message = self
            .message
            .replace(&path.display().to_string(), "the trace");
        self
    }

    /// The content of `error.json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "schema": ERROR_SCHEMA,
            "kind": self.kind,
            "phase": self.phase,
            "variant": self.variant,
            "message": self.message,
        })
    }

    fn plain(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            phase: None,
            variant: None,
            message: message.into(),
        }
    }
}

/// The variant that a derived `Debug` text starts with. Variants are not matched by pattern, since a revision may add
/// one (0.13.0 did) or lack one (0.1.0-dev.2 does).
fn variant_name(debug: &str) -> &'static str {
    let name = debug
        .split(|character: char| !character.is_alphanumeric())
        .next()
        .unwrap_or_default();
    KNOWN_VARIANTS
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or(OTHER_VARIANT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_the_contract() {
        let statuses = [
            ErrorKind::BadConfig,
            ErrorKind::TraceMismatch,
            ErrorKind::EngineRefused,
            ErrorKind::IoError,
        ]
        .map(ErrorKind::status);
        assert_eq!(statuses, [10, 11, 12, 13]);
    }

    #[test]
    fn typed_errors_keep_variant_and_whole_message() {
        let error = RunnerError::from_replay(
            Phase::Run,
            &ReplayError::Invariant("offline (very) broken".into()),
        );
        assert_eq!(error.variant, Some("Invariant"));
        assert_eq!(
            error.message,
            "replay invariant violated: offline (very) broken"
        );
        let deadlock = ReplayError::Deadlock {
            unfinished_requests: 3,
        };
        assert_eq!(
            RunnerError::from_replay(Phase::Run, &deadlock).variant,
            Some("Deadlock")
        );
    }

    #[test]
    fn a_typed_error_is_found_below_its_context() {
        let error = anyhow::Error::from(ReplayError::Engine("full".into())).context("while there");
        let error = RunnerError::from_engine(Phase::New, &error);
        assert_eq!(
            (error.variant, error.message.as_str()),
            (Some("Engine"), "engine error: full")
        );
    }

    #[test]
    fn an_unknown_variant_is_other() {
        assert_eq!(variant_name("Quantum(\"InvalidSpec\")"), "Other");
        assert_eq!(variant_name("ResourceLimited(\"x\")"), "ResourceLimited");
        assert_eq!(variant_name(""), "Other");
    }

    #[test]
    fn json_names_every_key_even_when_null() {
        let json = RunnerError::bad_config("no").to_json();
        assert_eq!(
            json,
            json!({"schema": ERROR_SCHEMA, "kind": "bad_config", "phase": null, "variant": null, "message": "no"})
        );
        let json = RunnerError::invalid_spec("no").to_json();
        assert_eq!(
            (&json["kind"], &json["phase"]),
            (&json!("engine_refused"), &json!("new"))
        );
    }

    #[test]
    fn messages_do_not_carry_the_path_of_the_trace() {
        let error = RunnerError::io("cannot parse /a/b.jsonl")
            .without_path(std::path::Path::new("/a/b.jsonl"));
        assert_eq!(error.message, "cannot parse the trace");
    }
}
