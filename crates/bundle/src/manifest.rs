//! What was run, on what, and how it ended.

use crate::public_text::without_folders;
use scaleprof_vocabulary::{LoopWord, RunState, WorkloadName};
use serde::{Deserialize, Serialize};

/// `manifest.json`: everything that is needed to repeat the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the bundle's layout: [`SCHEMA`](crate::SCHEMA).
    pub schema: u32,
    /// Version of scaleprof that wrote it.
    pub scaleprof: String,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// When it ended; none while it runs or if it was killed.
    pub ended_at: Option<String>,
    /// How it stands.
    pub state: RunState,
    /// Why it failed or stopped, in words that hold no query text, value or table name.
    pub problem: Option<String>,
    /// The command that repeats it, without passwords and paths.
    pub command: Vec<String>,
    /// The server under test.
    pub server: Server,
    /// The load.
    pub workload: Workload,
    /// The machine.
    pub machine: Machine,
    /// The ladder.
    pub ladder: Ladder,
    /// Figures that could not be measured, each with its reason.
    pub missing: Vec<Missing>,
    /// Things that the reader should know before believing the figures.
    pub warnings: Vec<String>,
}

/// What stands for a word that is not known.
pub const UNKNOWN: &str = "unknown";

impl Manifest {
    /// As it is written: of paths in its words only the last part is kept.
    pub(crate) fn without_folders(&self) -> Manifest {
        let mut manifest = self.clone();
        let words = manifest.problem.iter_mut().chain(&mut manifest.warnings);
        for text in words.chain(manifest.missing.iter_mut().map(|missing| &mut missing.reason)) {
            *text = without_folders(text);
        }
        manifest
    }

    /// How many CPUs the server had, as far as is known: of a recording those of its machine.
    #[must_use]
    pub fn server_cpus(&self) -> Option<u32> {
        let of_machine = self.machine.cpus.filter(|_| self.workload.imported().is_some());
        self.server.cpu_count.or(of_machine)
    }
}

/// Option of a workload whose recording tells shares and no time.
pub const SHARES_ONLY: &str = "shares_only";

/// Option of a workload that says what recordings of other tools it comes from.
pub const IMPORTED: &str = "imported";

/// Option of a workload that says how the call paths of its recordings were taken, such as `frame pointers`; more than one way
/// separated by `; `.
pub const CALL_PATHS: &str = "call_paths";

/// Option of a workload that says whether functions that the compiler built into others are told apart in its recordings, where scaleprof
/// gave the names.
pub const BUILT_IN: &str = "built_in_functions";

/// The server under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// `MariaDB`, `MySQL` or `Percona Server`.
    pub product: String,
    /// As the server says it, such as `10.11.19-MariaDB`.
    pub version: String,
    /// Build-id of the binary in hexadecimal, where it has one.
    pub build_id: Option<String>,
    /// File name of the binary, without its folder; none for a server that was attached to from afar.
    pub binary: Option<String>,
    /// CPUs that the server was confined to, as a list such as `0-3`; none when it may use all.
    pub cpus: Option<String>,
    /// How many CPUs the server may use; none where its process cannot be seen.
    pub cpu_count: Option<u32>,
    /// Whether it shares some of them with the client; none where that cannot be known.
    pub shares_cpus_with_client: Option<bool>,
}

impl Server {
    /// Product and version as people say them; the binary's name where only that is known, as of a recording.
    #[must_use]
    pub fn named(&self) -> String {
        let known = |word: &str| word != UNKNOWN;
        match (&self.binary, known(&self.product)) {
            (_, true) if known(&self.version) => format!("{} {}", self.product, self.version),
            (_, true) => self.product.clone(),
            (Some(binary), false) => binary.clone(),
            (None, false) => "a server of unknown product".to_owned(),
        }
    }
}

/// The load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// What the connections ran.
    pub name: WorkloadName,
    /// The name that was given at import; `None` for loads of scaleprof, and if no name was given.
    #[serde(default)]
    pub imported_as: Option<String>,
    /// How many tables; none for a script.
    pub tables: Option<u32>,
    /// Rows a table; none for a script.
    pub rows: Option<u64>,
    /// `uniform`, `special`, `pareto`, `zipfian`, `gaussian` or `zipfian-scrambled`.
    pub distribution: String,
    /// `text` or `binary`.
    pub protocol: String,
    /// Isolation level that the connections ask for; none for the server's default.
    pub isolation: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// When a connection starts its next transaction; `None` if the load is unknown.
    pub loop_kind: Option<LoopWord>,
    /// Further options as name and value.
    pub options: Vec<(String, String)>,
}

impl Workload {
    /// The load as people are shown it.
    #[must_use]
    pub fn title(&self) -> &str {
        self.imported_as.as_deref().unwrap_or_else(|| self.name.label())
    }

    /// What it was made from where another tool recorded it: format and event, such as `perf.data, cpu-clock`.
    #[must_use]
    pub fn imported(&self) -> Option<&str> {
        self.option(IMPORTED)
    }

    /// How the call paths of its recordings were taken, where that is known.
    #[must_use]
    pub fn call_paths(&self) -> Option<&str> {
        self.option(CALL_PATHS)
    }

    /// Whether functions that were built into others are told apart in its recordings, in words, where that is known.
    #[must_use]
    pub fn built_in(&self) -> Option<&str> {
        self.option(BUILT_IN)
    }

    fn option(&self, wanted: &str) -> Option<&str> {
        let option = self.options.iter().find(|(name, _)| name == wanted);
        option.map(|(_, of)| of.as_str())
    }

    /// Whether the samples of a recording do not say how much time they stand for, so that only shares are known.
    #[must_use]
    pub fn has_shares_only(&self) -> bool {
        self.options.iter().any(|(name, _)| name == SHARES_ONLY)
    }
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// CPU model as the kernel prints it.
    pub cpu_model: String,
    /// CPUs online; none where that is not known, as of a recording that does not tell it.
    pub cpus: Option<u32>,
    /// NUMA nodes; none where that is not known.
    pub numa_nodes: Option<u32>,
    /// Memory, bytes; none where that is not known.
    pub memory_bytes: Option<u64>,
    /// Release of the kernel.
    pub kernel: String,
    /// Such as `x86_64`.
    pub architecture: String,
    /// Distribution, such as `Debian GNU/Linux 12 (bookworm)`.
    pub distribution: Option<String>,
    /// Hypervisor, where one shows.
    pub hypervisor: Option<String>,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// Clock source.
    pub clock_source: Option<String>,
    /// Setting of transparent huge pages.
    pub transparent_huge_pages: Option<String>,
    /// What one PAUSE (ISB on aarch64) took when the run began, nanoseconds: the unit in which servers measure how long they spin.
    pub pause_nanoseconds: Option<f64>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// Rungs as asked, in connections.
    pub connections: Vec<u32>,
    /// Rungs that refinement added.
    pub refined: Vec<u32>,
    /// Seconds a measurement.
    pub seconds: u32,
    /// Measurements a rung.
    pub repeats: u32,
    /// Connections that idle beside the working ones.
    pub idle_connections: u32,
    /// Transactions per second that are offered; none in the closed loop.
    pub rate: Option<f64>,
    /// With whom it was interleaved on the machine; none where it had it to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaving: Option<Interleaving>,
}

/// Interleaved runs: the server of each was paused during the slices of the others. Seconds are
/// those of its own slices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interleaving {
    /// How many they were.
    pub runs: u32,
    /// Length of a slice, seconds.
    pub seconds: f64,
}

/// A figure that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which figure, such as `iron_law.instructions_per_txn`.
    pub figure: String,
    /// Why, and what would give it.
    pub reason: String,
}
