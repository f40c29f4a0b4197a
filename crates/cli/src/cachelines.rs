//! `scaleprof cachelines`.

mod show;

use crate::arguments::CacheLinesArguments;
use crate::output::say;
use crate::same_build::must_have_run;
use anyhow::{Context, bail};
use scaleprof_analysis::cache_lines::{
    CountedWrites, JudgedLine, MeasuredCosts, PairElsewhere, judge, pairs_elsewhere,
};
use scaleprof_analysis::rung_instructions::{RungInstructions, by_rung};
use scaleprof_experiment::SharedData;
use scaleprof_probe::readable::why_unreadable;
use scaleprof_probe::spin::SpinLoops;
use scaleprof_probe::symbols::SymbolFile;
use scaleprof_probe::{ProcessData, symbol_search};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Lines that are shown unless all are asked for.
const WORST: usize = 10;

/// What `--json` gives.
#[derive(Debug, Serialize)]
struct Listing {
    binary: String,
    build_id: Option<String>,
    /// Bytes of a line.
    line: u64,
    variables: usize,
    /// Places that code touches, and how many of these have a name.
    places: usize,
    named_places: usize,
    /// Whether debug information says which members structures have.
    members: bool,
    /// What the figures stand on, and what was not seen.
    notes: Vec<String>,
    measured: Option<Measured>,
    /// Lines in which somebody may take something from somebody else.
    judged: usize,
    /// Those of them that cost something in the run; none without a bundle.
    costly: Option<usize>,
    /// The worst of them, or all.
    lines: Vec<Shown>,
    compared_with: Option<String>,
}

/// The bundle that was looked at.
#[derive(Debug, Serialize)]
struct Measured {
    /// At both rungs that are compared.
    connections: [u32; 2],
    cpu_seconds_per_txn: [f64; 2],
}

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    line: JudgedLine,
    /// Others in the line that no code is known to touch.
    untouched: Vec<String>,
    /// The same neighbours in the build that it is compared with.
    elsewhere: Vec<PairElsewhere>,
}

/// A binary, taken apart.
struct Code {
    name: String,
    build_id: Option<String>,
    data: SharedData,
}

impl Code {
    /// Reads a binary and the symbols beside it.
    fn read(path: &Path) -> anyhow::Result<Code> {
        let symbols = SymbolFile::open(path, &symbol_search())?;
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        if let Some(why) = why_unreadable(&bytes, symbols.function_ranges()) {
            bail!("cannot look for shared cache lines in {}: {why}", path.display());
        }
        let waiting = SpinLoops::of(symbols.name(), &bytes, symbols.function_ranges())?;
        Ok(Code {
            name: symbols.name().to_owned(),
            build_id: symbols.build_id(),
            data: SharedData::of(&symbols, &bytes, &waiting, u64::MAX)?,
        })
    }
}

pub(crate) fn execute(arguments: &CacheLinesArguments) -> anyhow::Result<ExitCode> {
    let code = Code::read(&arguments.binary)?;
    let other = arguments.compare.as_deref().map(Code::read).transpose()?;
    let rungs = match &arguments.bundle {
        Some(folder) => {
            let bundle = crate::show::opened(folder).with_context(|| format!("reading {}", folder.display()))?;
            must_have_run(&bundle, &arguments.binary, (&code.name, code.build_id.as_deref()))?;
            by_rung(&bundle)
        }
        None => Vec::new(),
    };
    let costs = costs(&code, &rungs, arguments.bundle.is_some())?;
    let bytes = u64::from(arguments.line_size.bytes());
    let mut lines = judge(&code.data.places, &code.data.functions, bytes, costs.as_ref());
    let judged = lines.len();
    let costly = costs
        .is_some()
        .then(|| lines.iter().filter(|line| line.costs_something()).count());
    if !arguments.all {
        // What a run was seen to pay nothing for is only a possibility.
        if costly.is_some() {
            lines.retain(JudgedLine::costs_something);
        }
        lines.truncate(WORST);
    }
    if let Some(pid) = arguments.count_writes {
        let process = ProcessData::of(pid, &arguments.binary).map_err(anyhow::Error::msg)?;
        let longest = Duration::from_secs_f64(arguments.seconds);
        for line in &mut lines {
            count_writes(line, &process, longest)?;
        }
    }
    let lines = lines.into_iter().map(|line| Shown {
        untouched: code.data.untouched(&line),
        elsewhere: other
            .as_ref()
            .map_or(Vec::new(), |other| pairs_elsewhere(&line, |name| other.data.find(name))),
        line,
    });
    let listing = Listing {
        line: bytes,
        variables: code.data.variables(),
        places: code.data.touched(),
        named_places: code.data.named(),
        members: code.data.knows_members(),
        notes: code.data.notes(),
        measured: costs.as_ref().map(|costs| Measured {
            connections: costs.connections(),
            cpu_seconds_per_txn: costs.all(),
        }),
        judged,
        costly,
        lines: lines.collect(),
        compared_with: other.map(|other| other.name),
        binary: code.name,
        build_id: code.build_id,
    };
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&listing)?),
        false => show::print(&listing)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts how often a running process writes what lies in a line.
fn count_writes(line: &mut JudgedLine, process: &ProcessData, longest: Duration) -> anyhow::Result<()> {
    let mut counted = Vec::new();
    for number in line.worth_counting() {
        let Some(place) = line.variables.get(number) else {
            continue;
        };
        let address = line.address.wrapping_add_signed(place.offset);
        let count = process
            .count_writes(address, place.size, longest)
            .map_err(anyhow::Error::msg)?;
        let writes = CountedWrites {
            writes: count.writes,
            seconds: count.watched.as_secs_f64(),
            threads: count.threads,
            writers: count.writers,
        };
        counted.push((number, writes));
    }
    line.add_counted_writes(&counted);
    Ok(())
}

fn costs<'a>(code: &Code, rungs: &'a [RungInstructions], wanted: bool) -> anyhow::Result<Option<MeasuredCosts<'a>>> {
    match wanted {
        true => Ok(Some(MeasuredCosts::of(rungs, &code.name, code.build_id.as_deref())?)),
        false => Ok(None),
    }
}
