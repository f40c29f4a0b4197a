//! What is given to other tools: the call paths of a rung with what they cost, down to addresses and lines.
//!
//! The weights are those of the flame graph: of threads that serve the load, the samples of a state are scaled to the exact time in
//! that state over the seconds that count. Other threads have the weights that they were sampled with.

mod choice;
mod rung_samples;
mod stacks;
mod thread_lines;

pub use choice::{Compared, choose};

use crate::pacing::Pacing;
use crate::per::Per;
use crate::rung;
use crate::sampled::Sampled;
use crate::visit_rows::{VisitRows, by_visit, complete_by_connections};
use crate::watch;
use rung_samples::RungSamples;
use scaleprof_bundle::{Bundle, in_parallel};
use scaleprof_profile::{About, Amount, CostProfile, Role, ThreadState, Timeline};
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
            states: states.filter(|state| *state != ThreadState::Net).collect(),
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
    let visits = by_visit(bundle);
    let found = in_parallel(rungs(bundle, &visits, wanted), |(connections, visits)| {
        let sampled = sampled(bundle, connections, &visits)?;
        let mut samples = RungSamples::new(bundle, wanted);
        for rows in &visits {
            samples.add(rows, &sampled);
        }
        let profile = samples.profile(about(bundle, connections, &visits, &sampled));
        (!profile.costs.is_empty()).then_some(RungCosts { connections, profile })
    });
    found.into_iter().flatten().collect()
}

/// Of the time in the wanted states the share of threads that are not wanted; 0 where there is no time.
pub fn share_of_others(bundle: &Bundle, wanted: &Wanted) -> f64 {
    let (mut all, mut others) = (0.0, 0.0);
    for block in bundle.samples.blocks() {
        let (states, roles) = (block.states(), block.roles());
        let is_wanted = |state: &String| wanted.states.iter().any(|wanted| wanted.name() == state);
        let counts: Vec<bool> = states.values().iter().map(is_wanted).collect();
        let is_served = |role: &String| wanted.roles.iter().any(|wanted| wanted.name() == role);
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

/// The first wanted visit of a rung, thread by thread, from where it was warm on; none where it has no samples.
pub fn timeline(bundle: &Bundle, connections: Option<u32>, wanted: &Wanted) -> Option<Timeline> {
    let visits = by_visit(bundle);
    let mut rungs = rungs(bundle, &visits, wanted).into_iter();
    let (_, mut visits) = rungs.find(|(of, _)| *of == connections)?;
    visits.truncate(1);
    let sampled = sampled(bundle, connections, &visits)?;
    let mut lines = ThreadLines::new(bundle, wanted);
    for rows in &visits {
        lines.add(rows, &sampled);
    }
    let timeline = lines.timeline(about(bundle, connections, &visits, &sampled));
    (!timeline.threads.is_empty()).then_some(timeline)
}

/// The wanted visits of every rung.
fn rungs<'a>(
    bundle: &Bundle,
    visits: &'a BTreeMap<i32, VisitRows<'a>>,
    wanted: &Wanted,
) -> Vec<(Option<u32>, Vec<&'a VisitRows<'a>>)> {
    let mut rungs: Vec<(Option<u32>, Vec<&VisitRows<'_>>)> = match Per::of(bundle) {
        Per::Second => vec![(None, visits.values().collect())],
        Per::Transaction => complete_by_connections(bundle, visits)
            .into_iter()
            .map(|(connections, visits)| (Some(connections), visits))
            .collect(),
    };
    for (_, visits) in &mut rungs {
        visits.retain(|rows| {
            let repeat = rows.rung.and_then(|rung| u32::try_from(rung.repeat).ok());
            wanted.repeat.is_none_or(|wanted| repeat == Some(wanted))
        });
    }
    rungs
}

fn sampled<'a>(bundle: &Bundle, connections: Option<u32>, visits: &[&'a VisitRows<'a>]) -> Option<Sampled<'a>> {
    match connections {
        None => watch::sampled(visits),
        Some(connections) => rung::sampled(connections, Pacing::of(&bundle.manifest.workload), visits),
    }
}

fn about(bundle: &Bundle, connections: Option<u32>, visits: &[&VisitRows<'_>], sampled: &Sampled<'_>) -> About {
    let amount: f64 = sampled.seconds.transactions.all();
    let starts = visits.iter().filter_map(|rows| Some(rows.rung?.started_at.0));
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
            bundle.manifest.workload.name,
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
