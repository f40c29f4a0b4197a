//! The options of `experiment`.

use crate::load_arguments::LoadArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
A variant is a server with its settings. Each replicate starts a variant on fresh data and measures the ladder once. \
Every second round reverses the order, so drift cancels. The first variant is the base of the others. Pairs of the base \
with itself (A/A pairs), at both ends of the session, show the error of the session.

No difference: the whole interval is within the margin. Different: significant over all rungs and variants. Otherwise \
inconclusive. With --precision, the experiment ends when the interval is narrow enough, never because of a difference.

    scaleprof experiment --vary innodb_spin_wait_delay=4,20,96 --workload oltp_update_index --connections 16,512
    scaleprof experiment sync-array-size --server ~/mysql-5.6.14
    scaleprof experiment --server ~/mysql-old --server ~/mysql-new --workload tpcc --warehouses 4
    scaleprof experiment mine.toml --dry-run
    scaleprof experiment resume scaleprof-runs/sync-array-size-20261122-090000

docs/experiment.md describes plans, the figures and experiment.json."
)]
pub(crate) struct ExperimentArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ExperimentCommand>,
    /// A plan (FILE.toml), or the name of a ready one: sync-array-size, spin-delay, isolation-levels, lock-sys,
    /// long-run-stability, mutex-or-event, numa, performance-schema-overhead, pgo, read-only-against-read-write, replication, thread-pool,
    /// two-instances, warm-up
    #[arg(value_name = "NAME|FILE", required_unless_present_any = ["vary", "server"])]
    pub(crate) plan: Option<String>,
    /// Compare values of a server setting. Several --vary give every combination; each plan variant
    /// uses its first combination as base
    #[arg(long, value_name = "NAME=VALUE,VALUE...")]
    pub(crate) vary: Vec<String>,
    /// Check and print the plan and its duration, and do nothing
    #[arg(long, help_heading = "Result")]
    pub(crate) dry_run: bool,

    /// Server of all variants: an unpacked BASEDIR, a binary or the name of a build; given again, the servers are compared [default: the
    /// plan's, else the distribution's]
    #[arg(long, value_name = "BUILD", help_heading = "Server")]
    pub(crate) server: Vec<PathBuf>,
    /// A setting of all variants; can be given again
    #[arg(long = "set", value_name = "NAME=VALUE", help_heading = "Server")]
    pub(crate) set: Vec<String>,
    /// Size of the buffer pool, such as 4G
    #[arg(long, value_name = "SIZE", help_heading = "Server")]
    pub(crate) buffer_pool: Option<String>,
    /// Folder for the servers' files [default: a folder of the user's in /var/tmp]
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) work_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) load: LoadArguments,

    /// Rungs: numbers and doubling ranges [default: the plan's, else 1,16,64,256]
    #[arg(long, value_name = "LADDER", help_heading = "Design")]
    pub(crate) connections: Option<String>,
    /// Seconds at each rung of a start [default: the plan's, else 10; 5 with --quick]
    #[arg(long, value_name = "S", help_heading = "Design")]
    pub(crate) seconds: Option<u32>,
    /// The most pairs of each variant and the first, an even number [default: 8; 4 with --quick, 20
    /// with --precision]
    #[arg(long, value_name = "N", help_heading = "Design")]
    pub(crate) pairs: Option<u32>,
    /// Differences up to this do not matter, percent [default: 1]
    #[arg(long, value_name = "PERCENT", help_heading = "Design")]
    pub(crate) margin: Option<f64>,
    /// Stop when the half-width of the interval over the ladder is at most PERCENT
    #[arg(long, value_name = "PERCENT", help_heading = "Design")]
    pub(crate) precision: Option<f64>,
    /// Pairs of the first variant with itself, at each end of the session [default: 2; 1 with --quick]
    #[arg(long, value_name = "N", help_heading = "Design")]
    pub(crate) aa_pairs: Option<u32>,
    /// Four pairs, for a first look: its verdicts are indicative only
    #[arg(long, help_heading = "Design")]
    pub(crate) quick: bool,
    /// Run the servers of a round one after another instead of interleaved
    #[arg(long, help_heading = "Design")]
    pub(crate) no_interleave: bool,
    /// No watched run of each variant: no states, no call paths
    #[arg(long, help_heading = "Design")]
    pub(crate) no_probe: bool,

    /// Folder that keeps everything [default: scaleprof-runs/NAME-TIME]
    #[arg(long, short, value_name = "DIR", help_heading = "Result")]
    pub(crate) output: Option<PathBuf>,
    /// Print experiment.json instead of the tables
    #[arg(long, help_heading = "Result")]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Continue an experiment that was stopped
    Resume {
        /// Its folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Print its plan and its duration, and do nothing
        #[arg(long)]
        dry_run: bool,
        /// Print experiment.json instead of the tables
        #[arg(long)]
        json: bool,
    },
    /// List the ready experiments with their questions
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
