//! What call paths cost at one rung: what other tools are given.

use crate::{Frames, StackId, StackTree};
use scaleprof_vocabulary::{Role, ThreadState};

/// The call paths of one rung, or of a recording, with the time that threads spent in them.
#[derive(Debug, Clone, Default)]
pub struct CostProfile {
    /// What was measured.
    pub about: About,
    /// Places in the machine code.
    pub frames: Frames,
    /// Call paths.
    pub stacks: StackTree,
    /// Names of threads and locks, which the costs name by their places here.
    pub names: Vec<String>,
    /// The time, by all that tells one share of it from another; no two are alike in all of that.
    pub costs: Vec<Cost>,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct About {
    /// In words, such as `oltp_update_index on MySQL 5.6.14, 512 connections`.
    pub title: String,
    /// A few words of its own beside others of the same bundle, such as `512 connections`.
    pub short_title: String,
    /// File name of the program, where it is known.
    pub program: Option<String>,
    /// What was done meanwhile.
    pub amount: Amount,
    /// When it began, nanoseconds since 1970-01-01 UTC.
    pub started_at_ns: Option<i64>,
    /// How many seconds were measured.
    pub seconds: Option<f64>,
}

/// What the time is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Amount {
    /// The transactions of the measured seconds.
    Transactions(f64),
    /// The measured seconds themselves: of a server that was only watched.
    Seconds(f64),
    /// Nothing: neither is known.
    #[default]
    Unknown,
}

/// What the numbers of an export mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Thread-seconds for 1000 transactions; of a server that was only watched for each second; where neither is known, as
    /// [`Unit::Seconds`]. Only so can two exports be held against one another.
    PerAmount,
    /// Thread-seconds of all measured seconds.
    Seconds,
}

impl Amount {
    /// By what thread-seconds are multiplied to be in that unit.
    pub fn factor(self, unit: Unit) -> f64 {
        match (unit, self) {
            (Unit::PerAmount, Amount::Transactions(transactions)) if transactions > 0.0 => 1000.0 / transactions,
            (Unit::PerAmount, Amount::Seconds(seconds)) if seconds > 0.0 => 1.0 / seconds,
            _ => 1.0,
        }
    }

    /// What numbers in that unit are, in words.
    pub fn words(self, unit: Unit) -> &'static str {
        match (unit, self) {
            (Unit::PerAmount, Amount::Transactions(_)) => "time per 1000 transactions",
            (Unit::PerAmount, Amount::Seconds(_)) => "time per second",
            _ => "time",
        }
    }
}

/// Time that threads spent in one way in one call path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The call path.
    pub stack: StackId,
    /// What the threads were doing.
    pub state: ThreadState,
    /// Whom they serve.
    pub role: Role,
    /// Their name: a place in [`CostProfile::names`].
    pub thread: Option<usize>,
    /// The lock that they waited for: a place in [`CostProfile::names`].
    pub lock: Option<usize>,
    /// Thread-seconds.
    pub thread_seconds: f64,
    /// Samples that stand for them.
    pub samples: u64,
}
