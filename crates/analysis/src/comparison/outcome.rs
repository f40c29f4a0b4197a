//! What a comparison says; `diff --json` prints it.

use crate::per::Per;
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::ThreadState;
use serde::{Serialize, Serializer};

/// What changed from run A to run B.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this layout; 3.
    pub schema: u32,
    /// What times are given for: where it is [`Per::Second`], a second stands wherever a transaction is written, and there is one
    /// rung, without throughput.
    pub per: Per,
    /// One sentence for a person.
    pub sentence: String,
    /// What was compared: product and version of A and of B.
    pub servers: [String; 2],
    /// When each run began, UTC.
    pub started_at: [String; 2],
    /// What differs but for what was measured: server, machine, load.
    pub differences: Vec<Difference>,
    /// Settings with different values.
    pub settings: Vec<SettingChange>,
    /// The rung that others are held against; none with fewer than two common rungs.
    pub base_rung: Option<u32>,
    /// The rungs that both have, by rising connections.
    pub rungs: Vec<RungChange>,
    /// The call paths that changed beyond chance, by rung, the gravest first.
    pub paths: Vec<PathChange>,
    /// Why the call paths of both cannot be paired, as a sentence but for its end; none where they can be.
    pub unpaired: Option<String>,
    /// What the reader should know before believing the figures.
    pub warnings: Vec<String>,
}

/// Something about the two runs that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What, such as `CPU model`.
    pub what: String,
    /// In A; none where it is not known.
    pub a: Option<String>,
    /// In B.
    pub b: Option<String>,
    /// How much it spoils the comparison.
    pub effect: ConditionEffect,
}

/// What a difference between two runs does to their comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionEffect {
    /// It may be what one wants to compare: another version, another build.
    Intended,
    /// Part of what changed may be due to it.
    Confounds,
    /// A transaction is not the same thing in both.
    Incomparable,
}

/// A setting with two values; none where a run does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct SettingChange {
    pub name: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// A figure of both runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pair {
    /// In A; none where it was not measured.
    pub a: Option<f64>,
    /// In B.
    pub b: Option<f64>,
}

/// One rung in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RungChange {
    /// Its connections.
    pub connections: u32,
    /// Measurements in A and in B. All figures of A and of B are those of their own reports, over
    /// all measurements together; the intervals come from how the measurements scatter.
    pub measurements: [usize; 2],
    /// Transactions per second.
    pub throughput: Pair,
    /// That of B over that of A; no limits where a side has fewer than two measurements.
    pub throughput_ratio: Option<Estimate>,
    /// Probability of such a ratio where nothing changed, by Holm's rule over all rungs.
    pub throughput_p: Option<f64>,
    /// CPU seconds of the server per transaction.
    pub cpu_seconds_per_txn: Pair,
    /// That of B over that of A.
    pub cpu_ratio: Option<Estimate>,
    /// 95th percentile of latency, milliseconds.
    pub p95_ms: Pair,
    /// Thread-seconds per transaction of the connections by state.
    pub states: Vec<StateChange>,
    /// The same by kind of code, where call paths cannot be paired; else empty.
    pub code_kinds: Vec<CodeKindChange>,
    /// Whether stacks were sampled in A, and in B: call paths are compared where they were in both.
    pub stacks: [bool; 2],
    /// How much longer the same work takes in all functions alike, B over A; taken out before call paths are compared.
    pub uniform_slowdown: f64,
    /// Whether the CPUs are busy in both, so that waiting loses nothing and only CPU time is compared.
    pub busy: bool,
    /// What the listed call paths leave of the whole change; none where call paths are not compared.
    pub unexplained: Option<Unexplained>,
    /// What the figures of this rung lack or why they are to be doubted.
    pub notes: Vec<String>,
}

/// What of the change of a rung is told, thread-seconds per transaction, B less A: of CPU time where the CPUs are busy, else of waits
/// too. `total` is `uniform`, `listed` and `not_listed` together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unexplained {
    /// All of it; not the time in run queues and waiting for the client, which are no path's.
    pub total: f64,
    /// What all functions take longer alike, by [`RungChange::uniform_slowdown`].
    pub uniform: f64,
    /// What the listed paths count.
    pub listed: f64,
    /// The rest: paths whose change is too small or too unsure to be listed. No limits where a side
    /// has fewer than two measurements.
    pub not_listed: Estimate,
}

/// Time of a transaction in one kind of code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeKindChange {
    /// Such as `the server's own code`.
    pub kind: String,
    /// Thread-seconds per transaction.
    pub seconds_per_txn: Pair,
}

/// One state of the thread ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateChange {
    /// Which one.
    pub state: ThreadState,
    /// Seconds per transaction.
    pub seconds_per_txn: Pair,
    /// B less A.
    pub change: Estimate,
}

/// How a call path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Only B has it.
    New,
    /// Only A has it.
    Gone,
    /// It costs more, and the more so the more connections there are.
    ScalesWorse,
    /// It costs less, and the more so the more connections there are.
    ScalesBetter,
    /// It costs more at the base rung too.
    SlowerEverywhere,
    /// It costs less at the base rung too.
    FasterEverywhere,
    /// It costs more here; whether elsewhere too is not sure.
    Slower,
    /// It costs less here; whether elsewhere too is not sure.
    Faster,
}

/// The account of time in which a call path is compared. Working and spinning are one; it is named for what is worth naming of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccount {
    /// On a CPU, at work.
    Working,
    /// On a CPU, in a loop that waits.
    Spinning,
    /// On a CPU, both.
    WorkingAndSpinning,
    /// Off it.
    Waiting(ThreadState),
}

impl PathAccount {
    /// As it is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PathAccount::Working => ThreadState::Cpu.name(),
            PathAccount::Spinning => ThreadState::Spin.name(),
            PathAccount::WorkingAndSpinning => "cpu and spin",
            PathAccount::Waiting(state) => state.name(),
        }
    }

    /// The state of its waits; none on a CPU.
    #[must_use]
    pub const fn waits_in(self) -> Option<ThreadState> {
        match self {
            PathAccount::Waiting(state) => Some(state),
            PathAccount::Working | PathAccount::Spinning | PathAccount::WorkingAndSpinning => None,
        }
    }
}

impl Serialize for PathAccount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A call path that costs a transaction something else than before. What one of them counts no other does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathChange {
    /// The rung.
    pub connections: u32,
    /// What threads do in it.
    pub state: PathAccount,
    /// Functions, outermost first; those of the kernel end in ` [k]`.
    pub path: Vec<String>,
    /// How it changed.
    pub course: Course,
    /// Thread-seconds per transaction.
    pub seconds_per_txn: Pair,
    /// Δ, B less A, without what all functions share alike. No limits where a side has fewer than
    /// two measurements.
    pub change: Estimate,
    /// Δ over what a transaction costs in A: of its CPU time where the CPUs are busy, else of its whole time.
    pub share: f64,
    /// Δ here less Δ at the base rung; none at the base rung.
    pub beyond_base: Option<Estimate>,
    /// Probability that chance makes this or any other path of the comparison differ so much, by Holm's rule over all that could
    /// have been listed; none where it could not be tested.
    pub p: Option<f64>,
}
