//! Loops that wait for another thread.

use super::made_up::*;
use crate::findings::*;
use scaleprof_vocabulary::FindingKind;

#[test]
fn spinning_comes_first_with_who_waits_and_what_to_try() {
    let few: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0), ("spin", SPIN, 5.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 42.0), ("cpu", READ, 63.0), ("spin", SPIN, 95.0)];
    let findings = found(&[(16, 19_000.0, 1.0, few), (512, 10_000.0, 1.0, many)]);
    let first = &findings[0];
    assert_eq!(first.kind, FindingKind::SpinWaiting);
    assert!(
        first.title.contains("InnoDB's own mutexes and rw-locks"),
        "{}",
        first.title
    );
    assert!((first.lost_share.value - 0.475).abs() < 0.005, "{:?}", first.lost_share);
    assert!(first.lost_share.low.is_some_and(|low| low > 0.4));
    assert_eq!(
        (first.rungs, first.path.last().map(String::as_str)),
        ([16, 512], Some("ut_delay"))
    );
    assert!(
        first
            .evidence
            .iter()
            .any(|line| line.contains("trx_start_low > mutex_spin_wait > ut_delay")),
        "{first:?}"
    );
    let is_tried = |first: &Finding, setting: &str| first.suggestions.iter().any(|line| line.contains(setting));
    let advised = [
        "innodb_thread_concurrency",
        "innodb_sync_spin_loops = 5",
        "innodb_spin_wait_delay = 3",
        "innodb_sync_array_size = 16",
    ];
    for setting in advised {
        assert!(is_tried(first, setting), "{setting}: {first:?}");
    }
    // Too few threads to queue for one mutex before they sleep.
    let fewer = found(&[(16, 19_000.0, 1.0, few), (128, 10_000.0, 1.0, many)]);
    assert!(!is_tried(&fewer[0], "innodb_sync_array_size"), "{fewer:?}");
}

#[test]
fn spin_loops_that_somebody_set_far_from_the_default_are_told_as_such() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 5.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 95.0)];
    let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(16, 19_000.0, 1.0, few), (512, 10_000.0, 1.0, many)];
    let found = made_up(
        rungs,
        |_, _| (),
        |profiled, call_paths| {
            let settings = [
                SettingRow {
                    default_value: Some("30".into()),
                    set_by: Some(scaleprof_vocabulary::SettingSource::User),
                    ..SettingRow::new("innodb_sync_spin_loops", "200")
                },
                SettingRow::new("innodb_sync_array_size", "16"),
            ];
            let surroundings = Surroundings {
                manifest: &manifest(),
                settings: &settings,
                code: &MachineCode::default,
            };
            findings(profiled, &surroundings, call_paths).findings
        },
    );
    let tries = &found[0].suggestions;
    let told = |words: &str| tries.iter().any(|line| line.contains(words));
    assert!(
        told("innodb_sync_spin_loops is set to 200, far from its default of 30: try the default first"),
        "{tries:?}"
    );
    // As advised already.
    assert!(!told("innodb_sync_array_size"), "{tries:?}");
}

const FEW_SPIN: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0), ("spin", SPIN, 1.0)];
const SOME_SPIN: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0), ("spin", SPIN, 8.0)];

#[test]
fn spinning_is_told_though_a_transaction_got_no_dearer_and_with_what_a_round_takes() {
    let found = found(&[(8, 19_000.0, 1.0, SOME_SPIN), (64, 19_000.0, 1.0, SOME_SPIN)]);
    assert_eq!(found[0].kind, FindingKind::SpinWaiting, "{found:?}");
    // Up to 5 x 50 PAUSEs of 24 ns; 30 rounds of half of that.
    let round = found[0].evidence.iter().find(|line| line.starts_with("a spin round"));
    let round = round.expect("what a round takes");
    assert!(
        round.contains("up to 6.00 \u{b5}s") && round.contains("90.0 \u{b5}s"),
        "{round}"
    );
}

#[test]
fn the_rung_that_spins_most_is_told_where_the_last_one_does_not() {
    let found = found(&[(8, 19_000.0, 1.0, SOME_SPIN), (64, 19_000.0, 1.0, FEW_SPIN)]);
    assert_eq!((found.len(), found[0].rungs), (1, [8, 8]), "{found:?}");
}

#[test]
fn where_the_last_rung_spins_too_it_is_told_of_that_one_with_where_it_is_most() {
    let much: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0), ("spin", SPIN, 30.0)];
    let found = found(&[(8, 19_000.0, 1.0, much), (64, 19_000.0, 1.0, SOME_SPIN)]);
    assert_eq!((found.len(), found[0].rungs), (1, [64, 64]), "{found:?}");
    assert!(
        found[0].evidence[0].starts_with("it takes most at 8 connections: 23 % of the CPU time"),
        "{found:?}"
    );
}

/// Per connection it is next to nothing where hundreds wait for other things; of the CPU time it is a third.
#[test]
fn spinning_is_told_while_cpus_idle_too() {
    let lock: &[&str] = &["main", "dispatch_command", "futex_wait [k]"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", lock, 1_000.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 50.0), ("lock", lock, 90_000.0)];
    let found = found(&[(8, 7_000.0, 0.5, few), (512, 5_600.0, 0.5, many)]);
    let spinning = found
        .iter()
        .find(|finding| finding.kind == FindingKind::SpinWaiting)
        .expect("told");
    assert!((spinning.lost_share.value - 1.0 / 3.0).abs() < 0.01, "{spinning:?}");
    assert!(
        spinning.evidence[0].starts_with("CPUs are idle there (server and client use 50 %)"),
        "{spinning:?}"
    );
}

#[test]
fn spinning_at_another_rung_comes_behind_what_explains_the_fall_and_says_that_it_does_not() {
    let few: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 20.0), ("spin", SPIN, 30.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 80.0), ("spin", SPIN, 0.1)];
    let found = found(&[(8, 19_000.0, 1.0, few), (64, 14_000.0, 1.0, many)]);
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    // A third of a transaction is more than what READ grew by, and yet it comes second.
    assert_eq!(kinds, [FindingKind::CostGrowth, FindingKind::SpinWaiting], "{found:?}");
    let spinning = &found[1];
    assert!(spinning.title.ends_with(", at 8 connections"), "{spinning:?}");
    assert!(
        spinning.evidence[0].contains("not a cause of the loss at 64: there spin loops take 0.1 \u{b5}s"),
        "{spinning:?}"
    );
}
