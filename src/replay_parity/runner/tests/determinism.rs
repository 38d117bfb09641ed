//! Two processes of one binary: equal bytes, unless determinism was turned off on purpose.
#![allow(clippy::unwrap_used)] // A missing file should stop a test.

mod support;

use std::fs;

use replay_parity_runner::trace::hexadecimal;
use sha2::{Digest, Sha256};
use support::{Row, aggregated, rank, request};

fn row() -> Row {
    let requests = [1, 2, 3].map(|block| request(block, 8, 4, block % 2));
    Row::new(
        &requests,
        &aggregated(1, &rank("vllm", 16, 3.0, 1.5)),
        |_| {},
    )
}

#[cfg(not(feature = "determinism-off"))]
#[test]
fn two_processes_write_the_same_bytes() {
    let row = row();
    assert_eq!(row.run().canonical(), row.run().canonical());
}

#[cfg(feature = "determinism-off")]
#[test]
fn two_processes_write_different_bytes() {
    let row = row();
    let (one, other) = (row.run(), row.run());
    assert_ne!(one.canonical(), other.canonical());
    assert_eq!(one.qualification()["identity"]["determinism"], "random");
}

#[test]
fn the_record_is_one_line_with_sorted_keys() {
    let run = row().run();
    let line = run.canonical();
    let end = line.iter().position(|byte| *byte == b'\n');
    assert_eq!(end, Some(line.len() - 1));
    // Digits are left out: this reader of numbers is a fast one, and may miss the last place.
    let without_digits = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    let text = String::from_utf8(line).unwrap();
    let sorted = format!("{}\n", run.record());
    assert_eq!(without_digits(&text), without_digits(&sorted));
}

#[test]
fn the_digest_is_that_of_the_file() {
    let run = row().run();
    let line = run.canonical();
    let qualification = run.qualification();
    assert_eq!(
        qualification["canonical_sha256"],
        hexadecimal(&Sha256::digest(&line))
    );
    assert_eq!(qualification["canonical_bytes"], line.len());
    assert_eq!(fs::read_dir(&run.folder).unwrap().count(), 2);
}

#[test]
fn times_are_told_apart_from_results() {
    let qualification = row().run().qualification();
    for phase in ["load", "replay", "serialise"] {
        assert!(qualification["timing_ms"][phase].as_f64().unwrap() >= 0.0);
    }
}
