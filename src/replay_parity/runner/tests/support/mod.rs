//! Rows small enough to reckon by hand, and processes of the built runner that replay them.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test file uses its part; a broken fixture should stop a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use replay_parity_runner::config::CONFIG_SCHEMA;
use replay_parity_runner::trace;
use serde_json::{Value, json};

/// A folder of its own for every call, below cargo's scratch folder.
pub fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A row on disk: its trace and its configuration, which `spoil` may change.
pub struct Row {
    pub folder: PathBuf,
    pub config: PathBuf,
}

impl Row {
    pub fn new(lines: &[Value], spec: &Value, spoil: impl FnOnce(&mut Value)) -> Self {
        let folder = scratch();
        let path = folder.join("trace.jsonl");
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let sha256 = trace::observe(&path).unwrap().sha256;
        let mut config = json!({
            "schema": CONFIG_SCHEMA,
            "row_name": "seed",
            "trace": {
                "path": path, "sha256": sha256, "rows": lines.len(), "format": "mooncake", "block_size": 4,
                "upstream": {
                    "repository": "here", "commit": "none", "path": "trace.jsonl",
                    "full_sha256": sha256, "full_rows": lines.len(),
                },
                "slice_start": 0,
            },
            "workload": {"kind": "trace"},
            "arrival_speedup_ratio": 1.0,
            "metadata": {},
            "spec": spec,
        });
        spoil(&mut config);
        let file = folder.join("config.json");
        fs::write(&file, config.to_string()).unwrap();
        Self {
            folder,
            config: file,
        }
    }

    /// Replays the row in a process of its own, into a folder of its own.
    pub fn run(&self) -> Run {
        let output = scratch();
        let process = runner()
            .arg("run")
            .arg("--config")
            .arg(&self.config)
            .arg("--output")
            .arg(&output)
            .output()
            .unwrap();
        Run {
            folder: output,
            process,
        }
    }
}

/// One finished process.
pub struct Run {
    pub folder: PathBuf,
    pub process: Output,
}

impl Run {
    pub fn status(&self) -> i32 {
        self.process.status.code().unwrap()
    }

    pub fn canonical(&self) -> Vec<u8> {
        assert_eq!(self.status(), 0, "{}", self.stderr());
        fs::read(self.folder.join("canonical.jsonl")).unwrap()
    }

    pub fn record(&self) -> Value {
        serde_json::from_slice(&self.canonical()).unwrap()
    }

    pub fn qualification(&self) -> Value {
        assert_eq!(self.status(), 0, "{}", self.stderr());
        json_file(&self.folder.join("qualification.json"))
    }

    /// The content of `error.json`, which must be what standard error says, and the only file.
    pub fn error(&self) -> Value {
        let error = json_file(&self.folder.join("error.json"));
        assert_eq!(
            error,
            serde_json::from_str::<Value>(&self.stderr()).unwrap()
        );
        assert_eq!(fs::read_dir(&self.folder).unwrap().count(), 1);
        error
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.process.stderr).into_owned()
    }
}

pub fn runner() -> Command {
    Command::new(env!("CARGO_BIN_EXE_replay-parity-runner"))
}

pub fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Generation of the engine beside this crate, told by its version: seeds have other values from 0.13.0 on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Engine {
    /// 0.1.0-dev.2 and 0.12.
    Before013,
    /// 0.13.
    From013,
    /// A revision that nobody has reckoned yet.
    Unknown,
}

impl Engine {
    pub fn of_the_slot() -> Self {
        let manifest =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkout/crates/core/Cargo.toml");
        let text = fs::read_to_string(manifest).unwrap();
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix("version = \""))
            .unwrap_or_default();
        match version {
            version if version.starts_with("0.13.") => Self::From013,
            version if version.starts_with("0.12.") || version.starts_with("0.1.0-") => {
                Self::Before013
            }
            _ => Self::Unknown,
        }
    }

    /// The reckoned value, if there is one.
    pub fn value(self, before: f64, from: f64) -> Option<f64> {
        match self {
            Self::Before013 => Some(before),
            Self::From013 => Some(from),
            Self::Unknown => None,
        }
    }
}

/// One request of a trace, with blocks of its own.
pub fn request(timestamp: u64, input: u64, output: u64, block: u64) -> Value {
    let blocks: Vec<u64> = (0..input.div_ceil(4))
        .map(|index| 1000 * block + index)
        .collect();
    json!({"timestamp": timestamp, "input_length": input, "output_length": output, "hash_ids": blocks})
}

/// One rank of 4-token blocks, 4 sequences and 64 tokens per pass, with fixed timing.
pub fn rank(backend: &str, blocks: u64, prefill_ms: f64, decode_ms: f64) -> Value {
    json!({
        "backend": backend, "num_gpu_blocks": blocks, "block_size": 4, "max_num_seqs": 4,
        "max_num_batched_tokens": 64,
        "timing_model": {"type": "fixed", "prefill_ms": prefill_ms, "decode_ms": decode_ms},
    })
}

/// Aggregated workers of one rank each.
pub fn aggregated(workers: u64, rank: &Value) -> Value {
    json!({
        "topology": {"kind": "aggregated", "workers": {"initial_workers": workers}},
        "engine": {"rank": rank}, "requests": [],
    })
}

/// One prefill and one decode worker, 1 ms apart.
pub fn disaggregated(backend: &str, prefill: &Value, decode: &Value) -> Value {
    let worker = json!({"initial_workers": 1});
    json!({
        "topology": {"kind": "disaggregated", "prefill": worker, "decode": worker, "handoff_latency_ms": 1.0},
        "engine": {"rank": rank(backend, 32, 1.0, 1.0), "prefill": {"rank": prefill}, "decode": {"rank": decode}},
        "requests": [],
    })
}
