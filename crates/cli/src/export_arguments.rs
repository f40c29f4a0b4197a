//! The options of `export`.

use crate::import_arguments::RecordingArguments;
use clap::Args;
use scaleprof_analysis::export::Wanted;
use scaleprof_profile::Unit;
use scaleprof_vocabulary::{Role, ThreadState};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
pprof shows time per 1000 transactions first, so -diff_base shows the change per transaction at any throughput. \
-sample_index=samples and -sample_index=time show samples and plain time. Bundles of attach have times per second.

    scaleprof export BUNDLE --rung 16 -o few.pb.gz
    scaleprof export BUNDLE --rung 512 -o many.pb.gz
    go tool pprof -http : -diff_base few.pb.gz many.pb.gz

    scaleprof export BUNDLE --format folded-diff -o - | flamegraph.pl > what-grew.svg
    scaleprof export BUNDLE --format speedscope           and open the file on speedscope.app, or with npx speedscope
    scaleprof export BUNDLE --format firefox              and open it on profiler.firefox.com
    scaleprof export perf.data --format folded -o - | flamegraph.pl > flames.svg

Nothing is sent anywhere: these pages read the file in your browser. docs/formats.md describes each format.")]
pub(crate) struct ExportArguments {
    /// A bundle, or a recording as `import` reads it
    #[arg(value_name = "BUNDLE|RECORDING")]
    pub(crate) bundle: PathBuf,
    /// Format of the file
    #[arg(long, value_enum, default_value = "pprof")]
    pub(crate) format: ExportFormat,
    /// Connections of the rung to show [default: the last; speedscope: all rungs, each as a
    /// profile]
    #[arg(long, value_name = "N")]
    pub(crate) rung: Option<u32>,
    /// With --format folded-diff, connections of the base rung, the first column [default: where a
    /// transaction took least CPU time]
    #[arg(long, value_name = "N")]
    pub(crate) base_rung: Option<u32>,
    /// Thread states, separated by commas: cpu, spin, runq, lock, io, net, sleep, other, idle, or all
    /// [default: all but idle and net, the wait for the client]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = state)]
    pub(crate) states: Vec<States>,
    /// Threads of the connections of the load, or all of the server
    #[arg(long, value_enum, default_value = "connections")]
    pub(crate) threads: Threads,
    /// Only this repeat of each rung, from 1 [default: all; firefox: the first]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,
    /// Unit of the values in folded and speedscope; pprof has both
    #[arg(long, value_enum, default_value = "per-1000-transactions")]
    pub(crate) unit: ExportUnit,
    /// Where to write it; - for standard output [default: named after the bundle and the rung, in this folder]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Of a recording")]
    pub(crate) recording: RecordingArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// For go tool pprof and others: with addresses, lines, inlined functions, and labels for state,
    /// role, thread and lock
    Pprof,
    /// For flamegraph.pl, inferno and most viewers: one line per call path
    Folded,
    /// Folded with two columns, one per rung, for a differential flame graph
    FoldedDiff,
    /// For profiler.firefox.com: every thread on a time line, coloured by state
    Firefox,
    /// For speedscope.app
    Speedscope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportUnit {
    /// Time per 1000 transactions
    #[value(name = "per-1000-transactions")]
    PerThousandTransactions,
    /// Time of all measured seconds
    Total,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Threads {
    /// Those that serve the load
    Connections,
    /// All of the server
    All,
}

/// One word of `--states`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum States {
    All,
    One(ThreadState),
}

fn state(text: &str) -> Result<States, String> {
    match text {
        "all" => Ok(States::All),
        name => ThreadState::parse(name).map(States::One).map_err(|_| {
            let names = ThreadState::ALL.map(ThreadState::name);
            format!("states are {} and all", names.join(", "))
        }),
    }
}

impl ExportArguments {
    /// What is asked for of the bundle.
    pub(crate) fn wanted(&self) -> Wanted {
        let usual = Wanted::default();
        let chosen = |state: &ThreadState| {
            let mut words = self.states.iter();
            words.any(|word| [States::All, States::One(*state)].contains(word))
        };
        Wanted {
            states: match self.states.is_empty() {
                true => usual.states,
                false => ThreadState::ALL.into_iter().filter(chosen).collect(),
            },
            roles: match self.threads {
                Threads::Connections => usual.roles,
                Threads::All => Role::ALL.to_vec(),
            },
            repeat: self.repeat.map(|repeat| repeat - 1),
        }
    }

    /// What the numbers shall be.
    pub(crate) fn unit(&self) -> Unit {
        match self.unit {
            ExportUnit::PerThousandTransactions => Unit::PerAmount,
            ExportUnit::Total => Unit::Seconds,
        }
    }
}
