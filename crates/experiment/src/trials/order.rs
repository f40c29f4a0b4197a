//! In which order variants are started.

use scaleprof_workload::ConnectionRng;

/// The variants in their order in a round. A round is every variant once.
///
/// Two rounds belong together: the first has a random order and the second its mirror image (with two variants ABBA or BAAB). A
/// steady drift then has as much of a say for one variant as for the other. Side by side it is the order of turns: nobody always comes
/// behind the same one.
pub(crate) fn round_order(variants: usize, round: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..variants).collect();
    let mut rng = ConnectionRng::new(seed, u64::from(round / 2));
    // Fisher and Yates.
    for i in (1..order.len()).rev() {
        order.swap(i, rng.uniform(0, i as u32) as usize);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_letters_come_first_in_about_half_of_the_blocks() {
        let first = (0..200).filter(|block| round_order(2, 2 * block, 7)[0] == 0).count();
        assert!((70..=130).contains(&first), "{first}");
    }

    proptest! {
        #[test]
        fn a_steady_drift_has_the_same_say_for_all(variants in 1..9usize, block in 0..50u32, seed in any::<u64>()) {
            let (one, other) = (round_order(variants, 2 * block, seed), round_order(variants, 2 * block + 1, seed));
            for variant in 0..variants {
                let place = |order: &[usize]| order.iter().position(|one| *one == variant).unwrap();
                prop_assert_eq!(place(&one) + place(&other), variants - 1);
            }
        }
    }
}
