//! The measured seconds of a rung's measurements, numbered, so that a million samples find theirs
//! at once.

use crate::block_ratio::Transactions;
use crate::totals::{Amount, Window};
use scaleprof_bundle::SampleBlock;
use std::collections::BTreeMap;

/// The measured seconds in the order of the measurements and seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeasuredSeconds {
    places: BTreeMap<(i32, i32), u32>,
    /// Transactions by place.
    pub transactions: Transactions,
    /// How long each of them was, by place.
    pub lengths: Vec<f64>,
}

impl MeasuredSeconds {
    pub(crate) fn of(windows: &[Window]) -> MeasuredSeconds {
        let amounts: BTreeMap<(i32, i32), Amount> = windows
            .iter()
            .flat_map(|window| {
                let seconds = window.seconds.iter();
                seconds.map(|(second, amount)| ((window.measurement, *second), *amount))
            })
            .collect();
        MeasuredSeconds {
            places: amounts.keys().copied().zip(0..).collect(),
            transactions: Transactions::of(
                amounts
                    .iter()
                    .map(|((measurement, _), amount)| (*measurement, amount.transactions)),
            ),
            lengths: amounts.values().map(|amount| amount.seconds).collect(),
        }
    }

    /// Each second by measurement and number, with its transactions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ((i32, i32), f64)> {
        let transactions = self.transactions.of_seconds().iter().copied();
        self.places.keys().copied().zip(transactions)
    }

    /// The measurements that have some, in their order.
    pub(crate) fn measurements(&self) -> impl Iterator<Item = i32> {
        let mut measurements: Vec<i32> = self.places.keys().map(|(measurement, _)| *measurement).collect();
        measurements.dedup();
        measurements.into_iter()
    }

    /// The place of the second that each code of a block's seconds stands for; none where it was not measured.
    pub(crate) fn places(&self, block: &SampleBlock) -> Vec<Option<u32>> {
        let seconds = block.seconds().values().iter();
        let places = seconds.map(|second| self.places.get(&(block.measurement(), *second)).copied());
        places.collect()
    }
}
