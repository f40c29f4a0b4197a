//! How sure a time per transaction is.

use crate::student::t_quantile_975;
use scaleprof_bundle::Estimate;

/// Fewest seconds from which a spread is taken.
pub(crate) const FEWEST: usize = 5;

/// Σ amounts / Σ transactions over blocks of a second, with a 95 % interval from the spread of the blocks: the ratio
/// estimator (Cochran 1977, section 6.4). The samples of one second are not independent of one another, so their number says
/// little about the error; seconds are nearly so. No lower limit is below 0.
///
/// None without transactions; no limits with fewer than five blocks.
pub(crate) fn ratio(blocks: &[(f64, f64)]) -> Option<Estimate> {
    let (amount, transactions) = blocks
        .iter()
        .fold((0.0, 0.0), |(a, k), block| (a + block.0, k + block.1));
    let value = Some(amount / transactions).filter(|value| value.is_finite())?;
    let half = error_of_ratio(blocks).map(|error| t_quantile_975(blocks.len() as f64 - 1.0) * error);
    Some(Estimate {
        value,
        low: half.map(|half| (value - half).max(0.0)),
        high: half.map(|half| value + half),
    })
}

/// The standard error of Σ amounts / Σ transactions; none with fewer than five blocks or without transactions.
pub(crate) fn error_of_ratio(blocks: &[(f64, f64)]) -> Option<f64> {
    let (amount, transactions) = blocks
        .iter()
        .fold((0.0, 0.0), |(a, k), block| (a + block.0, k + block.1));
    let value = Some(amount / transactions).filter(|value| value.is_finite())?;
    let count = blocks.len() as f64;
    (blocks.len() >= FEWEST).then(|| {
        let squares: f64 = blocks.iter().map(|(a, k)| (a - value * k).powi(2)).sum();
        (squares / (count - 1.0) / count).sqrt() / (transactions / count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Normal;

    #[test]
    fn intervals_hold_the_truth_though_work_and_samples_come_in_waves() {
        let trials = 1000;
        let held = (0..trials).filter(|trial| {
            let mut noise = Normal::new(trial + 5);
            let blocks: Vec<(f64, f64)> = (0..30)
                .map(|second| {
                    let wave = 1.0 + 0.2 * (f64::from(second) / 1.1).sin();
                    let transactions = 1000.0 * wave * (1.0 + 0.02 * noise.draw());
                    // About 20 samples a second, each 10 ms.
                    let samples = (20.0 * wave + (20.0 * wave).sqrt() * noise.draw()).round().max(0.0);
                    (samples * 0.01, transactions)
                })
                .collect();
            let found = ratio(&blocks).unwrap();
            found.low.unwrap() <= 2e-4 && 2e-4 <= found.high.unwrap()
        });
        let share = held.count() as f64 / trials as f64;
        assert!((0.92..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn few_seconds_give_no_limits_and_no_transactions_nothing() {
        let blocks = [(1.0, 10.0); 4];
        assert_eq!(
            ratio(&blocks),
            Some(Estimate {
                value: 0.1,
                low: None,
                high: None
            })
        );
        assert_eq!(ratio(&[(1.0, 0.0); 9]), None);
        assert_eq!(ratio(&[]), None);
        assert_eq!(ratio(&[(1.0, 10.0); 5]).unwrap().low, Some(0.1));
    }
}
