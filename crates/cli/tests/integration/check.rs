//! `check --pid` and `check --bundle`: has the code names that time is spent in?

use crate::stage::{Running, place, scaleprof, texts};
use libc::{SIGINT, SIGTERM};
use std::process::{Command, Stdio};
use testing::{Killed, soon};

/// A stripped program of the distribution that computes in its own code until it is ended.
fn stripped() -> Killed {
    Killed::start(Command::new("cksum").arg("/dev/zero").stdout(Stdio::null()))
}

/// Whether this kernel lets us watch; said where it does not.
pub(crate) fn can_watch() -> bool {
    let tried = scaleprof_probe::Watch::start(std::process::id(), scaleprof_probe::WatchOptions::default());
    if let Err(error) = &tried {
        testing::skip!("a watch: {error}");
    }
    tried.is_ok()
}

/// What was found of the hot code, and of each file of it.
fn hot_code(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = scaleprof().arg("check").args(arguments).arg("--json").output();
    let (out, err) = texts(&output.expect("it starts"));
    let document: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    assert_eq!(document["schema"], 1);
    let items = document["items"].as_array().expect("a list");
    items
        .iter()
        .filter(|item| item["topic"] == "names of the hot code")
        .cloned()
        .collect()
}

#[test]
fn hot_code_without_names_is_told_with_the_command_that_brings_them() {
    if !can_watch() {
        return;
    }
    let program = stripped();
    let pid = program.pid().to_string();
    let place = place();
    let folder = place.path().join("watch");
    let mut attach = scaleprof();
    attach.args([
        "attach",
        "--quiet",
        "--any-process",
        "--seconds",
        "2",
        "--pid",
        &pid,
        "--output",
    ]);
    let (_, err) = texts(&attach.arg(&folder).output().expect("it starts"));
    assert!(folder.join("manifest.json").exists(), "{err}");
    let bundle = folder.to_string_lossy().into_owned();

    let live = hot_code(&["--pid", &pid, "--seconds", "3"]);
    let kept = hot_code(&["--bundle", &bundle]);
    for items in [&live, &kept] {
        assert_eq!(items[0]["status"], "warning", "{items:?}");
        let of_program = items[1..]
            .iter()
            .find(|item| item["found"].as_str().is_some_and(|what| what.starts_with("cksum: ")));
        assert!(of_program.is_some(), "{items:?}");
    }
    // A bundle does not say in which folder its files lie, and this is in none of libraries.
    let fix = kept[1]["fix"].as_str().unwrap_or_default();
    assert!(fix.contains("on the server's machine: scaleprof check --pid"), "{fix}");
    // Where the file is, the command names it or its package.
    let fix = live[1]["fix"].as_str().unwrap_or_default();
    assert!(
        fix.contains("cksum") || fix.contains("coreutils") || fix.contains("debuginfod"),
        "{fix}"
    );
}

#[test]
fn ended_at_once_it_leaves_no_temporary_folder() {
    if !can_watch() {
        return;
    }
    let program = stripped();
    let place = place();
    let mut command = scaleprof();
    command.args(["check", "--seconds", "60", "--pid", &program.pid().to_string()]);
    let running = Running::start(command.env("TMPDIR", place.path()));
    let folders = || std::fs::read_dir(place.path()).expect("it is there").flatten();
    soon("something is kept", || {
        folders().any(|folder| folder.path().join("bundle/manifest.json").exists())
    });
    // Two that differ: of two alike the kernel may deliver one.
    running.signal(SIGINT);
    running.signal(SIGTERM);
    let output = running.end();
    assert!(
        matches!(output.status.code(), Some(130 | 143)),
        "{:?}{:?}",
        output.status,
        texts(&output)
    );
    assert_eq!(folders().count(), 0);
}

#[test]
fn without_a_process_or_a_bundle_nothing_is_said_of_hot_code() {
    assert!(hot_code(&[]).is_empty());
}

#[test]
fn a_process_that_is_not_there_is_refused() {
    let output = scaleprof()
        .args(["check", "--pid", "2147483647"])
        .output()
        .expect("it starts");
    let (_, err) = texts(&output);
    assert!(!output.status.success() && err.contains("no process"), "{err}");
}
