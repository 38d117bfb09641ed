//! The specification as this revision understands it.
//!
//! What the revision decides is `engine_refused`, what the runner decides is `bad_config`: a baseline that does not
//! know a key of the candidate's row is a row that it cannot run, not a mistake in the row.

use aisimulate_core::replay::{
    ReplayEngineConfig, ReplayEngineFactory, ReplaySpec, ReplayTopology, Replayer,
};
use serde_json::{Map, Value};

use crate::errors::{Phase, RunnerError};

/// Keys of a specification that may be left out when it is serialised again, since they hold their default.
const OMITTED_WHEN_DEFAULT: [&str; 4] = [
    "max_in_flight",
    "max_sim_time_ms",
    "record_per_request",
    "sla",
];

/// A specification and its engine, both parsed by the revision.
#[derive(Clone, Debug)]
pub struct EngineSpec {
    /// The specification.
    pub spec: ReplaySpec,
    /// Its `engine`, with the revision's defaults filled in.
    pub engine: ReplayEngineConfig,
}

impl EngineSpec {
    /// Parses a specification.
    ///
    /// # Errors
    /// `engine_refused` when the revision does not understand it, or would ignore a key of it.
    pub fn parse(spec: &Map<String, Value>) -> Result<Self, RunnerError> {
        let authored = Value::Object(spec.clone());
        let parsed: ReplaySpec = serde_json::from_value(authored.clone())
            .map_err(|error| RunnerError::invalid_spec(format!("invalid replay spec: {error}")))?;
        refuse_ignored_keys(&authored, &parsed)?;
        let engine = parse_engine(&parsed)?;
        Ok(Self {
            spec: parsed,
            engine,
        })
    }

    /// Tokens per block of the engine that prompts are cut into: the prefill role's, when a disaggregated engine gives one.
    #[must_use]
    pub fn block_size(&self) -> usize {
        let rank = &self.engine.rank;
        match (&self.spec.topology, &self.engine.prefill) {
            (ReplayTopology::Disaggregated { .. }, Some(prefill)) => prefill.rank.block_size,
            _ => rank.block_size,
        }
    }
}

/// The engine's own parser is private; when ours fails, the replayer is asked for its words, so that the typed error is
/// the one that users of the engine see.
fn parse_engine(spec: &ReplaySpec) -> Result<ReplayEngineConfig, RunnerError> {
    if spec.engine.is_null() {
        return Ok(ReplayEngineConfig::default());
    }
    serde_json::from_value(spec.engine.clone()).map_err(|error| {
        let refused = match Replayer::new(spec.clone(), ReplayEngineFactory::new()) {
            Ok(replayer) => replayer.run().map_err(|error| (Phase::Run, error)).err(),
            Err(error) => Some((Phase::New, error)),
        };
        refused.map_or_else(
            || RunnerError::invalid_spec(format!("invalid engine descriptor: {error}")),
            |(phase, error)| RunnerError::from_replay(phase, &error),
        )
    })
}

/// The engine's specification tolerates unknown keys. A typing error, or a key that only a later revision knows, would
/// replay another row than the one that was written.
fn refuse_ignored_keys(authored: &Value, parsed: &ReplaySpec) -> Result<(), RunnerError> {
    let understood = serde_json::to_value(parsed)
        .map_err(|error| RunnerError::invalid_spec(format!("invalid replay spec: {error}")))?;
    let mut ignored = Vec::new();
    collect_ignored("", authored, &understood, &mut ignored);
    if ignored.is_empty() {
        return Ok(());
    }
    Err(RunnerError::invalid_spec(format!(
        "this revision's replay spec has no key {}",
        ignored.join(", ")
    )))
}

fn collect_ignored(path: &str, authored: &Value, understood: &Value, ignored: &mut Vec<String>) {
    let (Value::Object(authored), Value::Object(understood)) = (authored, understood) else {
        return;
    };
    for (key, value) in authored {
        let path = format!("{path}/{key}");
        match understood.get(key) {
            Some(_) if path == "/engine" => {}
            Some(understood) => collect_ignored(&path, value, understood, ignored),
            None if OMITTED_WHEN_DEFAULT.contains(&path.trim_start_matches('/')) => {}
            None => ignored.push(path),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that spells a specification wrongly should say so.
mod tests {
    use serde_json::json;

    use super::*;
    use crate::errors::ErrorKind;

    fn parse(value: &Value) -> Result<EngineSpec, RunnerError> {
        EngineSpec::parse(value.as_object().unwrap())
    }

    fn aggregated(engine: &Value) -> Value {
        json!({
            "topology": {"kind": "aggregated", "workers": {"initial_workers": 1}},
            "engine": engine, "requests": [],
        })
    }

    fn disaggregated(engine: &Value) -> Value {
        let workers = json!({"initial_workers": 1});
        json!({
            "topology": {"kind": "disaggregated", "prefill": workers, "decode": workers, "handoff_latency_ms": 1},
            "engine": engine, "requests": [],
        })
    }

    #[test]
    fn the_block_size_is_the_prefill_roles_when_disaggregated() {
        let rank = json!({"backend": "vllm", "block_size": 32});
        let engine = json!({"rank": rank, "prefill": {"rank": {"block_size": 8}}});
        assert_eq!(parse(&disaggregated(&engine)).unwrap().block_size(), 8);
        assert_eq!(parse(&aggregated(&engine)).unwrap().block_size(), 32);
        let engine = json!({"rank": rank, "decode": {"rank": {"block_size": 8}}});
        assert_eq!(parse(&disaggregated(&engine)).unwrap().block_size(), 32);
    }

    #[test]
    fn an_omitted_block_size_is_the_backends() {
        for (backend, size) in [("vllm", 64), ("sglang", 1), ("trtllm", 32)] {
            let spec = parse(&aggregated(&json!({"rank": {"backend": backend}}))).unwrap();
            assert_eq!(spec.block_size(), size, "{backend}");
        }
        assert_eq!(parse(&aggregated(&Value::Null)).unwrap().block_size(), 64);
    }

    #[test]
    fn an_unknown_engine_key_is_refused_in_the_engines_words() {
        let error = parse(&aggregated(&json!({"rank": {"no_such_key": 1}}))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::EngineRefused);
        assert_eq!(error.variant, Some("InvalidSpec"));
        assert!(
            error.message.starts_with("invalid replay spec: "),
            "{}",
            error.message
        );
        assert!(error.message.contains("no_such_key"), "{}", error.message);
    }

    #[test]
    fn keys_that_the_engine_would_ignore_are_refused() {
        let mut spec = aggregated(&json!({}));
        spec["max_inflight"] = json!(3);
        spec["topology"]["workers"]["startup"] = json!(3);
        let error = parse(&spec).unwrap_err();
        assert_eq!(
            (error.kind, error.phase),
            (ErrorKind::EngineRefused, Some(Phase::New))
        );
        assert!(error.message.contains("/max_inflight"), "{}", error.message);
        assert!(
            error.message.contains("/topology/workers/startup"),
            "{}",
            error.message
        );
    }

    #[test]
    fn keys_with_their_default_are_not_ignored_ones() {
        let mut spec = aggregated(&json!({}));
        spec["record_per_request"] = json!(true);
        spec["max_in_flight"] = Value::Null;
        spec["sla"] = json!({});
        spec["version"] = json!(1);
        assert!(parse(&spec).is_ok());
    }

    #[test]
    fn an_unknown_topology_is_refused_by_the_engine() {
        let mut spec = aggregated(&json!({}));
        spec["topology"]["kind"] = json!("ring");
        assert_eq!(parse(&spec).unwrap_err().kind, ErrorKind::EngineRefused);
    }
}
