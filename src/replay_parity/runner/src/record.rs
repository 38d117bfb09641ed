//! The canonical record: the metadata that it must carry, and one replay that fills it.

use aisimulate_core::replay::loadgen::WorkloadDriver;
use aisimulate_core::replay::{
    CanonicalReplayCoverage, CanonicalReplayRecord, ReplayCaptureOptions, ReplayDeterminism,
    ReplayEngineFactory, ReplayReport, ReplayRuntimeInput, Replayer,
};
use serde_json::{Map, Value, json};

use crate::config::{RunnerConfig, Workload};
use crate::engine::EngineSpec;
use crate::errors::{Phase, RunnerError};

/// The campaign that published golden digests name.
const CAMPAIGN: &str = "aisimulate.engine-replay-parity.v1";

/// What a replay captures. All of it: coverage is part of the record, so of the published digests too.
#[must_use]
pub fn capture_options() -> ReplayCaptureOptions {
    ReplayCaptureOptions {
        capture_per_request: true,
        capture_lifecycle_evidence: true,
        capture_canonical_evidence: true,
        determinism: if cfg!(feature = "determinism-off") {
            ReplayDeterminism::Random
        } else {
            ReplayDeterminism::CanonicalV1
        },
    }
}

/// Replays the row.
///
/// # Errors
/// `engine_refused`, with the phase in which the engine gave up.
pub fn replay(spec: &EngineSpec, driver: WorkloadDriver) -> Result<ReplayReport, RunnerError> {
    Replayer::new(spec.spec.clone(), ReplayEngineFactory::new())
        .map_err(|error| RunnerError::from_replay(Phase::New, &error))?
        .with_runtime_input(ReplayRuntimeInput::Workload(driver))
        .with_capture_options(capture_options())
        .run()
        .map_err(|error| RunnerError::from_replay(Phase::Run, &error))
}

/// Builds the record of a report.
///
/// # Errors
/// `engine_refused` when the engine refuses to build it, for example for a number that is not finite.
pub fn build(
    report: &ReplayReport,
    metadata: Map<String, Value>,
) -> Result<CanonicalReplayRecord, RunnerError> {
    let coverage = CanonicalReplayCoverage::from_report(report, capture_options());
    CanonicalReplayRecord::build(report, Value::Object(metadata), &coverage, Value::Null)
        .map_err(|error| RunnerError::from_engine(Phase::Run, &error))
}

/// The record's metadata, without what the engine adds itself. It names no revision: two revisions can only have equal
/// records because of that.
///
/// # Errors
/// `engine_refused` when the revision cannot serialise its own structures.
pub fn metadata(
    config: &RunnerConfig,
    spec: &EngineSpec,
) -> Result<Map<String, Value>, RunnerError> {
    let mut metadata = config.metadata.clone();
    metadata.insert("campaign".into(), CAMPAIGN.into());
    metadata.insert("row_name".into(), config.row_name.clone().into());
    metadata.insert(
        "composition".into(),
        json!({"placement": "round_robin", "scaling": "none"}),
    );
    metadata.insert("workload".into(), workload(config));
    metadata.insert("topology".into(), serialised(&spec.spec.topology)?);
    metadata.insert("engine".into(), serialised(&spec.engine)?);
    Ok(metadata)
}

fn workload(config: &RunnerConfig) -> Value {
    let trace = &config.trace;
    let mut workload = json!({
        "format": trace.format,
        "sha256": trace.sha256,
        "rows": trace.rows,
        "block_size": trace.block_size,
        "arrival_speedup_ratio": config.arrival_speedup_ratio,
        "upstream": trace.upstream,
        "slice": {"start_zero_based": trace.slice_start, "rows": trace.rows},
    });
    // Published records have no such key: it exists only for the workloads that they do not cover.
    let admission = match config.workload {
        Workload::Trace {} => return workload,
        Workload::ClosedLoop { max_in_flight } => {
            json!({"kind": "closed_loop", "max_in_flight": max_in_flight})
        }
        Workload::Agentic { lanes } => json!({"kind": "agentic", "lanes": lanes}),
    };
    workload["admission"] = admission;
    workload
}

fn serialised(value: &impl serde::Serialize) -> Result<Value, RunnerError> {
    serde_json::to_value(value)
        .map_err(|error| RunnerError::from_engine(Phase::New, &anyhow::Error::from(error)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that spells a configuration wrongly should say so.
mod tests {
    use super::*;
    use crate::config::tests::{config, valid};

    fn metadata_of(value: &Value) -> Value {
        let config = config(value);
        let spec = EngineSpec::parse(&config.spec).unwrap();
        Value::Object(metadata(&config, &spec).unwrap())
    }

    #[test]
    fn the_form_is_that_of_the_published_digests() {
        let mut spelt = valid();
        spelt["metadata"] = json!({"owner": "me"});
        let metadata = metadata_of(&spelt);
        let keys: Vec<&String> = metadata.as_object().unwrap().keys().collect();
        let expected = [
            "campaign",
            "composition",
            "engine",
            "owner",
            "row_name",
            "topology",
            "workload",
        ];
        assert_eq!(keys, expected);
        assert_eq!(metadata["campaign"], "aisimulate.engine-replay-parity.v1");
        assert_eq!(
            metadata["workload"].to_string(),
            json!({
                "format": "mooncake", "sha256": "a".repeat(64), "rows": 2, "block_size": 4,
                "arrival_speedup_ratio": 4.0,
                "upstream": {"repository": "r", "commit": "c", "path": "p", "full_sha256": "b".repeat(64), "full_rows": 5},
                "slice": {"start_zero_based": 3, "rows": 2},
            })
            .to_string()
        );
    }

    #[test]
    fn topology_and_engine_are_normalised_by_the_revision() {
        let metadata = metadata_of(&valid());
        let workers = &metadata["topology"]["workers"];
        assert_eq!(
            workers,
            &json!({"initial_workers": 1, "startup_delay_ms": 0.0})
        );
        assert_eq!(metadata["engine"]["rank"]["block_size"], 64);
        assert_eq!(metadata["engine"]["dp_size"], 1);
    }

    #[test]
    fn admission_is_named_only_where_it_is_not_the_traces() {
        assert!(metadata_of(&valid())["workload"].get("admission").is_none());
        let mut spelt = valid();
        spelt["workload"] = json!({"kind": "closed_loop", "max_in_flight": 8});
        assert_eq!(
            metadata_of(&spelt)["workload"]["admission"],
            spelt["workload"]
        );
        spelt["workload"] = json!({"kind": "agentic", "lanes": null});
        spelt["trace"]["format"] = json!("agentic_mooncake");
        let workload = &metadata_of(&spelt)["workload"];
        assert_eq!(workload["admission"], spelt["workload"]);
        assert_eq!(workload["format"], "agentic_mooncake");
    }
}
