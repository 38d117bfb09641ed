//! Workloads other than the trace's own arrivals.
#![allow(clippy::unwrap_used)] // A missing field should stop a test.

mod support;

use serde_json::{Value, json};
use support::{Row, aggregated, rank, request};

fn closed_loop(cap: u64) -> Vec<(f64, f64)> {
    let mut spec = aggregated(1, &rank("vllm", 64, 3.0, 1.0));
    spec["max_in_flight"] = json!(cap);
    let requests = [1, 2, 3, 4].map(|block| request(0, 4, 2, block));
    let row = Row::new(&requests, &spec, |config| {
        config["workload"] = json!({"kind": "closed_loop", "max_in_flight": cap});
    });
    let run = row.run();
    assert_eq!(run.qualification()["completed_requests"], 4);
    let record = run.record();
    let admission = &record["metadata"]["workload"]["admission"];
    assert_eq!(
        admission,
        &json!({"kind": "closed_loop", "max_in_flight": cap})
    );
    let requests = record["per_request"].as_array().unwrap();
    requests
        .iter()
        .map(|request| {
            let time = |key: &str| request[key].as_f64().unwrap();
            (time("first_admit_ms"), time("terminal_time_ms"))
        })
        .collect()
}

fn most_in_flight(spans: &[(f64, f64)]) -> usize {
    let during = |at: f64| {
        spans
            .iter()
            .filter(|(from, to)| *from <= at && at < *to)
            .count()
    };
    spans.iter().map(|(from, _)| during(*from)).max().unwrap()
}

#[test]
fn a_closed_loop_keeps_its_cap() {
    assert_eq!(most_in_flight(&closed_loop(1)), 1);
    assert_eq!(most_in_flight(&closed_loop(2)), 2);
}

fn agentic(spoil: impl FnOnce(&mut Value)) -> Row {
    let header = json!({
        "schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 4, "hash_id_scope": "local",
        "source": {"format": "test", "digest": "none"},
    });
    let turn = |name: &str, dependencies: Value| {
        json!({
            "request_id": name, "play_id": "play", "session_id": "session", "model": "m", "input_length": 4,
            "output_length": 2, "hash_ids": [1], "not_before_ms": 0.0, "dependencies": dependencies,
        })
    };
    let after = json!([
        {"request_id": "one", "trigger": "completion", "delay_ms": 5.0, "relation": "sequence"}
    ]);
    let lines = [header, turn("one", json!([])), turn("two", after)];
    Row::new(
        &lines,
        &aggregated(1, &rank("vllm", 64, 3.0, 1.0)),
        |config| {
            config["workload"] = json!({"kind": "agentic", "lanes": null});
            config["trace"]["format"] = json!("agentic_mooncake");
            config["trace"]["rows"] = json!(2);
            spoil(config);
        },
    )
}

#[test]
fn an_agentic_trace_respects_its_dependencies() {
    let run = agentic(|_| {}).run();
    assert_eq!(run.qualification()["completed_requests"], 2);
    let record = run.record();
    let requests = record["per_request"].as_array().unwrap();
    let time = |name: &str, key: &str| {
        let mut found = requests
            .iter()
            .filter(|request| request["request_id"] == name);
        found.next().unwrap()[key].as_f64().unwrap()
    };
    assert!(time("two", "first_admit_ms") >= time("one", "terminal_time_ms") + 5.0);
    let workload = &record["metadata"]["workload"];
    assert_eq!(workload["format"], "agentic_mooncake");
    assert_eq!(
        workload["admission"],
        json!({"kind": "agentic", "lanes": null})
    );
}

#[test]
fn lanes_are_part_of_the_record() {
    let run = agentic(|config| config["workload"]["lanes"] = json!(1)).run();
    let workload = &run.record()["metadata"]["workload"];
    assert_eq!(
        workload["admission"],
        json!({"kind": "agentic", "lanes": 1})
    );
}

#[test]
fn the_block_size_of_an_agentic_trace_is_its_headers() {
    let run = agentic(|config| config["trace"]["block_size"] = json!(8)).run();
    assert_eq!(run.status(), 11);
    let message = run.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("blocks of 4 tokens"), "{message}");
}
