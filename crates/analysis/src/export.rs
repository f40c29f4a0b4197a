//! What is given to other tools: the call paths of a rung with what they cost, down to addresses and lines.
//!
//! The weights are those of the flame graph: of threads that serve the load, the samples of a state are scaled to the exact time in
//! that state over the seconds that count. Other threads have the weights that they were sampled with.

mod choice;
mod rung_samples;
mod stacks;
mod thread_lines;

pub use choice::{Compared, choose};
use scaleprof_vocabulary::{Role, ThreadState};

use crate::measurement_rows::{MeasurementRows, by_measurement, complete_by_connections};
use crate::pacing::Pacing;
use crate::per::Per;
use crate::rung;
use crate::sampled::Sampled;
use crate::watch;
use rung_samples::RungSamples;
use scaleprof_bundle::{Bundle, in_parallel};
use scaleprof_profile::{About, Amount, CostProfile, Timeline};
use std::collections::BTreeMap;
use thread_lines::ThreadLines;

/// What is wanted of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What threads were doing.
    pub states: Vec<ThreadState>,
    /// Whom they serve.
    pub roles: Vec<Role>,
    /// Only one repeat of each rung, from 0.
    pub repeat: Option<u32>,
}

impl Default for Wanted {
    /// What the flame graph shows at first: the threads that serve the load, but for their waiting for the client.
    fn default() -> Wanted {
        let states = ThreadState::ALL.into_iter();
        Wanted {
            states: states.filter(|state| !state.waits_for_work()).collect(),
            roles: vec![Role::Connection],
            repeat: None,
        }
    }
}

/// The call paths of one rung.
#[derive(Debug, Clone)]
pub struct RungCosts {
    /// Connections; none for a server that was only watched.
    pub connections: Option<u32>,
    /// Its call paths.
    pub profile: CostProfile,
}

/// The rungs that have samples of what is wanted, by rising connections; one for a watch.
pub fn rung_costs(bundle: &Bundle, wanted: &Wanted) -> Vec<RungCosts> {
    let measurements = by_measurement(bundle);
    let found = in_parallel(rungs(bundle, &measurements, wanted), |(connections, measurements)| {
        let sampled = sampled(bundle, connections, &measurements)?;
        let mut samples = RungSamples::new(bundle, wanted);
        for rows in &measurements {
            samples.add(rows, &sampled);
        }
        let profile = samples.profile(about(bundle, connections, &measurements, &sampled));
        (!profile.costs.is_empty()).then_some(RungCosts { connections, profile })
    });
    found.into_iter().flatten().collect()
}

/// Of the time in the wanted states the share of threads that are not wanted; 0 where there is no time.
pub fn share_of_others(bundle: &Bundle, wanted: &Wanted) -> f64 {
    let (mut all, mut others) = (0.0, 0.0);
    for block in bundle.samples.blocks() {
        let (states, roles) = (block.states(), block.roles());
        let is_wanted = |state: &ThreadState| wanted.states.contains(state);
        let counts: Vec<bool> = states.values().iter().map(is_wanted).collect();
        let is_served = |role: &Role| wanted.roles.contains(role);
        let serves: Vec<bool> = roles.values().iter().map(is_served).collect();
        for ((state, role), weight) in states.codes().iter().zip(roles.codes()).zip(block.weights_ns()) {
            if counts[*state as usize] && weight.is_finite() {
                all += weight;
                others += if serves[*role as usize] { 0.0 } else { *weight };
            }
        }
    }
    if all > 0.0 { others / all } else { 0.0 }
}

/// The first wanted measurement of a rung, thread by thread, from where it was warm on; none where
/// it has no samples.
pub fn timeline(bundle: &Bundle, connections: Option<u32>, wanted: &Wanted) -> Option<Timeline> {
    let measurements = by_measurement(bundle);
    let mut rungs = rungs(bundle, &measurements, wanted).into_iter();
    let (_, mut measurements) = rungs.find(|(of, _)| *of == connections)?;
    measurements.truncate(1);
    let sampled = sampled(bundle, connections, &measurements)?;
    let mut lines = ThreadLines::new(bundle, wanted);
    for rows in &measurements {
        lines.add(rows, &sampled);
    }
    let timeline = lines.timeline(about(bundle, connections, &measurements, &sampled));
    (!timeline.threads.is_empty()).then_some(timeline)
}

/// The wanted measurements of every rung.
fn rungs<'a>(
    bundle: &Bundle,
    measurements: &'a BTreeMap<i32, MeasurementRows<'a>>,
    wanted: &Wanted,
) -> Vec<(Option<u32>, Vec<&'a MeasurementRows<'a>>)> {
    let mut rungs: Vec<(Option<u32>, Vec<&MeasurementRows<'_>>)> = match Per::of(bundle) {
        Per::Second => vec![(None, measurements.values().collect())],
        Per::Transaction => complete_by_connections(bundle, measurements)
            .into_iter()
            .map(|(connections, measurements)| (Some(connections), measurements))
            .collect(),
    };
    for (_, measurements) in &mut rungs {
        measurements.retain(|rows| {
            let repeat = rows.rung.and_then(|rung| u32::try_from(rung.repeat).ok());
            wanted.repeat.is_none_or(|wanted| repeat == Some(wanted))
        });
    }
    rungs
}

fn sampled<'a>(
    bundle: &Bundle,
    connections: Option<u32>,
    measurements: &[&'a MeasurementRows<'a>],
) -> Option<Sampled<'a>> {
    match connections {
        None => watch::sampled(measurements),
        Some(connections) => rung::sampled(connections, Pacing::of(&bundle.manifest.workload), measurements),
    }
}

fn about(
    bundle: &Bundle,
    connections: Option<u32>,
    measurements: &[&MeasurementRows<'_>],
    sampled: &Sampled<'_>,
) -> About {
    let amount: f64 = sampled.seconds.transactions.all();
    let starts = measurements.iter().filter_map(|rows| Some(rows.rung?.started_at.0));
    About {
        title: title(bundle, connections),
        short_title: short_title(connections),
        program: bundle.manifest.server.binary.clone(),
        amount: match Per::of(bundle) {
            Per::Transaction => Amount::Transactions(amount),
            Per::Second => Amount::Seconds(amount),
        },
        started_at_ns: starts.min().map(|micros| micros.saturating_mul(1000)),
        seconds: Some(sampled.seconds.lengths.iter().sum()),
    }
}

/// What was run, in words.
fn title(bundle: &Bundle, connections: Option<u32>) -> String {
    let server = &bundle.manifest.server;
    match connections {
        Some(_) => format!(
            "{} on {}, {}",
            bundle.manifest.workload.title(),
            server.named(),
            short_title(connections)
        ),
        None if bundle.manifest.workload.imported().is_some() => format!("{}, recorded", server.named()),
        None => format!("{}, watched", server.named()),
    }
}

fn short_title(connections: Option<u32>) -> String {
    match connections {
        Some(1) => "1 connection".to_owned(),
        Some(connections) => format!("{connections} connections"),
        None => "watched".to_owned(),
    }
}
