//! How much costs move from measurement to measurement where nothing changed, as other rungs tell
//! it.
//!
//! Two or three measurements say little of how they scatter. The scatter of a path has two parts.
//! How many samples it happened to get is known from its own seconds. What a measurement does to it
//! beyond that (the pace of the machine, where the data came to lie) is taken from the other rungs,
//! never from the measurements that are tested: these would count twice, once as the figure and
//! once as the prior, and the interval would be too narrow for the degrees of freedom that it
//! claims.

use super::accounts::{Side, Sides};
use super::family::Family;

/// A rung whose measurements scatter by more than so many times the variance that is expected of
/// them is another matter than the others.
const ALIKE: f64 = 2.0;

/// What one rung tells of one account: variances of a measurement over the cost squared, each times
/// the degrees of freedom.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unrest {
    /// How the measurements scatter.
    scatter: f64,
    /// How they would by their seconds alone.
    chance: f64,
    degrees: f64,
}

impl Unrest {
    /// From both sides, each with its own mean. Every disjoint piece tells of it, the larger ones more.
    pub(super) fn of(sides: &Sides, family: &Family) -> Unrest {
        let told = [&sides.a, &sides.b]
            .into_iter()
            .filter_map(|side| of_side(side, family));
        told.fold(Unrest::default(), |sum, one| sum.plus(&one))
    }

    fn plus(self, other: &Unrest) -> Unrest {
        Unrest {
            scatter: self.scatter + other.scatter,
            chance: self.chance + other.chance,
            degrees: self.degrees + other.degrees,
        }
    }

    /// What `others` say beforehand of this rung: variance of a measurement beyond that of its
    /// seconds, and degrees of freedom. Nothing, where it is more restless than they are.
    pub(super) fn beforehand<'a>(self, others: impl Iterator<Item = &'a Unrest>) -> (f64, f64) {
        let others = others.fold(Unrest::default(), Unrest::plus);
        if others.degrees <= 0.0 {
            return (0.0, 0.0);
        }
        let variance = ((others.scatter - others.chance) / others.degrees).max(0.0);
        match self.scatter > ALIKE * (self.chance + variance * self.degrees) {
            true => (0.0, 0.0),
            false => (variance, others.degrees),
        }
    }
}

fn of_side(side: &Side, family: &Family) -> Option<Unrest> {
    let measurements = side.measurements.len() as f64;
    if measurements < 2.0 {
        return None;
    }
    let pieces: Vec<Vec<Vec<f64>>> = side
        .measurements
        .iter()
        .map(|measurement| family.pieces(measurement))
        .collect();
    let (mut scatter, mut chance, mut sizes) = (0.0, 0.0, 0.0);
    for piece in 0..family.piece_count() {
        let of_measurements = || {
            let pairs = side.measurements.iter().zip(&pieces);
            pairs.filter_map(|(measurement, pieces)| Some((measurement, pieces.get(piece)?)))
        };
        let figures: Vec<f64> = of_measurements()
            .map(|(measurement, blocks)| measurement.per_transaction(blocks))
            .collect();
        let mean = figures.iter().sum::<f64>() / measurements;
        scatter += figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>();
        chance += of_measurements()
            .map(|(measurement, blocks)| measurement.variance(blocks))
            .sum::<f64>()
            * (measurements - 1.0)
            / measurements;
        sizes += mean * mean;
    }
    (sizes > 0.0).then(|| Unrest {
        scatter: scatter / sizes,
        chance: chance / sizes,
        degrees: measurements - 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rung with so much unrest beyond chance, and so much chance.
    fn telling(beyond: f64, chance: f64, degrees: f64) -> Unrest {
        Unrest {
            scatter: (beyond + chance) * degrees,
            chance: chance * degrees,
            degrees,
        }
    }

    fn is_close(found: (f64, f64), expected: (f64, f64)) -> bool {
        (found.0 - expected.0).abs() < 1e-12 && (found.1 - expected.1).abs() < 1e-12
    }

    #[test]
    fn a_rung_is_told_by_the_others_and_never_by_itself() {
        let others = [telling(0.01, 0.001, 2.0), telling(0.03, 0.001, 6.0)];
        for own in [0.0, 0.02] {
            let found = telling(own, 0.001, 4.0).beforehand(others.iter());
            assert!(is_close(found, (0.025, 8.0)), "{found:?}");
        }
        assert_eq!(telling(0.02, 0.001, 4.0).beforehand([].iter()), (0.0, 0.0));
    }

    #[test]
    fn calm_rungs_say_nothing_of_a_restless_one() {
        let calm = [telling(0.001, 0.0001, 8.0)];
        assert_eq!(telling(0.01, 0.0001, 4.0).beforehand(calm.iter()), (0.0, 0.0));
        // Here nearly all of it is chance.
        let found = telling(0.01, 0.02, 4.0).beforehand(calm.iter());
        assert!(is_close(found, (0.001, 8.0)), "{found:?}");
    }

    #[test]
    fn less_scatter_than_chance_alone_gives_is_no_unrest() {
        let calm = [telling(-0.01, 0.02, 8.0)];
        assert!(is_close(telling(0.0, 0.02, 4.0).beforehand(calm.iter()), (0.0, 8.0)));
    }
}
