//! What cannot be done is refused in one clear error, before anything is touched.

use crate::stage::{fail, place, run, scaleprof, succeed};
use std::path::Path;
use testing::servers::distribution;

fn refused(arguments: &[&str], words: &[&str]) {
    let place = place();
    let error = fail(run(None, &place.path().join("run")).args(arguments), 1);
    for word in words {
        assert!(error.contains(word), "{arguments:?} should say '{word}': {error}");
    }
    assert!(!place.path().join("run").exists(), "{arguments:?} left a folder");
    // The same words twice are a cause that was printed again.
    let cause = error.trim().rsplit(": ").next().unwrap_or_default();
    assert_eq!(error.matches(cause).count(), 1, "{error}");
}

#[test]
fn options_that_make_no_sense_are_named() {
    refused(&["--workload", "oltp_red"], &["'oltp_red'", "oltp_read_write"]);
    refused(&["--workload", "missing.sql"], &["missing.sql", "No such file"]);
    refused(&["--connections", "9..2"], &["goes down"]);
    refused(&["--rate", "0"], &["--rate"]);
    refused(&["--once"], &["FILE.sql"]);
    refused(&["--workload-option", "foo=1"], &["foo"]);
    refused(&["--warehouses", "2"], &["--warehouses", "--workload tpcc"]);
    let tpcc = |further: &[&'static str]| [&["--workload", "tpcc"], further].concat();
    refused(&tpcc(&["--warehouses", "0"]), &["--warehouses 0"]);
    refused(&tpcc(&["--tables", "2"]), &["--tables", "--warehouses"]);
    let both = tpcc(&["--think-times", "1", "--rate", "5"]);
    let error = fail(scaleprof().arg("run").args(both), 2);
    assert!(error.contains("--rate") && error.contains("--think-times"), "{error}");
    refused(&tpcc(&["--think-times", "0"]), &["--think-times 0"]);
    refused(&["--server", "/nonexistent"], &["/nonexistent", "No such file"]);
    refused(&["--server", "/etc"], &["/etc", "mysqld"]);
}

#[test]
fn options_of_a_private_server_and_of_a_running_one_exclude_each_other() {
    for (arguments, words) in [
        (
            &["--server", "/nonexistent", "-S", "/nonexistent"][..],
            "cannot be used with",
        ),
        (&["--try", "-S", "/nonexistent"], "cannot be used with"),
        (
            &["--set", "a=1", "--dsn", "mysql://anna@localhost"],
            "cannot be used with",
        ),
        (&["--yes"], "required"),
        (&["--drop-schema"], "required"),
    ] {
        let place = place();
        let folder = place.path().join("run");
        let error = fail(scaleprof().arg("run").arg("--output").arg(&folder).args(arguments), 2);
        assert!(error.contains(words), "{arguments:?}: {error}");
        assert!(!folder.exists());
    }
}

#[test]
fn the_load_process_of_a_measurement_is_not_started_by_hand() {
    let load = "--socket /nonexistent --workload oltp_insert --tables 1 --rows 1 --connections 1 --seconds 1";
    let arguments = ["selfbench", "load-process"].into_iter().chain(load.split(' '));
    let error = fail(scaleprof().args(arguments), 1);
    assert!(error.contains("scaleprof run"), "{error}");
}

#[test]
fn a_subcommand_behind_options_is_told_to_stand_first() {
    let error = fail(
        scaleprof().args(["experiment", "--vary", "innodb_spin_wait_delay=4,6", "list"]),
        1,
    );
    assert!(error.contains("scaleprof experiment list"), "{error}");
}

#[test]
fn a_subject_that_is_not_there_is_told_with_the_order_of_the_arguments() {
    let error = fail(scaleprof().args(["annotate", "ut_delay", "/nonexistent"]), 1);
    assert!(error.contains("then the function"), "{error}");
}

#[test]
fn the_path_of_the_cache_is_told_without_making_it() {
    let place = place();
    let folder = place.path().join("none");
    let (out, _) = succeed(scaleprof().args(["cache", "path", "--work-dir"]).arg(&folder));
    assert_eq!(Path::new(out.trim()), folder.join("cache"));
    assert!(!folder.exists());
}

#[test]
fn a_script_that_is_never_closed_is_refused_with_its_line() {
    let place = place();
    let script = place.path().join("open.sql");
    std::fs::write(&script, "DO 1;\nSELECT 'x;\n").expect("written");
    refused(&["--workload", &script.to_string_lossy()], &["line 2", "quote"]);
}

#[test]
fn an_unknown_setting_is_one_clear_error() {
    let Some(server) = distribution() else { return };
    let place = place();
    let folder = place.path().join("run");
    let error = fail(
        run(Some(&server.installation), &folder).args(["--set", "innodb_nonsense=5"]),
        1,
    );
    assert!(error.contains("innodb_nonsense") && error.contains("--set"), "{error}");
    assert_eq!(error.matches("innodb_nonsense").count(), 1, "{error}");
    assert!(!folder.exists());
}

#[test]
fn a_folder_that_is_not_empty_is_refused_and_left_as_it_is() {
    let place = place();
    std::fs::write(place.path().join("mine"), "mine").expect("written");
    let error = fail(&mut run(None, place.path()), 1);
    assert!(error.contains("not empty") && error.contains("--output"), "{error}");
    let left: Vec<_> = std::fs::read_dir(place.path()).expect("it").flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(std::fs::read_to_string(place.path().join("mine")).expect("it"), "mine");
}

#[test]
fn reports_of_no_bundle_are_refused() {
    for folder in ["/nonexistent", "/proc"] {
        let error = fail(scaleprof().arg("report").arg(Path::new(folder)), 1);
        assert!(error.contains("is not a bundle"), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_one_clear_error() {
    let place = place();
    for to in [["--socket", "/nonexistent"], ["--dsn", "mysql://root@127.0.0.1:1"]] {
        let mut command = scaleprof();
        command
            .args(["run", "--user", "root", "--yes", "--output"])
            .arg(place.path().join("run"));
        let error = fail(command.args(to), 1);
        assert_eq!(error.matches("cannot connect").count(), 1, "{error}");
    }
}

#[test]
fn a_password_on_the_command_line_is_refused_and_not_repeated() {
    let error = fail(
        scaleprof().args(["run", "--dsn", "mysql://anna:hunter2@db", "--yes"]),
        1,
    );
    assert!(
        error.contains("SCALEPROF_PASSWORD") && !error.contains("hunter2"),
        "{error}"
    );
}
