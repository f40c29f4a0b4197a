//! Non-uniform random numbers (clause 2.1.6) and the constants that go with them (clause 2.1.6.1).

use crate::random::ConnectionRng;

/// Rows that the population fixes, whatever the number of warehouses (clauses 1.2.1 and 4.3.3.1).
pub(super) const ITEMS: u32 = 100_000;
pub(super) const DISTRICTS: u32 = 10;
pub(super) const CUSTOMERS: u32 = 3000;
/// Last names are numbers from 0 to this.
pub(super) const LAST_NAME: u32 = 999;

/// The constants C of NURand. Those of customers and items may be anything; that of last names is one while the tables
/// are filled and another in a run, so that the names that a run asks for most are not those that there are most of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConstants {
    /// C of last names while the tables are filled, 0 to 255.
    pub last_name_load: u32,
    /// C of last names in a run: 65 to 119 away from it, but not 96 or 112.
    pub last_name_run: u32,
    /// C of customer numbers, 0 to 1023.
    pub customer: u32,
    /// C of item numbers, 0 to 8191.
    pub item: u32,
}

/// Distances between the two constants of last names that clause 2.1.6.1 allows.
fn is_allowed_distance(distance: u32) -> bool {
    (65..=119).contains(&distance) && distance != 96 && distance != 112
}

impl RunConstants {
    /// The constants that belong to the tables of this seed.
    pub fn of(data_seed: u64) -> RunConstants {
        // A stream that neither a connection nor a piece of the population has.
        let mut rng = ConnectionRng::new(data_seed, u64::MAX - 1);
        let last_name_load = rng.uniform(0, 255);
        let allowed: Vec<u32> = (0..=255)
            .filter(|&run| is_allowed_distance(last_name_load.abs_diff(run)))
            .collect();
        // There always are some: 65 to 119 fits beside every number on one of its sides.
        let chosen = rng.uniform(0, (allowed.len() as u32).saturating_sub(1));
        RunConstants {
            last_name_load,
            last_name_run: allowed[chosen as usize],
            customer: rng.uniform(0, 1023),
            item: rng.uniform(0, 8191),
        }
    }

    /// Number of a customer in its district.
    pub(super) fn draw_customer(&self, rng: &mut ConnectionRng) -> u32 {
        nurand(rng, 1023, self.customer, 1, CUSTOMERS)
    }

    /// Number of an item.
    pub(super) fn draw_item(&self, rng: &mut ConnectionRng) -> u32 {
        nurand(rng, 8191, self.item, 1, ITEMS)
    }

    /// Number of a last name in a run.
    pub(super) fn draw_last_name(&self, rng: &mut ConnectionRng) -> u32 {
        nurand(rng, 255, self.last_name_run, 0, LAST_NAME)
    }

    /// Number of a last name while the tables are filled.
    pub(super) fn draw_last_name_to_load(&self, rng: &mut ConnectionRng) -> u32 {
        nurand(rng, 255, self.last_name_load, 0, LAST_NAME)
    }
}

/// NURand(A, x, y) of clause 2.1.6: `(((random(0, A) | random(x, y)) + C) % (y - x + 1)) + x`.
fn nurand(rng: &mut ConnectionRng, a: u32, c: u32, x: u32, y: u32) -> u32 {
    ((rng.uniform(0, a) | rng.uniform(x, y)) + c) % (y - x + 1) + x
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_constants_of_last_names_keep_the_distance_of_the_specification(seed in any::<u64>()) {
            let constants = RunConstants::of(seed);
            let distance = constants.last_name_load.abs_diff(constants.last_name_run);
            prop_assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
            prop_assert!(constants.last_name_load <= 255 && constants.last_name_run <= 255);
            prop_assert_eq!(constants, RunConstants::of(seed));
        }

        #[test]
        fn numbers_stay_within_their_bounds(seed in any::<u64>()) {
            let (constants, mut rng) = (RunConstants::of(seed), ConnectionRng::new(seed, 0));
            for _ in 0..200 {
                prop_assert!((1..=CUSTOMERS).contains(&constants.draw_customer(&mut rng)));
                prop_assert!((1..=ITEMS).contains(&constants.draw_item(&mut rng)));
                prop_assert!(constants.draw_last_name(&mut rng) <= LAST_NAME);
                prop_assert!(constants.draw_last_name_to_load(&mut rng) <= LAST_NAME);
            }
        }
    }

    /// The law by counting all pairs of its two uniform numbers.
    fn probabilities(a: u32, c: u32, x: u32, y: u32) -> Vec<f64> {
        let width = y - x + 1;
        let mut counts = vec![0_u64; width as usize];
        for low in 0..=a {
            for high in x..=y {
                counts[(((low | high) + c) % width) as usize] += 1;
            }
        }
        let total = (u64::from(a) + 1) * u64::from(width);
        counts.into_iter().map(|n| n as f64 / total as f64).collect()
    }

    #[test]
    fn numbers_are_drawn_by_the_law_of_the_specification() {
        let constants = RunConstants::of(7);
        let mut rng = ConnectionRng::new(7, 1);
        let draws = 1_000_000;
        let mut seen = vec![0_u32; 1000];
        (0..draws).for_each(|_| seen[constants.draw_last_name(&mut rng) as usize] += 1);
        let expected = probabilities(255, constants.last_name_run, 0, LAST_NAME);
        // Chi-square with at most 999 degrees of freedom: mean 999, deviation 45.
        let mut chi_square = 0.0;
        for (&seen, &p) in seen.iter().zip(&expected) {
            let wanted = p * f64::from(draws);
            if wanted == 0.0 {
                assert_eq!(seen, 0);
            } else {
                chi_square += (f64::from(seen) - wanted).powi(2) / wanted;
            }
        }
        assert!(chi_square < 999.0 + 5.0 * 45.0, "chi-square {chi_square}");
        let most = expected.iter().copied().fold(0.0, f64::max);
        assert!(most > 0.003, "the law is far from uniform: {most}");
    }
}
