//! A standard output that takes no more.

use std::process::{Command, Stdio};

/// Prints some lines about this very program.
fn prints() -> Command {
    let program = env!("CARGO_BIN_EXE_scaleprof");
    let mut command = Command::new(program);
    command.args(["spinloops", program]).stderr(Stdio::piped());
    command
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = prints().stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.is_empty(), "{:?}: {said}", ended.status);
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let ended = prints().stdout(full).output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot write to the standard output: No space left"),
        "{said}"
    );
}
