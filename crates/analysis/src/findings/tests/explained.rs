//! What the findings explain of a loss, and what they leave.

use super::made_up::*;
use crate::findings::*;
use scaleprof_vocabulary::ShareOf;

fn explained(rungs: &[(u32, f64, f64, Costs<'_>)]) -> (Vec<Finding>, Vec<Explained>) {
    let found = made_up(
        rungs,
        |_, _| (),
        |profiled, call_paths| {
            let surroundings = Surroundings {
                manifest: &manifest(),
                settings: &[],
                code: &MachineCode::default,
            };
            findings(profiled, &surroundings, call_paths)
        },
    );
    (found.findings, found.explained)
}

const EXECUTE: &[&str] = &["main", "dispatch_command", "execute", "check_access"];

#[test]
fn what_no_finding_tells_is_said_with_its_heaviest_path() {
    let small: &[&str] = &["main", "dispatch_command", "execute", "a_little"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 20.0), ("cpu", small, 10.0)];
    // 100 more in loops; 4 more of `a_little`, under the least that is a finding.
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 120.0), ("cpu", small, 14.0)];
    let (findings, explained) = explained(&[(8, 8_000.0, 1.0, few), (64, 5_000.0, 1.0, many)]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let account = &explained[0];
    assert_eq!((account.account, account.rungs), (ShareOf::CpuTime, [8, 64]));
    assert!((account.lost_seconds_per_txn - 104e-6).abs() < 1e-7, "{account:?}");
    // All of the spinning is the finding's share, and only what grew explains the growth.
    assert!(
        (account.explained_share.value - 100.0 / 104.0).abs() < 0.01,
        "{account:?}"
    );
    assert!((account.explained_share.value + account.unexplained_share - 1.0).abs() < 1e-9);
    let limits = account
        .explained_share
        .low
        .zip(account.explained_share.high)
        .expect("an interval");
    assert!(limits.0 < account.explained_share.value && account.explained_share.value < limits.1);
    let heaviest = account.heaviest.as_ref().expect("a path");
    assert_eq!(heaviest.path.last().map(String::as_str), Some("a_little"));
    assert!((heaviest.share - 4.0 / 104.0).abs() < 0.01, "{heaviest:?}");
    assert!(
        account.sentence.contains("one finding explains 96 %") && account.sentence.contains("a_little"),
        "{}",
        account.sentence
    );
}

#[test]
fn several_findings_are_added_up_without_telling_anything_twice() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 20.0), ("cpu", EXECUTE, 50.0)];
    let many: Costs<'_> = &[
        ("cpu", PARSE, 100.0),
        ("spin", SPIN, 70.0),
        ("cpu", EXECUTE, 100.0),
        ("cpu", SPINLOCK, 60.0),
    ];
    let (findings, explained) = explained(&[(8, 8_000.0, 1.0, few), (64, 5_000.0, 1.0, many)]);
    assert!(findings.len() >= 2, "{findings:?}");
    let share = explained[0].explained_share.value;
    // The parts are 50, 50 and 60 of 160; what stands beside the fight is charged to it and has no finding of its own.
    assert!(share <= 1.01 && share > 0.6, "{:?}", explained[0]);
}

#[test]
fn nothing_found_is_nothing_explained() {
    let paths: Vec<Vec<String>> = (0..40)
        .map(|place| names(&["main", "dispatch_command", &format!("part_{place}")]))
        .collect();
    let paths: Vec<Vec<&str>> = paths
        .iter()
        .map(|path| path.iter().map(String::as_str).collect())
        .collect();
    // Half of them get dearer by a third, each by less than is worth a word: no common factor.
    let costs = |factor: f64| -> Vec<(&str, &[&str], f64)> {
        let micros = |place: usize| if place.is_multiple_of(2) { 5.0 * factor } else { 5.0 };
        let numbered = paths.iter().enumerate();
        numbered
            .map(|(place, path)| ("cpu", path.as_slice(), micros(place)))
            .collect()
    };
    let (few, many) = (costs(1.0), costs(1.5));
    let (findings, explained) = explained(&[(8, 8_000.0, 1.0, &few), (64, 5_000.0, 1.0, &many)]);
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(explained.len(), 1);
    let sentence = &explained[0].sentence;
    assert!(sentence.contains("no finding explains any of it"), "{sentence}");
    assert!((explained[0].unexplained_share - 1.0).abs() < 1e-9);
}

#[test]
fn where_nothing_is_lost_nothing_is_left() {
    let same: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let (_, explained) = explained(&[(8, 8_000.0, 1.0, same), (64, 8_000.0, 1.0, same)]);
    assert!(explained.is_empty(), "{explained:?}");
}
