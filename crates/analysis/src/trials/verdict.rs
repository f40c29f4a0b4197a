//! From the mean of pairs to a verdict.

use super::log_ratios::PairedMean;
use crate::comparison::FALSE_ALARMS;
use scaleprof_vocabulary::ExperimentVerdict;

/// Fewest pairs with which the sign-flip test can speak against chance at 5 %, and so the fewest for a verdict that counts.
pub const FEWEST_PAIRS: usize = 6;

/// However far two starts of one server are apart: no difference beyond more than 28 % (a logarithm of 0.25) would say nothing,
/// unless somebody asked for that.
const WIDEST_MARGIN: f64 = 0.25;

/// The verdict on a mean of log-ratios.
///
/// `margin` is the equivalence margin as a logarithm: a difference inside of it does not matter. `p` is the mean's p-value as it
/// counts where all comparisons of the session were looked at (Holm). `sign_flip` holds against a mean that one odd pair made: where
/// there are pairs enough for it to speak, it has to agree.
pub fn verdict(mean: &PairedMean, margin: f64, p: f64, sign_flip: Option<f64>) -> ExperimentVerdict {
    let Some(half) = mean.half_width else {
        return ExperimentVerdict::Inconclusive;
    };
    if mean.mean.abs() + half <= margin {
        return ExperimentVerdict::NoDifference;
    }
    let agrees = mean.pairs < FEWEST_PAIRS || sign_flip.is_none_or(|p| p <= FALSE_ALARMS);
    match p <= FALSE_ALARMS && agrees {
        true if mean.mean > 0.0 => ExperimentVerdict::Faster,
        true => ExperimentVerdict::Slower,
        false => ExperimentVerdict::Inconclusive,
    }
}

/// The equivalence margin as a logarithm: what was asked for, or as much as the session tells two starts of one server apart, if
/// that is more. `a_a` is the mean of the A/A pairs.
pub fn margin(asked: f64, a_a: Option<&PairedMean>) -> f64 {
    let asked = asked.ln_1p();
    a_a.and_then(|mean| mean.half_width)
        .map_or(asked, |half| half.min(WIDEST_MARGIN).max(asked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean(pairs: usize, mean: f64, half_width: f64) -> PairedMean {
        PairedMean {
            pairs,
            mean,
            half_width: Some(half_width),
            p: None,
        }
    }

    #[test]
    fn the_four_words() {
        let of = |mean: &PairedMean, p| verdict(mean, 0.01, p, Some(0.01));
        assert_eq!(of(&mean(8, 0.05, 0.02), 0.001), ExperimentVerdict::Faster);
        assert_eq!(of(&mean(8, -0.05, 0.02), 0.001), ExperimentVerdict::Slower);
        assert_eq!(of(&mean(8, 0.004, 0.005), 0.2), ExperimentVerdict::NoDifference);
        assert_eq!(of(&mean(8, 0.03, 0.04), 0.2), ExperimentVerdict::Inconclusive);
        // Significant and too small to matter.
        assert_eq!(of(&mean(8, 0.004, 0.002), 0.001), ExperimentVerdict::NoDifference);
    }

    #[test]
    fn one_odd_pair_makes_no_verdict() {
        let found = mean(8, 0.05, 0.02);
        assert_eq!(verdict(&found, 0.01, 0.001, Some(0.2)), ExperimentVerdict::Inconclusive);
        // Four pairs are too few for it to speak at all.
        assert_eq!(
            verdict(&mean(4, 0.05, 0.02), 0.01, 0.001, Some(0.125)),
            ExperimentVerdict::Faster
        );
        let one = PairedMean::of(&[0.3]).unwrap();
        assert_eq!(verdict(&one, 0.01, 0.0, None), ExperimentVerdict::Inconclusive);
    }

    #[test]
    fn what_the_session_cannot_tell_apart_widens_the_margin() {
        assert_eq!(margin(0.01, None), 0.01f64.ln_1p());
        assert_eq!(margin(0.01, Some(&mean(4, 0.0, 0.03))), 0.03);
        assert_eq!(margin(0.05, Some(&mean(4, 0.0, 0.03))), 0.05f64.ln_1p());
        assert_eq!(margin(0.01, Some(&mean(4, 0.0, 1.35))), WIDEST_MARGIN);
    }

    proptest! {
        #[test]
        fn faster_and_slower_are_never_said_within_the_margin(m in -0.2..0.2f64, half in 0.0..0.2f64, margin in 0.0..0.1f64, p in prop_oneof![0.0..0.05f64, 0.0..1.0f64]) {
            let found = verdict(&mean(8, m, half), margin, p, None);
            if matches!(found, ExperimentVerdict::Faster | ExperimentVerdict::Slower) {
                prop_assert!(m.abs() + half > margin && p <= 0.05);
                prop_assert_eq!(found == ExperimentVerdict::Faster, m > 0.0);
            }
            if m.abs() + half <= margin {
                prop_assert_eq!(found, ExperimentVerdict::NoDifference);
            }
        }
    }
}
