//! What got slower everywhere at once.

use crate::path_costs::PathCosts;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

/// By how much the same work took longer everywhere, at least 1; none where that cannot be told,
/// see [`uniform_slowdown_of`].
pub(crate) fn uniform_slowdown(base: &PathCosts, last: &PathCosts) -> Option<f64> {
    let by_leaf = |costs: &PathCosts| costs.by_leaf(ThreadState::Cpu).into_iter().collect();
    uniform_slowdown_of(&by_leaf(base), &by_leaf(last)).map(|middle| middle.max(1.0))
}

/// By how much the same work takes longer everywhere: the weighted median of the growth of the innermost functions' CPU time per
/// transaction. It says something only where there are many such functions and they agree: no function has more
/// than a tenth of the weight, and the quartiles are within a third of each other; none otherwise.
pub(crate) fn uniform_slowdown_of(before: &BTreeMap<usize, f64>, after: &BTreeMap<usize, f64>) -> Option<f64> {
    let all: f64 = before.values().sum();
    let mut ratios: Vec<(f64, f64)> = before
        .iter()
        .filter(|(_, seconds)| **seconds > 0.005 * all)
        .filter_map(|(leaf, seconds)| Some((after.get(leaf)? / seconds, seconds.min(0.1 * all))))
        .collect();
    if ratios.len() < 8 {
        return None;
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let weight: f64 = ratios.iter().map(|(_, weight)| weight).sum();
    let quantile = |part: f64| {
        let mut sum = 0.0;
        let at = ratios.iter().find(|(_, weight)| {
            sum += weight;
            sum >= part
        });
        at.map_or(1.0, |(ratio, _)| *ratio)
    };
    let (low, middle, high) = (quantile(weight / 4.0), quantile(weight / 2.0), quantile(weight * 0.75));
    (high <= low * 4.0 / 3.0).then_some(middle)
}
