//! The scaling profile: lost threads by state and call path over the ladder (DESIGN section 2).
//!
//! With tau the time of a transaction in a path and X throughput, `L(N) = X(N) (tau(N) - tau(Nb))` threads are lost in it at N
//! connections; it is HPCToolkit's excess work of weak scaling (Coarfa et al. 2007), a transaction being the unit of work. All
//! of them and `N_eff = X(N) Nb / X(Nb)` add up to N.

use crate::base_rung::cheapest;
use crate::call_paths::CallPaths;
use crate::figure::{Figure as _, grown};
use crate::findings::cover::{Covered, cover};
use crate::findings::{Profiled, uniform_slowdown};
use crate::growth_shape::shape;
use crate::path_costs::{PathCosts, StatePath};
use crate::saturation::{Loaded, saturated};
use scaleprof_bundle::{Estimate, LostPath, LostThreads, ScalingProfile};
use scaleprof_vocabulary::{PerState, ThreadState};
use std::collections::BTreeMap;

/// Paths that are listed.
const MOST: usize = 12;
/// Least part of the connections that is worth a line; its lower limit must be above nothing.
const LEAST: f64 = 0.01;
/// The profile of rungs by rising connections; none where fewer than two have a ledger.
pub(crate) fn scaling_profile(rungs: &[Profiled<'_>], call_paths: &CallPaths<'_>) -> Option<ScalingProfile> {
    let rungs: Vec<Rung<'_>> = rungs.iter().filter_map(Rung::of).collect();
    let [.., last] = rungs.as_slice() else { return None };
    let base = cheapest(&rungs, |rung| Some(rung.efficiency().recip()))?;
    if rungs.len() < 2 {
        return None;
    }
    let uniform_slowdowns: Vec<Option<f64>> = rungs
        .iter()
        .map(|rung| uniform_slowdown(base.costs, rung.costs))
        .collect();
    let loaded: Vec<Loaded<'_>> = rungs
        .iter()
        .map(|rung| Loaded {
            connections: rung.connections,
            throughput: rung.throughput,
            costs: rung.costs,
            is_busy: rung.is_busy,
        })
        .collect();
    Some(ScalingProfile {
        base_connections: base.connections,
        rungs: rungs
            .iter()
            .zip(&uniform_slowdowns)
            .map(|(rung, uniform_slowdown)| rung.lost(base, *uniform_slowdown))
            .collect(),
        paths: lost_paths(&rungs, &uniform_slowdowns, base, last, call_paths),
        saturated: saturated(&loaded, call_paths),
    })
}

/// What the formulas need of a rung.
struct Rung<'a> {
    connections: u32,
    throughput: f64,
    states: PerState<Option<f64>>,
    costs: &'a PathCosts,
    is_busy: bool,
}

/// Where spinning was told apart at one rung only, it is left with the time on CPUs at both: what is unknown is not nothing.
fn with_the_same_states(
    mut here: PerState<Option<f64>>,
    mut there: PerState<Option<f64>>,
) -> (PerState<Option<f64>>, PerState<Option<f64>>) {
    if here[ThreadState::Spin].is_some() != there[ThreadState::Spin].is_some() {
        for states in [&mut here, &mut there] {
            let spinning = states[ThreadState::Spin].take().unwrap_or(0.0);
            states[ThreadState::Cpu] = states[ThreadState::Cpu].map(|cpu| cpu + spinning);
        }
    }
    (here, there)
}

impl<'a> Rung<'a> {
    fn of(profiled: &Profiled<'a>) -> Option<Rung<'a>> {
        let ledger = profiled.summary.ledger.as_ref()?;
        let (connections, throughput) = (profiled.summary.connections, profiled.summary.throughput.value);
        (connections > 0 && throughput > 0.0).then_some(Rung {
            connections,
            throughput,
            states: ledger.seconds_per_txn,
            costs: profiled.costs,
            is_busy: profiled.is_busy(),
        })
    }

    /// Throughput per connection.
    fn efficiency(&self) -> f64 {
        self.throughput / f64::from(self.connections)
    }

    fn lost(&self, base: &Rung<'_>, uniform_slowdown: Option<f64>) -> LostThreads {
        let effective = self.throughput / base.efficiency();
        let (here, there) = with_the_same_states(self.states, base.states);
        let lost_threads: BTreeMap<ThreadState, Estimate> = ThreadState::ALL
            .into_iter()
            .filter_map(|state| {
                let exact = (here[state]? - there[state].unwrap_or(0.0)) * self.throughput;
                // The value is exact; how it varies from second to second the samples tell, where there are any.
                let of_state = |costs: &PathCosts| costs.estimate_of_state(state);
                let sampled = grown(of_state(base.costs), of_state(self.costs), 1.0).times(self.throughput);
                let mut state_paths = self.costs.state_paths(state).chain(base.costs.state_paths(state));
                let half = match (self.connections == base.connections, state_paths.next().is_none()) {
                    (true, _) => Some(0.0),
                    (false, true) => None,
                    (false, false) => sampled.high.map(|high| high - sampled.value),
                };
                let estimate = Estimate {
                    value: exact,
                    low: half.map(|half| exact - half),
                    high: half.map(|half| exact + half),
                };
                Some((state, estimate))
            })
            .collect();
        let explained: f64 = lost_threads.values().map(|lost| lost.value).sum();
        LostThreads {
            connections: self.connections,
            effective_threads: effective,
            cpus_busy: self.is_busy,
            uniform_slowdown,
            residual: (f64::from(self.connections) - effective - explained) / f64::from(self.connections),
            lost_threads,
        }
    }
}

/// `uniform_slowdowns` of all rungs.
fn lost_paths(
    rungs: &[Rung<'_>],
    uniform_slowdowns: &[Option<f64>],
    base: &Rung<'_>,
    last: &Rung<'_>,
    call_paths: &CallPaths<'_>,
) -> Vec<LostPath> {
    let least = LEAST * f64::from(last.connections) / last.throughput;
    let mut found: Vec<(f64, LostPath)> = Vec::new();
    for state in ThreadState::ALL {
        // The one is the client's time and the network's; the other is no cause of anything while no CPU is free.
        if state.waits_for_work() || (state == ThreadState::RunQueue && last.is_busy) {
            continue;
        }
        let mut state_paths = unique(
            last.costs
                .state_paths(state)
                .chain(base.costs.state_paths(state))
                .collect(),
        );
        state_paths.retain(|state_path| call_paths.is_whole(state_path.path));
        // What takes longer everywhere alike is no path's fault.
        let longer = |rung: usize| match state {
            ThreadState::Cpu => uniform_slowdowns.get(rung).copied().flatten().unwrap_or(1.0),
            _ => 1.0,
        };
        let longer_at_last = longer(rungs.len().saturating_sub(1));
        let costs = state_paths.iter().map(|state_path| {
            let now = last.costs.seconds(*state_path);
            (
                state_path.path,
                now - longer_at_last * base.costs.seconds(*state_path),
                now,
            )
        });
        for Covered { path, within } in cover(costs, call_paths, least) {
            let estimate = |costs: &PathCosts| costs.estimate_within(state, &within);
            let before = estimate(base.costs);
            let lost: Vec<Estimate> = rungs
                .iter()
                .enumerate()
                .map(|(place, rung)| match rung.connections == base.connections {
                    // It is compared with itself.
                    true => Estimate {
                        value: 0.0,
                        low: Some(0.0),
                        high: Some(0.0),
                    },
                    false => grown(before, estimate(rung.costs), longer(place)).times(rung.throughput),
                })
                .collect();
            let rank = lost.last().map_or(0.0, |lost| lost.low.unwrap_or(lost.value));
            let value = lost.last().map_or(0.0, |lost| lost.value);
            if rank <= 0.0 || value < LEAST * f64::from(last.connections) {
                continue;
            }
            let points: Vec<(f64, f64)> = rungs
                .iter()
                .map(|rung| {
                    let seconds = rung.costs.seconds_within(state, &within);
                    (f64::from(rung.connections), seconds)
                })
                .collect();
            let entry = LostPath {
                state,
                path: call_paths.functions(path),
                lost_threads: lost,
                shape: shape(&points),
            };
            found.push((rank, entry));
        }
    }
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.truncate(MOST);
    found.into_iter().map(|(_, path)| path).collect()
}

fn unique(mut state_paths: Vec<StatePath>) -> Vec<StatePath> {
    state_paths.sort();
    state_paths.dedup();
    state_paths
}

#[cfg(test)]
mod tests;
