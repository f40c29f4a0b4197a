use super::*;
use crate::perf_event::Event::{BranchMisses, CacheMisses, CacheReferences, Cycles, Instructions};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn raw(enabled: u64, running: u64, values: &[u64]) -> RawGroup {
    RawGroup {
        time_enabled: enabled,
        time_running: running,
        values: values.to_vec(),
    }
}

fn zero(counts: &HardwareCounts) -> HardwareCounts {
    counts
        .iter()
        .map(|cpus| cpus.iter().map(|g| raw(0, 0, &vec![0; g.values.len()])).collect())
        .collect()
}

fn of(counters: &[Counter], name: &str) -> (f64, f64) {
    let counter = counters
        .iter()
        .find(|c| c.name == name)
        .unwrap_or_else(|| panic!("{name} is absent"));
    (counter.value, counter.running_share.expect("a share"))
}

fn two_groups() -> Vec<Vec<Event>> {
    layout(&[CacheReferences, CacheMisses, BranchMisses])
}

#[test]
fn no_group_holds_more_than_four_events() {
    let expected = vec![
        vec![Cycles, Instructions, CacheReferences, CacheMisses],
        vec![Cycles, Instructions, BranchMisses],
    ];
    assert_eq!(two_groups(), expected);
    assert_eq!(layout(&[]), vec![vec![Cycles, Instructions]]);
}

#[test]
fn a_figure_of_one_group_is_scaled_to_the_time_of_all() {
    // 3 s with the first group, 1 s with the second, on one CPU of 1 GHz.
    let after = vec![
        vec![raw(3 * SECOND, 3 * SECOND, &[3 * SECOND, 6 * SECOND, 3_000, 300])],
        vec![raw(SECOND, SECOND, &[SECOND, 2 * SECOND, 50])],
    ];
    let (counters, missing) = hardware_figures(&two_groups(), &zero(&after), &after, Some(4.0));
    assert_eq!(missing, []);
    assert_eq!(of(&counters, "hw.cycles"), (4e9, 1.0));
    assert_eq!(of(&counters, "hw.instructions"), (8e9, 1.0));
    assert_eq!(of(&counters, "hw.cache_references"), (4_000.0, 0.75));
    assert_eq!(of(&counters, "hw.branch_misses"), (200.0, 0.25));
}

#[test]
fn time_without_a_counter_is_scaled_and_said() {
    let after = vec![vec![
        raw(2 * SECOND, SECOND, &[SECOND, SECOND]),
        raw(2 * SECOND, 2 * SECOND, &[SECOND, SECOND]),
    ]];
    let (counters, missing) = hardware_figures(&layout(&[]), &zero(&after), &after, None);
    assert_eq!(missing, []);
    assert_eq!(of(&counters, "hw.cycles"), (3e9, 0.75));
}

#[test]
fn a_counter_of_cycles_that_stands_still_is_dropped_with_its_group() {
    let after = vec![
        vec![raw(SECOND, SECOND, &[SECOND, SECOND, 30, 3])],
        vec![raw(SECOND, SECOND, &[0, SECOND, 50])],
    ];
    let (counters, missing) = hardware_figures(&two_groups(), &zero(&after), &after, Some(2.0));
    // The other group fills the time in, and says so.
    assert_eq!(of(&counters, "hw.cycles"), (2e9, 0.5));
    assert_eq!(of(&counters, "hw.cache_misses"), (6.0, 0.5));
    assert_eq!(
        missing.iter().map(|m| m.figure).collect::<Vec<_>>(),
        ["hw.branch_misses"]
    );
    assert!(missing[0].reason.contains("stood still"), "{}", missing[0].reason);
}

#[test]
fn garbage_instructions_are_dropped() {
    // The sixth counter of a Zen 3 guest: 582,654 instructions where there were 1.5e9.
    let after = vec![vec![raw(SECOND, SECOND, &[1_500_000_000, 582_654])]];
    let (counters, missing) = hardware_figures(&layout(&[]), &zero(&after), &after, None);
    assert_eq!(counters, []);
    assert_eq!(missing.len(), 2);
}

#[test]
fn groups_that_disagree_about_one_load_are_both_dropped() {
    let after = vec![
        vec![raw(2 * SECOND, 2 * SECOND, &[2 * SECOND, 2 * SECOND, 10, 1])],
        vec![raw(2 * SECOND, 2 * SECOND, &[2 * SECOND, 5 * SECOND, 10])],
    ];
    let (counters, missing) = hardware_figures(&two_groups(), &zero(&after), &after, None);
    assert_eq!(counters, []);
    assert_eq!(missing.len(), 5);
    assert!(missing.iter().all(|m| m.reason.contains("disagree")));
}

#[test]
fn an_impossible_clock_is_dropped() {
    let after = vec![vec![raw(SECOND, SECOND, &[SECOND / 100, SECOND / 100])]];
    let (counters, missing) = hardware_figures(&layout(&[]), &zero(&after), &after, Some(1.0));
    assert_eq!(counters, []);
    assert!(missing[0].reason.contains("CPU time"), "{}", missing[0].reason);
}

#[test]
fn more_misses_than_references_are_dropped() {
    let after = vec![vec![raw(SECOND, SECOND, &[SECOND, SECOND, 10, 20])]];
    let (counters, missing) = hardware_figures(
        &layout(&[CacheReferences, CacheMisses]),
        &zero(&after),
        &after,
        Some(1.0),
    );
    assert_eq!(counters.len(), 2);
    assert_eq!(missing.len(), 2);
}

#[test]
fn a_figure_whose_turn_did_not_come_is_missing_and_not_zero() {
    let after = vec![
        vec![raw(SECOND, SECOND, &[SECOND, SECOND, 10, 1])],
        vec![raw(0, 0, &[0, 0, 0])],
    ];
    let (counters, missing) = hardware_figures(&two_groups(), &zero(&after), &after, Some(1.0));
    assert_eq!(counters.len(), 4);
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].figure, "hw.branch_misses");
}

proptest! {
    #[test]
    fn no_counts_whatever_give_a_figure_that_is_not_a_number(
        before in proptest::collection::vec(any::<u64>(), 18),
        after in proptest::collection::vec(any::<u64>(), 18),
        clock in proptest::option::of(any::<f64>()),
    ) {
        let build = |w: &[u64]| vec![
            vec![raw(w[0], w[1], &w[2..6]), raw(w[6], w[7], &w[8..12])],
            vec![raw(w[12], w[13], &w[14..17])],
        ];
        let (counters, missing) = hardware_figures(&two_groups(), &build(&before), &build(&after), clock);
        prop_assert_eq!(counters.len() + missing.len(), 5);
        for counter in counters {
            prop_assert!(counter.value.is_finite() && counter.value >= 0.0, "{:?}", counter);
            prop_assert!(counter.running_share.is_some_and(|s| (0.0..=1.0).contains(&s)), "{:?}", counter);
        }
    }
}
