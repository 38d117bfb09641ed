//! The four preflight seeds, with the values that each release of the engine gives.
#![cfg(not(feature = "determinism-off"))]
#![allow(clippy::unwrap_used)] // A missing field should stop a test.

mod support;

use serde_json::{Value, json};
use support::{Engine, Row, Run, aggregated, disaggregated, rank, request};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn assert_near(found: &Value, expected: Option<f64>) {
    if let Some(expected) = expected {
        assert!(
            (number(found) - expected).abs() < 1e-9,
            "{found} is not {expected}"
        );
    }
}

fn assert_complete(run: &Run, requests: u64) {
    let qualification = run.qualification();
    assert_eq!(qualification["counters_error"], Value::Null);
    assert_eq!(qualification["completed_requests"], requests);
    assert_eq!(
        qualification["terminal_counts"],
        json!({"completed": requests})
    );
    assert_eq!(qualification["all_requests_full_output"], true);
    assert_eq!(qualification["routing_counts"]["queued"], 0);
    assert_eq!(qualification["pressure_records"], 0);
}

#[test]
fn one_worker() {
    let row = Row::new(
        &[request(0, 4, 2, 1)],
        &aggregated(1, &rank("vllm", 16, 10.0, 2.0)),
        |_| {},
    );
    let run = row.run();
    assert_complete(&run, 1);
    let engine = Engine::of_the_slot();
    assert_near(
        &run.qualification()["virtual_duration_ms"],
        engine.value(14.0, 12.0),
    );
    let first_token = &run.record()["per_request"][0]["first_token_ms"];
    assert_near(first_token, engine.value(12.0, 10.0));
}

#[test]
fn two_workers_take_turns() {
    let requests = [1, 2, 3, 4].map(|block| request(0, 4, 1, block));
    let row = Row::new(
        &requests,
        &aggregated(2, &rank("vllm", 16, 1.0, 1.0)),
        |_| {},
    );
    let run = row.run();
    assert_complete(&run, 4);
    let record = run.record();
    let workers: Vec<&Value> = record["per_request"]
        .as_array()
        .unwrap()
        .iter()
        .map(|request| &request["decode_worker_idx"])
        .collect();
    assert_eq!(workers, [0, 1, 0, 1]);
    assert_eq!(
        run.qualification()["decode_workers"],
        json!({"0": 2, "1": 2})
    );
}

fn hand_off(backend: &str, prefill_ms: f64, before: f64, from: f64) {
    let spec = disaggregated(
        backend,
        &rank(backend, 32, prefill_ms, 1.0),
        &rank(backend, 32, prefill_ms, 2.0),
    );
    let run = Row::new(&[request(0, 4, 2, 1)], &spec, |_| {}).run();
    assert_complete(&run, 1);
    assert_eq!(run.qualification()["handoffs_complete"], 1);
    let duration = &run.qualification()["virtual_duration_ms"];
    assert_near(duration, Engine::of_the_slot().value(before, from));
    let record = run.record();
    for overlap in [
        "prefill_route_overlap_tokens",
        "decode_route_overlap_tokens",
    ] {
        assert_eq!(record["per_request"][0][overlap], 0, "{overlap}");
    }
}

#[test]
fn vllm_hands_off() {
    hand_off("vllm", 3.0, 8.0, 8.0);
}

#[test]
fn sglang_hands_off() {
    hand_off("sglang", 4.0, 10.0, 9.0);
}
