//! The rules that a row must keep whatever the revision: each is a function that names what it refuses.
//!
//! They read the specification as JSON, so that they hold for keys that this revision does not know.

use serde_json::{Map, Value};

use crate::config::{RunnerConfig, TraceConfig, TraceFormat, Workload};
use crate::errors::RunnerError;

/// Keys of the record's metadata that the runner or the engine writes.
const RESERVED_METADATA: [&str; 9] = [
    "campaign",
    "composition",
    "engine",
    "planner",
    "result_exclusions",
    "row_name",
    "schema_version",
    "topology",
    "workload",
];

type Rule = fn(&RunnerConfig) -> Vec<String>;

const RULES: [Rule; 9] = [
    row_and_ratio,
    trace_identity,
    trace_slice,
    workload_and_format,
    in_flight_cap,
    adapters,
    engine_only,
    spec_input,
    metadata_keys,
];

/// Checks every rule.
///
/// # Errors
/// One `bad_config` that names all that is refused.
pub fn check(config: &RunnerConfig) -> Result<(), RunnerError> {
    let refused: Vec<String> = RULES.iter().flat_map(|rule| rule(config)).collect();
    if refused.is_empty() {
        return Ok(());
    }
    Err(RunnerError::bad_config(refused.join("; ")))
}

fn row_and_ratio(config: &RunnerConfig) -> Vec<String> {
    let mut refused = Vec::new();
    if config.row_name.trim().is_empty() {
        refused.push("row_name is blank".into());
    }
    let ratio = config.arrival_speedup_ratio;
    if !(ratio.is_finite() && ratio > 0.0) {
        refused.push(format!(
            "arrival_speedup_ratio is {ratio}; it must be finite and positive"
        ));
    }
    refused
}

fn trace_identity(config: &RunnerConfig) -> Vec<String> {
    let TraceConfig {
        sha256, upstream, ..
    } = &config.trace;
    let mut refused = Vec::new();
    for (key, value) in [
        ("trace.sha256", sha256),
        ("trace.upstream.full_sha256", &upstream.full_sha256),
    ] {
        if !is_sha256(value) {
            refused.push(format!(
                "{key} is {value:?}; it must be 64 lower-case hexadecimal digits"
            ));
        }
    }
    for (key, value) in [
        ("repository", &upstream.repository),
        ("commit", &upstream.commit),
        ("path", &upstream.path),
    ] {
        if value.trim().is_empty() {
            refused.push(format!("trace.upstream.{key} is blank"));
        }
    }
    refused
}

fn trace_slice(config: &RunnerConfig) -> Vec<String> {
    let trace = &config.trace;
    let mut refused = Vec::new();
    if trace.rows == 0 {
        refused.push("trace.rows is 0".into());
    }
    if trace.block_size == 0 {
        refused.push("trace.block_size is 0".into());
    }
    let end = trace.slice_start.checked_add(trace.rows);
    if end.is_none_or(|end| end > trace.upstream.full_rows) {
        refused.push(format!(
            "the slice of {} rows from row {} exceeds the {} rows of the upstream trace",
            trace.rows, trace.slice_start, trace.upstream.full_rows
        ));
    }
    refused
}

fn workload_and_format(config: &RunnerConfig) -> Vec<String> {
    let wanted = match config.workload {
        Workload::Agentic { .. } => TraceFormat::AgenticMooncake,
        Workload::Trace {} | Workload::ClosedLoop { .. } => TraceFormat::Mooncake,
    };
    let mut refused = Vec::new();
    if config.trace.format != wanted {
        refused.push(format!(
            "the {} workload cannot replay a trace of format {}",
            workload_name(config.workload),
            format_name(config.trace.format)
        ));
    }
    if matches!(config.workload, Workload::Agentic { lanes: Some(0) }) {
        refused.push("workload.lanes is 0; it must be positive or null".into());
    }
    refused
}

/// `spec.max_in_flight` is silently ignored by the driver of a trace, so one without the other is a mistake.
fn in_flight_cap(config: &RunnerConfig) -> Vec<String> {
    let cap = present(&config.spec, "max_in_flight");
    match (config.workload, cap) {
        (Workload::ClosedLoop { max_in_flight: 0 }, _) => {
            vec!["workload.max_in_flight is 0; it must be positive".into()]
        }
        (Workload::ClosedLoop { max_in_flight }, cap)
            if cap.and_then(Value::as_u64) != Some(max_in_flight) =>
        {
            vec![format!(
                "spec.max_in_flight must be {max_in_flight}, as the closed_loop workload says"
            )]
        }
        (Workload::Trace {} | Workload::Agentic { .. }, Some(_)) => vec![format!(
            "spec.max_in_flight needs a closed_loop workload; the {} workload would ignore it",
            workload_name(config.workload)
        )],
        _ => Vec::new(),
    }
}

fn adapters(config: &RunnerConfig) -> Vec<String> {
    let Some(adapters) = present(&config.spec, "adapters") else {
        return Vec::new();
    };
    let mut refused = Vec::new();
    for (name, only) in [("placement", "round_robin"), ("scaling", "none")] {
        let Some(adapter) = adapters.get(name) else {
            continue;
        };
        let provider = adapter.get("provider").and_then(Value::as_str);
        if provider != Some(only) {
            refused.push(format!(
                "spec.adapters.{name} must be {only:?}; only the engine is compared"
            ));
        }
        if adapter
            .get("config")
            .is_some_and(|config| !is_empty(config))
        {
            refused.push(format!(
                "spec.adapters.{name}.config must be empty; the engine ignores it"
            ));
        }
    }
    refused
}

/// Whatever the engine would take from outside, or from memory beyond the GPU, at any depth of `spec.engine`.
fn engine_only(config: &RunnerConfig) -> Vec<String> {
    let mut refused = Vec::new();
    if let Some(engine) = config.spec.get("engine") {
        walk_engine("spec.engine", engine, &mut refused);
    }
    for (key, value) in &config.spec {
        if is_kvbm(key) && !value.is_null() {
            refused.push(format!("spec.{key}: KVBM is not supported"));
        }
    }
    refused
}

fn walk_engine(path: &str, value: &Value, refused: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = format!("{path}.{key}");
                if value.is_null() {
                    continue;
                }
                if key.ends_with("offload") {
                    refused.push(format!("{path}: host offload is not supported"));
                } else if is_kvbm(key) {
                    refused.push(format!("{path}: KVBM is not supported"));
                } else if key == "timing_model" && value.get("type") == Some(&"external".into()) {
                    refused.push(format!("{path}: external timing is not supported"));
                } else {
                    walk_engine(&path, value, refused);
                }
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                walk_engine(&format!("{path}[{index}]"), value, refused);
            }
        }
        _ => {}
    }
}

fn spec_input(config: &RunnerConfig) -> Vec<String> {
    let mut refused = Vec::new();
    if present(&config.spec, "max_sim_time_ms").is_some() {
        refused.push("spec.max_sim_time_ms is not supported; it leaves requests in flight".into());
    }
    if present(&config.spec, "requests").is_some_and(|requests| !is_empty(requests)) {
        refused.push("spec.requests must be empty; requests come from the trace".into());
    }
    refused
}

fn metadata_keys(config: &RunnerConfig) -> Vec<String> {
    RESERVED_METADATA
        .iter()
        .filter(|key| config.metadata.contains_key(**key))
        .map(|key| format!("metadata.{key} is written by the runner; choose another name"))
        .collect()
}

fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

fn is_kvbm(key: &str) -> bool {
    key.to_ascii_lowercase().contains("kvbm")
}

fn is_sha256(value: &str) -> bool {
    value.len() == 64
        && value
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn workload_name(workload: Workload) -> &'static str {
    match workload {
        Workload::Trace {} => "trace",
        Workload::ClosedLoop { .. } => "closed_loop",
        Workload::Agentic { .. } => "agentic",
    }
}

fn format_name(format: TraceFormat) -> &'static str {
    match format {
        TraceFormat::Mooncake => "mooncake",
        TraceFormat::AgenticMooncake => "agentic_mooncake",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::tests::{config, valid};

    /// The refusal after `changes`, an object from JSON Pointers (whose parents exist) to values; empty when accepted.
    fn refusal_of(changes: &Value) -> String {
        let mut spelt = valid();
        for (pointer, value) in changes.as_object().into_iter().flatten() {
            set(&mut spelt, pointer, value.clone());
        }
        check(&config(&spelt)).map_or_else(|error| error.message, |()| String::new())
    }

    fn set(root: &mut Value, pointer: &str, value: Value) {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(object) = root.pointer_mut(parent).and_then(Value::as_object_mut) {
            object.insert(key.into(), value);
        }
    }

    fn assert_refused(cases: &[(Value, &str)]) {
        for (changes, words) in cases {
            let refusal = refusal_of(changes);
            assert!(refusal.contains(words), "{changes}: {refusal:?}");
        }
    }

    #[test]
    fn the_valid_configuration_is_accepted() {
        assert_eq!(refusal_of(&json!({})), "");
    }

    #[test]
    fn row_and_trace_are_refused_by_name() {
        assert_refused(&[
            (json!({"/row_name": " "}), "row_name is blank"),
            (
                json!({"/arrival_speedup_ratio": 0}),
                "arrival_speedup_ratio is 0",
            ),
            (
                json!({"/arrival_speedup_ratio": -1.5}),
                "arrival_speedup_ratio is -1.5",
            ),
            (json!({"/trace/sha256": "A".repeat(64)}), "trace.sha256"),
            (json!({"/trace/sha256": "a".repeat(63)}), "trace.sha256"),
            (
                json!({"/trace/upstream/full_sha256": "z"}),
                "trace.upstream.full_sha256",
            ),
            (
                json!({"/trace/upstream/commit": ""}),
                "trace.upstream.commit is blank",
            ),
            (json!({"/trace/rows": 0}), "trace.rows is 0"),
            (json!({"/trace/rows": 3}), "exceeds the 5 rows"),
            (
                json!({"/trace/slice_start": u64::MAX}),
                "exceeds the 5 rows",
            ),
            (json!({"/trace/block_size": 0}), "trace.block_size is 0"),
            (json!({"/metadata/engine": 1}), "metadata.engine"),
        ]);
    }

    #[test]
    fn workloads_are_refused_by_name() {
        let closed = json!({"kind": "closed_loop", "max_in_flight": 8});
        let agentic = |lanes: Value| json!({"kind": "agentic", "lanes": lanes});
        let format = "agentic_mooncake";
        assert_refused(&[
            (
                json!({"/trace/format": format}),
                "the trace workload cannot replay",
            ),
            (
                json!({"/workload": agentic(Value::Null)}),
                "the agentic workload cannot replay",
            ),
            (
                json!({"/workload": agentic(json!(0)), "/trace/format": format}),
                "workload.lanes is 0",
            ),
            (
                json!({"/workload": closed, "/spec/max_in_flight": 8, "/trace/format": format}),
                "the closed_loop workload cannot replay a trace of format agentic_mooncake",
            ),
            (
                json!({"/spec/max_in_flight": 8}),
                "needs a closed_loop workload",
            ),
            (json!({"/workload": closed}), "spec.max_in_flight must be 8"),
            (
                json!({"/workload": closed, "/spec/max_in_flight": 9}),
                "spec.max_in_flight must be 8",
            ),
            (
                json!({"/workload": {"kind": "closed_loop", "max_in_flight": 0}}),
                "workload.max_in_flight is 0",
            ),
        ]);
    }

    #[test]
    fn engines_are_refused_by_name() {
        let external = json!({"type": "external", "provider": "aic"});
        let role = json!({"rank": {"native_host_offload": {"num_host_blocks": 1}}});
        let config = json!({"placement": {"provider": "round_robin", "config": {"a": 1}}});
        assert_refused(&[
            (
                json!({"/spec/adapters": {"placement": {"provider": "dynamo_router"}}}),
                "spec.adapters.placement must be \"round_robin\"",
            ),
            (
                json!({"/spec/adapters": {"scaling": {"provider": "dynamo_planner"}}}),
                "spec.adapters.scaling must be \"none\"",
            ),
            (
                json!({"/spec/adapters": config}),
                "spec.adapters.placement.config",
            ),
            (
                json!({"/spec/engine/rank/timing_model": external}),
                "external timing",
            ),
            (
                json!({"/spec/engine/decode": role}),
                "spec.engine.decode.rank.native_host_offload",
            ),
            (json!({"/spec/engine/rank/g3_offload": {}}), "host offload"),
            (json!({"/spec/engine/kvbm_config": {}}), "KVBM"),
            (json!({"/spec/kvbm": true}), "KVBM"),
            (
                json!({"/spec/max_sim_time_ms": 1.0}),
                "spec.max_sim_time_ms",
            ),
            (
                json!({"/spec/requests": [{}]}),
                "spec.requests must be empty",
            ),
        ]);
    }

    #[test]
    fn all_refusals_are_told_at_once() {
        let refusal = refusal_of(&json!({"/row_name": "", "/spec/max_sim_time_ms": 1}));
        assert!(refusal.contains("row_name") && refusal.contains("max_sim_time_ms"));
    }

    #[test]
    fn what_is_null_or_default_is_accepted() {
        let adapters = json!({
            "placement": {"provider": "round_robin", "config": null},
            "scaling": {"provider": "none", "config": {}},
        });
        let refusal = refusal_of(&json!({
            "/spec/adapters": adapters,
            "/spec/max_sim_time_ms": null,
            "/spec/max_in_flight": null,
            "/spec/engine/rank/native_host_offload": null,
            "/spec/engine/rank/timing_model": {"type": "polynomial"},
            "/metadata/owner": "me",
        }));
        assert_eq!(refusal, "");
    }
}
