//! Replays one row of a campaign with the revision of `aisimulate-core` that lies beside this crate in the build slot.
//!
//! One source serves every revision: engine structures are read by serde and never built field by field, errors are
//! told apart by the name of their variant, and counters are read from the canonical record by field name.

pub mod cli;
pub mod config;
pub mod engine;
pub mod errors;
pub mod identity;
pub mod output;
pub mod qualification;
pub mod record;
pub mod refusals;
pub mod run;
pub mod trace;
pub mod workload;
