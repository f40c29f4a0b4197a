//! Transactions that cost more CPU time.

use super::made_up::*;

#[test]
fn a_spinlock_of_the_kernel_is_named_with_the_function_above_it() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("cpu", SPINLOCK, 1.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 101.0), ("cpu", SPINLOCK, 60.0)];
    let found = found(&[(8, 19_000.0, 1.0, few), (256, 12_000.0, 1.0, many)]);
    assert_eq!(found[0].kind, "kernel_spinlock");
    assert!(found[0].title.contains("InnoDB's sync array"), "{}", found[0].title);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_path_that_grew_is_told_once_and_what_grew_everywhere_alike_is_not_blamed() {
    let leaves: Vec<[&str; 3]> = ["a", "b", "c", "d", "e", "f", "g", "h"]
        .map(|leaf| ["main", "work", leaf])
        .into();
    let few: Vec<(&str, &[&str], f64)> = leaves
        .iter()
        .map(|path| ("cpu", &path[..], 10.0))
        .chain([("cpu", READ, 20.0)])
        .collect();
    let many: Vec<(&str, &[&str], f64)> = leaves
        .iter()
        .map(|path| ("cpu", &path[..], 12.0))
        .chain([("cpu", READ, 60.0)])
        .collect();
    let found = found(&[(8, 19_000.0, 1.0, &few), (256, 12_000.0, 1.0, &many)]);
    let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
    assert_eq!(kinds, ["cost_growth", "slower_everywhere"], "{found:?}");
    assert_eq!(found[0].path, READ);
    // (60 - 1.2 x 20) of 156.
    assert!(
        (found[0].lost_share.value - 36.0 / 156.0).abs() < 0.01,
        "{:?}",
        found[0].lost_share
    );
}

#[test]
fn a_healthy_run_has_no_finding() {
    let same: Costs<'_> = &[
        ("cpu", PARSE, 40.0),
        ("cpu", READ, 60.0),
        ("net", &["main", "recv"], 100.0),
    ];
    let little: Costs<'_> = &[
        ("cpu", PARSE, 41.0),
        ("cpu", READ, 61.0),
        ("net", &["main", "recv"], 2_000.0),
    ];
    assert!(
        found(&[
            (1, 5_000.0, 0.5, same),
            (8, 19_000.0, 1.0, same),
            (64, 18_800.0, 1.0, little)
        ])
        .is_empty()
    );
    assert!(found(&[(8, 19_000.0, 1.0, same)]).is_empty());
    assert!(found(&[]).is_empty());
}

#[test]
fn a_function_that_is_most_of_the_work_is_named_where_it_loses_by_itself() {
    const WORK: &[&str] = &["main", "dispatch_command", "lock_it"];
    const INNER: &[&str] = &["main", "dispatch_command", "lock_it", "clock_gettime"];
    let few: Costs<'_> = &[("cpu", PARSE, 20.0), ("cpu", WORK, 10.0), ("cpu", INNER, 1.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 20.0), ("cpu", WORK, 80.0), ("cpu", INNER, 6.0)];
    let found = found(&[(1, 8_000.0, 1.0, few), (8, 8_000.0, 1.0, many)]);
    assert_eq!((found.len(), &found[0].path[..]), (1, &names(WORK)[..]), "{found:?}");
}

#[test]
fn code_beside_a_fight_that_gets_dearer_by_it_is_charged_to_the_fight() {
    const COMPUTE: &[&str] = &["main", "dispatch_command", "compute"];
    const MALLOC: &[&str] = &["main", "dispatch_command", "malloc", "__lll_lock_wait_private"];
    let beside = |before: f64, after: f64| {
        let few: Costs<'_> = &[("cpu", COMPUTE, before), ("cpu", MALLOC, 15.0)];
        let many: Costs<'_> = &[("cpu", COMPUTE, after), ("cpu", MALLOC, 200.0)];
        found(&[(1, 8_000.0, 1.0, few), (8, 8_000.0, 1.0, many)])
    };
    let found = beside(11.0, 26.0);
    let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
    assert_eq!(kinds, ["allocator_contention"], "{found:?}");
    let said = found[0].evidence.join("\n");
    assert!(said.contains("6.6 % more is lost in code beside it"), "{said}");
    // What lost as much as the fight did is a cause of its own.
    let found = beside(11.0, 150.0);
    let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
    assert_eq!(kinds, ["allocator_contention", "cost_growth"], "{found:?}");
}
