//! The accounts of time in which call paths are compared, at one rung.

use super::costs::{Account, VisitCosts};
use super::differences::{Prior, Tested, difference};
use super::{CommonRung, Measured, Pair, RungChange};
use crate::call_paths::PathId;
use crate::findings::dilation_of;
use crate::rung::RungResult;
use std::collections::{BTreeMap, BTreeSet};

/// One run's costs at a rung.
pub(super) struct Side {
    /// Each visit by itself: how they scatter says what a difference is worth.
    pub(super) visits: Vec<VisitCosts>,
    /// All of them together, as the run's own report counts: the figures themselves.
    pub(super) together: VisitCosts,
}

impl Side {
    fn of(measured: &Measured, account: Account) -> Side {
        Side {
            visits: measured
                .visits
                .iter()
                .map(|visit| VisitCosts::of(visit, account))
                .collect(),
            together: VisitCosts::of(&measured.together, account),
        }
    }

    /// What `look` sees in the visits, and in all of them together.
    pub(super) fn seen(&self, look: impl Fn(&VisitCosts) -> Vec<f64>) -> Seen {
        Seen {
            visits: self.visits.iter().map(&look).collect(),
            together: look(&self.together),
        }
    }
}

/// Seconds of something in each measured second, by visit and in all visits together.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) visits: Vec<Vec<f64>>,
    pub(super) together: Vec<f64>,
}

/// The two sides of one account at one rung.
pub(super) struct Sides {
    pub(super) account: Account,
    pub(super) a: Side,
    pub(super) b: Side,
    /// By how much all functions took longer alike, B over A.
    pub(super) dilation: f64,
    /// What a transaction costs in A: the whole that shares are parts of.
    pub(super) cost: f64,
    /// Variance that a visit's cost has over the cost squared, beyond the scatter of its seconds, and its degrees of freedom; as
    /// other rungs tell it.
    pub(super) unrest: (f64, f64),
}

/// A figure a visit on both sides, with all that is needed to compare them.
pub(super) struct Figures {
    /// Of each visit of A, as if it had B's dilation.
    a: Vec<f64>,
    b: Vec<f64>,
    /// Of all visits of A together, as it was measured.
    pub(super) in_a: f64,
    pub(super) in_b: f64,
    /// B less A of all visits together, without the dilation.
    value: f64,
    prior: Prior,
}

impl Figures {
    /// What the difference is worth.
    pub(super) fn tested(&self) -> Tested {
        difference(&self.a, &self.b, Some(self.prior)).centred_at(self.value)
    }

    pub(super) fn pair(&self) -> Pair {
        Pair {
            a: Some(self.in_a),
            b: Some(self.in_b),
        }
    }

    /// Both together, visit by visit.
    pub(super) fn plus(self, other: Figures) -> Figures {
        let add = |one: Vec<f64>, other: Vec<f64>| one.into_iter().zip(other).map(|(a, b)| a + b).collect();
        Figures {
            a: add(self.a, other.a),
            b: add(self.b, other.b),
            in_a: self.in_a + other.in_a,
            in_b: self.in_b + other.in_b,
            value: self.value + other.value,
            prior: Prior {
                variance: self.prior.variance + other.prior.variance,
                degrees: self.prior.degrees.min(other.prior.degrees),
                at_least: self.prior.at_least + other.prior.at_least,
            },
        }
    }
}

impl Sides {
    /// What `look` sees, on both sides.
    pub(super) fn figures_of(&self, look: impl Fn(&VisitCosts) -> Vec<f64>) -> Figures {
        self.figures(&self.a.seen(&look), &self.b.seen(&look))
    }

    /// What was seen: its value from all visits together, what it is worth from how they scatter.
    pub(super) fn figures(&self, of_a: &Seen, of_b: &Seen) -> Figures {
        let of = |side: &Side, seen: &Seen| -> (Vec<f64>, f64) {
            let pairs = || side.visits.iter().zip(&seen.visits);
            let variance = pairs().map(|(visit, blocks)| visit.variance(blocks)).sum::<f64>();
            let figures = pairs().map(|(visit, blocks)| visit.per_transaction(blocks)).collect();
            (figures, variance / side.visits.len().max(1) as f64)
        };
        let ((a, chance_a), (b, chance_b)) = (of(&self.a, of_a), of(&self.b, of_b));
        let together = |side: &Side, seen: &Seen| side.together.per_transaction(&seen.together);
        let (in_a, in_b) = (together(&self.a, of_a), together(&self.b, of_b));
        let size = ((in_a * self.dilation).powi(2) + in_b.powi(2)) / 2.0;
        let chance = (chance_a * self.dilation.powi(2) + chance_b) / 2.0;
        Figures {
            a: a.iter().map(|seconds| seconds * self.dilation).collect(),
            b,
            in_a,
            in_b,
            value: in_b - in_a * self.dilation,
            prior: Prior {
                variance: chance + self.unrest.0 * size,
                degrees: self.unrest.1,
                at_least: chance,
            },
        }
    }

    /// What a transaction spends in one whole path, in A as if it had B's dilation, and in B.
    pub(super) fn of_path(&self, path: PathId) -> (f64, f64) {
        let (a, b) = (self.a.together.of_path(path), self.b.together.of_path(path));
        (a * self.dilation, b)
    }

    pub(super) fn paths(&self) -> BTreeSet<PathId> {
        let visits = self.a.visits.iter().chain(&self.b.visits);
        let all = visits.chain([&self.a.together, &self.b.together]);
        all.flat_map(VisitCosts::paths).collect()
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

/// The sides of one account; the dilation is noted in `rung`.
pub(super) fn sides(common: &CommonRung, account: Account, rung: &mut RungChange) -> Sides {
    let mut dilation = 1.0;
    if account == Account::OnCpu {
        let (before, after) = (leaves(&common.a.together), leaves(&common.b.together));
        // Two products share too few functions to say how fast the machine is.
        dilation = dilation_of(&before, &after)
            .filter(|_| mostly_shared(&before, &after) && mostly_shared(&after, &before))
            .filter(|dilation| visits_agree(common, *dilation))
            .unwrap_or(1.0);
        rung.dilation = dilation;
    }
    let a = Side::of(&common.a, account);
    let cost = match rung.busy {
        true => a.together.per_transaction(&a.together.together(|_| true)),
        false => rung
            .throughput
            .a
            .map(|x| f64::from(common.connections) / x)
            .or_else(|| common.a.together.summary.ledger.as_ref()?.connections_over_throughput)
            .unwrap_or(0.0),
    };
    Sides {
        account,
        a,
        b: Side::of(&common.b, account),
        dilation,
        cost,
        unrest: (0.0, 0.0),
    }
}

/// Seconds per transaction by innermost function.
fn leaves(visits: &RungResult) -> BTreeMap<usize, f64> {
    visits.costs.by_leaf("cpu").into_iter().collect()
}

/// Whether each visit of B against each of A says too that everything takes longer, or that it takes less long. What only some of
/// them say is how visits scatter, and is part of the intervals: taken out, it would be found in every path with the
/// opposite sign.
fn visits_agree(common: &CommonRung, dilation: f64) -> bool {
    let of = |measured: &Measured| -> Vec<BTreeMap<usize, f64>> { measured.visits.iter().map(leaves).collect() };
    let (a, b) = (of(&common.a), of(&common.b));
    let mut pairs = a.iter().flat_map(|before| b.iter().map(move |after| (before, after)));
    pairs.all(|(before, after)| {
        // Too few samples to tell function by function: all of them together do.
        let together = || after.values().sum::<f64>() / before.values().sum::<f64>();
        let of_pair = dilation_of(before, after).unwrap_or_else(together);
        (of_pair > 1.0) == (dilation > 1.0)
    })
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
