//! The answer on a server whose disease is known.

use crate::servers::fetched;
use crate::stage::{place, run, succeed};
use scaleprof_bundle::Summary;

/// InnoDB of 5.6 spins for its latches: with hundreds of connections that update an index on few CPUs a good part of the CPU
/// time goes into `ut_delay`.
#[test]
fn mysql_5_6_is_told_to_spin_for_its_latches_by_whom_and_what_to_try() {
    let Some(server) = fetched("mysql-5.6.14") else { return };
    let place = place();
    let (out, _) = succeed(run(Some(&server.installation), &place.path().join("run")).args([
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
    ]));
    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    let first = summary.findings.first().expect("there is a cause");
    assert_eq!(first.kind, "spin_waiting", "{:#?}", summary.findings);
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
            first.tries.iter().any(|line| line.contains(setting)),
            "{setting}: {first:#?}"
        );
    }
    // PAUSE was measured, and the settings were read.
    let round = |line: &String| line.starts_with("one round of a latch that spins is 0 to 250 times PAUSE");
    assert!(first.evidence.iter().any(round), "{first:#?}");
    let last = summary.rungs.last().expect("two rungs");
    let ledger = last.ledger.as_ref().expect("threads were watched");
    assert!(ledger.seconds_per_txn.spin > ledger.seconds_per_txn.io, "{ledger:#?}");
}
