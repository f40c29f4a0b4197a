//! The exact sign-flip test: how often chance alone, turning pairs around, makes a mean so far from 0.

/// Most pairs: half of them have 2^20 sums, which are sorted in a blink.
pub const MOST_PAIRS: usize = 40;

/// The two-sided p-value of the mean of log-ratios under the hypothesis that A and B of every pair could as well be exchanged
/// (Fisher 1935, section 21). It supposes no distribution; with `n` pairs it cannot be below 2/2^n, so that six are the fewest
/// that can speak against chance at 5 %. None without a pair or with more than [`MOST_PAIRS`].
///
/// All 2^n ways of turning pairs around are counted: the sums of either half of the pairs are sorted and met in the middle.
pub fn sign_flip_p(log_ratios: &[f64]) -> Option<f64> {
    let n = log_ratios.len();
    if n == 0 || n > MOST_PAIRS || log_ratios.iter().any(|one| !one.is_finite()) {
        return None;
    }
    let size: f64 = log_ratios.iter().map(|one| one.abs()).sum();
    // Sums in another order differ in their last digits; what is meant to be equal shall count.
    let limit = log_ratios.iter().sum::<f64>().abs() - 1e-12 * size;
    if limit <= 0.0 {
        return Some(1.0);
    }
    let (one, other) = log_ratios.split_at(n / 2);
    let (one, other) = (sorted_sums(one), sorted_sums(other));
    // As every sum has its mirror, those above the limit are half of all that count.
    let mut above = 0_u64;
    let mut reached = other.len();
    for sum in &one {
        while reached > 0 && sum + other[reached - 1] >= limit {
            reached -= 1;
        }
        above += (other.len() - reached) as u64;
    }
    Some((2.0 * above as f64 / 2f64.powi(n as i32)).min(1.0))
}

/// The sums of all choices of signs, rising.
fn sorted_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        let (up, down): (Vec<f64>, Vec<f64>) = sums.iter().map(|sum| (sum + value, sum - value)).unzip();
        sums = up;
        sums.extend(down);
    }
    sums.sort_unstable_by(f64::total_cmp);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every choice of signs by itself.
    fn by_counting(values: &[f64]) -> f64 {
        let size: f64 = values.iter().map(|one| one.abs()).sum();
        let limit = values.iter().sum::<f64>().abs() - 1e-12 * size;
        let signed = |signs: u32| -> f64 {
            let each = values.iter().enumerate();
            each.map(|(at, value)| if signs >> at & 1 == 1 { *value } else { -value })
                .sum()
        };
        let all = 1_u32 << values.len();
        let extreme = (0..all).filter(|signs| signed(*signs).abs() >= limit).count();
        extreme as f64 / f64::from(all)
    }

    #[test]
    fn six_pairs_of_one_sign_are_the_fewest_that_speak_against_chance() {
        let alike = |pairs: usize| sign_flip_p(&vec![0.02; pairs]).unwrap();
        assert_eq!(alike(5), 2.0 / 32.0);
        assert_eq!(alike(6), 2.0 / 64.0);
        assert_eq!(alike(8), 2.0 / 256.0);
        assert_eq!(sign_flip_p(&[]), None);
        assert_eq!(sign_flip_p(&[0.0; 7]), Some(1.0));
        assert_eq!(sign_flip_p(&[f64::NAN]), None);
    }

    #[test]
    fn the_most_pairs_are_counted_exactly_too() {
        assert_eq!(sign_flip_p(&[1.0; MOST_PAIRS]), Some(2.0 / 2f64.powi(40)));
        assert_eq!(sign_flip_p(&[1.0; MOST_PAIRS + 1]), None);
    }

    proptest! {
        #[test]
        fn agrees_with_counting_every_choice(values in prop::collection::vec(-1.0..1.0f64, 1..12)) {
            prop_assert!((sign_flip_p(&values).unwrap() - by_counting(&values)).abs() < 1e-12);
        }

        #[test]
        fn agrees_with_counting_where_many_sums_are_equal(values in prop::collection::vec(-3..4i8, 1..12)) {
            let values: Vec<f64> = values.into_iter().map(|v| f64::from(v) * 0.1).collect();
            prop_assert!((sign_flip_p(&values).unwrap() - by_counting(&values)).abs() < 1e-12);
        }
    }
}
