//! A verified trace as the engine's workload driver.

use aisimulate_core::replay::loadgen::{AgenticTrace, Trace, WorkloadDriver};

use crate::config::{RunnerConfig, TraceConfig, Workload};
use crate::errors::{Phase, RunnerError};

/// Loads the trace and builds its driver: starts moved to zero, then all times divided by the speedup.
///
/// # Errors
/// `engine_refused` when the engine cannot load the trace; `trace_mismatch` when an agentic trace has another block size.
pub fn driver(
    config: &RunnerConfig,
    engine_block_size: usize,
) -> Result<WorkloadDriver, RunnerError> {
    let trace = &config.trace;
    let ratio = config.arrival_speedup_ratio;
    match config.workload {
        Workload::Trace {} => mooncake(trace, ratio)
            .and_then(|trace| WorkloadDriver::new_trace(trace, engine_block_size)),
        Workload::ClosedLoop { max_in_flight } => mooncake(trace, ratio).and_then(|trace| {
            WorkloadDriver::new_concurrency(
                trace,
                engine_block_size,
                usize::try_from(max_in_flight)?,
            )
        }),
        Workload::Agentic { lanes } => {
            let graph = AgenticTrace::from_agentic_mooncake(&trace.path)
                .map_err(|error| refused(trace, &error))?;
            check_block_size(trace, graph.block_size())?;
            agentic(graph, ratio, engine_block_size, lanes)
        }
    }
    .map_err(|error| refused(trace, &error))
}

fn mooncake(trace: &TraceConfig, ratio: f64) -> anyhow::Result<Trace> {
    Trace::from_mooncake(&trace.path, trace.block_size)?
        .normalize_session_starts()?
        .speed_up_timing(ratio)
}

fn agentic(
    graph: AgenticTrace,
    ratio: f64,
    engine_block_size: usize,
    lanes: Option<usize>,
) -> anyhow::Result<WorkloadDriver> {
    let graph = graph.normalize_starts().speed_up_timing(ratio)?;
    match lanes {
        None => WorkloadDriver::new_agentic_trace(graph, engine_block_size),
        Some(lanes) => {
            WorkloadDriver::new_agentic_trace_with_lanes(graph, engine_block_size, lanes)
        }
    }
}

/// The header of an agentic trace owns its block size; the record must not say another.
fn check_block_size(trace: &TraceConfig, found: usize) -> Result<(), RunnerError> {
    if found == trace.block_size {
        return Ok(());
    }
    Err(RunnerError::trace_mismatch(format!(
        "the trace {} has blocks of {found} tokens; the configuration names {}",
        trace.path.display(),
        trace.block_size
    )))
}

fn refused(trace: &TraceConfig, error: &anyhow::Error) -> RunnerError {
    RunnerError::from_engine(Phase::New, error).without_path(&trace.path)
}
