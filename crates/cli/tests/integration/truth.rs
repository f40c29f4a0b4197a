//! The answer on a server whose disease is known.
//!
//! A program of tests of its own, one at a time: with other tests beside them on two CPUs, half of what a server does is theirs.

use crate::stage::{bundle, fail, place, run, scaleprof, succeed};
use scaleprof_bundle::Summary;
use scaleprof_vocabulary::{FindingKind, ThreadState};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testing::servers::{distribution, fetched};
use testing::servers_cache;

static ALONE: Mutex<()> = Mutex::new(());

/// While it is held no other of these tests runs.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds that PAUSE takes on a usual CPU, which spends 40 % of its CPU time in InnoDB's delays. On one virtual Xeon it took 4 to 11, and
/// spinning 8 % of the CPU time.
const USUAL_PAUSE: f64 = 40.0;
/// `innodb_spin_wait_delay` unless it is set.
const USUAL_DELAY: f64 = 6.0;
/// What else a turn of `ut_delay`'s loop takes, nanoseconds, on a slow CPU: it counts, compares and adds in memory. Where PAUSE took 15 it was 2.7.
const REST_OF_TURN: f64 = 4.0;

/// InnoDB of 5.6 spins for its latches: with hundreds of connections that update an index on few CPUs a good part of the CPU
/// time goes into `ut_delay`.
#[test]
fn mysql_5_6_is_told_to_spin_for_its_latches_by_whom_and_what_to_try() {
    let _alone = alone();
    let Some(server) = fetched("mysql-5.6.14") else { return };
    let place = place();
    // Where the CPU hardly pauses at PAUSE, spinning takes so little of its time that other things may cost as much: there a delay is made
    // of as many more of them as last as long.
    let pause = scaleprof_probe::relax_nanoseconds();
    let delay = (USUAL_DELAY * USUAL_PAUSE / pause).round().max(USUAL_DELAY);
    println!("PAUSE takes {pause} ns, so the delay is {delay}");
    let (out, _) = succeed(
        run(Some(&server.installation), &place.path().join("run"))
            .args([
                "--workload",
                "oltp_update_index",
                "--tables",
                "4",
                "--rows",
                "10000",
                "--connections",
                "16,512",
                "--seconds",
                "8",
                "--json",
            ])
            .args(["--set", &format!("innodb_spin_wait_delay={delay}")]),
    );
    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    let first = summary.findings.first().expect("there is a cause");
    assert_eq!(first.kind, FindingKind::SpinWaiting, "{:#?}", summary.findings);
    assert_eq!(first.path.last().map(String::as_str), Some("ut_delay"));
    assert!(first.lost_share.low.is_some_and(|low| low > 0.05), "{first:#?}");
    // Which of the two leads differs from run to run.
    let latches = ["mutex_spin_wait", "rw_lock_s_lock_spin", "rw_lock_x_lock_func"];
    let names_a_latch = |line: &String| latches.iter().any(|latch| line.contains(latch));
    assert!(first.evidence.iter().any(names_a_latch), "{first:#?}");
    for setting in [
        "innodb_sync_array_size",
        "innodb_spin_wait_delay",
        "innodb_sync_spin_loops",
    ] {
        assert!(
            first.suggestions.iter().any(|line| line.contains(setting)),
            "{setting}: {first:#?}"
        );
    }
    // PAUSE was measured, and the settings were read.
    let round = format!("a spin round takes 0 to {} times PAUSE", (delay - 1.0) * 50.0);
    assert!(
        first.evidence.iter().any(|line| line.starts_with(&round)),
        "{round}: {first:#?}"
    );
    let last = summary.rungs.last().expect("two rungs");
    let ledger = last.ledger.as_ref().expect("threads were watched");
    let spin = ledger.seconds_per_txn[ThreadState::Spin].expect("loops were looked for");
    let cpu = ledger.seconds_per_txn[ThreadState::Cpu].expect("on CPUs it was");
    // As the finding says of the CPU time. How long threads wait for the disk is the disk's affair: on a slow hour of one host it was more.
    assert!(spin > 0.05 * (cpu + spin), "{ledger:#?}");
    the_bundle_alone_shows_the_instruction_that_burns_the_time(&place.path().join("run"), spin, pause);
}

/// `ut_delay` is a loop around PAUSE: its time stands at PAUSE, or at the instruction behind it, as far as it is PAUSE's. Where that takes no
/// longer than the additions around it, the time is spread over the loop.
fn the_bundle_alone_shows_the_instruction_that_burns_the_time(run: &Path, spin_seconds_per_txn: f64, pause_ns: f64) {
    let annotate = |function: &str| {
        let mut command = scaleprof();
        command.arg("annotate").arg(run).arg(function);
        command
    };
    let (json, _) = succeed(annotate("ut_delay").arg("--json"));
    let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&found["base"]["connections"], &found["compared"]["connections"]),
        (&16.into(), &512.into())
    );
    let instructions = found["instructions"].as_array().expect("a list");
    let seconds = |one: &serde_json::Value| one["compared"]["seconds_per_txn"]["value"].as_f64().unwrap_or(0.0);
    let all: f64 = instructions.iter().map(seconds).sum();
    let pause = instructions
        .iter()
        .position(|one| one["text"] == "pause")
        .expect("it pauses");
    let at_pause: f64 = instructions[pause..=pause + 1].iter().map(seconds).sum();
    let in_the_loop: f64 = instructions
        .iter()
        .filter(|one| one["in_spin_loop"] == true)
        .map(seconds)
        .sum();
    assert!(in_the_loop > 0.9 * all, "{in_the_loop} of {all}");
    assert!(
        at_pause > pause_ns / (pause_ns + REST_OF_TURN) * all,
        "{at_pause} of {all}, and PAUSE takes {pause_ns} ns"
    );
    assert!(
        instructions[pause..=pause + 1]
            .iter()
            .all(|one| one["in_spin_loop"] == true)
    );
    // The ledger's spinning is that of ut_delay and of the loops that call it.
    assert!(
        all > 0.5 * spin_seconds_per_txn && all < 1.1 * spin_seconds_per_txn,
        "{all} {spin_seconds_per_txn}"
    );
    let total = found["compared"]["seconds_per_txn"]["value"]
        .as_f64()
        .expect("measured");
    assert!((all / total - 1.0).abs() < 1e-6, "{all} {total}");
    assert_eq!(found["unmatched_seconds_per_txn"].as_f64(), Some(0.0));

    let (text, _) = succeed(&mut annotate("ut_delay"));
    assert!(
        text.contains("~ in a loop that waits") && text.contains("skid: a sample names"),
        "{text}"
    );
    let (list, _) = succeed(scaleprof().arg("annotate").arg(run));
    let hottest = list.lines().find(|line| line.contains("mysqld")).expect("functions");
    // Nearly all of it: its first and last instructions are outside of the loop.
    let waits = hottest
        .split_whitespace()
        .rev()
        .nth(3)
        .and_then(|share| share.parse().ok());
    assert!(
        hottest.contains("ut_delay") && waits.is_some_and(|waits: f64| waits > 90.0),
        "{list}"
    );
    let error = fail(&mut annotate("no_such_function"), 1);
    assert!(
        error.contains("the hottest are:") && error.contains("mysqld!ut_delay"),
        "{error}"
    );
    let error = fail(annotate("ut_delay").args(["--rung", "7"]), 1);
    assert!(error.contains("it has 16, 512"), "{error}");

    // The kernel's functions have no listing, and it says why.
    let error = fail(&mut annotate("finish_task_switch"), 1);
    assert!(
        error.contains("is a kernel function") && error.contains("'in kernel'"),
        "{error}"
    );

    // Who touches the two famous neighbours (MySQL bug 97777) is in the bundle, where a sample fell on what touches their line: these are
    // so few instructions that seconds of a machine that hardly spins may miss them. The server's own code says which they are.
    let server = servers_cache().join("mysql-5.6.14/bin/mysqld");
    let mut cachelines = scaleprof();
    cachelines.arg("cachelines").arg(&server).arg("--bundle").arg(run);
    let (json, _) = succeed(cachelines.args(["--all", "--json"]));
    let judged: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let lines = judged["lines"].as_array().expect("lines");
    let places = lines.iter().filter_map(|line| line["variables"].as_array());
    let famous = places
        .into_iter()
        .find(|places| places.iter().any(|place| place["name"] == "ut_rnd_ulint_counter"))
        .expect("its line is judged");
    let samples = |cost: &serde_json::Value| -> u64 {
        let of_rungs = cost["samples"].as_array().into_iter().flatten();
        of_rungs.filter_map(serde_json::Value::as_u64).sum()
    };
    let is_there = famous.iter().any(|place| place["name"] == "btr_search_enabled");
    assert!(is_there, "{famous:#?}");
    let was_seen = famous
        .iter()
        .any(|place| samples(&place["read_cost"]) + samples(&place["write_cost"]) > 0);
    let accesses = bundle(run).data_accesses().expect("readable").expect("kept");
    let pair = |place: &str| {
        accesses
            .iter()
            .find(|row| row.variable == place)
            .map(|row| row.line_pair_address)
    };
    assert!(accesses.iter().any(|row| row.instruction.is_some()));
    if was_seen {
        assert!(pair("ut_rnd_ulint_counter").is_some(), "{famous:#?}");
        assert_eq!(pair("ut_rnd_ulint_counter"), pair("btr_search_enabled"));
    } else {
        println!("no sample fell on what touches the two neighbours");
    }

    // Names of the machine that built the server are nobody's business.
    let rows = bundle(run).instructions().expect("readable");
    assert!(rows.len() > 1000, "{}", rows.len());
    assert!(
        rows.iter()
            .filter_map(|row| row.file.as_deref())
            .all(|file| file.matches('/').count() <= 1)
    );
}

/// All connections update one row: each waits for the transaction before it, and no latch of the server is the cause. With ten
/// thousand rows a table they seldom meet.
#[test]
#[ignore = "./test --deep truth"]
fn transactions_that_queue_for_one_row_are_told_to_wait_for_rows() {
    let _alone = alone();
    let Some(server) = distribution() else { return };
    let place = place();
    let summary = |name: &str, tables: &str, rows: &str| -> Summary {
        let (out, _) = succeed(run(Some(&server.installation), &place.path().join(name)).args([
            "--workload",
            "oltp_update_index",
            "--tables",
            tables,
            "--rows",
            rows,
            "--connections",
            "1,32",
            "--seconds",
            "8",
            "--json",
        ]));
        serde_json::from_str(&out).expect("JSON")
    };
    let hot = summary("hot", "1", "1");
    let first = hot.findings.first().expect("there is a cause");
    assert_eq!(first.kind, FindingKind::RowLockWaits, "{:#?}", hot.findings);
    assert_eq!(first.path.last().map(String::as_str), Some("lock_wait"), "{first:#?}");
    assert!(first.lost_share.low.is_some_and(|low| low > 0.2), "{first:#?}");
    assert!(
        first.evidence.iter().any(|line| line.contains("innodb_row_lock_waits")),
        "{first:#?}"
    );
    for what in ["innodb_deadlock_detect", "shorter transactions"] {
        assert!(
            first.suggestions.iter().any(|line| line.contains(what)),
            "{what}: {first:#?}"
        );
    }
    let account = hot.explained.last().expect("an account");
    assert!(account.explained_share.value > 0.2, "{account:#?}");
    let (text, _) = succeed(
        scaleprof()
            .arg("report")
            .arg(place.path().join("hot"))
            .args(["--format", "bug"]),
    );
    assert!(text.contains("1. Transactions queue for rows"), "{text}");
    let usual = summary("usual", "4", "10000");
    assert!(
        usual
            .findings
            .iter()
            .all(|finding| finding.kind != FindingKind::RowLockWaits),
        "{:#?}",
        usual.findings
    );
}
