//! All rows of one measurement but that of `measurements`.

use crate::{Bundle, CounterRow, ErrorRow, FrameRow, LatencyRow, LockRow, SampleRow, SecondRow, StackRow, StateRow};

/// The rows of one measurement, a field a table. What was not measured stays empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasurementRows {
    /// Table `seconds`.
    pub seconds: Vec<SecondRow>,
    /// Table `counters`.
    pub counters: Vec<CounterRow>,
    /// Table `latency`.
    pub latency: Vec<LatencyRow>,
    /// Table `errors`.
    pub errors: Vec<ErrorRow>,
    /// Table `states`.
    pub states: Vec<StateRow>,
    /// Table `samples`.
    pub samples: Vec<SampleRow>,
    /// Table `locks`.
    pub locks: Vec<LockRow>,
    /// Table `stacks`: at least those that the samples and locks name, with their parents.
    pub stacks: Vec<StackRow>,
    /// Table `frames`: at least those that the stacks name.
    pub frames: Vec<FrameRow>,
}

/// The same rows where they stand, in [`MeasurementRows`] or in a [`Bundle`] of one measurement;
/// the fields as there.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "each is what it is in MeasurementRows")]
pub struct MeasurementTables<'a> {
    pub seconds: &'a [SecondRow],
    pub counters: &'a [CounterRow],
    pub latency: &'a [LatencyRow],
    pub errors: &'a [ErrorRow],
    pub states: &'a [StateRow],
    pub samples: &'a [SampleRow],
    pub locks: &'a [LockRow],
    pub stacks: &'a [StackRow],
    pub frames: &'a [FrameRow],
}

impl MeasurementRows {
    /// All of them, where they stand.
    pub fn tables(&self) -> MeasurementTables<'_> {
        MeasurementTables {
            seconds: &self.seconds,
            counters: &self.counters,
            latency: &self.latency,
            errors: &self.errors,
            states: &self.states,
            samples: &self.samples,
            locks: &self.locks,
            stacks: &self.stacks,
            frames: &self.frames,
        }
    }
}

impl Bundle {
    /// The tables of a bundle of one measurement but its samples, which it keeps in another form.
    pub fn tables_without_samples(&self) -> MeasurementTables<'_> {
        debug_assert!(
            self.measurements.len() == 1,
            "of several the tables are not of one measurement"
        );
        MeasurementTables {
            seconds: &self.seconds,
            counters: &self.counters,
            latency: &self.latency,
            errors: &self.errors,
            states: &self.states,
            samples: &[],
            locks: &self.locks,
            stacks: &self.stacks,
            frames: &self.frames,
        }
    }
}

impl MeasurementTables<'_> {
    /// Whether every row that names a measurement names this one.
    pub(crate) fn are_all_of(&self, measurement: i32) -> bool {
        self.seconds.iter().all(|row| row.measurement == measurement)
            && self.counters.iter().all(|row| row.measurement == measurement)
            && self.latency.iter().all(|row| row.measurement == measurement)
            && self.errors.iter().all(|row| row.measurement == measurement)
            && self.states.iter().all(|row| row.measurement == measurement)
            && self.samples.iter().all(|row| row.measurement == measurement)
            && self.locks.iter().all(|row| row.measurement == measurement)
    }
}
