//! How throughput went over a long measurement.

use crate::Estimate;
use serde::{Deserialize, Serialize};

/// The course of a long measurement of a rung, of several the one that held its throughput least;
/// the warm-up not included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LongRun {
    /// Measured seconds.
    pub seconds: u32,
    /// Largest difference between the halves of any window of [`jitter_window_seconds`](Self::jitter_window_seconds), as a part of its mean.
    /// TPC-C asks for less than 0.02 in two hours.
    pub jitter: f64,
    /// Two hours, or the whole of a shorter run, seconds.
    pub jitter_window_seconds: u32,
    /// The slope of a straight line through throughput, as a part of its mean in an hour; negative where it declines.
    pub change_per_hour: Estimate,
    /// Where throughput stayed at one level, in the order of time. One of them where it never changed by 2 % or more.
    pub levels: Vec<Level>,
}

/// A stretch in which throughput kept its level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Its first second, from the end of the warm-up.
    pub from_second: u32,
    /// How long it is, seconds.
    pub seconds: u32,
    /// Transactions/s.
    pub throughput: f64,
}
