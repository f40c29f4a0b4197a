//! The accounts of time in which call paths are compared, at one rung.

use super::costs::{Account, MeasurementCosts};
use super::differences::{Prior, Tested, difference};
use super::{CommonRung, Measured, Pair, RungChange};
use crate::call_paths::PathId;
use crate::findings::uniform_slowdown_of;
use crate::rung::RungResult;
use scaleprof_vocabulary::ThreadState;
use std::collections::{BTreeMap, BTreeSet};

/// One run's costs at a rung.
pub(super) struct Side {
    /// Each measurement by itself: how they scatter says what a difference is worth.
    pub(super) measurements: Vec<MeasurementCosts>,
    /// All of them together, as the run's own report counts: the figures themselves.
    pub(super) together: MeasurementCosts,
}

impl Side {
    fn of(measured: &Measured, account: Account) -> Side {
        Side {
            measurements: measured
                .measurements
                .iter()
                .map(|measurement| MeasurementCosts::of(measurement, account))
                .collect(),
            together: MeasurementCosts::of(&measured.together, account),
        }
    }

    /// What `look` sees in the measurements, and in all of them together.
    pub(super) fn seen(&self, look: impl Fn(&MeasurementCosts) -> Vec<f64>) -> Seen {
        Seen {
            measurements: self.measurements.iter().map(&look).collect(),
            together: look(&self.together),
        }
    }
}

/// Seconds of something in each measured second, by measurement and in all measurements together.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) measurements: Vec<Vec<f64>>,
    pub(super) together: Vec<f64>,
}

/// The two sides of one account at one rung.
pub(super) struct Sides {
    pub(super) account: Account,
    pub(super) a: Side,
    pub(super) b: Side,
    /// By how much all functions took longer alike, B over A.
    pub(super) uniform_slowdown: f64,
    /// What a transaction costs in A: the whole that shares are parts of.
    pub(super) cost: f64,
    /// Variance that a measurement's cost has over the cost squared, beyond the scatter of its
    /// seconds, and its degrees of freedom; as other rungs tell it.
    pub(super) unrest: (f64, f64),
}

/// A figure a measurement on both sides, with all that is needed to compare them.
pub(super) struct Figures {
    /// Of each measurement of A, as if it had B's uniform slowdown.
    a: Vec<f64>,
    b: Vec<f64>,
    /// Of all measurements of A together, as it was measured.
    pub(super) in_a: f64,
    pub(super) in_b: f64,
    /// B less A of all measurements together, without the uniform slowdown.
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

    /// Both together, measurement by measurement.
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
    pub(super) fn figures_of(&self, look: impl Fn(&MeasurementCosts) -> Vec<f64>) -> Figures {
        self.figures(&self.a.seen(&look), &self.b.seen(&look))
    }

    /// What was seen: its value from all measurements together, what it is worth from how they
    /// scatter.
    pub(super) fn figures(&self, of_a: &Seen, of_b: &Seen) -> Figures {
        let of = |side: &Side, seen: &Seen| -> (Vec<f64>, f64) {
            let pairs = || side.measurements.iter().zip(&seen.measurements);
            let variance = pairs()
                .map(|(measurement, blocks)| measurement.variance(blocks))
                .sum::<f64>();
            let figures = pairs()
                .map(|(measurement, blocks)| measurement.per_transaction(blocks))
                .collect();
            (figures, variance / side.measurements.len().max(1) as f64)
        };
        let ((a, chance_a), (b, chance_b)) = (of(&self.a, of_a), of(&self.b, of_b));
        let together = |side: &Side, seen: &Seen| side.together.per_transaction(&seen.together);
        let (in_a, in_b) = (together(&self.a, of_a), together(&self.b, of_b));
        let size = ((in_a * self.uniform_slowdown).powi(2) + in_b.powi(2)) / 2.0;
        let chance = (chance_a * self.uniform_slowdown.powi(2) + chance_b) / 2.0;
        Figures {
            a: a.iter().map(|seconds| seconds * self.uniform_slowdown).collect(),
            b,
            in_a,
            in_b,
            value: in_b - in_a * self.uniform_slowdown,
            prior: Prior {
                variance: chance + self.unrest.0 * size,
                degrees: self.unrest.1,
                at_least: chance,
            },
        }
    }

    /// What a transaction spends in one whole path, in A as if it had B's uniform slowdown, and in
    /// B.
    pub(super) fn of_path(&self, path: PathId) -> (f64, f64) {
        let (a, b) = (self.a.together.of_path(path), self.b.together.of_path(path));
        (a * self.uniform_slowdown, b)
    }

    pub(super) fn paths(&self) -> BTreeSet<PathId> {
        let measurements = self.a.measurements.iter().chain(&self.b.measurements);
        let all = measurements.chain([&self.a.together, &self.b.together]);
        all.flat_map(MeasurementCosts::paths).collect()
    }
}

/// While the CPUs are busy waiting loses nothing: somebody else runs meanwhile.
pub(super) fn accounts(busy: bool) -> impl Iterator<Item = Account> {
    ThreadState::ALL
        .into_iter()
        .filter_map(account_of)
        .filter(move |account| !busy || *account == Account::OnCpu)
}

/// The account that begins with this state; none of what is in another already, or is no cost of the server's.
const fn account_of(state: ThreadState) -> Option<Account> {
    match state {
        ThreadState::Cpu => Some(Account::OnCpu),
        ThreadState::Lock | ThreadState::Io | ThreadState::Sleep | ThreadState::Other => Some(Account::Waiting(state)),
        ThreadState::Spin | ThreadState::RunQueue | ThreadState::Net | ThreadState::Idle => None,
    }
}

/// The sides of one account; the uniform slowdown is noted in `rung`.
pub(super) fn sides(common: &CommonRung, account: Account, rung: &mut RungChange) -> Sides {
    let mut uniform_slowdown = 1.0;
    if account == Account::OnCpu {
        let (before, after) = (leaves(&common.a.together), leaves(&common.b.together));
        // Two products share too few functions to say how fast the machine is.
        uniform_slowdown = uniform_slowdown_of(&before, &after)
            .filter(|_| mostly_shared(&before, &after) && mostly_shared(&after, &before))
            .filter(|uniform_slowdown| measurements_agree(common, *uniform_slowdown))
            .unwrap_or(1.0);
        rung.uniform_slowdown = uniform_slowdown;
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
        uniform_slowdown,
        cost,
        unrest: (0.0, 0.0),
    }
}

/// Seconds per transaction by innermost function.
fn leaves(measurements: &RungResult) -> BTreeMap<usize, f64> {
    measurements.costs.by_leaf(ThreadState::Cpu).into_iter().collect()
}

/// Whether each measurement of B against each of A says too that everything takes longer, or that
/// it takes less long. What only some of them say is how measurements scatter, and is part of the
/// intervals: taken out, it would be found in every path with the opposite sign.
fn measurements_agree(common: &CommonRung, uniform_slowdown: f64) -> bool {
    let of = |measured: &Measured| -> Vec<BTreeMap<usize, f64>> { measured.measurements.iter().map(leaves).collect() };
    let (a, b) = (of(&common.a), of(&common.b));
    let mut pairs = a.iter().flat_map(|before| b.iter().map(move |after| (before, after)));
    pairs.all(|(before, after)| {
        // Too few samples to tell function by function: all of them together do.
        let together = || after.values().sum::<f64>() / before.values().sum::<f64>();
        let of_pair = uniform_slowdown_of(before, after).unwrap_or_else(together);
        (of_pair > 1.0) == (uniform_slowdown > 1.0)
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
