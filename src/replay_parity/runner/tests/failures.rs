//! Every exit status, with what is left on disk and on standard error.
#![allow(clippy::unwrap_used)] // A missing file should stop a test.

mod support;

use std::fs::{self, File, OpenOptions};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Row, Run, aggregated, json_file, rank, request, runner, scratch};

fn row(spoil: impl FnOnce(&mut Value)) -> Row {
    Row::new(
        &[request(0, 4, 2, 1)],
        &aggregated(1, &rank("vllm", 16, 10.0, 2.0)),
        spoil,
    )
}

fn assert_error(run: &Run, status: i32, kind: &str) -> Value {
    assert_eq!(run.status(), status, "{}", run.stderr());
    let error = run.error();
    assert_eq!(error["kind"], kind);
    error
}

#[test]
fn a_refused_configuration_is_10() {
    let run = row(|config| config["spec"]["max_sim_time_ms"] = json!(1)).run();
    let error = assert_error(&run, 10, "bad_config");
    assert_eq!(
        (&error["phase"], &error["variant"]),
        (&Value::Null, &Value::Null)
    );
    let run = row(|config| config["surprise"] = json!(1)).run();
    assert_error(&run, 10, "bad_config");
}

#[test]
fn another_trace_is_11() {
    let run = row(|config| config["trace"]["sha256"] = json!("0".repeat(64))).run();
    assert_error(&run, 11, "trace_mismatch");
    let run = row(|config| {
        config["trace"]["rows"] = json!(2);
        config["trace"]["upstream"]["full_rows"] = json!(2);
    })
    .run();
    assert_error(&run, 11, "trace_mismatch");
}

#[test]
fn an_engine_that_refuses_is_12_with_its_own_words() {
    let run = row(|config| config["spec"]["engine"]["rank"]["block_size"] = json!(1)).run();
    let error = assert_error(&run, 12, "engine_refused");
    assert_eq!(error["variant"], "Engine");
    let run =
        row(|config| config["spec"]["topology"]["workers"]["initial_workers"] = json!(0)).run();
    let error = assert_error(&run, 12, "engine_refused");
    assert_eq!(
        (&error["phase"], &error["variant"]),
        (&json!("new"), &json!("InvalidSpec"))
    );
}

#[test]
fn refusals_do_not_depend_on_where_the_trace_lies() {
    let message = || {
        let broken = Row::new(
            &[json!({"timestamp": 0, "input_length": "four"})],
            &aggregated(1, &rank("vllm", 16, 10.0, 2.0)),
            |_| {},
        );
        let error = assert_error(&broken.run(), 12, "engine_refused");
        assert_eq!(
            (&error["phase"], &error["variant"]),
            (&json!("new"), &json!("Other"))
        );
        error["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(message(), message());
}

#[test]
fn a_missing_file_is_13() {
    let run = row(|config| config["trace"]["path"] = json!("/nowhere/trace.jsonl")).run();
    assert_error(&run, 13, "io_error");
    let mut row = row(|_| {});
    row.config = row.folder.join("missing.json");
    assert_error(&row.run(), 13, "io_error");
}

#[test]
fn a_folder_that_is_not_empty_is_left_alone() {
    let row = row(|_| {});
    let folder = scratch();
    fs::write(folder.join("canonical.jsonl"), b"mine").unwrap();
    let process = runner()
        .args(["run", "--config"])
        .arg(&row.config)
        .arg("--output")
        .arg(&folder)
        .output()
        .unwrap();
    assert_eq!(process.status.code(), Some(10));
    let error: Value = serde_json::from_slice(&process.stderr).unwrap();
    assert!(error["message"].as_str().unwrap().contains("not empty"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(fs::read(folder.join("canonical.jsonl")).unwrap(), b"mine");
}

#[test]
fn a_command_that_is_not_understood_is_2() {
    for arguments in [&[][..], &["walk"], &["run", "--config"]] {
        let process = runner().args(arguments).output().unwrap();
        assert_eq!(process.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&process.stderr).contains("usage:"));
    }
}

#[test]
fn the_identity_is_one_json_line() {
    let process = runner().arg("identity").output().unwrap();
    assert_eq!(process.status.code(), Some(0));
    let identity: Value = serde_json::from_slice(&process.stdout).unwrap();
    assert_eq!(identity["schema"], "replay-parity.runner-identity.v1");
    let end = process.stdout.iter().position(|byte| *byte == b'\n');
    assert_eq!(end, Some(process.stdout.len() - 1));
    let qualification = row(|_| {}).run().qualification();
    assert_eq!(qualification["identity"], identity);
}

/// A shell sets up what the standard library cannot: closed descriptors and limits.
#[cfg(unix)]
fn under_shell(prelude: &str, redirection: &str, arguments: &[&std::ffi::OsStr]) -> Option<i32> {
    let script = format!("{prelude} exec \"$0\" \"$@\" {redirection}");
    Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_replay-parity-runner")])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .code()
}

#[cfg(unix)]
#[test]
fn closed_outputs_do_not_panic() {
    assert_eq!(under_shell("", ">&- 2>&-", &["identity".as_ref()]), Some(0));
    assert_eq!(under_shell("", ">&- 2>&-", &["walk".as_ref()]), Some(2));
    let refused = row(|config| config["row_name"] = json!(""));
    let folder = scratch();
    let arguments = [
        "run".as_ref(),
        "--config".as_ref(),
        refused.config.as_os_str(),
        "--output".as_ref(),
        folder.as_os_str(),
    ];
    assert_eq!(under_shell("", ">&- 2>&-", &arguments), Some(10));
    assert_eq!(json_file(&folder.join("error.json"))["kind"], "bad_config");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_13() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = |stdout: File, arguments: &[&str]| {
        let mut process = runner();
        process.args(arguments).stdout(stdout).stderr(full());
        process.status().unwrap().code()
    };
    assert_eq!(status(full(), &["identity"]), Some(13));
    assert_eq!(status(full(), &["walk"]), Some(2));
}

/// A file-size limit plays the full disk.
#[cfg(unix)]
#[test]
fn a_record_that_cannot_be_written_is_13_and_leaves_no_part() {
    let row = row(|_| {});
    let folder = scratch();
    let arguments = [
        "run".as_ref(),
        "--config".as_ref(),
        row.config.as_os_str(),
        "--output".as_ref(),
        folder.as_os_str(),
    ];
    let status = under_shell("trap '' XFSZ; ulimit -f 0;", "", &arguments);
    assert_eq!(status, Some(13));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
