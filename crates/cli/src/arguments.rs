//! The commands and their options.

use crate::company_arguments::CompanyArguments;
use crate::experiment_arguments::ExperimentArguments;
use crate::export_arguments::ExportArguments;
use crate::import_arguments::ImportArguments;
use crate::load_arguments::{LadderArguments, LoadArguments};
use crate::probe_arguments::ProbeArguments;
use crate::servers_arguments::ServersArguments;
use crate::tls_arguments::TlsArguments;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Finds out why a MySQL or MariaDB server stops gaining throughput as connections are added.
#[derive(Debug, Parser)]
#[command(
    name = "scaleprof",
    version,
    about,
    max_term_width = 110,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Climb a ladder of connections on a private server and say how it scales
    Run(Box<RunArguments>),
    /// Climb the ladder on a server that runs already, in a schema of our own; or, with --pid, only watch it
    Attach(Box<AttachArguments>),
    /// Show a bundle again: as a page, a table, JSON or a bug report
    Report(ReportArguments),
    /// Say what changed between two runs, per transaction: throughput, CPU, states, call paths, settings
    Diff(DiffArguments),
    /// Hold variants of a server against each other, start by start in turns, with an interval and a verdict for each rung
    Experiment(Box<ExperimentArguments>),
    /// Write the call paths of a bundle or a recording for pprof, flamegraph.pl, speedscope or the Firefox Profiler
    Export(ExportArguments),
    /// Make a bundle of recordings of perf, of folded stacks or pprof: flame graph, hot instructions, and with what is known of the load a scaling profile
    Import(ImportArguments),
    /// Say what this machine and server allow, and the command that fixes what is missing
    Check(CheckArguments),
    /// List the loops of a binary that wait for another thread, and what they should not do
    #[command(name = "spinloops")]
    SpinLoops(SpinLoopsArguments),
    /// Show a function's machine code with what every instruction costs a transaction at two rungs
    Annotate(AnnotateArguments),
    /// List the cache lines of a binary in which variables that are only read lie beside others that are written
    #[command(name = "cachelines")]
    CacheLines(CacheLinesArguments),
    /// Measure what scaleprof's client costs here, beside sysbench's where it is installed
    Selfbench(SelfbenchArguments),
    /// List, fetch and remove server builds: archives, URLs, Debian's and Ubuntu's packages, Maven artifacts
    Servers(ServersArguments),
    /// List or remove the prepared data folders, which are kept until a server needs their room on the disk
    Cache(CacheArguments),
    /// Print a script that completes commands and options in your shell
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
    /// Run one load and print its figures (used by selfbench)
    #[command(hide = true, name = "__load")]
    BenchLoad(BenchLoadArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SpinLoopsArguments {
    /// An executable or a library, for x86-64 or aarch64; stripped or not
    pub(crate) binary: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the cache lines of a binary in which a write of one variable takes another from the caches of all CPUs.
///
/// Which variables the code reads and writes is taken from the machine code, where they lie from the symbols, their members from
/// the debug information where there is some. That two are neighbours is a possibility, no more: with --bundle it is looked
/// whether the loads take time, and more of it with more connections.
#[derive(Debug, Args)]
pub(crate) struct CacheLinesArguments {
    /// An executable or a library, for x86-64 or aarch64, with its symbols in it or beside it
    pub(crate) binary: PathBuf,
    /// A run of this very binary: what its loads and stores cost a transaction, at two rungs
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) bundle: Option<PathBuf>,
    /// Bytes of a line: 64 for x86-64 and most aarch64, 128 for POWER, Apple and x86's prefetched pairs, 256 for s390x
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_bytes)]
    pub(crate) line: u32,
    /// Show all lines, not only the ten gravest, or with a bundle those that cost something
    #[arg(long)]
    pub(crate) all: bool,
    /// Count how often a running process of this binary writes what is shown, by the CPU's watchpoints. Each write costs it an
    /// exception meanwhile, so the counting of a variable ends early where there are many
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) write_rate: Option<u32>,
    /// With --write-rate, for how long each variable is watched
    #[arg(long, value_name = "S", default_value_t = 0.2, requires = "write_rate", value_parser = watch_seconds)]
    pub(crate) seconds: f64,
    /// Another build: are the same neighbours in one line there too?
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

fn line_bytes(text: &str) -> Result<u32, String> {
    match text {
        "64" => Ok(64),
        "128" => Ok(128),
        "256" => Ok(256),
        _ => Err("a line has 64, 128 or 256 bytes".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct AnnotateArguments {
    /// The function, or a part of its name; with its module where two have it: libc.so.6!memcpy. Without it the functions that
    /// cost most are listed
    pub(crate) function: Option<String>,
    /// The bundle of a run: what the instructions cost, and the machine code of its hot functions
    #[arg(long, short, value_name = "DIR")]
    pub(crate) bundle: Option<PathBuf>,
    /// Read the machine code from this executable or library: for a function that the bundle does not keep, and to look at one
    /// without a bundle
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
    /// Connections of the rung to compare with [default: where a transaction took least CPU time]
    #[arg(long, value_name = "N", requires = "bundle")]
    pub(crate) base: Option<u32>,
    /// Connections of the rung to look at [default: the last]
    #[arg(long, value_name = "N", requires = "bundle")]
    pub(crate) rung: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Server to run: an unpacked BASEDIR, a mysqld or mariadbd binary, or the NAME of a build that `scaleprof servers` lists
    /// [default: the distribution's server]
    #[arg(long, value_name = "BASEDIR|BINARY|NAME", help_heading = "Server")]
    pub(crate) server: Option<PathBuf>,
    /// A setting of the server; can be given again
    #[arg(long = "set", value_name = "NAME=VALUE", help_heading = "Server")]
    pub(crate) set: Vec<String>,
    /// An option file of the server's, which takes the place of the settings that scaleprof pins; --set goes before both
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) defaults_file: Option<PathBuf>,
    /// Size of the buffer pool, such as 4G [default: by memory and data]
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse, help_heading = "Server")]
    pub(crate) buffer_pool: Option<u64>,
    /// Switch the Performance Schema on (it costs throughput)
    #[arg(long, help_heading = "Server")]
    pub(crate) performance_schema: bool,
    /// CPUs of the server, such as 0-3,8 [default: by the machine]
    #[arg(long, value_name = "CPUS", help_heading = "Server")]
    pub(crate) cpus_server: Option<scaleprof_server::CpuSet>,
    /// CPUs of the client
    #[arg(long, value_name = "CPUS", help_heading = "Server")]
    pub(crate) cpus_client: Option<scaleprof_server::CpuSet>,
    #[command(flatten)]
    pub(crate) company: CompanyArguments,
    /// Folder for the server's files [default: a folder of the user's in /var/tmp]
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) work_folder: Option<PathBuf>,
    /// Make the tables anew and do not keep them for the next run
    #[arg(long, help_heading = "Server")]
    pub(crate) no_cache: bool,
    /// Prepared tables that are kept for later runs, all together at most; what was not used for longest goes first
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse, default_value = "10G", conflicts_with = "no_cache",
        help_heading = "Server")]
    pub(crate) cache_size: u64,
    /// Shut the server down at the end instead of killing it, for a build that writes something when it ends, such as a profile
    #[arg(long, help_heading = "Server")]
    pub(crate) shut_down: bool,
    /// Then try the settings that the findings advise: servers with and without each in turns, at the rung of the loss; what they
    /// come to, with its interval, stands with the findings. Up to four settings, some 2 min each
    #[arg(long = "try")]
    pub(crate) try_remedies: bool,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) ladder: LadderArguments,
    #[command(flatten)]
    pub(crate) probe: ProbeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// Where the server is: mysql://USER@HOST:PORT (no password in it)
    #[arg(long, value_name = "DSN", conflicts_with = "socket", help_heading = "Server")]
    pub(crate) dsn: Option<String>,
    /// The server's Unix socket
    #[arg(long, value_name = "PATH", help_heading = "Server")]
    pub(crate) socket: Option<PathBuf>,
    /// Only watch this server process: no load of ours, no account, no tables; --seconds says how long
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Server")]
    pub(crate) pid: Option<u32>,
    /// With --pid, watch the process though it has not the name of a server
    #[arg(long, requires = "pid", help_heading = "Server")]
    pub(crate) force: bool,
    /// Account to log in with [default: that of the DSN, else your user name]
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) user: Option<String>,
    /// Ask for the password. Without it, SCALEPROF_PASSWORD and the option file are looked at
    #[arg(long, help_heading = "Server")]
    pub(crate) ask_password: bool,
    /// Option file with user, password and ssl-* options under [client] or [scaleprof]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) defaults_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
    /// Do not ask before loading a server that scaleprof did not start
    #[arg(long, help_heading = "Server")]
    pub(crate) yes: bool,
    /// Drop the load's schema at the end
    #[arg(long, help_heading = "Server")]
    pub(crate) drop_schema: bool,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) ladder: LadderArguments,
    #[command(flatten)]
    pub(crate) probe: ProbeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
All of it is made anew from the bundle's tables, so that a newer scaleprof may see more in them. Without options summary.json in the \
bundle is made anew too, beside report.html; with --output or another format nothing in the bundle is touched.")]
pub(crate) struct ReportArguments {
    /// The bundle's folder, or that of an experiment: then it is said again what that came to, or what there is of it so far
    pub(crate) bundle: PathBuf,
    /// How to show it
    #[arg(long, value_enum, default_value = "html")]
    pub(crate) format: ReportFormat,
    /// A bug report in Markdown, to paste into the server's bug tracker: the same as --format bug. It holds no query, no host
    /// or user name, and no name of a schema, table or column
    #[arg(long, conflicts_with = "format")]
    pub(crate) bug: bool,
    /// Where to write it [default: report.html in the bundle; the terminal for text, json and bug]
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
    /// A bug report for the server's makers, in Markdown
    Bug,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A rung is compared where both runs have it. Each measurement of a rung is one figure, and how the measurements scatter says what a \
difference is worth: measure every rung at least twice (--repeats 3) on both sides. Of the call paths only those are listed \
whose change is beyond chance, by Holm's rule at 5 % over all of them; what one counts no other does. What all \
functions take longer alike, as on a slower machine, is said once and taken out.

'Slower everywhere' changed at the base rung as well; 'scales worse' changed more than there.

Runs of different loads are refused, as a transaction is not the same thing in both. Another machine, kernel or setting is \
named and warned about.

    scaleprof diff before/ after/
    scaleprof diff before/ after/ --html diff.html
    scaleprof diff before/ after/ --connections 512 --json | jq .paths")]
pub(crate) struct DiffArguments {
    /// The bundle of the run before (A)
    pub(crate) before: PathBuf,
    /// The bundle of the run after (B)
    pub(crate) after: PathBuf,
    /// Show only the call paths of this rung
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<u32>,
    /// The rung that others are held against [default: the common one where a transaction costs least]
    #[arg(long, value_name = "N")]
    pub(crate) base_rung: Option<u32>,
    /// Compare runs of different loads all the same
    #[arg(long)]
    pub(crate) force: bool,
    /// Write a page instead: curves, what changed, and the flame graph of B coloured by growth since A. One file that works
    /// offline, with nothing private in it but the names of the two folders
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 where nothing is marked `missing`; 1 where something is, hardware counters too, which many virtual machines do not have.")]
pub(crate) struct CheckArguments {
    /// Server to look at: a BASEDIR, a binary or the name of a build [default: the distribution's server]
    #[arg(long, value_name = "BASEDIR|BINARY|NAME")]
    pub(crate) server: Option<PathBuf>,
    /// Running server to look at: it is watched for a while, to see whether the code has names that it spends its time in
    #[arg(long, value_name = "PID", conflicts_with = "server")]
    pub(crate) pid: Option<u32>,
    /// How long, with --pid
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Bundle to look at: has the code names that its time was spent in, and what brings those that are missing?
    #[arg(long, value_name = "BUNDLE", conflicts_with = "pid")]
    pub(crate) bundle: Option<PathBuf>,
    /// Connections that a run shall have
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) connections: u32,
    /// Print libbpf's and the verifier's log too, where the kernel refuses the BPF programs
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SelfbenchArguments {
    /// Server to load: a BASEDIR, a binary or the name of a build [default: the distribution's server]
    #[arg(long, value_name = "BASEDIR|BINARY|NAME")]
    pub(crate) server: Option<PathBuf>,
    /// Workloads, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "oltp_point_select,oltp_read_write"
    )]
    pub(crate) workloads: Vec<String>,
    /// Connections, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16,64,512")]
    pub(crate) connections: Vec<u32>,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Measurements of each kind, in turns
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) repeats: u32,
    /// Which system calls carry the packets: auto, epoll or io_uring
    #[arg(long, value_name = "WHICH", default_value = "auto")]
    pub(crate) transport: scaleprof_workload::TransportChoice,
    /// Measure filling tables of this many rows instead, four of them
    #[arg(long, value_name = "ROWS")]
    pub(crate) fill: Option<u32>,
    /// Measure what watching the server's threads costs instead, with BPF and without, beside perf and bpftrace
    #[arg(long, conflicts_with = "fill")]
    pub(crate) watching: bool,
    /// With --watching: leave all but scaleprof with BPF out, for more turns in the same time. A turn of it, and one of nobody as a
    /// control, takes five seconds whatever --seconds says
    #[arg(long, requires = "watching")]
    pub(crate) alone: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArguments {
    /// Remove all of them
    #[arg(long)]
    pub(crate) remove: bool,
    /// Remove what was not used for longest until no more than this is left
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse, conflicts_with = "remove")]
    pub(crate) cache_size: Option<u64>,
    /// Folder of the server's files [default: as for run]
    #[arg(long, value_name = "DIR")]
    pub(crate) work_folder: Option<PathBuf>,
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
