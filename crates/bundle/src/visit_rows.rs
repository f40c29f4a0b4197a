//! All rows of one visit but that of `rungs`.

use crate::{CounterRow, ErrorRow, FrameRow, LatencyRow, LockRow, SampleRow, SecondRow, StackRow, StateRow};

/// The rows of one visit, a field a table. What was not measured stays empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VisitRows {
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

impl VisitRows {
    /// Whether every row that names a visit names this one.
    pub(crate) fn are_all_of(&self, visit: i32) -> bool {
        self.seconds.iter().all(|row| row.visit == visit)
            && self.counters.iter().all(|row| row.visit == visit)
            && self.latency.iter().all(|row| row.visit == visit)
            && self.errors.iter().all(|row| row.visit == visit)
            && self.states.iter().all(|row| row.visit == visit)
            && self.samples.iter().all(|row| row.visit == visit)
            && self.locks.iter().all(|row| row.visit == visit)
    }
}
