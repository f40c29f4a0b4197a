//! Calculating with figures and their intervals, and with what paths cost.

use crate::path_costs::{PathCosts, StatePath};
use scaleprof_bundle::Estimate;

/// Calculating with figures and their intervals.
pub(crate) trait Figure: Sized {
    /// Over an exact one.
    fn over(self, whole: f64) -> Self;
    /// Times an exact one.
    fn times(self, factor: f64) -> Self;
    /// The difference of two independent ones; one without an interval leaves none.
    fn less(self, other: Option<Estimate>) -> Self;
}

impl Figure for Estimate {
    fn over(self, whole: f64) -> Self {
        self.times(1.0 / whole)
    }

    fn times(self, factor: f64) -> Self {
        Estimate {
            value: self.value * factor,
            low: self.low.map(|low| low * factor),
            high: self.high.map(|high| high * factor),
        }
    }

    fn less(self, other: Option<Estimate>) -> Self {
        let Some(other) = other else { return self };
        // No lower limit is below 0, so the upper one tells the width.
        let half = |figure: &Estimate| Some(figure.high? - figure.value);
        let half = half(&self).zip(half(&other)).map(|(a, b)| a.hypot(b));
        let value = self.value - other.value;
        Estimate {
            value,
            low: half.map(|half| value - half),
            high: half.map(|half| value + half),
        }
    }
}

/// How much dearer these paths got, seconds a transaction.
pub(crate) fn growth(base: &PathCosts, last: &PathCosts, state_paths: &[StatePath], uniform_slowdown: f64) -> Estimate {
    grown(base.estimate(state_paths), last.estimate(state_paths), uniform_slowdown)
}

/// The difference of what was and what is, seconds a transaction; what was not measured is nothing.
pub(crate) fn grown(before: Option<Estimate>, after: Option<Estimate>, uniform_slowdown: f64) -> Estimate {
    let nothing = Estimate {
        value: 0.0,
        low: Some(0.0),
        high: Some(0.0),
    };
    after
        .unwrap_or(nothing)
        .less(before.map(|before| before.times(uniform_slowdown)))
}

/// The path with the most of the cost.
pub(crate) fn heaviest(costs: &PathCosts, state_paths: &[StatePath]) -> Option<StatePath> {
    let seconds = |state_path: &&StatePath| costs.seconds(**state_path);
    state_paths
        .iter()
        .max_by(|a, b| seconds(a).total_cmp(&seconds(b)))
        .copied()
}
