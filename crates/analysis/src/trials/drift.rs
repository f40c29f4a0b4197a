//! Whether the machine became slower or faster in the course of a session, whatever was measured on it.

use super::log_ratios::PairedMean;
use super::starts::{Session, Start};
use crate::student::{t_quantile_975, two_sided_p};
use std::collections::BTreeMap;

/// The change of ln X over these rungs from the first start to the last: a straight line through all starts, each variant about its own mean, so that
/// differences between variants are no drift. As a [`PairedMean`] whose `pairs` are the starts. None with too few starts for a line.
pub(super) fn drift(session: &Session, ladder: &[u32]) -> Option<PairedMean> {
    let mut by_variant: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    let sentinels = session.sentinels.iter();
    let sentinels = sentinels.flat_map(|pair| pair.starts.iter().map(|start| (pair.variant, start)));
    let rounds = session
        .rounds
        .iter()
        .flatten()
        .map(|(variant, start)| (*variant, start));
    for (variant, start) in sentinels.chain(rounds) {
        if let Some(point) = point(start, ladder) {
            by_variant.entry(variant).or_default().push(point);
        }
    }
    line(by_variant.values().map(Vec::as_slice))
}

fn point(start: &Start, ladder: &[u32]) -> Option<(f64, f64)> {
    Some((start.began, start.level(ladder)?))
}

/// Least squares with one slope for all groups and a level for each.
fn line<'a>(groups: impl Iterator<Item = &'a [(f64, f64)]> + Clone) -> Option<PairedMean> {
    let all = groups.clone().flatten();
    let (first, last) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (time, _)| {
        (low.min(*time), high.max(*time))
    });
    let mut centred = Vec::new();
    let mut levels = 0;
    for group in groups.filter(|group| !group.is_empty()) {
        let count = group.len() as f64;
        let time = group.iter().map(|point| point.0).sum::<f64>() / count;
        let level = group.iter().map(|point| point.1).sum::<f64>() / count;
        centred.extend(group.iter().map(|point| (point.0 - time, point.1 - level)));
        levels += 1;
    }
    let degrees = centred.len().checked_sub(levels + 1).filter(|degrees| *degrees > 0)? as f64;
    let spread: f64 = centred.iter().map(|(t, _)| t * t).sum();
    if spread <= 0.0 {
        return None;
    }
    let slope = centred.iter().map(|(t, x)| t * x).sum::<f64>() / spread;
    let squares: f64 = centred.iter().map(|(t, x)| (x - slope * t).powi(2)).sum();
    let length = last - first;
    let error = (squares / degrees / spread).sqrt() * length;
    let mean = slope * length;
    Some(PairedMean {
        pairs: centred.len(),
        mean,
        half_width: Some(t_quantile_975(degrees) * error),
        p: Some(match error > 0.0 {
            true => two_sided_p(mean / error, degrees),
            false if mean == 0.0 => 1.0,
            false => 0.0,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Normal;

    #[test]
    fn a_slope_is_found_whatever_the_variants_levels() {
        let at = |time: f64, level: f64| (time, level - 0.05 * time / 10.0);
        let one: Vec<(f64, f64)> = [0.0, 3.0, 4.0, 10.0].map(|time| at(time, 7.0)).to_vec();
        let other: Vec<(f64, f64)> = [1.0, 2.0, 9.0].map(|time| at(time, 3.0)).to_vec();
        let found = line([one.as_slice(), other.as_slice()].into_iter()).unwrap();
        assert!((found.mean + 0.05).abs() < 1e-12, "{found:?}");
        assert!(found.excludes_zero());
    }

    #[test]
    fn too_few_starts_have_no_line() {
        assert_eq!(line([[(0.0, 1.0), (1.0, 2.0)].as_slice()].into_iter()), None);
        let at_once = [(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)];
        assert_eq!(line([at_once.as_slice()].into_iter()), None);
    }

    #[test]
    fn where_nothing_drifts_one_session_of_twenty_seems_to() {
        let trials = 3000;
        let seems = (0..trials).filter(|trial| {
            let mut noise = Normal::new(trial + 5);
            let mut starts = |level: f64| -> Vec<(f64, f64)> {
                (0..8).map(|at| (f64::from(at), level + 0.01 * noise.draw())).collect()
            };
            let (one, other) = (starts(1.0), starts(2.0));
            line([one.as_slice(), other.as_slice()].into_iter())
                .unwrap()
                .excludes_zero()
        });
        let share = seems.count() as f64 / trials as f64;
        assert!((0.038..=0.062).contains(&share), "{share}");
    }
}
