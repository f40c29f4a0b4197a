//! The figures of a ladder that need no model: peak, band, retention, fall-over, decay.

use crate::intervals::{Measured, ratio};
use crate::student::t_quantile_975;
use scaleprof_bundle::Estimate;

/// Throughput at one rung.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// Connections.
    pub connections: u32,
    /// Transactions per second.
    pub throughput: Measured,
    /// Those of its slowest and of its fastest measurement; none with one measurement.
    pub measurements: Option<(f64, f64)>,
}

impl Rung {
    /// Whether its measurements do not tell it from another: the fastest of its own was as fast as
    /// the other's slowest.
    fn overlaps(&self, other: &Rung) -> bool {
        self.measurements
            .zip(other.measurements)
            .is_some_and(|((_, fastest), (slowest, _))| fastest >= slowest)
    }
}

/// Part of the peak that still counts as the peak.
pub const BAND: f64 = 0.95;
/// Part of the peak below which a rung counts as fallen over where it has one measurement or no
/// interval: two measurements of each that do not overlap come by chance once in six times, and
/// measurements of one rung were seen to differ by a fifth.
const BAND_WITHOUT_INTERVAL: f64 = 0.75;

/// What a ladder shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Peak {
    /// Position of the peak in the rungs.
    pub index: usize,
    /// Rungs with at least 95 % of the peak that are joined to it: connections of the lowest and the highest.
    pub band: (u32, u32),
    /// Throughput at the last rung over that at the peak, with the interval of the log ratio.
    pub retention: Option<Estimate>,
    /// First rung past the peak that lost more than 5 % beyond doubt and after which no rung comes back.
    pub falls_over_at: Option<u32>,
    /// Connections past the peak at which half of it is left, on a line between rungs in log-log scale.
    pub half_at: Option<f64>,
    /// b in X ~ N^-b from the band's upper end on, by least squares on logarithms; none under three rungs or where
    /// throughput does not fall over.
    pub decay_exponent: Option<Estimate>,
}

/// Finds the peak of rungs that stand by rising connections; none for no rungs or where nothing was done.
pub fn peak(rungs: &[Rung]) -> Option<Peak> {
    let value = |rung: &Rung| rung.throughput.value;
    let index = (0..rungs.len()).max_by(|a, b| value(&rungs[*a]).total_cmp(&value(&rungs[*b])).then(b.cmp(a)))?;
    let best = &rungs[index];
    if value(best) <= 0.0 {
        return None;
    }
    let inside = |rung: &&Rung| value(rung) >= BAND * value(best);
    let below = rungs[..index].iter().rev().take_while(inside).count();
    let above = rungs[index + 1..].iter().take_while(inside).count();
    let band = (rungs[index - below].connections, rungs[index + above].connections);
    let retention = match rungs.last() {
        Some(last) if last.connections != best.connections => ratio(&last.throughput, &best.throughput),
        _ => Some(Estimate {
            value: 1.0,
            low: None,
            high: None,
        }),
    };
    // The interval of a single measurement knows nothing of how measurements differ.
    let repeated = |rung: &Rung| rung.measurements.is_some();
    let fallen = |rung: &&Rung| match ratio(&rung.throughput, &best.throughput) {
        None => true,
        Some(Estimate { high: Some(high), .. }) if repeated(rung) && repeated(best) => high < BAND,
        Some(kept) => kept.value < BAND_WITHOUT_INTERVAL && !rung.overlaps(best),
    };
    let back = rungs
        .iter()
        .rposition(|rung| value(rung) >= BAND * value(best))
        .unwrap_or(index);
    let falls_over_at = rungs[back.max(index) + 1..]
        .iter()
        .find(fallen)
        .map(|rung| rung.connections);
    let half_at = rungs[index..]
        .windows(2)
        .find_map(|pair| half_between(&pair[0], &pair[1], 0.5 * value(best)));
    let decay_exponent = falls_over_at.and_then(|_| decay(&rungs[index + above..]));
    Some(Peak {
        index,
        band,
        retention,
        falls_over_at,
        half_at,
        decay_exponent,
    })
}

fn half_between(left: &Rung, right: &Rung, half: f64) -> Option<f64> {
    let (a, b) = (left.throughput.value, right.throughput.value);
    if a < half || b >= half || b <= 0.0 {
        return None;
    }
    let (na, nb) = (f64::from(left.connections).ln(), f64::from(right.connections).ln());
    Some((na + (nb - na) * (a / half).ln() / (a / b).ln()).exp())
}

fn decay(rungs: &[Rung]) -> Option<Estimate> {
    let points: Vec<(f64, f64)> = rungs
        .iter()
        .filter(|rung| rung.throughput.value > 0.0)
        .map(|rung| (f64::from(rung.connections).ln(), rung.throughput.value.ln()))
        .collect();
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let (mx, my) = (
        points.iter().map(|p| p.0).sum::<f64>() / count,
        points.iter().map(|p| p.1).sum::<f64>() / count,
    );
    let xx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let slope = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>() / xx;
    let squares: f64 = points.iter().map(|p| (p.1 - my - slope * (p.0 - mx)).powi(2)).sum();
    let half = t_quantile_975(count - 2.0) * (squares / (count - 2.0) / xx).sqrt();
    Some(Estimate {
        value: -slope,
        low: Some(-slope - half),
        high: Some(-slope + half),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::standard_error::StandardError;

    /// Rungs with a standard error of 1 %.
    pub(crate) fn ladder(points: &[(u32, f64)]) -> Vec<Rung> {
        let error = |value: f64| {
            Some(StandardError {
                value: 0.01 * value,
                degrees: 10.0,
            })
        };
        let rung = |(connections, value): &(u32, f64)| Rung {
            connections: *connections,
            throughput: Measured {
                value: *value,
                error: error(*value),
            },
            measurements: None,
        };
        points.iter().map(rung).collect()
    }

    #[test]
    fn a_fall_is_measured_from_the_peak() {
        let rungs = ladder(&[
            (1, 10.),
            (2, 20.),
            (4, 39.),
            (8, 40.),
            (16, 39.),
            (32, 37.),
            (64, 28.),
            (128, 20.),
            (256, 14.),
        ]);
        let found = peak(&rungs).unwrap();
        assert_eq!((rungs[found.index].connections, found.band), (8, (4, 16)));
        assert_eq!(found.falls_over_at, Some(64));
        let kept = found.retention.unwrap();
        assert!((kept.value - 0.35).abs() < 1e-9 && kept.low.unwrap() > 0.33 && kept.high.unwrap() < 0.37);
        assert!((found.half_at.unwrap() - 128.0).abs() < 1e-6);
        let b = found.decay_exponent.unwrap();
        // Least squares give 0.31 from 8 connections on and 0.47 from 32 on.
        assert!((0.28..0.55).contains(&b.value), "{b:?}");
        assert!(
            b.low.unwrap() > 0.0 && b.low.unwrap() < 0.5 && b.high.unwrap() > 0.35 && b.high.unwrap() < 0.8,
            "{b:?}"
        );
    }

    #[test]
    fn a_power_law_gives_its_exponent() {
        let points: Vec<(u32, f64)> = (0..8)
            .map(|k| (1 << k, 1000.0 * f64::from(1 << k).powf(-0.3)))
            .collect();
        let b = peak(&ladder(&points)).unwrap().decay_exponent.unwrap();
        assert!((b.value - 0.3).abs() < 1e-9);
    }

    #[test]
    fn a_loss_within_doubt_is_no_fall() {
        let found = peak(&ladder(&[(1, 10.), (2, 20.), (4, 18.8)])).unwrap();
        assert_eq!((found.falls_over_at, found.decay_exponent), (None, None));
    }

    #[test]
    fn one_bad_rung_from_which_it_comes_back_is_no_fall() {
        let found = peak(&ladder(&[(1, 10.), (2, 20.), (4, 12.), (8, 19.9), (16, 19.8)])).unwrap();
        assert_eq!((found.falls_over_at, found.band), (None, (2, 2)));
    }

    #[test]
    fn without_intervals_only_a_large_loss_counts() {
        let bare = |points: &[(u32, f64)]| {
            let mut rungs = ladder(points);
            rungs.iter_mut().for_each(|rung| rung.throughput.error = None);
            peak(&rungs).unwrap()
        };
        assert_eq!(bare(&[(1, 10.), (2, 20.), (4, 18.)]).falls_over_at, None);
        let far = bare(&[(1, 10.), (2, 20.), (4, 9.)]);
        // Two measurements each: 14 and 26 at the peak, 14 and 14 at the end.
        let mut rungs = ladder(&[(1, 10.), (2, 20.), (4, 14.)]);
        rungs.iter_mut().for_each(|rung| rung.throughput.error = None);
        assert_eq!(peak(&rungs).unwrap().falls_over_at, Some(4));
        (rungs[1].measurements, rungs[2].measurements) = (Some((14., 26.)), Some((14., 14.)));
        assert_eq!(
            peak(&rungs).unwrap().falls_over_at,
            None,
            "one measurement at the peak was no faster"
        );
        assert_eq!((far.falls_over_at, far.retention.unwrap().low), (Some(4), None));
    }

    #[test]
    fn a_peak_at_the_last_rung_retains_all() {
        let found = peak(&ladder(&[(1, 10.), (2, 20.)])).unwrap();
        assert_eq!((found.index, found.retention.unwrap().value), (1, 1.0));
        assert_eq!(peak(&[]), None);
        assert_eq!(peak(&ladder(&[(1, 0.0)])), None);
    }
}
