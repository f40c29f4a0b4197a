//! The last branches of a sample, which no virtual machine records: written byte by byte like the recordings of [`made`](super::made).

use super::made::{CHAIN, USER, frames, of_program, read};
use proptest::collection::vec;
use proptest::prelude::*;
use scaleprof_profile::KERNEL;
use scaleprof_profile::import::{RecordedBranches, Recording};
use std::collections::BTreeMap;
use testing::perf_recording::{Event, KERNEL_MARK, Written, chain, field};

const ANY: u64 = 1 << 3;
const CALL_STACK: u64 = 1 << 11;
const HARDWARE_INDEX: u64 = 1 << 17;
const COUNTERS: u64 = 1 << 19;

/// Flags of a jump.
const MISPREDICTED: u64 = 1;
const PREDICTED: u64 = 1 << 1;
const WRONG_PATH: u64 = 1 << 24;

fn cycles(count: u64) -> u64 {
    count << 4
}

/// An event whose samples have such branches.
fn event(branches: u64) -> Event {
    Event {
        branches,
        ..Event::clock(CHAIN | field::BRANCH_STACK)
    }
}

/// What a sample has behind its period: a chain of one address, and the branches (from, to, flags, the newest first).
fn content(at: &[u64], branches: &[[u64; 3]]) -> Vec<u8> {
    let count = branches.len() as u64;
    let words = [count].into_iter().chain(branches.iter().flatten().copied());
    let mut content = chain(at);
    content.extend(words.flat_map(u64::to_le_bytes));
    content
}

/// Module, function and address of both ends of every jump, with how often it was taken, mispredicted and cycles, in order.
type Told = (String, i64, String, i64, u64, Option<u64>, Option<u64>);

fn told(branches: &RecordedBranches) -> Vec<Told> {
    let end = |frame| {
        let frame = branches.frames.get(frame).expect("known");
        (frame.module.to_string(), frame.address)
    };
    let rows = branches.branches.iter().map(|branch| {
        let ((from, from_address), (to, to_address)) = (end(branch.from), end(branch.to));
        let counts = branch.counts;
        let (mispredicted, cycles) = (counts.mispredicted(), counts.cycles());
        (from, from_address, to, to_address, counts.taken, mispredicted, cycles)
    });
    rows.collect()
}

fn is_said(found: &Recording, words: &str) -> bool {
    found.warnings.iter().any(|warning| warning.contains(words))
}

#[test]
fn the_calls_that_the_processor_remembers_are_the_stack() {
    let mut file = Written::new(&[event(CALL_STACK)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    let calls = [[0x40_2000, 0x40_0f00, 0], [0x40_3000, 0x40_1f00, 0]];
    file.sample(&[1, 7 << 32 | 7, 10, 1000], &content(&[USER, 0x40_1000], &calls));
    let found = read(&file);
    let own: Vec<(String, i64)> = frames(&found, &found.profile.samples[0])
        .into_iter()
        .filter(|(module, _)| module == "server")
        .collect();
    assert_eq!(
        own,
        of_program(&[0x3000, 0x2000, 0x1000]),
        "calls, not returns: nothing is taken off"
    );
    assert!(
        found.branches.is_none(),
        "they did not return yet: nobody knows the rest"
    );
    assert!(!is_said(&found, "perf record -b"), "{:?}", found.warnings);
}

#[test]
fn jumps_are_no_callers_and_are_summed_up_by_both_ends() {
    let mut file = Written::new(&[event(ANY)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.map(7, 0x7f00_0000, 0x1_0000, "/lib/libc.so.6");
    let jump = |from: u64, to: u64, flags: u64| [0x40_0000 + from, 0x40_0000 + to, flags];
    let samples = [
        vec![jump(0x100, 0x200, PREDICTED | cycles(3)), jump(0x300, 0x100, 0)],
        vec![
            jump(0x100, 0x200, MISPREDICTED | cycles(40)),
            jump(0x100, 0x280, 0),
            [0x7f00_0010, 0x40_0300, PREDICTED],
            jump(0x100, 0x200, 0),
        ],
    ];
    for (branches, time) in samples.iter().zip(10..) {
        file.sample(&[1, 7 << 32 | 7, time, 1000], &content(&[USER, 0x40_1000], branches));
    }
    let found = read(&file);
    for sample in &found.profile.samples {
        let own: Vec<(String, i64)> = frames(&found, sample)
            .into_iter()
            .filter(|(module, _)| module == "server")
            .collect();
        assert_eq!(own, of_program(&[0x1000]));
    }
    let mut rows = told(found.branches.as_ref().expect("jumps"));
    assert_eq!(rows[0].4, 3, "those that were taken most often first");
    rows.sort();
    let row = |(module, address): (&str, i64), to: i64, (taken, mispredicted, cycles)| -> Told {
        let to_module = "server".to_owned();
        (module.to_owned(), address, to_module, to, taken, mispredicted, cycles)
    };
    assert_eq!(
        rows,
        [
            row(("libc.so.6", 0x10), 0x300, (1, Some(0), None)),
            row(("server", 0x100), 0x200, (3, Some(1), Some(43))),
            row(("server", 0x100), 0x280, (1, None, None)),
            row(("server", 0x300), 0x100, (1, None, None)),
        ]
    );
    let counts = found.branches.expect("jumps").branches[0].counts;
    assert_eq!((counts.with_prediction, counts.with_cycles), (2, 2));
    assert!(!is_said(&read(&file), "perf record -b"), "nothing was left out");
}

#[test]
fn what_stands_around_the_jumps_of_newer_kernels_is_no_jump() {
    let mut file = Written::new(&[event(ANY | HARDWARE_INDEX | COUNTERS)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    let mut content = chain(&[USER, 0x40_1000]);
    let words = [1_u64, 31, 0x40_0100, 0x40_0200, PREDICTED, 0x1234];
    content.extend(words.into_iter().flat_map(u64::to_le_bytes));
    file.sample(&[1, 7 << 32 | 7, 10, 1000], &content);
    let found = told(&read(&file).branches.expect("jumps"));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].1, found[0].3, found[0].4), (0x100, 0x200, 1));
}

#[test]
fn jumps_of_the_kernel_are_told_and_those_from_nowhere_or_never_taken_are_counted() {
    let mut file = Written::new(&[event(ANY)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    let kernel = 0xffff_ffff_8100_0000;
    let jumps = [
        [0x40_0100, kernel, 0],
        [0x40_0100, 0x55_0000, 0],
        [0x55_0000, 0x40_0100, 0],
        [0x40_0100, 0x40_0200, WRONG_PATH],
        [0, 0, 0],
    ];
    file.sample(
        &[1, 7 << 32 | 7, 10, 1000],
        &content(&[KERNEL_MARK, kernel, USER, 0x40_1000], &jumps),
    );
    let found = read(&file);
    let rows = told(found.branches.as_ref().expect("jumps"));
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0].1, rows[0].2.as_str()), (0x100, KERNEL));
    for words in [
        "2 of its 4 branches (perf record -b) start or end outside of any file",
        "1 of its 4 branches",
    ] {
        assert!(is_said(&found, words), "{words}: {:?}", found.warnings);
    }
}

#[test]
fn names_of_the_kernel_are_looked_for_where_only_jumps_lead_there() {
    const OS_RELEASE: u64 = 4;
    for (to, in_kernel) in [(0xffff_ffff_8100_0000, true), (0x40_0200, false)] {
        let mut file = Written::new(&[event(ANY)]);
        file.feature_string(OS_RELEASE, "5.4.0-made-up");
        file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
        file.sample(
            &[1, 7 << 32 | 7, 10, 1000],
            &content(&[USER, 0x40_1000], &[[0x40_0100, to, 0]]),
        );
        let found = read(&file);
        assert_eq!(found.branches.as_ref().map(|jumps| jumps.branches.len()), Some(1));
        let why = found.lacks.iter().find(|(what, _)| what == "functions of the kernel");
        assert_eq!(
            why.is_some_and(|(_, why)| why.contains("5.4.0-made-up")),
            in_kernel,
            "{:?}",
            found.lacks
        );
    }
}

#[test]
fn a_recording_without_any_jump_has_no_branches_and_says_why() {
    let mut file = Written::new(&[event(ANY)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(&[1, 7 << 32 | 7, 10, 1000], &content(&[USER, 0x40_1000], &[]));
    let found = read(&file);
    assert!(found.branches.is_none());
    assert!(
        is_said(&found, "none of its samples has branches"),
        "{:?}",
        found.warnings
    );
}

#[test]
fn a_sample_that_claims_more_jumps_than_it_has_is_left_out() {
    for claimed in [u64::MAX, u64::MAX / 3, u64::MAX / 24, 1 << 32, 2] {
        let mut file = Written::new(&[event(ANY)]);
        file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
        let whole = content(&[USER, 0x40_1000], &[[0x40_0100, 0x40_0200, 0]]);
        file.sample(&[1, 7 << 32 | 7, 10, 1000], &whole);
        let mut broken = whole;
        broken[24..32].copy_from_slice(&claimed.to_le_bytes());
        file.sample(&[1, 7 << 32 | 7, 20, 1000], &broken);
        let found = read(&file);
        assert!(is_said(&found, "1 samples are cut"), "{claimed}: {:?}", found.warnings);
        let taken: Vec<u64> = told(&found.branches.expect("jumps")).iter().map(|row| row.4).collect();
        assert_eq!(taken, [1]);
    }
}

/// The file that all processes have lies elsewhere in each.
fn start(process: u32) -> u64 {
    u64::from(process) << 32
}

/// So much of it is mapped.
const LENGTH: u64 = 0x20;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Enough samples for several threads, of three processes.
    #[test]
    fn jumps_of_all_threads_and_processes_add_up_to_those_counted_one_by_one(
        samples in vec((7_u32..10, vec((0..LENGTH + 2, 0..LENGTH, 0_u64..0x2f), 0..5)), 1..400),
    ) {
        let mut file = Written::new(&[event(ANY)]);
        for process in 7..10 {
            file.map(process, start(process), LENGTH, "/srv/server");
        }
        let mut expected: BTreeMap<(i64, i64), (u64, u64, u64, u64)> = BTreeMap::new();
        for ((process, jumps), time) in samples.iter().zip(10..) {
            let branches: Vec<[u64; 3]> =
                jumps.iter().map(|(from, to, flags)| [start(*process) + from, start(*process) + to, *flags]).collect();
            let thread = u64::from(*process) << 32 | u64::from(*process);
            file.sample(&[1, thread, time, 1000], &content(&[USER, start(*process)], &branches));
            for (from, to, flags) in jumps.iter().filter(|(from, ..)| *from < LENGTH) {
                let sum = expected.entry((*from as i64, *to as i64)).or_default();
                sum.0 += 1;
                sum.1 += u64::from(flags % 4 > 0);
                sum.2 += flags % 2;
                sum.3 += flags / 16;
            }
        }
        let found = read(&file);
        let branches = found.branches.unwrap_or_default();
        let address = |frame| branches.frames.get(frame).map_or(-1, |frame| frame.address);
        let sums: BTreeMap<(i64, i64), (u64, u64, u64, u64)> = branches
            .branches
            .iter()
            .map(|branch| {
                let counts = branch.counts;
                let sum = (
                    counts.taken,
                    counts.with_prediction,
                    counts.mispredicted().unwrap_or(0),
                    counts.cycles().unwrap_or(0),
                );
                ((address(branch.from), address(branch.to)), sum)
            })
            .collect();
        prop_assert_eq!(sums.len(), branches.branches.len(), "every jump once");
        prop_assert_eq!(sums, expected);
    }
}
