//! What cannot be done is refused in one clear error, before anything is touched.

use crate::stage::{fail, place, run, scaleprof};
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
    refused(&["--option", "foo=1"], &["foo"]);
    refused(&["--warehouses", "2"], &["--warehouses", "--workload tpcc"]);
    let tpcc = |further: &[&'static str]| [&["--workload", "tpcc"], further].concat();
    refused(&tpcc(&["--warehouses", "0"]), &["--warehouses 0"]);
    refused(&tpcc(&["--tables", "2"]), &["--tables", "--warehouses"]);
    refused(
        &tpcc(&["--think-times", "1", "--rate", "5"]),
        &["--rate", "--think-times"],
    );
    refused(&tpcc(&["--think-times", "0"]), &["--think-times 0"]);
    refused(&["--server", "/nonexistent"], &["/nonexistent", "No such file"]);
    refused(&["--server", "/etc"], &["/etc", "mysqld"]);
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
        assert!(error.contains("not a scaleprof bundle"), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_one_clear_error() {
    let place = place();
    for to in [["--socket", "/nonexistent"], ["--dsn", "mysql://root@127.0.0.1:1"]] {
        let mut command = scaleprof();
        command
            .args(["attach", "--user", "root", "--yes", "--output"])
            .arg(place.path().join("run"));
        let error = fail(command.args(to), 1);
        assert_eq!(error.matches("cannot connect").count(), 1, "{error}");
    }
}

#[test]
fn a_password_on_the_command_line_is_refused_and_not_repeated() {
    let error = fail(
        scaleprof().args(["attach", "--dsn", "mysql://anna:hunter2@db", "--yes"]),
        1,
    );
    assert!(
        error.contains("SCALEPROF_PASSWORD") && !error.contains("hunter2"),
        "{error}"
    );
}
