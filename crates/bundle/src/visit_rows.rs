//! All rows of one visit but that of `rungs`.

use crate::{Bundle, CounterRow, ErrorRow, FrameRow, LatencyRow, LockRow, SampleRow, SecondRow, StackRow, StateRow};

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

/// The same rows where they stand, in [`VisitRows`] or in a [`Bundle`] of one visit; the fields as there.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "each is what it is in VisitRows")]
pub struct VisitTables<'a> {
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

impl VisitRows {
    /// All of them, where they stand.
    pub fn tables(&self) -> VisitTables<'_> {
        VisitTables {
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
    /// The tables of a bundle of one visit but its samples, which it keeps in another form.
    pub fn tables_without_samples(&self) -> VisitTables<'_> {
        debug_assert!(self.rungs.len() == 1, "of several the tables are not of one visit");
        VisitTables {
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

impl VisitTables<'_> {
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
