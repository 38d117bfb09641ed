//! The configuration of one row (`replay-parity.runner-config.v1`): its form, with unknown keys refused.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::errors::RunnerError;

/// Schema of a configuration.
pub const CONFIG_SCHEMA: &str = "replay-parity.runner-config.v1";

/// One row: trace, workload and engine.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RunnerConfig {
    /// [`CONFIG_SCHEMA`].
    pub schema: String,
    /// Name of the row; goes into the record.
    pub row_name: String,
    /// The trace and where it came from.
    pub trace: TraceConfig,
    /// How requests arrive.
    pub workload: Workload,
    /// Divisor of the trace's times.
    pub arrival_speedup_ratio: f64,
    /// Free keys that go into the record's metadata.
    pub metadata: Map<String, Value>,
    /// The engine's `ReplaySpec`, kept as JSON: only the revision itself can say what its keys mean.
    pub spec: Map<String, Value>,
}

/// A verified slice of a trace.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// Absolute, or relative to the working directory.
    pub path: PathBuf,
    /// SHA-256 of the file's bytes, lower-case hexadecimal.
    pub sha256: String,
    /// Requests in the file; see [`crate::trace`].
    pub rows: u64,
    /// Format of the file.
    pub format: TraceFormat,
    /// Tokens per block of the trace.
    pub block_size: usize,
    /// The file that the slice was cut from.
    pub upstream: Upstream,
    /// Zero-based first row of the slice.
    pub slice_start: u64,
}

/// Provenance of a trace.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Repository that publishes the trace.
    pub repository: String,
    /// Commit of that repository.
    pub commit: String,
    /// Path in that repository.
    pub path: String,
    /// SHA-256 of the whole file.
    pub full_sha256: String,
    /// Rows of the whole file.
    pub full_rows: u64,
}

/// Format of a trace file.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// One request per line.
    Mooncake,
    /// A header line, then one request per line with its dependencies.
    AgenticMooncake,
}

/// How requests are admitted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Workload {
    /// At the times of the trace.
    Trace {},
    /// At most so many sessions at a time.
    ClosedLoop {
        /// The cap; equal to the specification's `max_in_flight`.
        max_in_flight: u64,
    },
    /// By the dependencies of an agentic trace.
    Agentic {
        /// Plays at a time; unbounded when null.
        lanes: Option<usize>,
    },
}

/// Reads a configuration. Only its form is checked here; see [`crate::refusals`] for the rules.
///
/// # Errors
/// `bad_config` when the text is not JSON, lacks a key, has an unknown one, or names another schema.
pub fn parse(text: &[u8]) -> Result<RunnerConfig, RunnerError> {
    let config: RunnerConfig = serde_json::from_slice(text).map_err(|error| {
        RunnerError::bad_config(format!(
            "the configuration does not have the form {CONFIG_SCHEMA}: {error}"
        ))
    })?;
    if config.schema != CONFIG_SCHEMA {
        return Err(RunnerError::bad_config(format!(
            "schema is {:?}; this runner reads {CONFIG_SCHEMA:?}",
            config.schema
        )));
    }
    Ok(config)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A configuration that no rule refuses, for tests to spoil.
    pub(crate) fn valid() -> Value {
        json!({
            "schema": CONFIG_SCHEMA,
            "row_name": "seed",
            "trace": {
                "path": "trace.jsonl", "sha256": "a".repeat(64), "rows": 2, "format": "mooncake", "block_size": 4,
                "upstream": {"repository": "r", "commit": "c", "path": "p", "full_sha256": "b".repeat(64), "full_rows": 5},
                "slice_start": 3,
            },
            "workload": {"kind": "trace"},
            "arrival_speedup_ratio": 4,
            "metadata": {},
            "spec": {
                "topology": {"kind": "aggregated", "workers": {"initial_workers": 1}},
                "engine": {"rank": {"backend": "vllm"}},
                "requests": [],
            },
        })
    }

    /// The configuration that `value` spells.
    pub(crate) fn config(value: &Value) -> RunnerConfig {
        #[allow(clippy::unwrap_used)] // A test that spells it wrongly should say so.
        parse(value.to_string().as_bytes()).unwrap()
    }

    fn refusal(spoil: impl FnOnce(&mut Value)) -> String {
        let mut value = valid();
        spoil(&mut value);
        parse(value.to_string().as_bytes()).map_or_else(|error| error.message, |_| String::new())
    }

    #[test]
    fn a_valid_configuration_is_read() {
        let config = config(&valid());
        assert_eq!(config.workload, Workload::Trace {});
        assert!((config.arrival_speedup_ratio - 4.0).abs() < f64::EPSILON);
    }

    #[test]
    fn unknown_keys_are_refused_at_every_level() {
        for pointer in ["", "/trace", "/trace/upstream", "/workload"] {
            let message = refusal(|value| {
                if let Some(object) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
                    object.insert("surprise".into(), json!(1));
                }
            });
            assert!(message.contains("surprise"), "{pointer}: {message}");
        }
    }

    #[test]
    fn missing_and_duplicate_keys_are_refused() {
        assert!(refusal(|value| value["trace"]["rows"] = Value::Null).contains("null"));
        let text = valid()
            .to_string()
            .replacen('{', "{\"row_name\":\"twice\",", 1);
        assert!(parse(text.as_bytes()).is_err_and(|error| error.message.contains("duplicate")));
    }

    #[test]
    fn another_schema_is_refused() {
        assert!(refusal(|value| value["schema"] = json!("v2")).contains(CONFIG_SCHEMA));
    }

    #[test]
    fn every_workload_is_read() {
        for (spelt, expected) in [
            (
                json!({"kind": "closed_loop", "max_in_flight": 64}),
                Workload::ClosedLoop { max_in_flight: 64 },
            ),
            (
                json!({"kind": "agentic", "lanes": null}),
                Workload::Agentic { lanes: None },
            ),
            (
                json!({"kind": "agentic", "lanes": 64}),
                Workload::Agentic { lanes: Some(64) },
            ),
        ] {
            let mut value = valid();
            value["workload"] = spelt;
            assert_eq!(config(&value).workload, expected);
        }
    }
}
