//! The jumps of a recording that keeps the last ones before each sample.

use crate::{FrameId, Frames};

/// The jumps that the processor remembered whenever a sample was taken (`perf record -b`).
#[derive(Debug, Clone, Default)]
pub struct RecordedBranches {
    /// The places that they lead from and to: the functions that the machine runs, without those that were built into them.
    pub frames: Frames,
    /// Every jump once, those that were taken most often first.
    pub branches: Vec<RecordedBranch>,
}

/// A jump from one place of the code to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedBranch {
    /// The instruction that jumps, in [`RecordedBranches::frames`].
    pub from: FrameId,
    /// The instruction that it leads to.
    pub to: FrameId,
    /// What became of it.
    pub counts: BranchCounts,
}

/// What became of a jump, all the times that it was recorded. A jump that is not taken leaves nothing behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchCounts {
    /// How often it was taken.
    pub taken: u64,
    /// How often of these the processor told whether it had predicted it.
    pub with_prediction: u64,
    /// How often of these it had not.
    pub(crate) mispredicted: u64,
    /// How often the processor told the cycles that went by since the jump before it.
    pub with_cycles: u64,
    /// All these cycles.
    pub(crate) cycles: u64,
}

impl BranchCounts {
    /// How often it was mispredicted, among those of which that is known; none where it is known of none.
    pub fn mispredicted(&self) -> Option<u64> {
        (self.with_prediction > 0).then_some(self.mispredicted)
    }

    /// The cycles since the jump before it, of all those of which they are known; none where they are known of none.
    pub fn cycles(&self) -> Option<u64> {
        (self.with_cycles > 0).then_some(self.cycles)
    }

    /// Adds those of the same jump from elsewhere.
    pub(crate) fn add(&mut self, other: &BranchCounts) {
        let BranchCounts {
            taken,
            with_prediction,
            mispredicted,
            with_cycles,
            cycles,
        } = other;
        self.taken += taken;
        self.with_prediction += with_prediction;
        self.mispredicted += mispredicted;
        self.with_cycles += with_cycles;
        self.cycles += cycles;
    }
}
