//! One rung in both runs: throughput, CPU, latency, states.

use super::differences::{Tested, difference, ratio};
use super::{CommonRung, Measured, Pair, RungChange, StateChange};
use crate::findings::is_busy;
use crate::per::Per;
use scaleprof_bundle::RungSummary;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeSet;

/// A figure of every measurement; none where a measurement does not have it.
fn all(measured: &Measured, figure: impl Fn(&RungSummary) -> Option<f64>) -> Option<Vec<f64>> {
    measured
        .measurements
        .iter()
        .map(|measurement| figure(&measurement.summary))
        .collect()
}

/// A figure of all measurements together, as the runs' own reports have it.
fn pair(rung: &CommonRung, figure: impl Fn(&RungSummary) -> Option<f64>) -> Pair {
    Pair {
        a: figure(&rung.a.together.summary),
        b: figure(&rung.b.together.summary),
    }
}

/// All common rungs, by themselves. A state in which nobody was in any of them is left out, as it only takes room; in which
/// somebody was in one, it is told of all: nought is not unknown. `imported` tells of A and of B whether they are recordings.
pub(super) fn rung_changes(per: Per, imported: [bool; 2], common: &[CommonRung]) -> Vec<RungChange> {
    let mut rungs: Vec<RungChange> = common.iter().map(|rung| rung_change(per, imported, rung)).collect();
    let used: BTreeSet<ThreadState> = rungs
        .iter()
        .flat_map(|rung| &rung.states)
        .filter(|state| state.seconds_per_txn.a > Some(0.0) || state.seconds_per_txn.b > Some(0.0))
        .map(|state| state.state)
        .collect();
    for rung in &mut rungs {
        rung.states.retain(|state| used.contains(&state.state));
    }
    rungs
}

/// What changed at one rung, but for its call paths.
fn rung_change(per: Per, imported: [bool; 2], rung: &CommonRung) -> RungChange {
    let throughput = |summary: &RungSummary| (per == Per::Transaction).then_some(summary.throughput.value);
    let cpu = |summary: &RungSummary| Some(summary.iron_law.as_ref()?.cpu_seconds_per_txn);
    let ratio_of = |figure: &dyn Fn(&RungSummary) -> Option<f64>| -> Option<Tested> {
        let Pair { a, b } = pair(rung, figure);
        ratio(b? / a?, &all(&rung.a, figure)?, &all(&rung.b, figure)?)
    };
    let of_throughput = ratio_of(&throughput);
    RungChange {
        connections: rung.connections,
        measurements: [rung.a.measurements.len(), rung.b.measurements.len()],
        throughput: pair(rung, throughput),
        throughput_ratio: of_throughput.map(|tested| tested.estimate),
        throughput_p: of_throughput.and_then(|tested| tested.p),
        cpu_seconds_per_txn: pair(rung, cpu),
        cpu_ratio: ratio_of(&cpu).map(|tested| tested.estimate),
        p95_ms: pair(rung, |summary| summary.latency_ms.p95),
        states: states(rung),
        code_kinds: Vec::new(),
        stacks: [&rung.a, &rung.b].map(|side| !side.together.costs.is_empty()),
        uniform_slowdown: 1.0,
        busy: [&rung.a, &rung.b].iter().all(|side| is_busy(&side.together.summary)),
        unexplained: None,
        notes: notes(per, imported, rung),
    }
}

fn states(rung: &CommonRung) -> Vec<StateChange> {
    let spin_is_known = knows_spin(&rung.a) && knows_spin(&rung.b);
    let of_state = |state: ThreadState| {
        let seconds = |summary: &RungSummary| {
            let ledger = &summary.ledger.as_ref()?.seconds_per_txn;
            match (state, spin_is_known) {
                // Then it is told with the work, in which it is counted where it is not known.
                (ThreadState::Cpu, false) => Some(ledger[ThreadState::Cpu]? + ledger[ThreadState::Spin].unwrap_or(0.0)),
                (ThreadState::Spin, false) => None,
                _ => ledger[state],
            }
        };
        let both = pair(rung, seconds);
        let (in_a, in_b) = both.a.zip(both.b)?;
        let (a, b) = (all(&rung.a, seconds)?, all(&rung.b, seconds)?);
        Some(StateChange {
            state,
            seconds_per_txn: both,
            change: difference(&a, &b, None).centred_at(in_b - in_a).estimate,
        })
    };
    ThreadState::ALL.into_iter().filter_map(of_state).collect()
}

/// Whether the time in loops that wait is told apart from work, in every measurement.
fn knows_spin(measured: &Measured) -> bool {
    let spin = |summary: &RungSummary| summary.ledger.as_ref()?.seconds_per_txn[ThreadState::Spin];
    spin(&measured.together.summary).is_some() && all(measured, spin).is_some()
}

fn notes(per: Per, imported: [bool; 2], rung: &CommonRung) -> Vec<String> {
    let mut notes = Vec::new();
    let lacking: Vec<&str> = [("A", &rung.a), ("B", &rung.b)]
        .into_iter()
        .filter(|(_, measured)| !knows_spin(measured) && measured.together.summary.ledger.is_some())
        .map(|(side, _)| side)
        .collect();
    if let [side] = lacking[..] {
        notes.push(format!(
            "{side} does not separate spin loops from other code, so spin counts as cpu in both"
        ));
    }
    for ((side, measured), imported) in [("A", &rung.a), ("B", &rung.b)].into_iter().zip(imported) {
        let measurements = &measured.measurements;
        if measurements.len() < 2 {
            let what = match per {
                Per::Transaction if imported => {
                    "is one recording, so significance is unknown: import three of each load"
                }
                Per::Transaction => "has one measurement, so significance is unknown: use --repeats 3",
                Per::Second => {
                    "is one measurement, so significance is unknown: import three or more recordings together"
                }
            };
            notes.push(format!("{side} {what}"));
        }
        if measurements
            .iter()
            .any(|measurement| measurement.summary.client_limited)
        {
            notes.push(format!("in {side} the client may have been the limit"));
        }
        let unsteady = measurements
            .iter()
            .filter(|measurement| !measurement.summary.steady)
            .count();
        if measured.together.costs.is_empty() {
            notes.push(format!(
                "call paths are not compared, because {side} has no stack samples"
            ));
        }
        if unsteady > 0 {
            notes.push(format!(
                "in {side} {unsteady} of {} measurements did not settle",
                measurements.len()
            ));
        }
    }
    notes
}
