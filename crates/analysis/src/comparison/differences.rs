//! What a difference between a few measurements and a few others is worth.

use crate::student::{t_quantile_975, two_sided_p};
use scaleprof_bundle::Estimate;

/// What is known beforehand of how one measurement's figure scatters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// Variance of one measurement's figure.
    pub variance: f64,
    /// Degrees of freedom behind it.
    pub degrees: f64,
    /// What it cannot be less than, as a measurement's own seconds scatter: two measurements that
    /// happen to agree prove nothing.
    pub at_least: f64,
}

/// A difference with what is needed to test it and to calculate on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// It and its 95 % interval; no limits where it cannot be tested.
    pub estimate: Estimate,
    /// Its variance and the degrees of freedom behind that.
    pub spread: Option<(f64, f64)>,
    /// Probability of one so large where there is none.
    pub p: Option<f64>,
}

impl Tested {
    fn of(value: f64, spread: Option<(f64, f64)>) -> Tested {
        let half = spread.map(|(variance, degrees)| t_quantile_975(degrees) * variance.sqrt());
        let p = spread.map(|(variance, degrees)| match variance > 0.0 {
            true => two_sided_p(value / variance.sqrt(), degrees),
            // Nothing scatters: any difference is one.
            false if value == 0.0 => 1.0,
            false => 0.0,
        });
        Tested {
            estimate: Estimate {
                value,
                low: half.map(|half| value - half),
                high: half.map(|half| value + half),
            },
            spread,
            p,
        }
    }

    /// The same with another value, which was got by a better way than as the mean of the
    /// measurements.
    pub fn centred_at(&self, value: f64) -> Tested {
        Tested::of(value, self.spread)
    }

    /// This one less another that is independent of it; degrees of freedom after Satterthwaite (1946).
    pub fn less(&self, other: &Tested) -> Tested {
        let spread = self.spread.zip(other.spread).map(|((v, d), (w, e))| {
            let sum = v + w;
            let degrees = match v * v / d + w * w / e {
                below if below > 0.0 => sum * sum / below,
                _ => d + e,
            };
            (sum, degrees)
        });
        Tested::of(self.estimate.value - other.estimate.value, spread)
    }
}

/// Mean of `b` less mean of `a`, a figure a measurement. Student's t with one variance for both
/// sides. Few measurements say little of how they scatter; with a `prior` its variance counts for
/// as many degrees of freedom as it has (moderated t, Smyth 2004).
///
/// No limits and no p with fewer than two measurements on a side.
pub fn difference(a: &[f64], b: &[f64], prior: Option<Prior>) -> Tested {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if a.is_empty() || b.is_empty() {
        return Tested::of(f64::NAN, None);
    }
    let value = mean(b) - mean(a);
    if a.len() < 2 || b.len() < 2 {
        return Tested::of(value, None);
    }
    let squares = |values: &[f64]| values.iter().map(|x| (x - mean(values)).powi(2)).sum::<f64>();
    let own = (a.len() + b.len() - 2) as f64;
    let (known, degrees) = prior.map_or((0.0, 0.0), |prior| (prior.variance * prior.degrees, prior.degrees));
    let scatter = (squares(a) + squares(b) + known) / (own + degrees);
    let variance = scatter.max(prior.map_or(0.0, |prior| prior.at_least));
    let of_difference = variance * (1.0 / a.len() as f64 + 1.0 / b.len() as f64);
    Tested::of(value, Some((of_difference, own + degrees)))
}

/// `value`, a figure of B over one of A, with what the difference of the logarithms of the
/// measurements' figures says that it is worth; none where a figure is not above 0.
pub fn ratio(value: f64, a: &[f64], b: &[f64]) -> Option<Tested> {
    let logarithms = |values: &[f64]| -> Option<Vec<f64>> {
        let logarithms = values.iter().map(|x| (*x > 0.0).then(|| x.ln()));
        logarithms
            .collect::<Option<Vec<f64>>>()
            .filter(|found| !found.is_empty())
    };
    let value = Some(value).filter(|value| *value > 0.0 && value.is_finite())?;
    let tested = difference(&logarithms(a)?, &logarithms(b)?, None).centred_at(value.ln());
    let of = tested.estimate;
    Some(Tested {
        estimate: Estimate {
            value: of.value.exp(),
            low: of.low.map(f64::exp),
            high: of.high.map(f64::exp),
        },
        ..tested
    })
}

/// Holm's step-down: the probabilities as they count where all of them were looked at, however they depend on each other (1979).
pub fn holm(ps: &[f64]) -> Vec<f64> {
    weighted_holm(&ps.iter().map(|p| (*p, 1.0)).collect::<Vec<_>>())
}

/// The same for pairs of a probability and a weight: each is allowed its part of the errors in proportion to its weight (Holm 1979,
/// section 3).
pub fn weighted_holm(ps: &[(f64, f64)]) -> Vec<f64> {
    let each = |at: usize| ps.get(at).map_or(f64::INFINITY, |(p, weight)| p / weight);
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|a, b| each(*a).total_cmp(&each(*b)));
    let mut adjusted = vec![1.0; ps.len()];
    let mut left: f64 = ps.iter().map(|(_, weight)| weight).sum();
    let mut largest: f64 = 0.0;
    // Without a weight nothing is allowed.
    for at in order.into_iter().filter(|at| each(*at).is_finite()) {
        largest = largest.max(each(at) * left).min(1.0);
        adjusted[at] = largest;
        left -= ps[at].1;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Normal;

    #[test]
    fn the_rules_are_those_of_the_papers() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
        let weighted = weighted_holm(&[(0.01, 1.0), (0.01, 3.0), (0.5, 0.0)]);
        let expected = [4.0 / 300.0, 4.0 / 300.0, 1.0];
        assert!(
            weighted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12),
            "{weighted:?}"
        );
    }

    #[test]
    fn one_measurement_on_a_side_is_not_tested() {
        let tested = difference(&[1.0], &[2.0, 3.0], None);
        assert_eq!(
            (tested.estimate.value, tested.estimate.low, tested.p),
            (1.5, None, None)
        );
        assert!(difference(&[], &[1.0], None).estimate.value.is_nan());
        assert!(ratio(2.0, &[0.0, 1.0], &[1.0, 1.0]).is_none());
        assert!(ratio(f64::NAN, &[1.0, 1.0], &[1.0, 1.0]).is_none());
    }

    #[test]
    fn intervals_hold_the_truth_and_p_is_what_it_says() {
        for measurements in [2, 3, 5] {
            let (mut held, mut alarms) = (0, 0);
            let trials = 4000;
            for trial in 0..trials {
                let mut noise = Normal::new(trial + 99);
                let mut side = |level: f64| -> Vec<f64> {
                    (0..measurements).map(|_| level * (0.04 * noise.draw()).exp()).collect()
                };
                let (a, b) = (side(1000.0), side(1100.0));
                let of_means = |a: &[f64], b: &[f64]| ratio(b.iter().sum::<f64>() / a.iter().sum::<f64>(), a, b);
                let found = of_means(&a, &b).unwrap().estimate;
                held += i32::from(found.low.unwrap() <= 1.1 && 1.1 <= found.high.unwrap());
                alarms += i32::from(of_means(&a, &side(1000.0)).unwrap().p.unwrap() <= 0.05);
            }
            let (held, alarms) = (f64::from(held) / trials as f64, f64::from(alarms) / trials as f64);
            assert!((0.935..=0.965).contains(&held), "{measurements}: {held}");
            assert!((0.035..=0.065).contains(&alarms), "{measurements}: {alarms}");
        }
    }

    #[test]
    fn measurements_that_happen_to_agree_prove_no_more_than_their_seconds() {
        let prior = Prior {
            variance: 1.0,
            degrees: 0.0,
            at_least: 1.0,
        };
        let found = difference(&[5.0, 5.0], &[6.0, 6.001], Some(prior)).estimate;
        assert!(found.low.unwrap() < 0.0, "{found:?}");
        let trials = 2000;
        let held = (0..trials).filter(|trial| {
            let mut noise = Normal::new(trial + 11);
            let mut side = || -> Vec<f64> { (0..2).map(|_| noise.draw()).collect() };
            let found = difference(&side(), &side(), Some(prior)).estimate;
            found.low.unwrap() <= 0.0 && 0.0 <= found.high.unwrap()
        });
        let held = held.count() as f64 / trials as f64;
        assert!(held >= 0.945, "{held}");
    }

    #[test]
    fn a_good_prior_makes_few_measurements_worth_more() {
        let prior = Prior {
            variance: 1.0,
            degrees: 8.0,
            at_least: 0.0,
        };
        let trials = 4000;
        let (mut held, mut width) = (0, 0.0);
        for trial in 0..trials {
            let mut noise = Normal::new(trial + 7);
            let mut side = || -> Vec<f64> { (0..2).map(|_| noise.draw()).collect() };
            let found = difference(&side(), &side(), Some(prior)).estimate;
            held += i32::from(found.low.unwrap() <= 0.0 && 0.0 <= found.high.unwrap());
            width += (found.high.unwrap() - found.low.unwrap()) / trials as f64;
        }
        assert!((0.935..=0.985).contains(&(f64::from(held) / trials as f64)), "{held}");
        // 8.6 without it.
        assert!(width < 5.0, "{width}");
    }
}
