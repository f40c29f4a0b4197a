//! The options of `import`, and of whatever else reads recordings.

use clap::Args;
use std::ops::RangeInclusive;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
With --connections and --throughput, figures are per transaction and recordings form a ladder:

    perf record -F 499 --call-graph dwarf,16384 -p $(pidof mysqld) -o at16.data -- sleep 10    # at 16 connections, at 512, ...
    scaleprof import at16.data at512.data --connections 16,512 --throughput 13000,6500

Without them, figures are per second. `cachelines --bundle` needs a ladder.
One event is read, the first that measures CPU time. Waits of `perf record --off-cpu` are off-CPU time. Files of the
recorded machine are found by build-id: below --symfs, in perf's cache, and at the recorded path.

Folded stacks hold numbers of samples. --frequency and --seconds turn them into time, which a ladder requires:

    perf script -i at16.data | stackcollapse-perf.pl > at16.folded      # recorded with -F 99, for 10 seconds
    scaleprof import at16.folded at512.folded --connections 16,512 --throughput 13000,6500 --frequency 99 --seconds 10")]
pub(crate) struct ImportArguments {
    /// perf.data (a file, a pipe, or the folder of perf record --threads), perf script, folded stacks
    /// (two columns are two recordings) or pprof, also gzipped; - reads the standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Name of the load, one word
    #[arg(long, value_name = "NAME", value_parser = word)]
    pub(crate) name: Option<String>,
    /// Connections of each recording, in order, separated by commas
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "throughput", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: Vec<u32>,
    /// Transactions per second of each recording, in order, separated by commas
    #[arg(long, value_name = "TPS,...", value_delimiter = ',', requires = "connections", value_parser = throughput)]
    pub(crate) throughput: Vec<f64>,
    /// Samples per second, as perf record's -F, for recordings without it, such as folded stacks
    #[arg(long, short = 'F', value_name = "HZ", value_parser = frequency)]
    pub(crate) frequency: Option<f64>,
    /// Length of recordings without timestamps: one number for all, or one for each, separated by commas
    #[arg(long, value_name = "S,...", value_delimiter = ',', value_parser = seconds)]
    pub(crate) seconds: Vec<f64>,
    /// CPUs of the recorded machine that the server could use, for recordings without it; required to
    /// know whether CPUs were idle
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) cpus: Option<u32>,
    /// Output of perf stat for the same loads (text, -x or -j), a file for each recording, separated by commas
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    pub(crate) stat: Vec<PathBuf>,
    /// Recordings of the same loads without call graphs, a file for each recording, separated by
    /// commas: they show whether the recording of call graphs changed the load
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    pub(crate) flat: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) recording: RecordingArguments,
    /// Do not keep the machine code of the hot functions, which takes a second or two; `annotate` then
    /// requires --binary
    #[arg(long)]
    pub(crate) no_code: bool,
    /// Folder of the bundle [default: scaleprof-runs/import-TIME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Print summary.json instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write no report.html; `scaleprof report` writes it later
    #[arg(long)]
    pub(crate) no_report: bool,
}

/// How recordings are read.
#[derive(Debug, Args)]
pub(crate) struct RecordingArguments {
    /// Event to read [default: the first that measures CPU time]
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Process to read, by number or name, or all [default: all; for a perf.data of a whole machine, its
    /// database server]
    #[arg(long, value_name = "PID|NAME|all")]
    pub(crate) process: Option<String>,
    /// Folder with the files of the recorded machine, as perf's --symfs
    #[arg(long, value_name = "DIR")]
    pub(crate) symfs: Option<PathBuf>,
    /// Do not resolve inlined functions, as perf's --no-inline: it is faster
    #[arg(long)]
    pub(crate) no_inline: bool,
}

/// About one a day, and a thousand times what the largest machines do: beyond that sums lose what they are about.
const LEAST_THROUGHPUT: f64 = 1e-5;
const MOST_THROUGHPUT: f64 = 1e9;

fn throughput(text: &str) -> Result<f64, String> {
    number_in(text, LEAST_THROUGHPUT..=MOST_THROUGHPUT)
        .ok_or_else(|| "transactions per second must be from 0.00001 to 1000000000".to_owned())
}

fn frequency(text: &str) -> Result<f64, String> {
    number_in(text, 1e-3..=1e9).ok_or_else(|| "samples per second must be from 0.001 to 1000000000".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    number_in(text, 1e-3..=1e6).ok_or_else(|| "seconds must be from 0.001 to 1000000".to_owned())
}

fn number_in(text: &str, range: RangeInclusive<f64>) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| range.contains(number))
}

fn word(text: &str) -> Result<String, String> {
    let is_word = |letter: char| letter.is_alphanumeric() || "_-.+:".contains(letter);
    match !text.is_empty() && text.chars().all(is_word) {
        true => Ok(text.to_owned()),
        false => Err("one word of letters, digits and _-.+:".to_owned()),
    }
}
