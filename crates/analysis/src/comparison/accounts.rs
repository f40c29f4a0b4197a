//! The accounts of time in which call paths are compared, at one rung.

use super::costs::{Account, VisitCosts};
use super::differences::{Prior, Tested, difference};
use super::{CommonRung, Pair, RungChange};
use crate::call_paths::PathId;
use crate::findings::dilation_of;
use crate::rung::RungResult;
use std::collections::{BTreeMap, BTreeSet};

/// The two sides of one account at one rung.
pub(super) struct Sides {
    pub(super) account: Account,
    pub(super) a: Vec<VisitCosts>,
    pub(super) b: Vec<VisitCosts>,
    /// By how much all functions took longer alike, B over A.
    dilation: f64,
    /// What a transaction costs in A: the whole that shares are parts of.
    pub(super) cost: f64,
    /// Variance of one visit's cost over the cost squared, as far as all paths move together, and its degrees of freedom.
    drift: (f64, f64),
}

impl Sides {
    /// Δ of some whole paths together.
    pub(super) fn change(&self, paths: &[PathId]) -> (Pair, Tested) {
        let together = |visits: &[VisitCosts]| visits.iter().map(|visit| visit.together(paths)).collect::<Vec<_>>();
        self.change_of(&together(&self.a), &together(&self.b))
    }

    /// Δ of what each visit spent in each of its seconds.
    pub(super) fn change_of(&self, of_a: &[Vec<f64>], of_b: &[Vec<f64>]) -> (Pair, Tested) {
        let of = |visits: &[VisitCosts], blocks: &[Vec<f64>]| -> (Vec<f64>, f64) {
            let pairs = || visits.iter().zip(blocks);
            let variance = pairs().map(|(visit, blocks)| visit.variance(blocks)).sum::<f64>() / visits.len() as f64;
            (
                pairs().map(|(visit, blocks)| visit.per_transaction(blocks)).collect(),
                variance,
            )
        };
        let ((a, of_a), (b, of_b)) = (of(&self.a, of_a), of(&self.b, of_b));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let pair = Pair {
            a: Some(mean(&a)),
            b: Some(mean(&b)),
        };
        let alike: Vec<f64> = a.iter().map(|seconds| seconds * self.dilation).collect();
        let size = (mean(&alike).powi(2) + mean(&b).powi(2)) / 2.0;
        let prior = Prior {
            variance: (of_a * self.dilation.powi(2) + of_b) / 2.0 + self.drift.0 * size,
            degrees: self.drift.1,
        };
        (pair, difference(&alike, &b, Some(prior)))
    }

    /// Mean over the visits of what they spend in one whole path, in A as if it had B's dilation.
    pub(super) fn of_path(&self, path: PathId) -> (f64, f64) {
        let mean =
            |visits: &[VisitCosts]| visits.iter().map(|visit| visit.of_path(path)).sum::<f64>() / visits.len() as f64;
        (mean(&self.a) * self.dilation, mean(&self.b))
    }

    pub(super) fn paths(&self) -> BTreeSet<PathId> {
        self.a.iter().chain(&self.b).flat_map(VisitCosts::paths).collect()
    }
}

/// While the CPUs are busy waiting loses nothing: somebody else runs meanwhile.
pub(super) fn accounts(busy: bool) -> &'static [Account] {
    const ALL: [Account; 5] = [
        Account::OnCpu,
        Account::Waiting("lock"),
        Account::Waiting("io"),
        Account::Waiting("sleep"),
        Account::Waiting("other"),
    ];
    match busy {
        true => &ALL[..1],
        false => &ALL,
    }
}

pub(super) fn sides(common: &CommonRung, account: Account, drift: (f64, f64), rung: &mut RungChange) -> Sides {
    let of = |visits: &[RungResult]| -> Vec<VisitCosts> {
        visits.iter().map(|visit| VisitCosts::of(visit, account)).collect()
    };
    let mut dilation = 1.0;
    if account == Account::OnCpu {
        let leaves = |visits: &[RungResult]| {
            let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
            for (leaf, seconds) in visits.iter().flat_map(|visit| visit.costs.by_leaf("cpu")) {
                *sums.entry(leaf).or_default() += seconds / visits.len() as f64;
            }
            sums
        };
        let (before, after) = (leaves(&common.a), leaves(&common.b));
        // Two products share too few functions to say how fast the machine is.
        dilation = dilation_of(&before, &after)
            .filter(|_| mostly_shared(&before, &after) && mostly_shared(&after, &before))
            .unwrap_or(1.0);
        rung.dilation = dilation;
    }
    let a = of(&common.a);
    let on_cpu = a.iter().map(VisitCosts::all).sum::<f64>() / a.len() as f64;
    let cost = match rung.busy {
        true => on_cpu,
        false => rung.throughput.a.map_or(0.0, |x| f64::from(common.connections) / x),
    };
    Sides {
        account,
        a,
        b: of(&common.b),
        dilation,
        cost,
        drift,
    }
}

/// Whether most of the time is in functions that the other side has too.
fn mostly_shared(of: &BTreeMap<usize, f64>, other: &BTreeMap<usize, f64>) -> bool {
    let shared: f64 = of
        .iter()
        .filter(|(leaf, _)| other.contains_key(leaf))
        .map(|(_, seconds)| seconds)
        .sum();
    shared > 0.8 * of.values().sum::<f64>()
}

/// How much the cost of all on-CPU paths together moves from visit to visit of one run: the relative variance of a visit, from
/// all rungs that were measured more than once.
pub(super) fn drift(common: &[CommonRung]) -> (f64, f64) {
    let (mut squares, mut degrees) = (0.0, 0.0);
    for visits in common
        .iter()
        .flat_map(|rung| [&rung.a, &rung.b])
        .filter(|visits| visits.len() > 1)
    {
        let costs: Vec<f64> = visits
            .iter()
            .map(|visit| VisitCosts::of(visit, Account::OnCpu).all())
            .collect();
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        if mean > 0.0 {
            squares += costs.iter().map(|cost| (cost / mean - 1.0).powi(2)).sum::<f64>();
            degrees += (costs.len() - 1) as f64;
        }
    }
    match degrees > 0.0 {
        true => (squares / degrees, degrees),
        false => (0.0, 0.0),
    }
}
