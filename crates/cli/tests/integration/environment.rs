//! What variables of the environment stand for options.

use crate::stage::{fail, place, scaleprof, succeed};

#[test]
fn the_work_folder_and_the_size_of_the_cache_are_those_of_the_environment_where_no_option_says_otherwise() {
    let place = place();
    let named = place.path().join("named");
    let list = |size: &str| {
        let mut command = scaleprof();
        command.args(["cache", "list", "--json"]);
        command
            .env("SCALEPROF_WORK_DIR", &named)
            .env("SCALEPROF_CACHE_SIZE", size);
        command
    };
    let (out, _) = succeed(&mut list("512M"));
    let listing: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(listing["folder"], named.join("cache").to_string_lossy().as_ref());
    assert_eq!(listing["limit_bytes"], 512_u64 << 20);
    assert_eq!(listing["prepared"], serde_json::json!([]));
    let other = place.path().join("other");
    let (out, _) = succeed(list("512M").arg("--work-dir").arg(&other));
    let listing: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(listing["folder"], other.join("cache").to_string_lossy().as_ref());
    let problem = fail(&mut list("much"), 1);
    assert!(problem.contains("SCALEPROF_CACHE_SIZE: 'much' is no size"), "{problem}");
}

#[test]
fn words_are_taken_as_the_servers_own_programs_spell_them() {
    for (option, word) in [
        ("--ssl-mode", "VERIFY_CA"),
        ("--isolation", "READ COMMITTED"),
        ("--isolation", "repeatable_read"),
    ] {
        // The address is refused then, not the word.
        let problem = fail(
            scaleprof().args(["run", "--dsn", "mysql://u@127.0.0.1:1", "--yes", option, word]),
            1,
        );
        assert!(!problem.contains("invalid value"), "{problem}");
    }
    let problem = fail(scaleprof().args(["run", "--isolation", "snapshot"]), 2);
    assert!(
        problem.contains("[possible values: read-uncommitted, read-committed"),
        "{problem}"
    );
}

#[test]
fn a_check_of_what_cannot_work_ends_with_3() {
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 64; exec \"$0\" check --json",
        env!("CARGO_BIN_EXE_scaleprof"),
    ]);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of_files = document["items"].as_array().expect("a list").iter();
    let mut of_files = of_files.filter(|item| item["topic"].as_str().is_some_and(|topic| topic.contains("NOFILE")));
    assert_eq!(of_files.next().expect("it is looked at")["status"], "required");
}

#[test]
fn the_ready_experiments_are_listed_for_scripts_too() {
    let (out, _) = succeed(scaleprof().args(["experiment", "list", "--json"]));
    let listing: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let listed = listing["experiments"].as_array().expect("a list");
    let (text, _) = succeed(scaleprof().args(["experiment", "list"]));
    assert_eq!(listed.len(), text.lines().count());
    for (one, line) in listed.iter().zip(text.lines()) {
        let name = one["name"].as_str().expect("a name");
        assert!(
            line.starts_with(name) && line.ends_with(one["question"].as_str().expect("a question")),
            "{line}"
        );
    }
}
