use super::*;
use crate::call_paths::CallPaths;
use crate::instruction_costs::InstructionCosts;
use crate::ledger::Watched;
use crate::rung_instructions::RungInstructions;
use crate::sampled::Sampled;
use crate::totals::{Amount, Window};
use scaleprof_bundle::{FrameRow, SampleRow, Samples, StackRow, UtcMicros};
use scaleprof_vocabulary::{AccessKind, Role, SymbolSource, ThreadState, UnwindStatus};

pub(super) fn function(name: &str) -> CodeFunction {
    CodeFunction {
        name: name.into(),
        is_start_or_stop: name.starts_with("init"),
        calls: 3,
    }
}

pub(super) fn access(function: usize, what: AccessKind, instruction: u64) -> PlaceAccess {
    PlaceAccess {
        function,
        kind: what,
        locked: false,
        in_loop: false,
        in_spin_loop: false,
        is_rarely_run: false,
        instruction,
        sampled_at: [instruction + 4, instruction + 4],
        callee: None,
    }
}

pub(super) fn place(name: &str, address: u64, size: u64, accesses: Vec<PlaceAccess>) -> Place {
    Place {
        name: name.into(),
        address,
        size,
        is_known_lock: false,
        accesses,
    }
}

pub(super) fn functions() -> Vec<CodeFunction> {
    ["search", "insert", "spin", "spin_more", "init", "other"]
        .map(function)
        .to_vec()
}
pub(super) const SEARCH: usize = 0;
pub(super) const INSERT: usize = 1;
pub(super) const SPIN: usize = 2;
pub(super) const SPIN_MORE: usize = 3;
pub(super) const INIT: usize = 4;
pub(super) const OTHER: usize = 5;

use AccessKind::{Passed, Read, Update, Write};

/// A setting that two functions read, and that the start writes.
pub(super) fn setting(address: u64) -> Place {
    let accesses = vec![
        access(SEARCH, Read, 0x100),
        access(INSERT, Read, 0x200),
        access(INIT, Write, 0x900),
    ];
    place("enabled", address, 1, accesses)
}

/// A counter that two other functions write.
pub(super) fn counter(address: u64) -> Place {
    let accesses = vec![access(SPIN, Update, 0x300), access(SPIN_MORE, Update, 0x400)];
    place("counter", address, 8, accesses)
}

fn judged(places: &[Place], bytes: u64) -> Vec<JudgedLine> {
    judge(places, &functions(), bytes, None)
}

fn kinds(places: &[Place], bytes: u64) -> Vec<(u64, LineKind)> {
    judged(places, bytes)
        .iter()
        .map(|line| (line.address, line.kind))
        .collect()
}

#[test]
fn a_setting_beside_a_counter_is_false_sharing() {
    let found = judged(&[setting(0x1010), counter(0x1008)], 64);
    assert_eq!(found.len(), 1);
    let line = &found[0];
    assert_eq!(
        (line.address, line.bytes, line.kind),
        (0x1000, 64, LineKind::FalseSharing)
    );
    let told: Vec<_> = line
        .variables
        .iter()
        .map(|place| (place.name.as_str(), place.offset, place.role))
        .collect();
    assert_eq!(
        told,
        [
            ("counter", 8, PlaceRole::Written),
            ("enabled", 16, PlaceRole::ReadMostly)
        ]
    );
    assert_eq!(line.variables[1].rare_writers, 1);
    assert!(
        line.sentence.contains("each write to counter invalidates enabled"),
        "{}",
        line.sentence
    );
    assert!(line.advice[0].contains("alignas(64) for counter"), "{:?}", line.advice);
    let holds: Vec<_> = line.evidence.iter().map(|step| (step.step, step.holds)).collect();
    assert_eq!(
        holds,
        [
            (Evidence::Neighbours, Some(true)),
            (Evidence::HotLoad, None),
            (Evidence::GrowingCost, None),
            (Evidence::HotStore, None),
            (Evidence::HardwareSample, None)
        ]
    );
    // In different lines they are no concern of one another.
    assert_eq!(kinds(&[setting(0x1040), counter(0x1008)], 64), []);
}

#[test]
fn what_is_apart_in_64_bytes_and_together_in_128_is_a_prediction() {
    let apart = [setting(0x1040), counter(0x1008)];
    assert_eq!(kinds(&apart, 128), [(0x1000, LineKind::LongerLinesOnly)]);
    assert!(judged(&apart, 128)[0].evidence[0].words.contains("apart in 64"));
    // Lines begin at multiples of their length: these two stay apart.
    assert_eq!(kinds(&[setting(0x1080), counter(0x1008)], 128), []);
    assert_eq!(
        kinds(&[setting(0x1080), counter(0x1008)], 256),
        [(0x1000, LineKind::LongerLinesOnly)]
    );
    assert_eq!(
        kinds(&[setting(0x1010), counter(0x1008)], 128),
        [(0x1000, LineKind::FalseSharing)]
    );
}

#[test]
fn writes_at_the_start_take_nothing_from_anybody() {
    let only_start = place("limit", 0x1008, 8, vec![access(INIT, Write, 0x500)]);
    assert_eq!(kinds(&[setting(0x1010), only_start], 64), []);
    // And neither does the first value that a function gives its static variable.
    let guard = place(
        "guard variable for cached()::value",
        0x1000,
        8,
        vec![access(OTHER, Read, 0x600)],
    );
    let value = place("cached()::value+0x0", 0x1008, 8, vec![access(OTHER, Write, 0x604)]);
    assert_eq!(kinds(&[guard, value.clone(), setting(0x1010)], 64), []);
    assert_eq!(kinds(&[value, setting(0x1010)], 64), [(0x1000, LineKind::FalseSharing)]);
}

#[test]
fn a_setting_that_somebody_may_change_is_still_one_and_a_counter_is_none() {
    let mut changed = setting(0x1010);
    changed.accesses.push(access(OTHER, Write, 0x700));
    changed.accesses.push(access(SPIN, Read, 0x704));
    assert_eq!(
        judged(&[changed.clone(), counter(0x1008)], 64)[0].variables[1].role,
        PlaceRole::ReadMostly
    );
    // Who reads it and writes it counts with it.
    changed.accesses.push(access(OTHER, Read, 0x6fc));
    assert_eq!(
        judged(&[changed, counter(0x1008)], 64)[0].variables[1].role,
        PlaceRole::Written
    );
}

#[test]
fn a_function_that_writes_in_the_line_takes_nothing_from_itself() {
    let read = place(
        "buffer",
        0x1000,
        8,
        vec![access(SPIN, Read, 0x800), access(SPIN_MORE, Read, 0x810)],
    );
    assert!(!kinds(&[read, counter(0x1008)], 64).contains(&(0x1000, LineKind::FalseSharing)));
}

#[test]
fn locks_are_told_by_their_name_and_by_how_they_are_taken() {
    let taken = PlaceAccess {
        callee: Some("pthread_mutex_lock@plt".into()),
        ..access(SPIN, Passed, 0x300)
    };
    let lock = place("LOCK_open.m_mutex", 0x1000, 40, vec![taken.clone()]);
    let key = place("LOCK_open.m_psi", 0x1028, 8, vec![access(SEARCH, Read, 0x104)]);
    assert_eq!(kinds(&[lock.clone(), key.clone()], 64), [], "parts of one lock");
    let found = judged(&[lock, key, setting(0x1038)], 64);
    assert_eq!(found[0].kind, LineKind::LockSharesLine);
    assert!(
        found[0].sentence.contains("each acquisition of LOCK_open"),
        "{}",
        found[0].sentence
    );
    // A name alone makes no lock, and neither does a call.
    let named = place("lock_wait_timeout", 0x1000, 8, vec![access(SPIN, Update, 0x300)]);
    assert_eq!(kinds(&[named, setting(0x1010)], 64), [(0x1000, LineKind::FalseSharing)]);
    let handed_on = place("list", 0x1000, 8, vec![taken]);
    assert_eq!(kinds(&[handed_on, setting(0x1010)], 64), []);
}

#[test]
fn counters_of_different_code_in_one_line_are_told_and_those_of_the_same_are_not() {
    let other = place("other", 0x1010, 8, vec![access(OTHER, Update, 0x500)]);
    assert_eq!(
        kinds(&[counter(0x1008), other], 64),
        [(0x1000, LineKind::IndependentWriters)]
    );
    let same = place("same", 0x1010, 8, vec![access(SPIN, Update, 0x304)]);
    assert!(!kinds(&[counter(0x1008), same], 64).contains(&(0x1000, LineKind::IndependentWriters)));
}

#[test]
fn one_counter_that_many_write_is_true_sharing() {
    let many = (0..6).map(|function| access(function, Update, 0x300)).collect();
    assert_eq!(
        kinds(&[place("hits", 0x1000, 8, many)], 64),
        [(0x1000, LineKind::TrueSharing)]
    );
    assert_eq!(
        kinds(&[place("hits", 0x1000, 8, vec![access(SPIN, Update, 0x300)])], 64),
        []
    );
}

#[test]
fn what_many_threads_run_at_once_comes_first() {
    let waiting = |mut place: Place| {
        for access in &mut place.accesses {
            access.in_spin_loop = true;
        }
        place
    };
    let mut written_in_loop = waiting(counter(0x2008));
    written_in_loop.name = "spun".into();
    let places = [setting(0x1010), counter(0x1008), setting(0x2010), written_in_loop];
    assert_eq!(judged(&places, 64)[0].address, 0x2000);
}

#[test]
fn an_array_is_in_the_lines_of_its_ends_and_says_nothing_against_its_elements() {
    let whole = place("table", 0x1008, 0x400, vec![access(SPIN, Write, 0x300)]);
    let found = kinds(
        &[
            setting(0x1000),
            whole.clone(),
            place("after", 0x1408, 8, vec![access(SEARCH, Read, 0x104)]),
        ],
        64,
    );
    let mut lines: Vec<u64> = found.iter().map(|(address, _)| *address).collect();
    lines.sort_unstable();
    assert_eq!(lines, [0x1000, 0x1400]);
    let element = place("table[2]", 0x1018, 8, vec![access(SEARCH, Read, 0x108)]);
    assert_eq!(kinds(&[whole, element], 64), []);
}

/// Marks an address from which threads went into the kernel.
const IN_KERNEL: u64 = 1 << 60;

/// A rung of 10 seconds with 100 transactions each; in each second the threads stood so many milliseconds at these addresses.
pub(crate) fn rung(connections: u32, at: &[(u64, f64)], client_limited: bool) -> RungInstructions {
    let numbered = || at.iter().zip(1_i64..);
    let frames: Vec<FrameRow> = numbered()
        .map(|((address, _), number)| FrameRow {
            frame: number,
            module: "mysqld".into(),
            build_id: Some("ab12".into()),
            address: (*address & !IN_KERNEL) as i64,
            function: Some("f".into()),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::Symtab,
        })
        .chain([FrameRow {
            frame: 0,
            module: "[kernel]".into(),
            build_id: None,
            address: 1,
            function: Some("k".into()),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::Kallsyms,
        }])
        .collect();
    let row = |stack: i64, parent: Option<i64>, frame: i64| StackRow {
        stack,
        parent,
        frame,
        depth: 0,
    };
    // The stack of a thread in the kernel has the number of that in user space and a thousand more.
    let stacks: Vec<StackRow> = numbered()
        .flat_map(|(_, number)| [row(number, None, number), row(1000 + number, Some(number), 0)])
        .collect();
    let stack_of = |address: u64, number: i64| match address & IN_KERNEL {
        0 => number,
        _ => 1000 + number,
    };
    let samples: Samples = (0..10)
        .flat_map(|second| {
            numbered().map(move |((address, milliseconds), number)| SampleRow {
                measurement: 0,
                second,
                time_us: UtcMicros(0),
                thread: 1,
                role: Role::Connection,
                cpu: 0,
                state: ThreadState::Cpu,
                stack: stack_of(*address, number),
                unwind_status: UnwindStatus::Complete,
                // A little more in every other second, so that there is a spread.
                weight_ns: milliseconds * 1e6 * if second % 2 == 0 { 0.95 } else { 1.05 },
                lock: None,
                waker_kind: None,
                waker_stack: None,
                holder_stack: None,
                holder_state: None,
            })
        })
        .collect();
    let one = Amount {
        seconds: 1.0,
        transactions: 100.0,
    };
    let windows = [Window {
        measurement: 0,
        seconds: (0..10).map(|second| (second, one)).collect(),
        whole: Amount {
            seconds: 10.0,
            transactions: 1000.0,
        },
    }];
    let watched = Watched {
        samples: samples.blocks().iter().collect(),
        ..Watched::default()
    };
    let call_paths = CallPaths::of_rows(&stacks, &frames);
    RungInstructions {
        connections: Some(connections),
        client_limited,
        costs: InstructionCosts::of(&Sampled::of(&windows, &watched, None), &call_paths),
    }
}

#[test]
fn a_load_whose_cost_grows_behind_it_is_evidence() {
    // The loads are at 0x100 and 0x200; the timer sees who waited for the first at 0x104.
    let rungs = [
        rung(4, &[(0x104, 2.0), (0x300, 1.0), (0x5000, 97.0)], false),
        rung(64, &[(0x104, 30.0), (0x200, 1.0), (0x300, 9.0), (0x5000, 100.0)], false),
    ];
    let costs = MeasuredCosts::of(&rungs, "mysqld", Some("ab12")).expect("the same file");
    assert_eq!(costs.connections(), [4, 64]);
    let elsewhere = [place(
        "quiet",
        0x3000,
        8,
        (0..6).map(|by| access(by, Update, 0x7000)).collect(),
    )];
    let places = [vec![setting(0x1010), counter(0x1008)], elsewhere.to_vec()].concat();
    let found = judge(&places, &functions(), 64, Some(&costs));
    let line = &found[0];
    assert_eq!(line.address, 0x1000);
    let cost = line.variables[1].read_cost.expect("measured");
    // 30 + 1 ms of 100 transactions, of 140 ms in all.
    assert!((cost.with_skid.last.value - 310e-6).abs() < 1e-9, "{cost:?}");
    assert!((cost.itself.last.value - 10e-6).abs() < 1e-9, "{cost:?}");
    assert!((cost.share - 31.0 / 140.0).abs() < 1e-9, "{cost:?}");
    assert_eq!((cost.grows(), cost.samples), (Some(true), [10, 20]));
    let holds: Vec<_> = line.evidence.iter().map(|step| step.holds).collect();
    assert_eq!(holds, [Some(true), Some(true), Some(true), Some(true), None]);
    assert!(
        line.evidence[1].words.contains("enabled take 22 %"),
        "{}",
        line.evidence[1].words
    );
    assert!(
        line.evidence[2]
            .words
            .contains("20.000 µs a transaction at 4 connections and 310.000 µs at 64"),
        "{:?}",
        line.evidence[2]
    );
    assert!((line.sure_growth() - 370e-6).abs() < 1e-9, "{}", line.sure_growth());
}

#[test]
fn a_load_that_costs_nothing_is_none() {
    let rungs = [
        rung(4, &[(0x5000, 90.0)], false),
        rung(64, &[(0x5000, 100.0)], false),
        rung(512, &[(0x100, 100.0)], true),
    ];
    let costs = MeasuredCosts::of(&rungs, "mysqld", Some("ab12")).expect("the same file");
    assert_eq!(costs.connections(), [4, 64], "the client limited the last one");
    let found = judge(&[setting(0x1010), counter(0x1008)], &functions(), 64, Some(&costs));
    let holds: Vec<_> = found[0].evidence.iter().map(|step| step.holds).collect();
    // Ten samples in all cannot tell.
    assert_eq!(holds, [Some(true), None, None, None, None]);
    assert!(
        found[0].evidence[1]
            .words
            .contains("less than 300.000 µs of a transaction's 1000.000 µs"),
        "{:?}",
        found[0].evidence[1]
    );
    assert_eq!((found[0].sure_growth(), found[0].hot_share()), (0.0, 0.0));
    let many: Vec<(u64, f64)> = (0..400).map(|number| (0x5000 + number, 0.1)).collect();
    let rungs = [rung(4, &many, false), rung(64, &many, false)];
    let costs = MeasuredCosts::of(&rungs, "mysqld", Some("ab12")).expect("the same file");
    let found = judge(&[setting(0x1010), counter(0x1008)], &functions(), 64, Some(&costs));
    assert_eq!(found[0].evidence[1].holds, Some(false), "{:?}", found[0].evidence[1]);
}

#[test]
fn bundles_of_other_files_and_builds_are_refused() {
    let rungs = [rung(4, &[(0x100, 1.0)], false), rung(8, &[(0x100, 1.0)], false)];
    let why = |module, build_id, rungs| {
        MeasuredCosts::of(rungs, module, build_id)
            .expect_err("refused")
            .to_string()
    };
    assert!(why("mariadbd", None, &rungs).contains("has no samples of mariadbd, but of mysqld"));
    assert!(why("mysqld", Some("cd34"), &rungs).contains("another build of mysqld (build-id ab12, the file has cd34)"));
    assert!(why("mysqld", None, &rungs[..1]).contains("samples of 1 rungs"));
}

#[test]
fn another_build_may_have_put_them_apart() {
    let line = &judged(&[setting(0x1010), counter(0x1008)], 64)[0];
    let pair = |enabled: u64, counter: u64| {
        let found = pairs_elsewhere(line, |name| match name {
            "enabled" => Some((enabled, 1)),
            "counter" => Some((counter, 8)),
            _ => None,
        });
        assert_eq!(found.len(), 1);
        (found[0].together, found[0].apart)
    };
    assert_eq!(pair(0x2000, 0x2020), (Some(true), Some(31)));
    assert_eq!(pair(0x2000, 0x2040), (Some(false), Some(63)));
    assert_eq!(
        pair(0x2040, 0x203c),
        (Some(true), Some(0)),
        "the counter lies in both lines"
    );
    let gone = pairs_elsewhere(line, |name| (name == "enabled").then_some((0, 1)));
    assert_eq!((gone[0].together, gone[0].apart), (None, None));
}

#[test]
fn counted_writes_are_the_evidence_for_a_hot_store() {
    let mut line = judged(&[setting(0x1010), counter(0x1008)], 64).remove(0);
    assert_eq!(line.worth_counting(), [0, 1]);
    let counted = |writes, writers| CountedWrites {
        writes,
        seconds: 0.5,
        threads: 8,
        writers,
    };
    line.add_counted_writes(&[(0, counted(2000, 5)), (1, counted(0, 0)), (9, counted(1, 1))]);
    assert_eq!(line.evidence.len(), 5);
    let store = &line.evidence[3];
    assert_eq!(store.holds, Some(true));
    assert!(
        store
            .words
            .contains("counter was written 4 000 times a second by 5 of 8 threads (2000 writes in 0.50 s)")
            && store.words.contains("enabled was not written in 0.50 s"),
        "{store:?}"
    );
    // One thread alone takes it from nobody.
    line.add_counted_writes(&[(0, counted(2000, 1))]);
    assert_eq!(line.evidence[3].holds, Some(false));
}

#[test]
fn judged_lines_can_be_kept() {
    let found = judged(&[setting(0x1010), counter(0x1008)], 64);
    let text = serde_json::to_string(&found).expect("JSON");
    assert!(text.contains(r#""kind":"false_sharing""#), "{text}");
    assert_eq!(serde_json::from_str::<Vec<JudgedLine>>(&text).expect("the same"), found);
}

proptest::proptest! {
    /// Any rows are judged, and every judged line holds what it is about.
    #[test]
    fn any_rows_are_judged_without_panic(
        rows in proptest::collection::vec((0_u64..400, 0_u64..200, proptest::collection::vec((0_usize..8, 0_u8..4, proptest::bool::ANY), 0..4)), 0..12),
        far: bool,
        bytes in 0_u64..300,
    ) {
        let base = if far { u64::MAX - 300 } else { 0x1000 };
        let places: Vec<Place> = rows
            .iter()
            .map(|(offset, size, accesses)| {
                let uses = accesses.iter().map(|(function, what, locked)| {
                    let what = [Read, Write, Update, Passed][usize::from(*what)];
                    PlaceAccess { locked: *locked, ..access(*function, what, 0x100) }
                });
                place("some_lock.x", base.saturating_add(*offset), *size, uses.collect())
            })
            .collect();
        for line in judge(&places, &functions(), bytes, None) {
            proptest::prop_assert!(!line.variables.is_empty() && !line.sentence.is_empty());
            proptest::prop_assert_eq!(line.address % line.bytes, 0);
        }
    }
}

#[test]
fn many_settings_that_are_seldom_set_come_behind_one_counter() {
    // Each is read by two functions, and set by one that does not look at it: none of them is hot.
    let few_settings = (0..6).map(|number| {
        let accesses = vec![access(SEARCH, Read, 0x100), access(INSERT, Read, 0x200)];
        place(&format!("setting_{number}"), 0x2000 + 4 * number, 4, accesses)
    });
    let are_set = (0..6).map(|number| {
        let accesses = vec![access(SPIN_MORE, Write, 0x700), access(OTHER, Write, 0x800)];
        place(&format!("set_{number}"), 0x2020 + 4 * number, 4, accesses)
    });
    let mut places: Vec<Place> = few_settings.chain(are_set).collect();
    places.extend([setting(0x1010), counter(0x1008)]);
    let found = kinds(&places, 64);
    assert_eq!(
        found,
        [(0x1000, LineKind::FalseSharing), (0x2000, LineKind::FalseSharing)]
    );
}

#[test]
fn lines_that_nobody_was_seen_at_come_behind_those_where_somebody_was() {
    let more = |name: &str, address: u64, what: AccessKind, at: u64| {
        let by = [SEARCH, INSERT, SPIN, SPIN_MORE, OTHER];
        let by = if what == Read { &by[..3] } else { &by[3..] };
        let accesses = by.iter().map(|function| access(*function, what, at)).collect();
        place(name, address, 4, accesses)
    };
    // More code touches the second line.
    let places = [
        setting(0x1010),
        counter(0x1008),
        more("busy_setting", 0x2010, Read, 0x6000),
        more("busy_counter", 0x2008, Update, 0x7000),
    ];
    let lines = |costs: Option<&MeasuredCosts<'_>>| -> Vec<u64> {
        let found = judge(&places, &functions(), 64, costs);
        found.iter().map(|line| line.address).collect()
    };
    assert_eq!(lines(None), [0x2000, 0x1000]);
    // One millisecond of a hundred transactions: seen, and too little to be called hot.
    let rungs = [
        rung(4, &[(0x5000, 97.0)], false),
        rung(64, &[(0x104, 0.05), (0x5000, 97.0)], false),
    ];
    let costs = MeasuredCosts::of(&rungs, "mysqld", Some("ab12")).expect("the same file");
    assert_eq!(lines(Some(&costs)), [0x1000, 0x2000]);
}

#[test]
fn a_file_without_a_build_id_is_not_one_with_one() {
    let rungs = [rung(4, &[(0x104, 2.0)], false), rung(64, &[(0x104, 30.0)], false)];
    let refused = MeasuredCosts::of(&rungs, "mysqld", None).expect_err("another file");
    assert!(matches!(refused, CostsNotKnown::OtherBuild { .. }), "{refused}");
}

#[test]
fn samples_in_the_kernel_are_none_of_the_line() {
    let with_kernel = |connections: u32, milliseconds: f64| {
        let at = [(0x104, milliseconds), (IN_KERNEL | 0x104, 9.0), (0x5000, 97.0)];
        rung(connections, &at, false)
    };
    let rungs = [with_kernel(4, 2.0), with_kernel(64, 30.0)];
    let costs = MeasuredCosts::of(&rungs, "mysqld", Some("ab12")).expect("the same file");
    let found = judge(&[setting(0x1010), counter(0x1008)], &functions(), 64, Some(&costs));
    let cost = found[0].variables[1].read_cost.expect("measured");
    assert_eq!(cost.samples, [10, 10], "{cost:?}");
    assert!((cost.with_skid.last.value - 300e-6).abs() < 1e-9, "{cost:?}");
}
