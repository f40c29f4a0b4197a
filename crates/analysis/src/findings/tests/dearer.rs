//! Transactions that cost more CPU time.

use super::made_up::*;
use crate::findings::*;
use scaleprof_vocabulary::FindingKind;

#[test]
fn a_spinlock_of_the_kernel_is_named_with_the_function_above_it() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("cpu", SPINLOCK, 1.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 101.0), ("cpu", SPINLOCK, 60.0)];
    let found = found(&[(8, 19_000.0, 1.0, few), (256, 12_000.0, 1.0, many)]);
    assert_eq!(found[0].kind, FindingKind::KernelSpinlock);
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
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(
        kinds,
        [FindingKind::CostGrowth, FindingKind::SlowerEverywhere],
        "{found:?}"
    );
    assert_eq!(found[0].path, READ);
    // (60 - 1.2 x 20) of 156.
    assert!(
        (found[0].lost_share.value - 36.0 / 156.0).abs() < 0.01,
        "{:?}",
        found[0].lost_share
    );
}

/// Forty callers of one function, what each spends in it, and what else there is. Names of a test may live as long as it does.
fn forty_callers(micros: impl Fn(usize) -> f64) -> Vec<(&'static str, &'static [&'static str], f64)> {
    let called = (0..40).map(|caller| {
        let name: &'static str = format!("caller{caller}").leak();
        let path: &'static [&'static str] = vec!["main", "work", name, "checksum"].leak();
        ("cpu", path, micros(caller))
    });
    called.chain([("cpu", READ, 60.0), ("cpu", PARSE, 60.0)]).collect()
}

#[test]
fn a_function_that_got_dearer_for_forty_callers_is_named() {
    let found_at_last = |last: &[(&'static str, &'static [&'static str], f64)]| {
        found(&[(8, 19_000.0, 1.0, &forty_callers(|_| 0.5)), (256, 12_000.0, 1.0, last)])
    };
    let told = found_at_last(&forty_callers(|_| 2.0));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].kind, FindingKind::CostGrowth);
    assert_eq!(told[0].path, ["checksum"]);
    let share = told[0].lost_share.value;
    assert!((share - 60.0 / 200.0).abs() < 0.01, "{share}");
    let said = told[0].evidence.join("\n");
    assert!(said.contains("40 paths lead there"), "{said}");

    // One of them with most of it is told by its path.
    let told = found_at_last(&forty_callers(|caller| if caller == 7 { 80.0 } else { 0.6 }));
    assert_eq!(told[0].path, ["main", "work", "caller7", "checksum"], "{told:?}");
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
fn transactions_that_fail_for_one_another_are_told_with_their_part() {
    const SAME: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0)];
    let with_errors = |number: &'static str, count: u64| {
        found_with(
            &[(8, 19_000.0, 1.0, SAME), (64, 18_800.0, 1.0, SAME)],
            |connections, summary| {
                if connections == 64 {
                    summary.errors.insert(number.to_owned(), count);
                }
            },
        )
    };
    // A made-up rung did a million.
    for (number, title) in [
        ("1205", "Transactions fail with lock wait time-outs"),
        ("1213", "Transactions fail with deadlocks"),
        (
            "1020",
            "Transactions fail at rows that others changed since they were read",
        ),
    ] {
        let found = with_errors(number, 250_000);
        assert_eq!(found[0].title, title);
        assert_eq!((found.len(), found[0].kind), (1, FindingKind::Retries), "{found:?}");
        let share = found[0].lost_share.value;
        assert!((share - 0.2).abs() < 0.01, "{share}");
    }
    assert!(
        with_errors("1213", 100).is_empty(),
        "one in ten thousand is not worth a word"
    );
    assert!(with_errors("1062", 250_000).is_empty(), "duplicate keys are no fight");
}

#[test]
fn rows_that_others_changed_are_told_with_the_setting_behind_it_where_it_is_on() {
    const SAME: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0)];
    let told = |product: &str, setting: Option<&str>| {
        let change = |connections, summary: &mut RungSummary| {
            if connections == 64 {
                summary.errors.insert("1020".to_owned(), 250_000);
            }
        };
        let rungs = [(8, 19_000.0, 1.0, SAME), (64, 18_800.0, 1.0, SAME)];
        let found = made_up(&rungs, change, |profiled, call_paths| {
            let mut manifest = manifest();
            manifest.server.product = product.into();
            let setting = setting.map(|value| SettingRow::new("innodb_snapshot_isolation", value));
            let surroundings = Surroundings {
                manifest: &manifest,
                settings: setting.as_slice(),
                code: &MachineCode::default,
            };
            findings(profiled, &surroundings, call_paths).findings
        });
        let tries = found[0].suggestions.join("; ");
        (
            found[0].evidence.join("; ").contains("innodb_snapshot_isolation"),
            tries.contains("innodb_snapshot_isolation = OFF"),
        )
    };
    assert_eq!(told("MariaDB", Some("ON")), (true, true));
    assert_eq!(told("MariaDB", Some("OFF")), (true, false));
    assert_eq!(told("MariaDB", None), (true, false));
    assert_eq!(told("MySQL", None), (false, false));
}

#[test]
fn growth_that_is_spread_over_most_of_the_work_hides_no_other() {
    let at = |grown: f64, read: f64| -> Vec<(&'static str, &'static [&'static str], f64)> {
        let leaves = (0..200).map(|leaf| {
            let name: &'static str = format!("leaf{leaf}").leak();
            let path: &'static [&'static str] = vec!["main", "work", name].leak();
            ("cpu", path, if leaf % 2 == 0 { grown } else { 0.5 })
        });
        leaves.chain([("cpu", READ, read), ("cpu", PARSE, 20.0)]).collect()
    };
    let found = found(&[(8, 19_000.0, 1.0, &at(0.5, 20.0)), (256, 12_000.0, 1.0, &at(1.5, 60.0))]);
    assert!(found.iter().any(|finding| finding.path == READ), "{found:?}");
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
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::AllocatorContention], "{found:?}");
    let said = found[0].evidence.join("\n");
    assert!(said.contains("up to 6.6 % more grew in adjacent code"), "{said}");
    // What lost as much as the fight did is a cause of its own.
    let found = beside(11.0, 150.0);
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(
        kinds,
        [FindingKind::AllocatorContention, FindingKind::CostGrowth],
        "{found:?}"
    );
}
