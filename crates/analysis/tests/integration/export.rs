//! What is exported is what the flame graph shows, function by function and state by state.

use scaleprof_vocabulary::{Role, ThreadState};
use testing::planted;

use planted::{Cost, Rung, USUAL, run, work};
use proptest::prelude::*;
use scaleprof_analysis::export::{Compared, RungCosts, Wanted, choose, rung_costs, timeline};
use scaleprof_analysis::flame::{self, Flame, flame};
use scaleprof_analysis::summarise;
use scaleprof_bundle::*;
use scaleprof_profile::{Amount, CostProfile};
use std::collections::{BTreeMap, BTreeSet};

/// Seconds of a transaction by function: in it alone, and with all that it calls.
type ByFunction = BTreeMap<String, (f64, f64)>;

fn add(sums: &mut ByFunction, path: &[String], seconds: f64) {
    if let Some(leaf) = path.last() {
        sums.entry(leaf.clone()).or_default().0 += seconds;
    }
    for function in path.iter().collect::<BTreeSet<_>>() {
        sums.entry(function.clone()).or_default().1 += seconds;
    }
}

/// The bundle's own, as the page's flame graph adds it up.
fn of_flame(flame: &Flame, rung: &flame::Rung, states: &[ThreadState]) -> ByFunction {
    let mut paths: Vec<Vec<String>> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for node in &flame.nodes {
        open.truncate(node.depth as usize);
        open.push(flame.functions[node.function as usize].clone());
        paths.push(open.clone());
    }
    let transactions: f64 = rung.counted.iter().map(|second| second.amount).sum();
    let counted: BTreeSet<(i32, i32)> = rung.counted.iter().map(|one| (one.measurement, one.second)).collect();
    let mut sums = ByFunction::new();
    for measurement in &rung.measurements {
        for sample in &measurement.samples {
            let second = (sample.cell / 50) as i32;
            if counted.contains(&(measurement.measurement, second)) && states.contains(&sample.state) {
                add(
                    &mut sums,
                    &paths[sample.node as usize],
                    sample.thread_seconds / transactions,
                );
            }
        }
    }
    sums
}

fn of_profile(profile: &CostProfile) -> ByFunction {
    let Amount::Transactions(transactions) = profile.about.amount else {
        panic!("a run has transactions");
    };
    let mut sums = ByFunction::new();
    for cost in &profile.costs {
        let frames = profile.stacks.frames(cost.stack).into_iter();
        let path: Vec<String> = frames
            .map(|frame| profile.frames.get(frame).expect("kept").function_name())
            .collect();
        add(&mut sums, &path, cost.thread_seconds / transactions);
    }
    sums
}

fn agree(one: &ByFunction, other: &ByFunction) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1e-9);
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|((name, a), (other_name, b))| name == other_name && near(a.0, b.0) && near(a.1, b.1))
}

/// A run with frames of the kernel, parts that compilers split off, and addresses of one function.
fn varied(latch_micros: f64, seed: u64) -> Bundle {
    let work = work();
    let mut costs: Vec<Cost<'_>> = work
        .iter()
        .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
        .collect();
    costs.push((
        ThreadState::Spin,
        &["start_thread", "do_command", "latch"],
        latch_micros,
    ));
    costs.push((
        ThreadState::Lock,
        &["start_thread", "do_command", "latch", "futex_wait"],
        latch_micros / 2.0,
    ));
    costs.push((ThreadState::Net, &["start_thread", "do_command", "poll"], 20.0));
    costs.push((
        ThreadState::Cpu,
        &["start_thread", "do_command", "search", "search", "hash"],
        3.0,
    ));
    let rungs: Vec<Rung<'_>> = vec![(4, 9_000.0, costs.clone()), (64, 7_000.0, costs)];
    let mut bundle = run(&rungs, 2, 6, USUAL, seed);
    for frame in &mut bundle.frames {
        match frame.function.as_deref() {
            Some("futex_wait") => frame.module = "[kernel]".into(),
            Some("free") => frame.function = Some("copy.part.0".into()),
            Some("write") => frame.function = None,
            _ => {}
        }
    }
    bundle
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn functions_cost_what_they_cost_in_the_flame_graph(latch in 1.0..80.0, seed in any::<u64>(), lost in 0..9_usize) {
        let mut bundle = varied(latch, seed);
        if lost < bundle.stacks.len() {
            bundle.stacks.remove(lost);
            bundle.frames.swap_remove(lost);
        }
        let flame = flame(&bundle).expect("it has samples");
        let all = Wanted { states: ThreadState::ALL.to_vec(), ..Wanted::default() };
        for wanted in [Wanted::default(), all, Wanted { states: vec![ThreadState::Lock], ..Wanted::default() }] {
            let exported = rung_costs(&bundle, &wanted);
            prop_assert_eq!(exported.len(), flame.rungs.len());
            for (rung, expected) in exported.iter().zip(&flame.rungs) {
                prop_assert_eq!(rung.connections, expected.connections);
                let expected = of_flame(&flame, expected, &wanted.states);
                let found = of_profile(&rung.profile);
                prop_assert!(agree(&expected, &found), "{:?}\n{:?}", expected, found);
            }
        }
    }
}

#[test]
fn states_add_up_to_the_ledger() {
    let bundle = varied(20.0, 1);
    let summary = summarise(&bundle);
    let all = Wanted {
        states: ThreadState::ALL.to_vec(),
        ..Wanted::default()
    };
    let rungs = rung_costs(&bundle, &all);
    assert_eq!((rungs.len(), summary.rungs.len()), (2, 2));
    for (rung, expected) in rungs.iter().zip(&summary.rungs) {
        let Amount::Transactions(transactions) = rung.profile.about.amount else {
            panic!("a run has transactions");
        };
        let ledger = &expected.ledger.as_ref().expect("it was watched").seconds_per_txn;
        for state in [ThreadState::Cpu, ThreadState::Spin, ThreadState::Lock] {
            let costs = rung.profile.costs.iter().filter(|cost| cost.state == state);
            let found: f64 = costs.map(|cost| cost.thread_seconds).sum();
            let exact = ledger[state].expect("a time");
            assert!(
                (found / transactions / exact - 1.0).abs() < 1e-9,
                "{state:?}: {found} and {exact}"
            );
        }
    }
}

#[test]
fn a_time_line_holds_the_samples_of_one_repeat() {
    let bundle = varied(20.0, 2);
    let first = Wanted {
        repeat: Some(0),
        ..Wanted::default()
    };
    for RungCosts { connections, profile } in rung_costs(&bundle, &first) {
        let timeline = timeline(&bundle, connections, &first).expect("samples");
        let moments = || timeline.threads.iter().flat_map(|thread| &thread.moments);
        let samples: u64 = profile.costs.iter().map(|cost| cost.samples).sum();
        assert!(samples > 0);
        assert_eq!(moments().count() as u64, samples);
        for state in ThreadState::ALL {
            let costs = profile.costs.iter().filter(|cost| cost.state == state);
            let expected: f64 = costs.map(|cost| cost.thread_seconds).sum();
            let of_state = moments().filter(|moment| moment.state == state);
            let found: f64 = of_state.map(|moment| moment.thread_seconds).sum();
            assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{state:?}");
        }
    }
}

#[test]
fn threads_of_other_roles_come_only_when_asked_for_and_as_they_were_sampled() {
    let mut bundle = varied(20.0, 3);
    let mut rows: Vec<SampleRow> = bundle.samples.rows().collect();
    let background = SampleRow {
        role: Role::Background,
        weight_ns: 5e8,
        ..rows.last().expect("samples").clone()
    };
    let measurement = background.measurement;
    rows.push(background);
    bundle.samples = rows.into_iter().collect();
    let roles = |wanted: &Wanted| -> Vec<(Role, f64)> {
        let rungs = rung_costs(&bundle, wanted);
        let costs = rungs.iter().flat_map(|rung| &rung.profile.costs);
        costs.map(|cost| (cost.role, cost.thread_seconds)).collect()
    };
    let connections = roles(&Wanted::default());
    assert!(!connections.is_empty() && connections.iter().all(|(role, _)| *role == Role::Connection));
    let everyone = Wanted {
        roles: Role::ALL.to_vec(),
        ..Wanted::default()
    };
    let others: Vec<(Role, f64)> = roles(&everyone)
        .into_iter()
        .filter(|(role, _)| *role != Role::Connection)
        .collect();
    assert_eq!(others, [(Role::Background, 0.5)], "of measurement {measurement}");
}

#[test]
fn rungs_are_chosen_by_name_or_the_last_against_the_cheapest() {
    let bundle = varied(20.0, 4);
    let summary = summarise(&bundle);
    let rungs = rung_costs(&bundle, &Wanted::default());
    let connections = |base, rung| {
        let Compared { base, rung } = choose(&rungs, Some(&summary), base, rung)?;
        Ok((base.and_then(|base| base.connections), rung.connections))
    };
    assert_eq!(connections(None, None), Ok((Some(4), Some(64))));
    assert_eq!(connections(None, Some(4)), Ok((Some(64), Some(4))));
    assert_eq!(connections(Some(64), Some(64)), Ok((Some(64), Some(64))));
    let said: Result<_, String> = connections(None, Some(5));
    assert!(said.is_err_and(|said| said.contains("it has 4, 64")));
    let none: Vec<RungCosts> = Vec::new();
    assert!(choose(&none, Some(&summary), None, None).is_err_and(|said| said.contains("--states")));
}
