//! One row, from its configuration to the two files of a run.

use std::fs;
use std::path::Path;
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::config::{self, RunnerConfig};
use crate::engine::EngineSpec;
use crate::errors::RunnerError;
use crate::identity::Identity;
use crate::output::OutputFolder;
use crate::qualification::{Counters, QUALIFICATION_SCHEMA, Qualification, Timing};
use crate::{record, refusals, trace, workload};

/// The record, one line.
pub const CANONICAL_FILE: &str = "canonical.jsonl";
/// The counters.
pub const QUALIFICATION_FILE: &str = "qualification.json";
/// What went wrong; then there is no other file.
pub const ERROR_FILE: &str = "error.json";

/// Replays the row that `config` names and writes its record and counters into `output`.
///
/// # Errors
/// Every typed failure; `error.json` then lies in the folder, unless the folder itself was refused or cannot be written.
pub fn run(config: &Path, output: &Path) -> Result<(), RunnerError> {
    let folder = OutputFolder::take(output)?;
    replay_into(config, &folder).inspect_err(|error| {
        for name in [CANONICAL_FILE, QUALIFICATION_FILE] {
            folder.discard(name);
        }
        // The caller hears of the first failure even where the second one, a full disk say, keeps it off the disk.
        let _ = folder.write_json(ERROR_FILE, &error.to_json());
    })
}

fn replay_into(path: &Path, folder: &OutputFolder) -> Result<(), RunnerError> {
    let config = read(path)?;
    let started = Instant::now();
    trace::verify(&config.trace)?;
    let spec = EngineSpec::parse(&config.spec)?;
    let driver = workload::driver(&config, spec.block_size())?;
    let loaded = Instant::now();
    let report = record::replay(&spec, driver)?;
    let replayed = Instant::now();
    let record = record::build(&report, record::metadata(&config, &spec)?)?;
    drop(report);
    let (counters, counters_error) = match Counters::read(&record) {
        Ok(counters) => (Some(counters), None),
        Err(error) => (None, Some(error)),
    };
    let line = record
        .into_json_line()
        .map_err(|error| RunnerError::from_engine(crate::errors::Phase::Run, &error))?;
    folder.write(CANONICAL_FILE, &line)?;
    let qualification = Qualification {
        schema: QUALIFICATION_SCHEMA,
        row_name: config.row_name,
        canonical_sha256: trace::hexadecimal(&Sha256::digest(&line)),
        canonical_bytes: line.len() as u64,
        counters,
        counters_error,
        timing_ms: Timing {
            load: milliseconds(started, loaded),
            replay: milliseconds(loaded, replayed),
            serialise: milliseconds(replayed, Instant::now()),
        },
        identity: Identity::compiled_in(),
    };
    folder.write_json(QUALIFICATION_FILE, &qualification)
}

fn read(path: &Path) -> Result<RunnerConfig, RunnerError> {
    let text = fs::read(path).map_err(|error| {
        RunnerError::io(format!(
            "cannot read the configuration {}: {error}",
            path.display()
        ))
    })?;
    let config = config::parse(&text)?;
    refusals::check(&config)?;
    Ok(config)
}

fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.duration_since(from).as_secs_f64() * 1e3
}
