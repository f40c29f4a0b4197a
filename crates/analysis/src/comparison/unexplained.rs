//! What the listed call paths leave of the whole change.

use super::Unexplained;
use super::accounts::{Figures, Sides};
use super::family::{Family, Place};
use crate::call_paths::CallPaths;

/// Of one rung: its accounts, each with the places that are listed, whose changes add up to `listed` seconds. None where nothing
/// was sampled.
pub(super) fn unexplained(
    accounts: &[(&Sides, &Family, &[&Place])],
    listed: f64,
    call_paths: &CallPaths<'_>,
) -> Option<Unexplained> {
    let (mut whole, mut alike) = (0.0, 0.0);
    let mut left: Option<Figures> = None;
    for (sides, family, places) in accounts {
        let all = sides.figures_of(|measurement| measurement.together(|_| true));
        whole += all.in_b - all.in_a;
        alike += all.in_a * (sides.uniform_slowdown - 1.0);
        let is_left = |path| !places.iter().any(|place| family.holds(place, path, call_paths));
        let figures = sides.figures_of(|measurement| measurement.together(is_left));
        left = Some(match left {
            Some(sum) => sum.plus(figures),
            None => figures,
        });
    }
    let left = left.filter(|_| whole.is_finite() && (whole != 0.0 || alike != 0.0 || listed != 0.0))?;
    Some(Unexplained {
        total: whole,
        uniform: alike,
        listed,
        not_listed: left.tested().centred_at(whole - alike - listed).estimate,
    })
}
