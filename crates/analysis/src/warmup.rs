//! Where the warm-up of a series ends.

/// How many seconds to cut from the head of a series of throughputs, one figure a second; none where half of the series
/// would have to go, which means that it had not settled by then.
///
/// The marginal standard error rule on batches of five, MSER-5 (White, Cobb and Spratt 2000): of all cuts up to half of
/// the series, the one whose rest has the least squared standard error. Under 40 s batches of one are used, as five-second
/// ones would leave too few to compare. Noise alone moves the minimum about, so the shortest cut within twice of it is
/// taken (a real warm-up costs far more), and none where the head is within 1 % of the rest.
pub fn warmup_seconds(rates: &[f64]) -> Option<usize> {
    let batch = if rates.len() >= 40 { 5 } else { 1 };
    let means: Vec<f64> = rates.chunks_exact(batch).map(mean).collect();
    let most = (means.len() / 2).min(means.len().saturating_sub(3));
    let errors: Vec<f64> = (0..=most).map(|cut| squared_error(&means[cut..])).collect();
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    let cut = errors.iter().position(|error| *error <= 2.0 * least)?;
    let (head, rest) = rates.split_at(cut * batch);
    if cut == 0 || (mean(head) - mean(rest)).abs() <= 0.01 * mean(rest) {
        return Some(0);
    }
    (cut < most).then_some(head.len())
}

/// MSER's statistic: the squared standard error of the mean, but for a factor.
fn squared_error(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    squares / (values.len() as f64).powi(2).max(1.0)
}

/// Arithmetic mean; 0 for nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        0.0
    } else {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Noise, noisy};

    #[test]
    fn a_planted_warm_up_is_found_within_a_few_seconds() {
        for (length, planted) in [(60, 12), (120, 20), (300, 45), (20, 4)] {
            let found = (0..100).filter(|seed| {
                let mut rates = noisy(*seed, length, 1000.0, Noise { sd: 0.01, lag: 0.3 });
                for (second, rate) in rates.iter_mut().take(planted).enumerate() {
                    *rate *= 0.4 + 0.6 * second as f64 / planted as f64;
                }
                warmup_seconds(&rates).is_some_and(|cut| cut + 5 >= planted && cut <= planted + 8)
            });
            assert!(found.count() >= 93, "{length} s with {planted} s of warm-up");
        }
    }

    #[test]
    fn a_series_without_warm_up_is_hardly_cut() {
        let cuts: Vec<usize> = (0..200)
            .filter_map(|seed| warmup_seconds(&noisy(seed, 60, 1000.0, Noise { sd: 0.005, lag: 0.0 })))
            .collect();
        assert!(cuts.iter().filter(|cut| **cut > 0).count() < 10, "{cuts:?}");
    }

    #[test]
    fn at_most_half_is_cut_and_a_head_of_half_is_no_warm_up() {
        for length in 0..40 {
            let rising: Vec<f64> = (0..length).map(|n| f64::from(n * n)).collect();
            assert!(warmup_seconds(&rising).is_none_or(|cut| cut * 2 <= rising.len()));
        }
        let mut late = noisy(1, 60, 1000.0, Noise { sd: 0.005, lag: 0.0 });
        late.iter_mut().take(30).for_each(|v| *v *= 0.9);
        assert_eq!(warmup_seconds(&late), None);
    }
}
