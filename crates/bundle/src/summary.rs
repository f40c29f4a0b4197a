//! `summary.json`, the stable face for scripts: additions are allowed, changes of meaning are not.
//!
//! A figure that could not be measured is null, and `missing` says why.

use crate::{CallPath, Ledger, LockSummary, Missing, Remedy, RemedyResult, ScalingProfile, WatchSummary};
use scaleprof_vocabulary::{FindingKind, LadderVerdict, ShareOf, ThreadState, TpccTransaction};
use serde::{Deserialize, Serialize};

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower limit; none where there are too few blocks to tell.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
}

/// The whole summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of this layout: [`SCHEMA`](crate::SCHEMA).
    pub schema: u32,
    /// As in the manifest.
    pub server: crate::Server,
    /// As in the manifest.
    pub workload: crate::Workload,
    /// As in the manifest.
    pub machine: crate::Machine,
    /// One entry a rung, by rising connections.
    pub rungs: Vec<RungSummary>,
    /// What it comes to; none with fewer than one measured rung.
    pub verdict: Option<Verdict>,
    /// The Universal Scalability Law, only where it fits.
    pub usl: Option<Usl>,
    /// Why the law is not shown, where it is not.
    pub usl_unavailable: Option<String>,
    /// What a running server's threads did under a load that is not ours (`attach --pid`); none for a run. There are no rungs
    /// then and no verdict.
    pub watch: Option<WatchSummary>,
    /// How fast its replicas can follow; empty where none do.
    pub replay_rates: Vec<ReplaySpeed>,
    /// What the server and its neighbours came to together, in a sentence; none where there are none.
    pub combined_throughput: Option<String>,
    /// Where the threads go that are added and gain nothing; none where fewer than two rungs were watched.
    pub scaling: Option<ScalingProfile>,
    /// Why throughput is lost, the gravest first; empty where nothing beyond chance was found.
    pub findings: Vec<Finding>,
    /// How much of what is lost they explain, an entry an account; empty where a transaction takes no more than elsewhere.
    pub explained: Vec<Explained>,
    /// Which rungs are compared with which in this summary, and why; none with fewer than two that count.
    pub base_rungs: Option<String>,
    /// What a commit is not worth, where a crash may lose what was committed, with the settings that make it so.
    pub durability: Option<String>,
    /// Why no causes were looked for; none where they were. A finding may be there all the same: some need no comparison.
    pub findings_unavailable: Option<String>,
    /// Figures that could not be measured.
    pub missing: Vec<Missing>,
    /// Warnings of the run and of the analysis.
    pub warnings: Vec<String>,
}

impl Summary {
    /// The last rung that is judged: where the client was the limit, a rung tells of the client. Of all where none is.
    pub fn last_judged(&self) -> Option<&RungSummary> {
        let judged = self.rungs.iter().rfind(|rung| !rung.client_limited);
        judged.or(self.rungs.last())
    }
}

/// One cause of lost throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of trouble it is.
    pub kind: FindingKind,
    /// One sentence for a person.
    pub title: String,
    /// The part of what a transaction costs at the last rung that it makes up: of its CPU time while the CPUs are busy, of the
    /// connections' time while they idle.
    pub lost_share: Estimate,
    /// What `lost_share` is a part of.
    pub share_of: ShareOf,
    /// The rungs that were compared, in connections.
    pub rungs: [u32; 2],
    /// Functions, outermost first; those of the kernel end in ` [k]`. The heaviest path where it has several.
    pub path: Vec<String>,
    /// What speaks for it.
    pub evidence: Vec<String>,
    /// What may help.
    #[serde(rename = "try")]
    pub suggestions: Vec<String>,
    /// Those of them that are settings, as data.
    pub remedies: Vec<Remedy>,
    /// What the settings came to where they were tried (`run --try`); empty where they were not.
    pub remedy_results: Vec<RemedyResult>,
}

/// How much of what a transaction takes more than at the rung that it is compared with the findings explain, in one account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Of which time: `cpu_time` or `connection_time`.
    pub account: ShareOf,
    /// The rungs that were compared, in connections.
    pub rungs: [u32; 2],
    /// What a transaction takes more at the second than at the first, seconds.
    pub lost_seconds_per_txn: f64,
    /// The part of it that the findings of this account tell, nothing twice. Above 1 where other paths got cheaper.
    pub explained_share: Estimate,
    /// The rest: 1 less that, at least 0.
    pub unexplained_share: f64,
    /// The part of all that a transaction takes more that is spent waiting for a CPU, and outside the server; none in the account
    /// of CPU time.
    pub waiting_for_cpu_share: Option<f64>,
    /// See above.
    pub outside_server_share: Option<f64>,
    /// The call path without a finding that grew most; none where no path holds 1 % of it.
    pub heaviest: Option<UnexplainedPath>,
    /// One sentence for a person.
    pub sentence: String,
}

/// A call path whose time per transaction grew and that no finding tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnexplainedPath {
    /// The state.
    pub state: ThreadState,
    /// Functions, outermost first; those of the kernel end in ` [k]`.
    pub path: Vec<String>,
    /// Its part of what a transaction takes more.
    pub share: f64,
}

/// One rung: all its measurements together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RungSummary {
    /// Connections that run transactions.
    pub connections: u32,
    /// Measurements that count.
    pub repeat_count: u32,
    /// Transactions per second.
    pub throughput: Estimate,
    /// Service time of a transaction, milliseconds.
    pub latency_ms: Latency,
    /// Response time from the intended start; only in the open loop.
    pub response_ms: Option<Latency>,
    /// Errors by number.
    pub errors: std::collections::BTreeMap<String, u64>,
    /// Whether throughput settled in every measurement.
    pub steady: bool,
    /// Why not, where not.
    pub unsteady_reason: Option<String>,
    /// Largest relative difference between the two halves of a measured window (TPC-C's jitter).
    pub jitter: Option<f64>,
    /// Seconds from the first transaction to the end of the last, where every connection runs its
    /// script once; the mean of the measurements.
    pub finished_seconds: Option<f64>,
    /// Seconds cut as warm-up, a figure a measurement.
    pub warmup_seconds: Vec<u32>,
    /// Whether the client, not the server, set the limit.
    pub client_limited: bool,
    /// Why, where so.
    pub client_limited_reason: Option<String>,
    /// X·R/N: 1 when every connection was always inside a transaction; none in the open loop.
    pub littles_law_ratio: Option<f64>,
    /// Connections that were at work in the server on average: all less those that waited for the load generator (its CPU time, its wait
    /// for a CPU, the network). None where threads were not watched, and where connections rest of their own accord.
    pub effective_concurrency: Option<f64>,
    /// Whether so few were that the rung says nothing of so many connections.
    pub too_few_at_work: bool,
    /// What the load threads did with their time, which says why connections wait for them. None
    /// where the kernel does not tell.
    pub load_threads: Option<LoadThreads>,
    /// CPUs that the client used.
    pub client_cpus: Option<f64>,
    /// Share of the machine's CPU time taken by other programs.
    pub noise_cpu_share: Option<f64>,
    /// Share of the machine's CPU time stolen by the hypervisor.
    pub steal_share: Option<f64>,
    /// Share of the machine's CPU time in which no CPU was idle, whoever used it.
    pub busy_share: Option<f64>,
    /// The iron law; none where the server's CPU time is unknown.
    pub iron_law: Option<IronLaw>,
    /// Context switches of the server per transaction.
    pub context_switches_per_txn: Option<f64>,
    /// Other counters per transaction, by counter name.
    pub per_txn: std::collections::BTreeMap<String, f64>,
    /// Service time of each statement of a script, in its order; empty for other workloads.
    pub statements: Vec<StatementLatency>,
    /// Service time of each kind of transaction, where the workload has several; empty for others.
    pub transactions: Vec<TransactionLatency>,
    /// How throughput went over a long measurement, of several the least even; none where all took
    /// less than five minutes.
    pub long_run: Option<crate::LongRun>,
    /// TPC-C's own figures; none for other workloads.
    pub tpcc: Option<TpccFigures>,
    /// What its replicas did, by their numbers; empty where none follow it.
    pub replicas: Vec<ReplicaSummary>,
    /// Transactions per second of the servers beside it that bore the same load, by their numbers; empty where there are none.
    pub neighbours: Vec<Estimate>,
    /// The thread ledger; none where the server's threads were not watched.
    pub ledger: Option<Ledger>,
    /// The heaviest call paths of the connections' threads, the heaviest first.
    pub paths: Vec<CallPath>,
    /// The locks for which the connections' threads waited longest, the worst first.
    pub locks: Vec<LockSummary>,
}

/// What the threads of the load generator did with their time; the rest of it they slept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadThreads {
    /// How many there are.
    pub count: u32,
    /// Share of their time that they were on a CPU.
    pub cpu_share: f64,
    /// Share of their time that they were ready to run and waited for a CPU (`/proc/PID/task/TID/schedstat`).
    pub run_queue_share: f64,
}

/// How one replica followed at a rung. Transactions here are those that change something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSummary {
    /// Its number, from 1.
    pub replica: u32,
    /// Transactions that the source committed in a second.
    pub committed_per_second: Estimate,
    /// Transactions that it replayed in a second while the load ran.
    pub replayed_per_second: Estimate,
    /// By how many transactions it fell further behind in a second; about 0 where it keeps up.
    pub lag_growth_per_second: Estimate,
    /// Whether it keeps up; none where the rung is too short to tell.
    pub keeps_up: Option<bool>,
    /// Transactions that it was behind at the end; of several measurements the most.
    pub lag_transactions: Option<f64>,
    /// In how many seconds the source commits as many.
    pub lag_seconds: Option<f64>,
    /// Part of the time in which the cluster held its commits back for the slowest of its nodes (Galera's flow control); none where it
    /// is not told.
    pub flow_control_share: Option<f64>,
    /// Transactions that it replayed in a second when the load had ended, until it had caught up; none where it was not far behind.
    pub catch_up_per_second: Option<f64>,
}

/// How fast one replica can follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySpeed {
    /// Its number, from 1.
    pub replica: u32,
    /// The balanced replay speed, the highest rate at which it does not fall behind, transactions per second: the highest that was met.
    pub sustained_per_second: Estimate,
    /// Whether that is a lower bound: it kept up there, and nothing was held back for it. None where it cannot be told whether it keeps up.
    pub is_lower_bound: Option<bool>,
    /// The rung at which that was met.
    pub connections: u32,
    /// The first rung at which it falls behind.
    pub falls_behind_at: Option<u32>,
    /// One sentence for a person.
    pub sentence: String,
}

/// Service time of one statement of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementLatency {
    /// Such as `statement 2 (SELECT)`; never its text.
    pub statement: String,
    /// How often it was answered in the measured window.
    pub count: u64,
    /// Its service time, milliseconds.
    pub latency_ms: Latency,
}

/// Service time of one kind of transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransactionLatency {
    /// Which kind.
    pub transaction: TpccTransaction,
    /// How many ended in the measured window.
    pub count: u64,
    /// Its service time, milliseconds.
    pub latency_ms: Latency,
}

/// What TPC-C counts beside transactions of all kinds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TpccFigures {
    /// New-Orders per minute, those that were rolled back as planned among them (clause 5.4).
    pub tpmc: Estimate,
    /// tpmC over 12.86 a warehouse (clause 4.2.2).
    pub nominal_share: f64,
    /// Whether that is a limit: only where users type and read as long as the specification has it.
    pub nominal_is_limit: bool,
    /// Share of the New-Orders that were rolled back as planned: 1 % (clause 2.4.1.4).
    pub rolled_back_share: Option<f64>,
}

/// Percentiles of a latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Latency {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// X = C · U · f / (I · K), DESIGN section 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IronLaw {
    /// C, CPUs that the server may use.
    pub cpus: f64,
    /// U, the part of them that the server used.
    pub utilisation: f64,
    /// f, cycles per second of a busy CPU.
    pub clock_hz: Option<f64>,
    /// I, user and kernel.
    pub instructions_per_txn: Option<f64>,
    /// K.
    pub cycles_per_instruction: Option<f64>,
    /// I·K/f, or measured as one where there are no hardware counters.
    pub cpu_seconds_per_txn: f64,
    /// Of the server's CPU time, the part in the kernel.
    pub system_share: Option<f64>,
    /// Right side over the measured throughput, less 1.
    pub residual: Option<f64>,
    /// Which independent measurements the residual compares, in words.
    pub residual_sources: Option<String>,
}

/// What the run comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer in one word.
    pub class: LadderVerdict,
    /// Rung of the best throughput.
    pub peak_connections: u32,
    /// Its throughput.
    pub peak_throughput: Estimate,
    /// Rungs with at least 95 % of it: the lowest and the highest that are joined to the peak.
    pub peak_band: (u32, u32),
    /// Throughput at the last rung over that at the peak.
    pub retention: Option<Estimate>,
    /// First rung after the peak that lost more than 5 % beyond doubt.
    pub falls_over_at: Option<u32>,
    /// b in X ~ N^-b past the peak; positive when throughput falls.
    pub decay_exponent: Option<Estimate>,
    /// The log-change between the peak and the last rung by its four names.
    pub decomposition: Option<Decomposition>,
    /// One sentence for a person.
    pub sentence: String,
}

/// ln X(to) - ln X(from) by the factors of the iron law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decomposition {
    /// Rung of the start.
    pub from: u32,
    /// Rung of the end.
    pub to: u32,
    /// The whole change.
    pub throughput: f64,
    /// Part of utilisation.
    pub utilisation: f64,
    /// Part of the clock.
    pub clock: Option<f64>,
    /// Part of instructions per transaction (negative when there are more).
    pub instructions: Option<f64>,
    /// Part of cycles per instruction.
    pub cycles_per_instruction: Option<f64>,
    /// Part of CPU seconds per transaction: the three above together.
    pub cpu_seconds: f64,
    /// What is left over.
    pub residual: f64,
}

/// X(N) = γN / (1 + σ(N-1) + κN(N-1)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// γ, transactions per second of one connection.
    pub gamma: Estimate,
    /// σ.
    pub sigma: Estimate,
    /// κ.
    pub kappa: Estimate,
    /// Connections at the top of the curve, where κ is surely above 0.
    pub peak_connections: Option<Estimate>,
    /// Worst relative residual.
    pub worst_residual: f64,
}
