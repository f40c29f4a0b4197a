//! Keying and think times (clause 5.2.5): what a user takes to type and to read.

use super::kind::TransactionKind;
use crate::random::ConnectionRng;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// Seconds that typing the input takes at least (clause 5.2.5.7).
fn keying_seconds(kind: TransactionKind) -> f64 {
    match kind {
        TransactionKind::NewOrder => 18.0,
        TransactionKind::Payment => 3.0,
        TransactionKind::OrderStatus | TransactionKind::Delivery | TransactionKind::StockLevel => 2.0,
    }
}

/// Mean seconds of reading the output (clause 5.2.5.7).
fn mean_think_seconds(kind: TransactionKind) -> f64 {
    match kind {
        TransactionKind::NewOrder | TransactionKind::Payment => 12.0,
        TransactionKind::OrderStatus => 10.0,
        TransactionKind::Delivery | TransactionKind::StockLevel => 5.0,
    }
}

/// How long the input of a transaction is typed, nanoseconds, with all times taken `factor` times.
pub(super) fn keying_ns(kind: TransactionKind, factor: f64) -> u64 {
    (keying_seconds(kind) * factor * SECOND) as u64
}

/// How long its output is read, nanoseconds: negative exponential, cut off at ten times the mean (clause 5.2.5.4).
pub(super) fn think_ns(kind: TransactionKind, factor: f64, rng: &mut ConnectionRng) -> u64 {
    let mean = mean_think_seconds(kind);
    let seconds = (-(1.0 - rng.unit()).ln() * mean).min(10.0 * mean);
    (seconds * factor * SECOND) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_have_their_means_and_an_end() {
        let mut rng = ConnectionRng::new(1, 0);
        let drawn: Vec<f64> = (0..50_000)
            .map(|_| think_ns(TransactionKind::NewOrder, 1.0, &mut rng) as f64 / SECOND)
            .collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((11.7..12.3).contains(&mean), "{mean}");
        assert!(drawn.iter().all(|&seconds| seconds <= 120.0));
        assert_eq!(keying_ns(TransactionKind::NewOrder, 0.5), 9_000_000_000);
    }

    #[test]
    fn ten_terminals_of_a_warehouse_cannot_do_more_than_the_nominal_limit() {
        // 4.2.2's 12.86 tpmC a warehouse: one New-Order in 23 cards' time of ten terminals, were all answers at once.
        let cards = [(10.0, 0), (10.0, 1), (1.0, 2), (1.0, 3), (1.0, 4)];
        let seconds: f64 = cards
            .iter()
            .map(|&(count, kind)| {
                let kind = TransactionKind::ALL[kind];
                count * (keying_seconds(kind) + mean_think_seconds(kind))
            })
            .sum();
        let most = 10.0 * 60.0 * 10.0 / seconds;
        assert!((12.5..13.0).contains(&most), "{most}");
    }
}
