//! ^C, SIGTERM, SIGKILL and a server that dies: nothing is left running, and what was measured can be read.

use crate::check::can_watch;
use crate::import::recording;
use crate::stage::{Running, bundle, children, kill, place, run, scaleprof, succeed, texts};
use libbpf_rs::query::{LinkInfoIter, ProgInfoIter};
use libc::{SIGINT, SIGKILL, SIGTERM};
use scaleprof_vocabulary::{MeasurementOutcome, RunState};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use testing::servers::distribution;
use testing::{Killed, soon};

/// A run whose second measurement is under way, and its processes.
fn under_way(folder: &Path) -> Option<(Running, Vec<u32>)> {
    let server = distribution()?;
    let mut running = Running::start(run(Some(&server.installation), folder).args([
        "--tables",
        "2",
        "--rows",
        "500",
        "--connections",
        "1,2,4",
        "--seconds",
        "4",
        "--rate",
        "100",
    ]));
    running.wait_for_second_measurement(folder);
    let processes = children(running.pid());
    // The server and the janitor.
    assert!(processes.len() >= 2, "{processes:?}");
    Some((running, processes))
}

/// The bundle holds the first measurement, and a report can be made of it.
fn first_measurement_is_readable(folder: &Path, state: RunState) {
    let kept = bundle(folder);
    assert_eq!(kept.manifest.state, state);
    assert_eq!(kept.measurements[0].outcome, MeasurementOutcome::Complete);
    assert!(
        kept.seconds
            .iter()
            .any(|second| second.measurement == 0 && second.transactions > 0)
    );
    let (out, _) = succeed(scaleprof().arg("report").arg(folder).args(["--format", "text"]));
    assert!(out.contains("tx/s"), "{out}");
}

fn stopped_by(signal: i32) {
    let place = place();
    let folder = place.path().join("run");
    let Some((running, processes)) = under_way(&folder) else {
        return;
    };
    running.signal(signal);
    let output = running.end_and_leave_nothing(&processes);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(128 + signal), "{err}");
    assert!(err.contains("What was measured until then is in"), "{err}");
    first_measurement_is_readable(&folder, RunState::Interrupted);
    assert!(folder.join("report.html").exists() && folder.join("summary.json").exists());
}

#[test]
fn an_interrupt_ends_the_run_in_order() {
    stopped_by(SIGINT);
}

#[test]
fn sigterm_ends_the_run_in_order() {
    stopped_by(SIGTERM);
}

#[test]
fn a_second_interrupt_ends_it_at_once_and_leaves_nothing() {
    let place = place();
    let folder = place.path().join("run");
    let Some((running, processes)) = under_way(&folder) else {
        return;
    };
    // Two that differ: of two alike the kernel may deliver one.
    running.signal(SIGINT);
    running.signal(SIGTERM);
    let output = running.end_and_leave_nothing(&processes);
    assert!(matches!(output.status.code(), Some(130 | 143)), "{:?}", output.status);
    // An orderly end would have said so.
    assert_eq!(bundle(&folder).manifest.state, RunState::Running);
    assert_eq!(bundle(&folder).measurements[0].outcome, MeasurementOutcome::Complete);
}

#[test]
fn sigkill_leaves_no_process_no_folder_and_a_readable_bundle() {
    let place = place();
    let folder = place.path().join("run");
    let Some((running, processes)) = under_way(&folder) else {
        return;
    };
    running.signal(SIGKILL);
    running.end_and_leave_nothing(&processes);
    first_measurement_is_readable(&folder, RunState::Running);
}

#[test]
fn a_server_that_dies_under_the_load_is_reported_with_how_it_died() {
    let place = place();
    let folder = place.path().join("run");
    let Some((running, processes)) = under_way(&folder) else {
        return;
    };
    kill(running.server(), SIGKILL);
    let output = running.end_and_leave_nothing(&processes);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("the server died with") && err.contains("signal 9"),
        "{err}"
    );
    first_measurement_is_readable(&folder, RunState::Failed);
    let kept = bundle(&folder);
    assert_eq!(
        kept.measurements.last().map(|row| row.outcome),
        Some(MeasurementOutcome::ServerDied)
    );
}

#[test]
fn an_import_that_is_killed_leaves_what_it_had_written() {
    import_ended_by(SIGKILL, None, RunState::Running);
}

#[test]
fn an_import_that_is_stopped_says_so_in_what_it_had_written() {
    let said = import_ended_by(SIGINT, Some(130), RunState::Interrupted);
    assert!(said.is_none_or(|said| said.contains("holds what was imported until then")));
}

/// An import of many recordings that ends by a signal when one of them is written; what it says on standard error.
fn import_ended_by(signal: i32, code: Option<i32>, state: RunState) -> Option<String> {
    const RECORDINGS: usize = 400;
    let place = place();
    let recording = recording(place.path())?;
    let folder = place.path().join("bundle");
    let mut import = scaleprof();
    import
        .args(["import", "--quiet", "--no-report", "--output"])
        .arg(&folder);
    import.args((0..RECORDINGS).map(|number| {
        let link = place.path().join(format!("{number}.data"));
        std::fs::hard_link(&recording, &link).expect("linked");
        link
    }));
    let running = Running::start(&mut import);
    soon("a recording is written", || {
        folder.join("measurements/measurement-00000.parquet").exists()
    });
    running.signal(signal);
    let output = running.end();
    assert_eq!(output.status.code(), code, "{:?}", texts(&output));
    let kept = bundle(&folder);
    assert_eq!(kept.manifest.state, state);
    assert!(
        (1..RECORDINGS).contains(&kept.measurements.len()),
        "{}",
        kept.measurements.len()
    );
    let (out, err) = succeed(scaleprof().arg("report").arg(&folder).args(["--format", "text"]));
    assert!(out.contains("Heaviest call paths"), "{out}\n{err}");
    Some(texts(&output).1)
}

/// The numbers that the kernel writes after a word into /proc/PID/fdinfo, of all files that a process holds open.
fn numbers_of_files(pid: u32, word: &str) -> BTreeSet<u32> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten();
    let texts = files
        .flatten()
        .filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let numbers = texts.filter_map(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix(word))?;
        line.trim().parse().ok()
    });
    numbers.collect()
}

#[test]
fn sigkill_of_a_watch_leaves_no_program_in_the_kernel() {
    if !can_watch() {
        return;
    }
    let place = place();
    let watched = Killed::start(Command::new("sleep").arg("600"));
    let pid = watched.pid().to_string();
    let output = place.path().join("watch");
    let mut command = scaleprof();
    command.args([
        "attach",
        "--any-process",
        "--quiet",
        "--seconds",
        "600",
        "--pid",
        &pid,
        "--output",
    ]);
    let running = Running::start(command.arg(&output));
    let mut its_own = (BTreeSet::new(), BTreeSet::new());
    soon("programs are attached", || {
        its_own = (
            numbers_of_files(running.pid(), "prog_id:"),
            numbers_of_files(running.pid(), "link_id:"),
        );
        // Ends and beginnings of threads, switches and wake-ups.
        its_own.1.len() >= 5
    });
    let (programs, links) = its_own;
    let left = || {
        let programs = ProgInfoIter::default()
            .filter(|program| programs.contains(&program.id))
            .count();
        let links = LinkInfoIter::default().filter(|link| links.contains(&link.id)).count();
        (programs, links)
    };
    // Those at the kernel's locks come and go.
    let (listed, attached) = left();
    assert!(
        listed == programs.len() && attached >= 5,
        "{listed} of {programs:?}, {attached} of {links:?}"
    );
    running.signal(SIGKILL);
    running.end_and_leave_nothing(&[]);
    // The kernel frees them a moment after the last file is closed.
    soon("the kernel has dropped what the watch had there", || left() == (0, 0));
}
