//! Counters that show which paths a replay took, read from the canonical record by field name.

use std::collections::BTreeMap;

use aisimulate_core::replay::CanonicalReplayRecord;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::identity::Identity;

/// Schema of `qualification.json`.
pub const QUALIFICATION_SCHEMA: &str = "replay-parity.qualification.v1";

/// The content of `qualification.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Qualification {
    /// [`QUALIFICATION_SCHEMA`].
    pub schema: &'static str,
    /// Name of the row.
    pub row_name: String,
    /// SHA-256 of the canonical record, its newline included.
    pub canonical_sha256: String,
    /// Bytes of the canonical record, its newline included.
    pub canonical_bytes: u64,
    /// The counters; left out when the record has another form than the known ones.
    #[serde(flatten)]
    pub counters: Option<Counters>,
    /// Why the counters are left out.
    pub counters_error: Option<String>,
    /// Wall times. Not a performance result.
    pub timing_ms: Timing,
    /// The binary that replayed.
    pub identity: Identity,
}

/// Wall times of one process, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Timing {
    /// Verifying and loading the trace.
    pub load: f64,
    /// Virtual time.
    pub replay: f64,
    /// Building, hashing and writing the record.
    pub serialise: f64,
}

/// Counters over all requests of a record.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Counters {
    /// The summary's own count.
    pub completed_requests: u64,
    /// The summary's own count.
    pub num_requests: u64,
    /// The summary's own count.
    pub total_input_tokens: u64,
    /// The summary's own count.
    pub total_output_tokens: u64,
    /// Output tokens that the trace asks for.
    pub requested_output_tokens: u64,
    /// Whether every request emitted exactly what it asked for.
    pub all_requests_full_output: bool,
    /// Requests that emitted another number of tokens than they asked for.
    pub requests_with_short_output: u64,
    /// Requests per terminal status.
    pub terminal_counts: BTreeMap<String, u64>,
    /// Requests per prefill worker.
    pub prefill_workers: BTreeMap<u64, u64>,
    /// Requests per decode worker.
    pub decode_workers: BTreeMap<u64, u64>,
    /// Placements per outcome (`immediate`, `queued`), and per pool and outcome as published rows name them (`agg_immediate`).
    pub routing_counts: BTreeMap<String, u64>,
    /// Requests that reused input tokens at any time, as published rows count them.
    pub requests_with_reuse: u64,
    /// Requests whose first admission reused input tokens: the honest signal.
    pub requests_with_first_admission_reuse: u64,
    /// Requests with all six hand-off times.
    pub handoffs_complete: u64,
    /// The engine's own count.
    pub vllm_preemptions: u64,
    /// The engine's own count.
    pub sglang_retractions: u64,
    /// Pressure records.
    pub pressure_records: u64,
    /// Whether every pressure record has a readmission.
    pub all_pressure_records_readmitted: bool,
    /// Virtual duration, digit for digit as in the record.
    pub virtual_duration_ms: Number,
}

#[derive(Deserialize)]
struct Summary {
    completed_requests: u64,
    num_requests: u64,
    total_input_tokens: u64,
    total_output_tokens: u64,
    duration_ms: Number,
}

#[derive(Deserialize)]
struct Request<'a> {
    requested_output_length: u64,
    output_length: u64,
    reused_input_tokens: u64,
    #[serde(borrow)]
    terminal_status: &'a str,
    prefill_worker_idx: Option<u64>,
    decode_worker_idx: Option<u64>,
    prefill_admit_ms: Option<f64>,
    source_held_ms: Option<f64>,
    destination_reserved_ms: Option<f64>,
    destination_activated_ms: Option<f64>,
    decode_admit_ms: Option<f64>,
    source_released_ms: Option<f64>,
    #[serde(borrow)]
    routing_history: Vec<Routing<'a>>,
    admission_history: Vec<Admission>,
}

#[derive(Deserialize)]
struct Routing<'a> {
    pool: &'a str,
    outcome: &'a str,
}

#[derive(Deserialize)]
struct Admission {
    reused_input_tokens: u64,
}

#[derive(Deserialize)]
struct Pressure {
    records: Vec<PressureRecord>,
    vllm_preemptions_total: u64,
    sglang_retractions_total: u64,
}

#[derive(Deserialize)]
struct PressureRecord {
    readmitted_at_ms: Option<f64>,
}

impl Counters {
    /// Reads the counters of a record.
    ///
    /// # Errors
    /// In words, when the record lacks a field that a counter is read from.
    pub fn read(record: &CanonicalReplayRecord) -> Result<Self, String> {
        Self::from_parts(&record.summary, &record.per_request, &record.coverage)
    }

    fn from_parts(summary: &Value, per_request: &Value, coverage: &Value) -> Result<Self, String> {
        let summary =
            Summary::deserialize(summary).map_err(|error| format!("/summary: {error}"))?;
        let pressure = coverage.get("pressure").unwrap_or(&Value::Null);
        let pressure = Pressure::deserialize(pressure)
            .map_err(|error| format!("/coverage/pressure: {error}"))?;
        let mut counters = Self::without_requests(summary, &pressure);
        let requests = per_request.as_array().ok_or("/per_request: not an array")?;
        for (index, request) in requests.iter().enumerate() {
            let request = Request::deserialize(request)
                .map_err(|error| format!("/per_request/{index}: {error}"))?;
            counters.add(&request);
        }
        counters.all_requests_full_output = counters.requests_with_short_output == 0;
        Ok(counters)
    }

    fn without_requests(summary: Summary, pressure: &Pressure) -> Self {
        Self {
            completed_requests: summary.completed_requests,
            num_requests: summary.num_requests,
            total_input_tokens: summary.total_input_tokens,
            total_output_tokens: summary.total_output_tokens,
            requested_output_tokens: 0,
            all_requests_full_output: false,
            requests_with_short_output: 0,
            terminal_counts: BTreeMap::new(),
            prefill_workers: BTreeMap::new(),
            decode_workers: BTreeMap::new(),
            routing_counts: ["immediate", "queued"]
                .map(|outcome| (outcome.to_owned(), 0))
                .into(),
            requests_with_reuse: 0,
            requests_with_first_admission_reuse: 0,
            handoffs_complete: 0,
            vllm_preemptions: pressure.vllm_preemptions_total,
            sglang_retractions: pressure.sglang_retractions_total,
            pressure_records: pressure.records.len() as u64,
            all_pressure_records_readmitted: pressure
                .records
                .iter()
                .all(|record| record.readmitted_at_ms.is_some()),
            virtual_duration_ms: summary.duration_ms,
        }
    }

    fn add(&mut self, request: &Request<'_>) {
        self.requested_output_tokens += request.requested_output_length;
        self.requests_with_short_output +=
            u64::from(request.output_length != request.requested_output_length);
        count(&mut self.terminal_counts, request.terminal_status);
        for (workers, worker) in [
            (&mut self.prefill_workers, request.prefill_worker_idx),
            (&mut self.decode_workers, request.decode_worker_idx),
        ] {
            if let Some(worker) = worker {
                *workers.entry(worker).or_default() += 1;
            }
        }
        for Routing { pool, outcome } in &request.routing_history {
            count(&mut self.routing_counts, outcome);
            count(&mut self.routing_counts, &format!("{pool}_{outcome}"));
        }
        self.requests_with_reuse += u64::from(request.reused_input_tokens > 0);
        self.requests_with_first_admission_reuse += u64::from(request.reuses_at_first_admission());
        self.handoffs_complete += u64::from(request.has_all_handoff_times());
    }
}

impl Request<'_> {
    // Later admissions say little: before 0.13.0 SGLang counts the continuation of a chunked prefill as one.
    fn reuses_at_first_admission(&self) -> bool {
        self.admission_history
            .first()
            .is_some_and(|admission| admission.reused_input_tokens > 0)
    }

    fn has_all_handoff_times(&self) -> bool {
        [
            self.prefill_admit_ms,
            self.source_held_ms,
            self.destination_reserved_ms,
            self.destination_activated_ms,
            self.decode_admit_ms,
            self.source_released_ms,
        ]
        .iter()
        .all(Option::is_some)
    }
}

fn count(counts: &mut BTreeMap<String, u64>, key: &str) {
    if let Some(number) = counts.get_mut(key) {
        *number += 1;
    } else {
        counts.insert(key.to_owned(), 1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // Records of a test.
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> Value {
        json!({
            "requested_output_length": 2, "output_length": 2, "reused_input_tokens": 9, "terminal_status": "completed",
            "prefill_worker_idx": 1, "decode_worker_idx": 0,
            "prefill_admit_ms": 0.0, "source_held_ms": 1.0, "destination_reserved_ms": 1.0,
            "destination_activated_ms": 2.0, "decode_admit_ms": 3.0, "source_released_ms": 3.0,
            "routing_history": [{"pool": "prefill", "outcome": "immediate"}, {"pool": "decode", "outcome": "queued"}],
            "admission_history": [{"reused_input_tokens": 0}, {"reused_input_tokens": 9}],
        })
    }

    fn counters(requests: &[Value], pressure: &Value) -> Result<Counters, String> {
        let summary = json!({
            "completed_requests": 2, "num_requests": 2, "total_input_tokens": 8, "total_output_tokens": 4,
            "duration_ms": 1_121_624.686_624_966_6,
        });
        Counters::from_parts(&summary, &json!(requests), &json!({"pressure": pressure}))
    }

    fn calm() -> Value {
        json!({"records": [], "vllm_preemptions_total": 0, "sglang_retractions_total": 0})
    }

    #[test]
    fn requests_are_counted() {
        let mut short = request();
        short["output_length"] = json!(1);
        short["source_released_ms"] = Value::Null;
        short["admission_history"][0]["reused_input_tokens"] = json!(4);
        let counters = counters(&[request(), short], &calm()).unwrap();
        assert_eq!(counters.requested_output_tokens, 4);
        assert_eq!(
            (
                counters.requests_with_short_output,
                counters.all_requests_full_output
            ),
            (1, false)
        );
        assert_eq!(
            (counters.requests_with_reuse, counters.handoffs_complete),
            (2, 1)
        );
        assert_eq!(counters.requests_with_first_admission_reuse, 1);
        assert_eq!(counters.prefill_workers, BTreeMap::from([(1, 2)]));
        assert_eq!(counters.decode_workers, BTreeMap::from([(0, 2)]));
        assert_eq!(
            json!(counters.routing_counts),
            json!({"immediate": 2, "queued": 2, "prefill_immediate": 2, "decode_queued": 2})
        );
        assert_eq!(json!(counters.terminal_counts), json!({"completed": 2}));
    }

    #[test]
    fn pressure_is_counted_with_its_readmissions() {
        let pressure = |readmitted: Value| {
            json!({
                "records": [{"readmitted_at_ms": 1.0}, {"readmitted_at_ms": readmitted}],
                "vllm_preemptions_total": 2, "sglang_retractions_total": 0,
            })
        };
        let all = counters(&[], &pressure(json!(2.0))).unwrap();
        assert_eq!((all.pressure_records, all.vllm_preemptions), (2, 2));
        assert!(all.all_pressure_records_readmitted);
        let one = counters(&[], &pressure(Value::Null)).unwrap();
        assert!(!one.all_pressure_records_readmitted);
    }

    #[test]
    fn the_duration_keeps_its_digits() {
        let counters = counters(&[], &calm()).unwrap();
        assert_eq!(
            counters.virtual_duration_ms.to_string(),
            "1121624.6866249666"
        );
    }

    #[test]
    fn a_record_of_another_form_is_named() {
        let mut other = request();
        other.as_object_mut().unwrap().remove("output_length");
        let error = counters(&[request(), other], &calm()).unwrap_err();
        assert!(
            error.contains("/per_request/1") && error.contains("output_length"),
            "{error}"
        );
        assert!(
            counters(&[], &Value::Null)
                .unwrap_err()
                .contains("/coverage/pressure")
        );
    }

    #[test]
    fn worker_ids_become_json_keys() {
        let counters = counters(&[request()], &calm()).unwrap();
        assert_eq!(json!(counters)["prefill_workers"], json!({"1": 1}));
    }
}
