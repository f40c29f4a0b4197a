//! Instructions that wait for a cache line.

use super::made_up::*;
use crate::findings::*;
use scaleprof_bundle::InstructionRow;
use scaleprof_vocabulary::{AccessKind, FindingKind};

/// A function with three instructions, at one of which threads stand for so long.
fn with_hot(others: f64, hot: f64) -> Vec<(&'static str, &'static [&'static str], f64)> {
    const FIRST: &[&str] = &["main", "dispatch_command", "look_up@1"];
    const HOT: &[&str] = &["main", "dispatch_command", "look_up@2"];
    const THIRD: &[&str] = &["main", "dispatch_command", "look_up@3"];
    vec![
        ("cpu", PARSE, 100.0),
        ("cpu", FIRST, others),
        ("cpu", HOT, hot),
        ("cpu", THIRD, others),
    ]
}

#[test]
fn an_instruction_that_grows_beside_others_that_do_not_waits_for_a_cache_line() {
    let found = found(&[
        (1, 8_000.0, 1.0, &with_hot(15.0, 10.0)),
        (2, 8_000.0, 1.0, &with_hot(15.0, 60.0)),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, FindingKind::CacheLineSharing);
    assert!(found[0].title.contains("look_up"), "{found:?}");
    assert!((found[0].lost_share.value - 50.0 / 190.0).abs() < 0.01, "{found:?}");
    assert!(
        found[0].evidence.iter().any(|line| line.contains("6.0 times")),
        "{found:?}"
    );
}

#[test]
fn what_grew_behind_the_function_of_a_shared_line_is_told_too() {
    const IN_KERNEL: &[&str] = &["main", "dispatch_command", "look_up@2", "exc_other [k]"];
    const OTHER: &[&str] = &["main", "dispatch_command", "look_up@9", "built_for_another"];
    let costs = |others: f64, hot: f64, more: f64| {
        let mut costs = with_hot(others, hot);
        costs.extend([("cpu", IN_KERNEL, more), ("cpu", OTHER, more), ("cpu", READ, 200.0)]);
        costs
    };
    // In what it calls, and in the kernel, 18 \u{b5}s each; what grew in the function itself beside the line belongs to the line.
    let found = found(&[
        (1, 8_000.0, 1.0, &costs(15.0, 10.0, 2.0)),
        (2, 8_000.0, 1.0, &costs(24.0, 160.0, 20.0)),
    ]);
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(
        kinds,
        [
            FindingKind::CacheLineSharing,
            FindingKind::CostGrowth,
            FindingKind::CostGrowth
        ],
        "{found:?}"
    );
    let cost = 300.0 + 2.0 * 24.0 + 160.0 + 40.0;
    let lost: Vec<f64> = found.iter().map(|finding| finding.lost_share.value * cost).collect();
    assert!(
        (lost[0] - 150.0).abs() < 1.0 && (lost[1] - 18.0).abs() < 1.0 && (lost[2] - 18.0).abs() < 1.0,
        "{lost:?}"
    );
    let ends: Vec<Option<&str>> = found
        .iter()
        .map(|finding| finding.path.last().map(String::as_str))
        .collect();
    assert_eq!(ends[0], Some("look_up"));
    assert!(
        ends.contains(&Some("exc_other [k]")) && ends.contains(&Some("built_for_another")),
        "{ends:?}"
    );
}

#[test]
fn threads_in_the_kernel_or_in_loops_that_wait_stand_at_no_shared_line() {
    // Two samples a second of many microseconds at the instruction itself; all others that came from it are in the kernel.
    let costs = |hot: f64| {
        let mut costs = with_hot(15.0, hot);
        const IN_KERNEL: &[&str] = &["main", "dispatch_command", "look_up@2", "exc_other [k]"];
        costs.extend(vec![("cpu", IN_KERNEL, 0.01); 400]);
        costs
    };
    let (before, after) = (costs(10.0), costs(60.0));
    made_up(
        &[(1, 8_000.0, 1.0, &before), (2, 8_000.0, 1.0, &after)],
        |_, _| (),
        |rungs, _| {
            let [base, last] = rungs else { panic!("two rungs") };
            let found =
                shared_line::shared_lines(base.instructions, last.instructions, 1.0, 1e-6, MachineCode::default);
            assert_eq!(found.len(), 1);
            // Ten seconds, one sample in each.
            assert_eq!(found[0].samples(), [10, 10]);
        },
    );
}

#[test]
fn a_function_that_has_more_to_do_waits_for_no_cache_line() {
    let found = found(&[
        (1, 8_000.0, 1.0, &with_hot(15.0, 10.0)),
        (2, 8_000.0, 1.0, &with_hot(90.0, 60.0)),
    ]);
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::CostGrowth], "{found:?}");
}

#[test]
fn an_instruction_that_cannot_have_waited_for_memory_waits_for_no_cache_line() {
    let (before, after) = (with_hot(15.0, 10.0), with_hot(15.0, 60.0));
    made_up(
        &[(1, 8_000.0, 1.0, &before), (2, 8_000.0, 1.0, &after)],
        |_, _| (),
        |rungs, _| {
            let [base, last] = rungs else { panic!("two rungs") };
            let lines = |code: MachineCode| {
                shared_line::shared_lines(base.instructions, last.instructions, 1.0, 1e-6, || code.clone())
            };
            let found = lines(MachineCode::default());
            let at = &found[0].at;
            // A run of instructions that ends in the hot one, and one elsewhere that reads.
            let row = |address, access: Option<AccessKind>| InstructionRow {
                module: at.module.clone(),
                build_id: at.build_id.clone(),
                address,
                length: 1,
                text: "add rax,rcx".to_owned(),
                access,
                ..InstructionRow::default()
            };
            let code = |loads_at: i64| {
                let rows: Vec<InstructionRow> = (0..9)
                    .map(|back| row(at.address - back, (back == loads_at).then_some(AccessKind::Read)))
                    .collect();
                MachineCode::from_rows(&rows)
            };
            assert_eq!(lines(code(8)).len(), 0);
            assert_eq!(lines(code(1)).len(), 1);
        },
    );
}
