//! One rung in both runs: throughput, CPU, latency, states.

use super::differences::{difference, ratio};
use super::{CommonRung, Pair, RungChange, StateChange};
use crate::machine_shares::BUSY;
use crate::rung::RungResult;
use scaleprof_bundle::{RungSummary, StateSeconds};

/// A figure of every visit; none where a visit does not have it.
fn all(visits: &[RungResult], figure: impl Fn(&RungSummary) -> Option<f64>) -> Option<Vec<f64>> {
    visits.iter().map(|visit| figure(&visit.summary)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn pair(rung: &CommonRung, figure: impl Fn(&RungSummary) -> Option<f64>) -> Pair {
    Pair {
        a: all(&rung.a, &figure).as_deref().and_then(mean),
        b: all(&rung.b, &figure).as_deref().and_then(mean),
    }
}

/// What changed at one rung, but for its call paths.
pub(super) fn rung_change(rung: &CommonRung) -> RungChange {
    let throughput = |summary: &RungSummary| Some(summary.throughput.value);
    let cpu = |summary: &RungSummary| Some(summary.iron_law.as_ref()?.cpu_seconds_per_txn);
    let ratio_of = |figure: &dyn Fn(&RungSummary) -> Option<f64>| ratio(&all(&rung.a, figure)?, &all(&rung.b, figure)?);
    let of_throughput = ratio_of(&throughput);
    let busy = |visits: &[RungResult]| {
        let of_visit = |visit: &RungResult| {
            let used = visit.summary.iron_law.as_ref().map(|law| law.utilisation);
            let shares = visit.summary.busy_share.into_iter().chain(used);
            shares.fold(0.0, f64::max)
        };
        mean(&visits.iter().map(of_visit).collect::<Vec<_>>()).is_some_and(|share| share >= BUSY)
    };
    RungChange {
        connections: rung.connections,
        visits: [rung.a.len(), rung.b.len()],
        throughput: pair(rung, throughput),
        throughput_ratio: of_throughput.map(|tested| tested.estimate),
        throughput_p: of_throughput.and_then(|tested| tested.p),
        cpu_seconds_per_txn: pair(rung, cpu),
        cpu_ratio: ratio_of(&cpu).map(|tested| tested.estimate),
        p95_ms: pair(rung, |summary| summary.latency_ms.p95),
        states: states(rung),
        dilation: 1.0,
        busy: busy(&rung.a) && busy(&rung.b),
        notes: notes(rung),
    }
}

fn states(rung: &CommonRung) -> Vec<StateChange> {
    let names = StateSeconds::default().named().map(|(name, _)| name);
    names
        .into_iter()
        .enumerate()
        .filter_map(|(place, state)| {
            let seconds = |summary: &RungSummary| {
                let ledger = summary.ledger.as_ref()?;
                Some(ledger.seconds_per_txn.named()[place].1.unwrap_or(0.0))
            };
            let (a, b) = (all(&rung.a, seconds)?, all(&rung.b, seconds)?);
            let pair = Pair {
                a: mean(&a),
                b: mean(&b),
            };
            // A state in which nobody ever was only takes room.
            let is_there = pair.a.is_some_and(|seconds| seconds > 0.0) || pair.b.is_some_and(|seconds| seconds > 0.0);
            is_there.then(|| StateChange {
                state: state.to_owned(),
                seconds_per_txn: pair,
                change: difference(&a, &b, None).estimate,
            })
        })
        .collect()
}

fn notes(rung: &CommonRung) -> Vec<String> {
    let mut notes = Vec::new();
    for (side, visits) in [("A", &rung.a), ("B", &rung.b)] {
        if visits.len() < 2 {
            notes.push(format!(
                "{side} has one visit only, so chance cannot be told from change: use --repeats 3"
            ));
        }
        if visits.iter().any(|visit| visit.summary.client_limited) {
            notes.push(format!("in {side} the client may have set the limit"));
        }
        let unsteady = visits.iter().filter(|visit| !visit.summary.steady).count();
        if unsteady > 0 {
            notes.push(format!(
                "in {side} {unsteady} of {} visits did not settle",
                visits.len()
            ));
        }
    }
    notes
}
