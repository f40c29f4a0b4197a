//! `import`: what makes imported figures doubtful is said, and what cannot be meant is refused.

use crate::import::{recorded, script_of};
use crate::stage::{bundle, fail, place, scaleprof, succeed};
use scaleprof_bundle::RunState;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn import(output: &Path, files: &[&PathBuf], options: &[&str]) -> Command {
    let mut command = scaleprof();
    command.args(["import", "--quiet", "--no-code", "--no-report", "--output"]);
    command.arg(output).args(options).args(files);
    command
}

#[test]
fn call_paths_that_were_found_in_two_ways_are_not_held_against_each_other() {
    let place = place();
    let recorded = |name: &str, callers: &str| recorded(place.path(), name, callers);
    let (Some(pointers), Some(copies)) = (recorded("pointers", "fp"), recorded("copies", "dwarf,16384")) else {
        return;
    };
    let [a, b, both] = ["a", "b", "both"].map(|name| place.path().join(name));
    succeed(&mut import(&a, &[&pointers], &[]));
    succeed(&mut import(&b, &[&copies], &[]));
    assert_eq!(bundle(&a).manifest.workload.call_paths(), Some("frame pointers"));
    assert_eq!(bundle(&b).manifest.workload.call_paths(), Some("copied stacks"));
    let (out, _) = succeed(scaleprof().arg("diff").args([&a, &b]).arg("--json"));
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(told["paths"], serde_json::json!([]), "{told}");
    let kinds = told["rungs"][0]["code_kinds"].as_array().expect("kinds of code");
    assert!(!kinds.is_empty(), "{told}");
    let cause = told["unpaired"].as_str().expect("a cause");
    assert!(
        cause.contains("frame pointers") && cause.contains("copied stacks"),
        "{cause}"
    );
    let (text, _) = succeed(scaleprof().arg("diff").args([&a, &b]));
    assert!(text.contains("made alike") && !text.contains("two products"), "{text}");

    let loads = ["--connections", "1,2", "--throughput", "9,9"];
    let (out, warned) = succeed(&mut import(&both, &[&pointers, &copies], &loads));
    let out = out.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(out.contains("--stat takes what it printed"), "{out}");
    assert!(
        warned.contains("recording 2 come from copied stacks, those of recording 1 from frame pointers"),
        "{warned}"
    );
    // Alike, nothing is said.
    let (out, _) = succeed(scaleprof().arg("diff").args([&a, &a]).arg("--json"));
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(told["unpaired"], serde_json::Value::Null, "{told}");
}

#[test]
fn loads_and_names_that_cannot_be_meant_are_refused() {
    let place = place();
    let file = place.path().join("a.txt");
    std::fs::write(&file, script_of(2, 20)).expect("written");
    let output = place.path().join("bundle");
    let same = place.path().join(".").join("a.txt");
    let complaint = fail(&mut import(&output, &[&file, &same], &[]), 1);
    assert!(complaint.contains("a.txt is given twice"), "{complaint}");
    for (options, words) in [
        (["--connections", "1", "--throughput", "1e308"], "to 1000000000"),
        (["--connections", "1", "--throughput", "0"], "from 0.00001"),
        (["--name", "a b/c", "--event", "cpu-clock"], "one word"),
        (["--name", "", "--event", "cpu-clock"], "one word"),
    ] {
        let complaint = fail(&mut import(&output, &[&file], &options), 2);
        assert!(complaint.contains(words), "{complaint}");
    }
    assert!(!output.exists());
}

#[test]
fn what_a_recording_cannot_tell_is_said_as_of_a_recording() {
    let place = place();
    let files = [1, 2].map(|number| {
        let file = place.path().join(format!("{number}.txt"));
        std::fs::write(&file, script_of(2, 20 * number)).expect("written");
        file
    });
    let loads = ["--connections", "4,64", "--throughput", "900,700"];
    let output = place.path().join("bundle");
    let (out, warned) = succeed(&mut import(&output, &[&files[0], &files[1]], &loads));
    let out = out.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(warned.contains("samples of 1 thread, and 64 connections"), "{warned}");
    for words in ["import three of each", "only threads that run were recorded"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    for words in ["scaleprof check", "15 s or more", "CPUs idle"] {
        assert!(!out.contains(words), "{words}: {out}");
    }
    let (out, _) = succeed(&mut import(&place.path().join("watch"), &[&files[0]], &[]));
    assert!(!out.contains("no load of ours"), "{out}");
}

#[test]
fn an_import_that_is_stopped_says_what_is_left_of_it() {
    let place = place();
    let output = place.path().join("bundle");
    let mut command = import(&output, &[&PathBuf::from("-")], &[]);
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // It waits for its input, which does not come.
    for _ in 0..1000 {
        if output.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let input = child.stdin.take();
    let ended = child.wait_with_output().expect("it ends");
    drop(input);
    let complaint = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{complaint}");
    assert!(complaint.contains("stopped: nothing was imported"), "{complaint}");
    assert!(!output.exists(), "nothing is left");
}

#[test]
fn of_an_import_that_did_not_end_export_and_annotate_say_so() {
    let place = place();
    let file = place.path().join("a.txt");
    std::fs::write(&file, script_of(2, 20)).expect("written");
    let output = place.path().join("bundle");
    succeed(&mut import(&output, &[&file], &[]));
    let to = place.path().join("folded");
    let export = || {
        let mut command = scaleprof();
        command
            .args(["export", "--format", "folded", "-o"])
            .arg(&to)
            .arg(&output);
        succeed(&mut command).1
    };
    assert_eq!(export(), "");
    let path = output.join("manifest.json");
    let mut manifest = bundle(&output).manifest;
    manifest.state = RunState::Running;
    std::fs::write(&path, serde_json::to_vec(&manifest).expect("JSON")).expect("written");
    let warned = export();
    assert!(
        warned.contains("warning: the run was killed, or has not ended yet"),
        "{warned}"
    );
}
