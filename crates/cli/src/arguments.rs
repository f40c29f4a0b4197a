//! The commands and their options.

use crate::address_arguments::{AccountArguments, AddressArguments, ConsentArguments};
use crate::choice::{TRANSPORTS, one_of};
use crate::experiment_arguments::ExperimentArguments;
use crate::export_arguments::ExportArguments;
use crate::global_arguments::GlobalArguments;
use crate::import_arguments::ImportArguments;
use crate::load_arguments::{LadderArguments, LoadArguments, ResultArguments};
use crate::probe_arguments::ProbeArguments;
use crate::servers_arguments::ServersArguments;
use crate::tls_arguments::TlsArguments;
use crate::topology_arguments::TopologyArguments;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Finds out why a MySQL or MariaDB server stops gaining throughput as connections are added.
#[derive(Debug, Parser)]
#[command(
    name = "scaleprof",
    version,
    about,
    max_term_width = 110,
    arg_required_else_help = true,
    after_long_help = "\
Exit codes:
  0              done, whatever was found
  1              failed; what was measured is kept
  2              the command line cannot be read, or consent is missing: nothing was begun
  3              check: something is missing without which a run cannot work
  130, 143, 129  stopped by SIGINT, SIGTERM, SIGHUP

Environment:
  SCALEPROF_WORK_DIR    folder of private servers' files, as --work-dir
  SCALEPROF_CACHE_SIZE  prepared tables that are kept, as --cache-size
  SCALEPROF_SERVERS     folder of fetched server builds
  SCALEPROF_PASSWORD    the account's password
  DEBUGINFOD_URLS       where debug information is fetched from
  NO_COLOR              no colours"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load a server at rising connections: does it scale, and why not
    Run(Box<RunArguments>),
    /// Watch a running server, without load: what does it wait for
    Attach(Box<AttachArguments>),
    /// Show a bundle again: page, text, JSON or bug report
    Report(ReportArguments),
    /// Compare two bundles per transaction
    Diff(DiffArguments),
    /// Compare server builds or settings in interleaved runs
    Experiment(Box<ExperimentArguments>),
    /// Write call paths for pprof, flamegraph.pl, speedscope or Firefox
    Export(ExportArguments),
    /// Make a bundle from perf.data, perf script, folded stacks or pprof
    Import(ImportArguments),
    /// Check what this machine allows; print the fix for what is missing
    Check(CheckArguments),
    /// List loops of a binary that wait for another thread
    #[command(name = "spinloops")]
    SpinLoops(SpinLoopsArguments),
    /// Show the instructions of a function with their CPU time
    Annotate(AnnotateArguments),
    /// List variables that share a cache line with written ones
    #[command(name = "cachelines")]
    CacheLines(CacheLinesArguments),
    /// Measure the overhead of scaleprof itself
    Selfbench(SelfbenchArguments),
    /// List, fetch and remove server builds
    Servers(ServersArguments),
    /// List and remove prepared data
    Cache(CacheArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SpinLoopsArguments {
    /// An executable or a library, for x86-64 or aarch64; stripped or not
    pub(crate) binary: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists variables of a binary that share a cache line with written ones.
///
/// Reads and writes come from the machine code, addresses from the symbols, members from the debug
/// information. Two neighbours are only a candidate for false sharing. With --bundle, the list shows
/// whether the loads take CPU time, and more of it with more connections.
#[derive(Debug, Args)]
pub(crate) struct CacheLinesArguments {
    /// An executable or a library, for x86-64 or aarch64, with symbols or a debug file
    pub(crate) binary: PathBuf,
    /// A run of this binary: the CPU time of its loads and stores per transaction, at two rungs
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) bundle: Option<PathBuf>,
    /// Bytes of a cache line
    #[arg(long, value_name = "BYTES", default_value = "64")]
    pub(crate) line_size: LineSize,
    /// Show all lines, not only the ten most severe or, with --bundle, those with measured CPU time
    #[arg(long)]
    pub(crate) all: bool,
    /// Count the writes of a running process of this binary to what is shown, with the CPU's
    /// watchpoints. Each write costs the process an exception, so counting ends early where writes
    /// are frequent
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count_writes: Option<u32>,
    /// With --count-writes: seconds for each variable
    #[arg(long, value_name = "S", default_value_t = 0.2, requires = "count_writes", value_parser = watch_seconds)]
    pub(crate) seconds: f64,
    /// Another build: does it have the same neighbours in one line?
    #[arg(long, value_name = "OTHER_BINARY")]
    pub(crate) compare: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn watch_seconds(text: &str) -> Result<f64, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| (0.01..=10.0).contains(seconds));
    seconds.ok_or_else(|| "from 0.01 to 10 seconds".to_owned())
}

/// Bytes of a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LineSize {
    /// x86-64 and most aarch64
    #[value(name = "64")]
    Usual,
    /// POWER, Apple, and the pairs of lines that x86 fetches together
    #[value(name = "128")]
    Pair,
    /// s390x
    #[value(name = "256")]
    Large,
}

impl LineSize {
    pub(crate) fn bytes(self) -> u32 {
        match self {
            LineSize::Usual => 64,
            LineSize::Pair => 128,
            LineSize::Large => 256,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AnnotateArguments {
    /// A bundle, with CPU times and the machine code of its hot functions; or an executable or
    /// library
    #[arg(value_name = "BUNDLE|BINARY")]
    pub(crate) subject: PathBuf,
    /// The function, a part of its name, or MODULE!FUNCTION, such as libc.so.6!memcpy. Without it,
    /// the functions with the most CPU time are listed
    pub(crate) function: Option<String>,
    /// Executable or library with the machine code of a function that the bundle does not keep
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
    /// Connections of the rung to show [default: the last]
    #[arg(long, value_name = "N")]
    pub(crate) rung: Option<u32>,
    /// Connections of the base rung [default: where a transaction took least CPU time]
    #[arg(long, value_name = "N")]
    pub(crate) base_rung: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Loads a private server, or a running one, at rising connections, and says whether it scales, and
/// why not.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) private: PrivateServerArguments,
    #[command(flatten)]
    pub(crate) topology: TopologyArguments,
    #[command(flatten)]
    pub(crate) address: AddressArguments,
    #[command(flatten)]
    pub(crate) account: AccountArguments,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
    #[command(flatten)]
    pub(crate) consent: ConsentArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) ladder: LadderArguments,
    #[command(flatten)]
    pub(crate) probe: ProbeArguments,
    /// Do not watch the server's threads: no states, no stacks, no locks
    #[arg(long, help_heading = "Probe")]
    pub(crate) no_probe: bool,
    #[command(flatten)]
    pub(crate) result: ResultArguments,
    /// Test up to four advised settings after the run, about 2 min each; findings show each measured
    /// effect with its interval
    #[arg(long = "try", help_heading = "Result", conflicts_with = "address")]
    pub(crate) try_remedies: bool,
}

/// The private server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Private server (the default)")]
#[group(id = "private_server", multiple = true, conflicts_with = "address")]
pub(crate) struct PrivateServerArguments {
    /// An unpacked BASEDIR, a mysqld or mariadbd binary, or the name of a build that `scaleprof
    /// servers` lists [default: the distribution's server]
    #[arg(long, value_name = "BUILD")]
    pub(crate) server: Option<PathBuf>,
    /// Setting of the server; can be given again
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Option file of the server, in place of the settings that scaleprof pins; --set overrides both
    #[arg(long, value_name = "FILE")]
    pub(crate) server_defaults_file: Option<PathBuf>,
    /// Size of the buffer pool, such as 4G [default: by memory and data]
    #[arg(long, value_name = "SIZE", value_parser = scaleprof_server::parse_bytes)]
    pub(crate) buffer_pool: Option<u64>,
    /// Switch the Performance Schema on (it lowers throughput)
    #[arg(long)]
    pub(crate) performance_schema: bool,
    /// CPUs of the server, such as 0-3,8 [default: by the machine]
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus_server: Option<scaleprof_server::CpuSet>,
    /// CPUs of the client
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus_client: Option<scaleprof_server::CpuSet>,
    /// Folder for the server's files [env: SCALEPROF_WORK_DIR] [default: a folder of the user's in /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Create the tables again and do not keep them for the next run
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Most disk space for prepared tables of later runs; the least recently used are removed first
    /// [env: SCALEPROF_CACHE_SIZE] [default: 10G]
    #[arg(long, value_name = "SIZE", value_parser = scaleprof_server::parse_bytes, conflicts_with = "no_cache")]
    pub(crate) cache_size: Option<u64>,
    /// Shut the server down at the end instead of killing it, for a build that writes a file at
    /// shutdown, such as a profile
    #[arg(long)]
    pub(crate) clean_shutdown: bool,
}

/// Watches a running server, without a load, an account or a table of ours: what do its threads
/// wait for, and what do they do?
#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// Process of the server [default: the only mysqld or mariadbd here]
    #[arg(long, short, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// Watch the process whatever it is called
    #[arg(long, requires = "pid")]
    pub(crate) any_process: bool,
    /// Hidden: its error names the command that loads a running server
    #[arg(long, short = 'S', value_name = "PATH", hide = true)]
    pub(crate) socket: Option<PathBuf>,
    /// Likewise
    #[arg(long, value_name = "DSN", hide = true)]
    pub(crate) dsn: Option<String>,
    /// Seconds to watch
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    #[command(flatten)]
    pub(crate) probe: ProbeArguments,
    #[command(flatten)]
    pub(crate) result: ResultArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The report is made again from the tables of the bundle, so a newer scaleprof may see more. Format html \
without --output also renews summary.json; other formats write nothing into the bundle.")]
pub(crate) struct ReportArguments {
    /// Folder of a bundle or an experiment; an unfinished experiment shows its results so far
    pub(crate) bundle: PathBuf,
    /// How to show it
    #[arg(long, value_enum, default_value = "html")]
    pub(crate) format: ReportFormat,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Where to write it; - for standard output [default: report.html in the bundle for html, else
    /// standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// One self-contained page
    Html,
    /// A table and the verdict
    Text,
    /// summary.json
    Json,
    /// A bug report for the developers of the server, in Markdown
    Bug,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Rungs that both runs have are compared. Measure each rung at least three times on both sides (--repeats 3): the scatter \
of the repeats decides what a difference is worth. The list holds call paths with a significant change (Holm correction, \
5 %). No time is counted twice. A uniform slowdown of all functions, as on a slower machine, is shown once and excluded.

'Slower everywhere' changed at the base rung as well; 'scales worse' changed more than there.

Runs of different workloads are refused: their transactions differ. Another machine, kernel or setting gives a warning.

    scaleprof diff before/ after/
    scaleprof diff before/ after/ --html diff.html
    scaleprof diff before/ after/ --rung 512 --json | jq .paths")]
pub(crate) struct DiffArguments {
    /// The bundle of the run before (A)
    pub(crate) before: PathBuf,
    /// The bundle of the run after (B)
    pub(crate) after: PathBuf,
    /// Connections of the rung whose call paths are shown [default: all that both have]
    #[arg(long, value_name = "N")]
    pub(crate) rung: Option<u32>,
    /// Connections of the base rung [default: the common one where a transaction takes least CPU
    /// time]
    #[arg(long, value_name = "N")]
    pub(crate) base_rung: Option<u32>,
    /// Compare runs of different workloads too
    #[arg(long)]
    pub(crate) any_workload: bool,
    /// Also write a page: curves, changes, and the flame graph of B coloured by growth since A. One
    /// file that works offline; the names of the two folders are all that is private in it
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 3: something that is `required` is missing, so a run cannot work. What is `missing` cannot be measured.")]
pub(crate) struct CheckArguments {
    /// Build to check: a BASEDIR, a binary or the name of a build [default: the distribution's server]
    #[arg(long, value_name = "BUILD")]
    pub(crate) server: Option<PathBuf>,
    /// Check a running server: sample it briefly and report how much of its CPU time has symbols
    #[arg(long, short, value_name = "PID", conflicts_with = "server")]
    pub(crate) pid: Option<u32>,
    /// With --pid: seconds to watch
    #[arg(long, value_name = "S", default_value_t = 3, requires = "pid", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Check a bundle: report how much of its CPU time has symbols, and how to get the missing ones
    #[arg(long, value_name = "BUNDLE", conflicts_with = "pid")]
    pub(crate) bundle: Option<PathBuf>,
    /// Connections that a run needs
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) connections: u32,
    /// Also print the log of libbpf and the verifier if the kernel refuses the BPF programs
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SelfbenchArguments {
    #[command(subcommand)]
    pub(crate) command: SelfbenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SelfbenchCommand {
    /// CPU time and throughput of the client, compared with sysbench
    Client(BenchArguments),
    /// Time to fill four tables, compared with sysbench prepare
    Fill {
        #[command(flatten)]
        bench: BenchArguments,
        /// Rows of each table
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        rows: u32,
    },
    /// Throughput while threads are watched, with BPF and without, compared with perf and bpftrace
    Watch {
        #[command(flatten)]
        bench: BenchArguments,
        /// Measure only scaleprof with BPF, for more slices in the same time. Each slice takes 5 s;
        /// --seconds has no effect
        #[arg(long)]
        alone: bool,
    },
    /// Run one load and print its figures (used by the others)
    #[command(hide = true)]
    LoadProcess(BenchLoadArguments),
}

/// What all benchmarks have.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Server to load: a BASEDIR, a binary or the name of a build [default: the distribution's server]
    #[arg(long, value_name = "BUILD")]
    pub(crate) server: Option<PathBuf>,
    /// Workloads, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "oltp_point_select,oltp_read_write"
    )]
    pub(crate) workload: Vec<scaleprof_workload::OltpWorkloadKind>,
    /// Connections, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16,64,512")]
    pub(crate) connections: Vec<u32>,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Measurements of each kind, interleaved
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) repeats: u32,
    /// Which system calls carry the packets
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = one_of::<scaleprof_workload::TransportChoice>(TRANSPORTS))]
    pub(crate) transport: scaleprof_workload::TransportChoice,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    pub(crate) command: Option<CacheCommand>,
    /// Folder of the server's files [default: as for run]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) work_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List prepared data folders, their total size and the limit
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove all prepared data
    Remove {
        /// Keep the most recently used data, up to this size
        #[arg(long, value_name = "SIZE", value_parser = scaleprof_server::parse_bytes)]
        keep: Option<u64>,
    },
    /// Print the folder of the prepared data
    Path,
}

#[derive(Debug, Args)]
pub(crate) struct BenchLoadArguments {
    #[arg(long)]
    pub(crate) socket: PathBuf,
    #[arg(long, default_value = "root")]
    pub(crate) user: String,
    #[arg(long)]
    pub(crate) workload: scaleprof_workload::OltpWorkloadKind,
    #[arg(long)]
    pub(crate) tables: u32,
    #[arg(long)]
    pub(crate) rows: u32,
    #[arg(long)]
    pub(crate) connections: u32,
    #[arg(long)]
    pub(crate) seconds: u32,
    /// Print when the load begins, and for every line that comes in the time (CLOCK_MONOTONIC, nanoseconds) and the transactions so far
    #[arg(long)]
    pub(crate) tell_counts: bool,
    #[arg(long, default_value = "auto")]
    pub(crate) transport: scaleprof_workload::TransportChoice,
    #[arg(long, default_value = "uniform")]
    pub(crate) distribution: scaleprof_workload::Distribution,
    #[arg(long, default_value = "binary")]
    pub(crate) protocol: scaleprof_workload::Protocol,
    /// Fill the tables instead, with so many threads
    #[arg(long)]
    pub(crate) fill: Option<u32>,
    /// One transaction on one connection, for comparing statements
    #[arg(long)]
    pub(crate) option: Vec<String>,
}
