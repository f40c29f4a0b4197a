//! Waits for rows that other transactions have locked.

use super::made_up::*;
use crate::findings::*;
use scaleprof_vocabulary::{FindingKind, ShareOf};

/// Of MySQL 5.6.
const ROW: &[&str] = &[
    "main",
    "dispatch_command",
    "mysql_update",
    "ha_innobase::index_read",
    "row_search_for_mysql",
    "row_mysql_handle_errors",
    "lock_wait_suspend_thread",
    "os_event_wait_low",
    "pthread_cond_wait",
    "futex_wait [k]",
];
/// In the same function, for a latch.
const LATCH: &[&str] = &[
    "main",
    "dispatch_command",
    "mysql_update",
    "lock_wait_suspend_thread",
    "mutex_spin_wait",
    "sync_array_wait_event",
    "os_event_wait_low",
    "pthread_cond_wait",
    "futex_wait [k]",
];
const FEW: Costs<'_> = &[("cpu", PARSE, 100.0)];

/// What is found, with these settings of the server.
fn found_of(product: &str, settings: &[(&str, &str)], rungs: &[(u32, f64, f64, Costs<'_>)]) -> Found {
    let change = |_, summary: &mut RungSummary| {
        summary.per_txn.insert("status.innodb_row_lock_waits".into(), 0.97);
        summary.per_txn.insert("status.innodb_row_lock_time".into(), 1.25);
    };
    made_up(rungs, change, |profiled, call_paths| {
        let mut manifest = manifest();
        manifest.server.product = product.into();
        let surroundings = Surroundings {
            manifest: &manifest,
            settings: &settings
                .iter()
                .map(|(name, value)| SettingRow::new(*name, *value))
                .collect::<Vec<_>>(),
            code: &MachineCode::default,
        };
        findings(profiled, &surroundings, call_paths)
    })
}

/// Without root no call path of a thread that waits is seen.
#[test]
fn where_no_wait_was_seen_the_servers_counters_tell_of_rows() {
    let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(1, 6_000.0, 0.3, FEW), (8, 5_000.0, 0.4, FEW)];
    let change = |connections, summary: &mut RungSummary| {
        if connections > 1 {
            summary.per_txn.insert("status.innodb_row_lock_waits".into(), 0.97);
            summary.per_txn.insert("status.innodb_row_lock_time".into(), 1.261);
        }
    };
    let found = made_up(rungs, change, |profiled, call_paths| {
        let mut manifest = manifest();
        manifest.server.product = "MariaDB".into();
        let surroundings = Surroundings {
            manifest: &manifest,
            settings: &[],
            code: &MachineCode::default,
        };
        findings(profiled, &surroundings, call_paths)
    });
    let kinds: Vec<FindingKind> = found.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::RowLockWaits], "{:?}", found.findings);
    let rows = &found.findings[0];
    // 1261 of 1600 microseconds; what was not sampled has no interval.
    assert!((rows.lost_share.value - 0.788).abs() < 0.01, "{:?}", rows.lost_share);
    assert_eq!((rows.lost_share.low, rows.path.len()), (None, 0));
    assert!(
        rows.evidence.join("\n").contains("from the server's counters"),
        "{:?}",
        rows.evidence
    );
    assert!(
        rows.suggestions[0].starts_with("shorter transactions"),
        "{:?}",
        rows.suggestions
    );
    let account = &found.explained[0].sentence;
    assert!(account.contains("one finding explains"), "{account}");
}

#[test]
fn waits_for_rows_are_no_convoy_of_the_servers() {
    // Each transaction waits at a condition variable of its own.
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock:1", ROW, 800.0), ("lock:2", ROW, 500.0)];
    let found = found_of(
        "MySQL",
        &[("innodb_lock_wait_timeout", "50")],
        &[(1, 6_000.0, 0.3, FEW), (8, 5_000.0, 0.4, many)],
    );
    let kinds: Vec<FindingKind> = found.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::RowLockWaits], "{:?}", found.findings);
    let rows = &found.findings[0];
    assert_eq!(rows.share_of, ShareOf::ConnectionTime);
    // 1300 of 1600 microseconds.
    assert!((rows.lost_share.value - 0.8125).abs() < 0.01, "{:?}", rows.lost_share);
    assert!(
        rows.lost_share.low.is_some_and(|low| low > 0.7),
        "{:?}",
        rows.lost_share
    );
    assert_eq!(rows.path.last().map(String::as_str), Some("lock_wait_suspend_thread"));
    let said = rows.evidence.join("\n");
    assert!(
        said.contains("row lock waits per transaction: 1300 µs at 8 connections, 0 µs at 1"),
        "{said}"
    );
    assert!(
        said.contains("0.97 row lock waits") && said.contains("1250 µs (innodb"),
        "{said}"
    );
    assert!(said.contains("in mysql_update > ha_innobase::index_read"), "{said}");
    let tries = rows.suggestions.join("\n");
    for what in [
        "shorter transactions",
        "split into several",
        "innodb_lock_wait_timeout = 5",
        "READ COMMITTED",
    ] {
        assert!(tries.contains(what), "{what}: {tries}");
    }
    assert!(
        rows.suggestions
            .iter()
            .all(|line| line.contains("Manual") || line.contains("edition")),
        "{tries}"
    );
    // 5.6 has no such setting, and says so by not telling of it.
    assert!(!tries.contains("innodb_deadlock_detect"), "{tries}");
}

#[test]
fn what_a_version_can_be_told_is_advised() {
    let row = [
        "main",
        "mysql_update",
        "ha_innobase::index_read",
        "lock_wait",
        "pthread_cond_timedwait",
        "futex_wait [k]",
    ];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock:1", &row, 1_300.0)];
    let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(1, 6_000.0, 0.3, FEW), (8, 5_000.0, 0.4, many)];
    let found = found_of("MariaDB", &[("innodb_deadlock_detect", "ON")], rungs);
    assert_eq!(found.findings[0].kind, FindingKind::RowLockWaits);
    let tries = found.findings[0].suggestions.join("\n");
    assert!(
        tries.contains("innodb_deadlock_detect = OFF (ON is the default)"),
        "{tries}"
    );
    // The function of MariaDB means nothing elsewhere.
    let elsewhere = found_of("PostgreSQL", &[], rungs);
    assert_ne!(elsewhere.findings[0].kind, FindingKind::RowLockWaits);
}

#[test]
fn a_latch_on_the_way_to_sleep_is_no_row() {
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock:1", LATCH, 1_300.0)];
    let found = found_of("MySQL", &[], &[(1, 6_000.0, 0.3, FEW), (8, 5_000.0, 0.4, many)]);
    assert_ne!(
        found.findings[0].kind,
        FindingKind::RowLockWaits,
        "{:?}",
        found.findings
    );
}

#[test]
fn waits_for_rows_come_before_the_latches_that_they_make_hot() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let deadlocks = [
        "main",
        "mysql_update",
        "lock_rec_lock",
        "lock_deadlock_check_and_resolve",
    ];
    let many: Costs<'_> = &[
        ("cpu", PARSE, 100.0),
        ("cpu", &deadlocks, 40.0),
        ("spin", SPIN, 60.0),
        ("lock:1", ROW, 6_000.0),
        ("runq", PARSE, 1_800.0),
    ];
    let found = found_of("MySQL", &[], &[(4, 10_000.0, 0.9, few), (64, 8_000.0, 0.97, many)]);
    let told: Vec<(FindingKind, ShareOf)> = found
        .findings
        .iter()
        .map(|finding| (finding.kind, finding.share_of))
        .collect();
    assert_eq!(
        told[..2],
        [
            (FindingKind::RowLockWaits, ShareOf::ConnectionTime),
            (FindingKind::SpinWaiting, ShareOf::CpuTime)
        ],
        "{told:?}"
    );
    let said = found.findings[0].evidence.join("\n");
    assert!(said.contains("97 % busy"), "{said}");
    assert!(
        said.contains("40.0 µs of CPU time per transaction at 64 connections")
            && said.contains("lock_deadlock_check_and_resolve"),
        "{said}"
    );
    let accounts: Vec<ShareOf> = found.explained.iter().map(|account| account.account).collect();
    assert_eq!(accounts, [ShareOf::CpuTime, ShareOf::ConnectionTime]);
    let of_connections = &found.explained[1];
    // 6000 of the 8000 - 400 microseconds more; 1800 of them wait for a CPU.
    assert!(
        (of_connections.explained_share.value - 0.79).abs() < 0.01,
        "{of_connections:?}"
    );
    assert!(
        of_connections
            .waiting_for_cpu_share
            .is_some_and(|share| (share - 0.237).abs() < 0.01),
        "{of_connections:?}"
    );
}

#[test]
fn waits_for_rows_that_cost_nothing_are_no_finding() {
    // All CPUs are busy, and a transaction costs what it did: somebody else ran meanwhile.
    let many: Costs<'_> = &[("cpu", PARSE, 102.0), ("lock:1", ROW, 3_000.0)];
    let found = found_of("MySQL", &[], &[(8, 10_000.0, 1.0, FEW), (64, 10_000.0, 1.0, many)]);
    assert!(
        found.findings.is_empty() && found.explained.is_empty(),
        "{:?}",
        found.findings
    );
    // So seldom that it is not worth a word.
    let seldom: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock:1", ROW, 10.0), ("net", PARSE, 1_500.0)];
    let found = found_of("MySQL", &[], &[(1, 6_000.0, 0.3, FEW), (8, 5_000.0, 0.4, seldom)]);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}
