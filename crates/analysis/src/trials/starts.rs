//! What server starts measured, and which of them are held against each other.

use crate::pacing::Pacing;
use scaleprof_bundle::{IronLaw, ReplicaSummary, RungSummary, Workload};
use serde::Serialize;
use std::collections::BTreeMap;

/// What one rung of one start measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RungFigures {
    /// Transactions per second, without the warm-up.
    pub throughput: f64,
    /// The iron law; none where the server's CPU time is unknown.
    pub law: Option<IronLaw>,
    /// Context switches of the server per transaction.
    pub switches_per_txn: Option<f64>,
    /// Median of the service time, milliseconds; of the response time where the load comes at a rate of its own.
    pub p50_ms: Option<f64>,
    /// Its 99th percentile.
    pub p99_ms: Option<f64>,
    /// Whether the load came at a rate of its own or with pauses, so that throughput is what was offered, not what can be done.
    pub offered: bool,
    /// Whether the client, not the server, set the limit.
    pub client_limited: bool,
    /// Whether throughput settled, as far as its measurement is long enough to tell.
    pub steady: bool,
    /// Part of the machine's CPU time that other programs used.
    pub noise_cpu_share: Option<f64>,
    /// Part of the machine's CPU time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// How its replicas followed, by their numbers.
    pub replicas: Vec<ReplicaFigures>,
    /// The server and its neighbours together; none where it has none.
    pub together: Option<Together>,
}

/// What servers under the same load at the same time came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Together {
    /// How many they are.
    pub servers: u32,
    /// Transactions per second of all of them.
    pub throughput: f64,
}

/// How a replica followed at a rung of one start; transactions per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReplicaFigures {
    /// Its number, from 1.
    pub replica: u32,
    /// Committed on the source.
    pub committed: f64,
    /// Replayed.
    pub replayed: f64,
    /// By which it fell further behind.
    pub lag_growth: f64,
    /// In how many seconds the source commits what it was behind at the end.
    pub lag_seconds: Option<f64>,
}

impl ReplicaFigures {
    /// Means of those of one replica in several starts; none without any.
    pub fn mean(of: &[ReplicaFigures]) -> Option<ReplicaFigures> {
        let mean = |figures: Vec<f64>| {
            let sum: f64 = figures.iter().sum();
            Some(sum / figures.len() as f64).filter(|mean| mean.is_finite())
        };
        let figure = |figure: fn(&ReplicaFigures) -> f64| mean(of.iter().map(figure).collect());
        Some(ReplicaFigures {
            replica: of.first()?.replica,
            committed: figure(|one| one.committed)?,
            replayed: figure(|one| one.replayed)?,
            lag_growth: figure(|one| one.lag_growth)?,
            lag_seconds: mean(of.iter().filter_map(|one| one.lag_seconds).collect()),
        })
    }
}

impl RungFigures {
    /// Of a rung under a load. TPC-C's terminals with keying and think times offer a rate as well.
    pub fn of(rung: &RungSummary, load: &Workload) -> Self {
        let told = rung.response_ms.as_ref().unwrap_or(&rung.latency_ms);
        RungFigures {
            throughput: rung.throughput.value,
            law: rung.iron_law.clone(),
            switches_per_txn: rung.context_switches_per_txn,
            p50_ms: told.p50,
            p99_ms: told.p99,
            offered: matches!(Pacing::of(load), Pacing::Open | Pacing::Paused),
            client_limited: rung.client_limited,
            steady: rung.steady || rung.jitter.is_none(),
            noise_cpu_share: rung.noise_cpu_share,
            steal_share: rung.steal_share,
            replicas: rung.replicas.iter().map(ReplicaFigures::from).collect(),
            together: (!rung.neighbours.is_empty()).then(|| Together {
                servers: 1 + rung.neighbours.len() as u32,
                throughput: rung.throughput.value + rung.neighbours.iter().map(|one| one.value).sum::<f64>(),
            }),
        }
    }
}

impl From<&ReplicaSummary> for ReplicaFigures {
    fn from(replica: &ReplicaSummary) -> Self {
        ReplicaFigures {
            replica: replica.replica,
            committed: replica.committed_per_second.value,
            replayed: replica.replayed_per_second.value,
            lag_growth: replica.lag_growth_per_second.value,
            lag_seconds: replica.lag_seconds,
        }
    }
}

/// One replicate: a server start on a fresh copy of the data, and the ladder climbed once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Start {
    /// When it began, seconds on any clock that is the same for the session.
    pub began: f64,
    /// What was measured, by connections; rungs that failed are not there.
    pub rungs: BTreeMap<u32, RungFigures>,
}

impl Start {
    /// Mean of the logarithms of throughput over these rungs; none where one was not measured. The mean of logarithms is the
    /// logarithm of the geometric mean, which weighs a factor the same at every rung.
    pub fn level(&self, ladder: &[u32]) -> Option<f64> {
        let logarithms = ladder.iter().map(|connections| {
            let throughput = self.rungs.get(connections)?.throughput;
            (throughput > 0.0).then(|| throughput.ln())
        });
        let sum: f64 = logarithms.collect::<Option<Vec<f64>>>()?.iter().sum();
        (!ladder.is_empty()).then(|| sum / ladder.len() as f64)
    }
}

/// An A/A pair: two starts of one variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Sentinel {
    /// The variant.
    pub variant: usize,
    /// In the order in which they were made.
    pub starts: [Start; 2],
}

/// All starts of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Session {
    /// The rungs, rising.
    pub ladder: Vec<u32>,
    /// The variant that the others are held against, and that is paired with itself.
    pub base: usize,
    /// The others, in the order of the plan.
    pub others: Vec<usize>,
    /// Of those that are held against another one than [`Session::base`], against which.
    pub bases: BTreeMap<usize, usize>,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// The A/A pairs, at the start and at the end of the session.
    pub sentinels: Vec<Sentinel>,
    /// Whether the starts of a pair ran at the same time and took turns, so that a change of the machine befell both.
    pub side_by_side: bool,
    /// Every variant once; a variant that failed is not there.
    pub rounds: Vec<BTreeMap<usize, Start>>,
}

impl Session {
    /// What a variant is held against.
    pub fn base_of(&self, other: usize) -> usize {
        self.bases.get(&other).copied().unwrap_or(self.base)
    }

    /// Whether others are held against a variant.
    pub fn is_base(&self, variant: usize) -> bool {
        match self.others.is_empty() {
            true => variant == self.base,
            false => self.others.iter().any(|other| self.base_of(*other) == variant),
        }
    }

    /// The pairs of another variant and its base, round by round.
    pub(super) fn pairs(&self, other: usize) -> Vec<(&Start, &Start)> {
        let base = self.base_of(other);
        self.rounds
            .iter()
            .filter_map(|round| Some((round.get(&base)?, round.get(&other)?)))
            .collect()
    }
}
