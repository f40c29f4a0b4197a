//! `scaleprof spinloops`.

use crate::arguments::SpinLoopsArguments;
use crate::output::say;
use anyhow::{Context, bail};
use scaleprof_probe::readable::why_unreadable;
use scaleprof_probe::relax_nanoseconds;
use scaleprof_probe::spin::{SpinKind, SpinLoop, SpinLoops};
use scaleprof_probe::symbol_search;
use scaleprof_probe::symbols::SymbolFile;
use serde::Serialize;
use std::process::ExitCode;

/// One loop, as `--json` gives it.
#[derive(Debug, Serialize)]
struct Entry {
    /// The function that it is in.
    function: String,
    /// First address, and one past the last, in the file's addresses.
    start: u64,
    end: u64,
    /// Pieces that it lies in.
    parts: usize,
    instructions: u32,
    /// The instruction that says that it waits; null where there is none, and the loop is found by what it lacks.
    relax: Option<&'static str>,
    kind: &'static str,
    warnings: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct Listing {
    binary: String,
    build_id: Option<String>,
    /// Nanoseconds of one PAUSE or ISB on this machine.
    relax_nanoseconds: f64,
    loops: Vec<Entry>,
}

pub(crate) fn execute(arguments: &SpinLoopsArguments) -> anyhow::Result<ExitCode> {
    let symbols = SymbolFile::open(&arguments.binary, &symbol_search())?;
    let bytes = std::fs::read(&arguments.binary).with_context(|| format!("reading {}", arguments.binary.display()))?;
    if let Some(why) = why_unreadable(&bytes, symbols.function_ranges()) {
        bail!("cannot look for loops in {}: {why}", arguments.binary.display());
    }
    let found = SpinLoops::with_likely(symbols.name(), &bytes, symbols.function_ranges())?;
    let listing = Listing {
        binary: symbols.name().to_owned(),
        build_id: symbols.build_id(),
        relax_nanoseconds: relax_nanoseconds(),
        loops: found.loops().iter().map(|found| entry(found, &symbols)).collect(),
    };
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&listing)?),
        false => print(&listing)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn entry(found: &SpinLoop, symbols: &SymbolFile) -> Entry {
    let function = symbols.function(found.start());
    Entry {
        function: function.map_or_else(|| format!("fun_{:x}", found.function.start), |function| function.name),
        start: found.start(),
        end: found.end(),
        parts: found.parts.len(),
        instructions: found.instructions,
        relax: found.relax.map(|relax| relax.name()),
        kind: found.kind.name(),
        warnings: found.faults.iter().map(|fault| fault.words()).collect(),
    }
}

fn print(listing: &Listing) -> anyhow::Result<()> {
    let certain = listing.loops.iter().filter(|entry| entry.relax.is_some()).count();
    let likely = match listing.loops.len() - certain {
        0 => String::new(),
        likely => format!(", and {likely} more may, though no instruction says so"),
    };
    say!(
        "{} loops of {} wait for another thread{likely}. One {} takes {:.1} ns on this machine.",
        certain,
        listing.binary,
        if cfg!(target_arch = "aarch64") { "isb" } else { "pause" },
        listing.relax_nanoseconds
    );
    let kinds = [
        (SpinKind::Poll, "Loops that look at memory in every turn:"),
        (SpinKind::Retry, "Loops that call a delay in every turn:"),
        (SpinKind::Delay, "Delays, which others call or hold:"),
    ];
    // What only may wait, and may as well look for something, comes last.
    let certainties = [(true, ""), (false, "Perhaps, though no instruction says so. ")];
    for ((is_certain, doubt), (kind, words)) in certainties.into_iter().flat_map(|one| kinds.map(|kind| (one, kind))) {
        let mut of_kind = listing
            .loops
            .iter()
            .filter(|entry| entry.kind == kind.name() && entry.relax.is_some() == is_certain)
            .peekable();
        if of_kind.peek().is_some() {
            say!("\n{doubt}{words}");
        }
        for entry in of_kind {
            say!(
                "  {:#x}-{:#x}  {:>3} instructions{}, {}  {}",
                entry.start,
                entry.end,
                entry.instructions,
                match entry.parts {
                    1 => String::new(),
                    parts => format!(" in {parts} parts"),
                },
                entry.relax.unwrap_or("perhaps"),
                entry.function
            );
            for warning in &entry.warnings {
                say!("      warning: {warning}");
            }
        }
    }
    Ok(())
}
