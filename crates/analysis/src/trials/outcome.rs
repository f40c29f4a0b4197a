//! What a session of starts says; `experiment.json` holds it (docs/experiment.md).

use super::starts::{ReplicaFigures, Together};
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::ExperimentVerdict;
use serde::{Deserialize, Serialize};

/// What [`super::judge`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What the session is worth.
    pub quality: SessionQuality,
    /// Every variant but the base, against the base.
    pub variants: Vec<VariantCompared>,
}

/// What the session says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionQuality {
    /// Whether its verdicts can be relied on; none where no A/A pair was measured.
    pub reliable: Option<bool>,
    /// A/A pairs that were measured.
    pub aa_pairs: usize,
    /// Throughput of the second start over that of the first of two starts of the same variant, over the whole ladder.
    pub aa_interval: Option<Estimate>,
    /// Throughput at the end of the session over that at its start, whatever was measured.
    pub drift: Option<Estimate>,
    /// The equivalence margin over the whole ladder: the one that was asked for, or half of the width of the A/A interval.
    pub margin: f64,
    /// Why it is not to be relied on.
    pub caveats: Vec<String>,
}

/// One variant against the base.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantCompared {
    /// Its place in the plan.
    pub variant: usize,
    /// Geometric mean of the ratios over the ladder; none without a pair that has all of it.
    pub overall: Option<Compared>,
    /// The rungs of that mean.
    pub overall_rungs: Vec<u32>,
    /// By rising connections.
    pub rungs: Vec<RungCompared>,
    /// Whether it scales better (true) or worse than the base, where that is beyond chance and there is a difference at all.
    pub scales: Option<bool>,
    /// Its ratio at the last rung over its ratio at the first.
    pub scaling_ratio: Option<Estimate>,
    /// Whether the load came at a rate of its own or with pauses: then equal throughput is what was offered, and no verdict.
    pub open_loop: bool,
}

/// A ratio of the variant over the base and what it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// Pairs of starts behind it.
    pub pairs: usize,
    /// Throughput of the variant over that of the base.
    pub ratio: Estimate,
    /// Probability of such a ratio where nothing differs (Student's t on the log-ratios).
    pub p: Option<f64>,
    /// The same as it counts where all rungs and variants were looked at (Holm); the verdict is by this.
    pub adjusted_p: Option<f64>,
    /// The same by the exact sign-flip test, which supposes no distribution; not adjusted.
    pub sign_flip_p: Option<f64>,
    /// Differences up to this share do not matter or cannot be told from the session's own.
    pub margin: f64,
    /// The word for it.
    pub verdict: ExperimentVerdict,
}

/// One rung of a variant against the base. All ratios are the variant's over the base's, with intervals from the pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RungCompared {
    /// Its connections.
    pub connections: u32,
    /// Throughput; none where no pair has the rung.
    pub throughput: Option<Compared>,
    /// CPU seconds of the server per transaction.
    pub cpu_seconds_per_txn: Option<Estimate>,
    /// Context switches of the server per transaction.
    pub switches_per_txn: Option<Estimate>,
    /// Median of the latency; of the response time where the load comes at a rate of its own.
    pub p50: Option<Estimate>,
    /// Its 99th percentile.
    pub p99: Option<Estimate>,
    /// Where the change comes from, by the iron law; none where CPU time was not measured.
    pub change: Option<Change>,
    /// Whether the client set the limit in most pairs, so that the ratio says little of the server; then it is not part of the figure
    /// over the whole ladder.
    pub client_limited: bool,
}

/// ln of the variant's throughput over the base's by the factors of the iron law: utilisation, CPU
/// seconds and residual add up to throughput; clock, instructions and cycles per instruction, where
/// there are hardware counters, to CPU seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Change {
    pub throughput: f64,
    pub utilisation: f64,
    pub cpu_seconds: f64,
    pub clock: Option<f64>,
    pub instructions: Option<f64>,
    pub cycles_per_instruction: Option<f64>,
    pub residual: f64,
}

/// How an experiment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentState {
    /// It runs, or was killed before it could say otherwise.
    Running,
    /// All pairs were measured, or enough of them for the precision that was asked for.
    Complete,
    /// The user stopped it; `experiment resume` continues it.
    Interrupted,
    /// It could not go on.
    Failed,
}

/// `experiment.json`: a whole experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Version of this layout; 2.
    pub schema: u32,
    /// Version of scaleprof.
    pub scaleprof: String,
    /// Its name.
    pub name: String,
    /// What it asks, in the words of its plan.
    pub question: Option<String>,
    /// How it stands.
    pub state: ExperimentState,
    /// Why it could not go on.
    pub problem: Option<String>,
    /// When its first start began, RFC 3339 in UTC.
    pub started_at: Option<String>,
    /// How it was measured.
    pub design: DesignTold,
    /// The load, as in a bundle's manifest; none before the first start.
    pub workload: Option<scaleprof_bundle::Workload>,
    /// The machine.
    pub machine: Option<scaleprof_bundle::Machine>,
    /// What was compared, in the order of the plan.
    pub variants: Vec<VariantTold>,
    /// What the session is worth.
    pub session: SessionQuality,
    /// Every variant against the base.
    pub comparisons: Vec<ComparisonTold>,
    /// What the reader should know before believing the figures.
    pub warnings: Vec<String>,
}

/// How an experiment was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignTold {
    /// Rungs, in connections.
    pub connections: Vec<u32>,
    /// Seconds at each rung of a start.
    pub seconds: u32,
    /// How long a slice is where starts run side by side, seconds; none where one came after the
    /// other.
    pub slice_seconds: Option<f64>,
    /// The most pairs of every variant and the base.
    pub max_pairs: u32,
    /// Rounds that were measured; a round is every variant once.
    pub rounds: u32,
    /// Half of the width of the interval at which it ends before that; none where all pairs are measured.
    pub target_half_width: Option<f64>,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Whether there are too few pairs for a verdict that counts.
    pub indicative: bool,
    /// Seed of the order.
    pub seed: u64,
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantTold {
    /// Its name.
    pub name: String,
    /// Whether others are held against it.
    pub base: bool,
    /// What sets it apart, in words such as `innodb_sync_array_size=64`.
    pub differs_by: Vec<String>,
    /// The server; none where it never started.
    pub server: Option<scaleprof_bundle::Server>,
    /// Its load, as in a bundle's manifest; none where it never started.
    pub workload: Option<scaleprof_bundle::Workload>,
    /// Starts that were measured in rounds.
    pub replicates: usize,
    /// Why it takes no part any more, in the server's own words where it has said some.
    pub dropped_reason: Option<String>,
    /// Its own figures, by rising connections.
    pub rungs: Vec<VariantRung>,
}

/// A rung of a variant: geometric means over its starts in rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantRung {
    /// Its connections.
    pub connections: u32,
    /// Transactions per second; the interval holds what drifts too, so that of a ratio is narrower.
    pub throughput: Estimate,
    /// CPU seconds of the server per transaction.
    pub cpu_seconds_per_txn: Option<f64>,
    /// Context switches of the server per transaction.
    pub switches_per_txn: Option<f64>,
    /// Median of the latency, milliseconds.
    pub p50_ms: Option<f64>,
    /// Its 99th percentile.
    pub p99_ms: Option<f64>,
    /// How its replicas followed, by their numbers: means over the starts. Empty where none do.
    pub replicas: Vec<ReplicaFigures>,
    /// The server and its neighbours together, the geometric mean over the starts; none where it has none.
    pub combined_throughput: Option<Together>,
}

/// A variant against the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonTold {
    /// Name of the base.
    pub base: String,
    /// Name of the variant.
    pub variant: String,
    /// Whether the transactions of both are the same; where they are not, more of them a second is not faster.
    pub same_work: bool,
    /// Whether the load came at a rate of its own or with pauses, so that equal throughput does not say how much either can do.
    pub open_loop: bool,
    /// One sentence for a person.
    pub sentence: String,
    /// Geometric mean of the ratios over the ladder.
    pub overall: Option<Compared>,
    /// The rungs of that mean.
    pub overall_rungs: Vec<u32>,
    /// `better` or `worse` where the variant keeps more or less of its lead with more connections, beyond chance.
    pub scales: Option<&'static str>,
    /// Its ratio at the last rung over its ratio at the first.
    pub scaling_ratio: Option<Estimate>,
    /// By rising connections.
    pub rungs: Vec<RungCompared>,
    /// What `scaleprof diff` says of one watched run of either: states, call paths, settings; none where there is none.
    pub watched: Option<crate::comparison::Comparison>,
    /// Why there is none.
    pub not_watched: Option<String>,
}
