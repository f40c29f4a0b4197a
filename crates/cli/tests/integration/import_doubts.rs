//! `import`: what makes imported figures doubtful is said, and what cannot be meant is refused.

use crate::import::{recorded, script_of};
use crate::stage::{bundle, fail, place, scaleprof, succeed};
use scaleprof_vocabulary::RunState;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn import(output: &Path, files: &[&PathBuf], options: &[&str]) -> Command {
    let mut command = scaleprof();
    command.args(["import", "--quiet", "--no-code", "--no-report", "--output"]);
    command.arg(output).args(options).args(files);
    command
}

/// What `diff` tells of two bundles.
fn compared(a: &Path, b: &Path) -> Value {
    let (out, _) = succeed(scaleprof().arg("diff").args([a, b]).arg("--json"));
    serde_json::from_str(&out).expect("JSON")
}

/// Why it pairs none of their call paths.
fn why_unpaired(told: &Value) -> &str {
    assert_eq!(told["paths"], serde_json::json!([]), "{told}");
    told["unpaired"].as_str().expect("a cause")
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
    let told = compared(&a, &b);
    let cause = why_unpaired(&told);
    let kinds = told["rungs"][0]["code_kinds"].as_array().expect("kinds of code");
    assert!(!kinds.is_empty(), "{told}");
    assert!(
        cause.contains("frame pointers") && cause.contains("copied stacks"),
        "{cause}"
    );
    let (text, _) = succeed(scaleprof().arg("diff").args([&a, &b]));
    assert!(
        text.contains("same unwinding method") && !text.contains("two products"),
        "{text}"
    );

    let loads = ["--connections", "1,2", "--throughput", "9,9"];
    let (out, warned) = succeed(&mut import(&both, &[&pointers, &copies], &loads));
    let out = out.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(out.contains("and --stat"), "{out}");
    assert!(
        warned
            .contains("recording 2: its call paths come from copied stacks, those of recording 1 from frame pointers"),
        "{warned}"
    );
    // Alike, nothing is said.
    let told = compared(&a, &a);
    assert_eq!(told["unpaired"], Value::Null, "{told}");
}

#[test]
fn recordings_with_and_without_built_in_functions_are_not_held_against_each_other() {
    let place = place();
    let Some(recording) = recorded(place.path(), "copies", "dwarf,16384") else {
        return;
    };
    let [with, without] = ["with", "without"].map(|name| place.path().join(name));
    succeed(&mut import(&with, &[&recording], &[]));
    succeed(&mut import(&without, &[&recording], &["--no-inline"]));
    let told = compared(&with, &without);
    let cause = why_unpaired(&told);
    assert!(cause.contains("resolved in A and not resolved in B"), "{cause}");
    let told = compared(&with, &with);
    assert_eq!(told["unpaired"], Value::Null, "{told}");
}

#[test]
fn what_is_missing_from_a_recording_of_user_space_or_of_broken_stacks_is_warned_of() {
    let place = place();
    let of_user = || {
        let name = place.path().join("user.data");
        let mut record = Command::new("perf");
        record.args(["record", "-q", "-F", "999", "-e", "cpu-clock:u", "-g", "-o"]);
        record
            .arg(&name)
            .args(["sh", "-c", "head -c 20000000 /dev/zero | gzip -c | wc -c"]);
        record
            .output()
            .is_ok_and(|output| output.status.success())
            .then_some(name)
    };
    let Some(recording) = of_user() else {
        testing::skip!("a recording of user space: perf cannot record here");
        return;
    };
    let output = place.path().join("bundle");
    let (_, warned) = succeed(&mut import(&output, &[&recording], &[]));
    assert!(warned.contains("it has no kernel samples"), "{warned}");
    // Debian's gzip has no frame pointers.
    assert!(warned.contains("of the stacks are incomplete"), "{warned}");
    let elsewhere = place.path().join("elsewhere");
    let said = fail(&mut import(&elsewhere, &[&recording], &["--process", "nosuch"]), 1);
    assert!(said.contains("threads called") && said.contains("gzip"), "{said}");
    // A page on the standard output.
    let mut report = scaleprof();
    report.current_dir(place.path()).arg("report").arg(&output);
    let (page, _) = succeed(report.args(["--format", "html", "--output", "-"]));
    assert!(page.contains("<html") && !place.path().join("-").exists());
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
        let text = script_of(2, 20 * number);
        // Its thread runs half of the time at 64 connections, so that it is not CPU time that grew.
        let samples = text.split_inclusive("\n\n").step_by(number as usize);
        std::fs::write(&file, samples.collect::<String>()).expect("written");
        file
    });
    let loads = ["--connections", "4,64", "--throughput", "900,700"];
    let output = place.path().join("bundle");
    let (out, warned) = succeed(&mut import(&output, &[&files[0], &files[1]], &loads));
    let out = out.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(
        warned.contains("samples of 1 thread, but --connections says 64 connections"),
        "{warned}"
    );
    // Five threads that serve clients.
    let five = (7..12).map(|thread| {
        let text = script_of(2, 20).replace("mysqld 7/7", &format!("mysqld 7/{thread}"));
        text.replace(" 2000 main", " 2000 handle_one_connection")
    });
    let many = place.path().join("many.txt");
    std::fs::write(&many, five.collect::<String>()).expect("written");
    let of_two = ["--connections", "2", "--throughput", "900"];
    let (_, of_many) = succeed(&mut import(&place.path().join("many"), &[&many], &of_two));
    assert!(
        of_many.contains("5 threads that served clients, but --connections says 2 connections"),
        "{of_many}"
    );
    for words in ["import three of each", "only running threads were recorded"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    for words in ["scaleprof check", "15 s or more", "CPUs idle"] {
        assert!(!out.contains(words), "{words}: {out}");
    }
    let (out, _) = succeed(&mut import(&place.path().join("watch"), &[&files[0]], &[]));
    assert!(!out.contains("attach sends no load"), "{out}");
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
    testing::soon("its folder is there", || output.exists());
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
