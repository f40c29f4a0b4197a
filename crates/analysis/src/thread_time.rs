//! Thread-seconds by state, summed over the measured windows, each sum with the time and the transactions that it covers.

use crate::totals::{Amount, Window};
use scaleprof_bundle::StateRow;
use scaleprof_vocabulary::{PerState, ThreadState};
use std::collections::{BTreeMap, BTreeSet};

/// Time of some threads.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ThreadTime {
    /// Seconds in each state. A state without time is 0 where all of the threads' lives was accounted for, and unknown where
    /// only samples tell of it, as in an imported recording; `spin` is none where nothing told it.
    pub states: PerState<Option<f64>>,
    /// Seconds in which they were alive; none where that was not measured.
    pub lifetime: Option<f64>,
    /// The time and the transactions of the seconds, or measurements, that have rows.
    pub over: Amount,
}

impl ThreadTime {
    /// What `rows` sum up to. Those by second count in the measured seconds; only where there are none do those of the whole
    /// measurement count, over all of it. None without rows.
    pub(crate) fn of<'a>(windows: &[Window], rows: impl IntoIterator<Item = &'a StateRow>) -> Option<ThreadTime> {
        let by_measurement: BTreeMap<i32, &Window> =
            windows.iter().map(|window| (window.measurement, window)).collect();
        let (mut in_seconds, mut in_measurements) = (Sum::default(), Sum::default());
        for row in rows {
            let Some(window) = by_measurement.get(&row.measurement) else {
                continue;
            };
            match row.second {
                None => in_measurements.add(row, &window.whole),
                Some(second) => {
                    if let Some(amount) = window.seconds.get(&second) {
                        in_seconds.add(row, amount);
                    }
                }
            }
        }
        in_seconds.finish().or_else(|| in_measurements.finish())
    }

    /// Seconds per transaction in each state; none in all of them without transactions.
    pub(crate) fn per_transaction(&self) -> PerState<Option<f64>> {
        self.divided_by(self.over.transactions)
    }

    /// Seconds per second in each state.
    pub(crate) fn per_second(&self) -> PerState<Option<f64>> {
        self.divided_by(self.over.seconds)
    }

    fn divided_by(&self, divisor: f64) -> PerState<Option<f64>> {
        PerState::from_fn(|state| {
            self.states[state]
                .map(|seconds| seconds / divisor)
                .filter(|v| v.is_finite())
        })
    }
}

#[derive(Default)]
struct Sum {
    time: ThreadTime,
    covered: BTreeSet<(i32, Option<i32>)>,
}

impl Sum {
    fn add(&mut self, row: &StateRow, amount: &Amount) {
        let seconds = |nanoseconds: i64| nanoseconds.max(0) as f64 / 1e9;
        let state = &mut self.time.states[row.state];
        *state = Some(state.unwrap_or(0.0) + seconds(row.nanoseconds));
        if let Some(lifetime) = row.lifetime_ns {
            self.time.lifetime = Some(self.time.lifetime.unwrap_or(0.0) + seconds(lifetime));
        }
        if self.covered.insert((row.measurement, row.second)) {
            self.time.over.seconds += amount.seconds;
            self.time.over.transactions += amount.transactions;
        }
    }

    fn finish(mut self) -> Option<ThreadTime> {
        if self.covered.is_empty() {
            return None;
        }
        if self.time.lifetime.is_some() {
            // What nobody tells is unknown, not nothing.
            let told = |state: &ThreadState| !matches!(state, ThreadState::Spin | ThreadState::Idle);
            for state in ThreadState::ALL.into_iter().filter(told) {
                self.time.states[state].get_or_insert(0.0);
            }
        }
        Some(self.time)
    }
}
