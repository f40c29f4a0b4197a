//! `scaleprof export`.

use crate::export_arguments::{ExportArguments, ExportFormat};
use crate::output::{self, STANDARD_OUTPUT, say};
use crate::show;
use crate::terminal::TerminalProgress;
use anyhow::{Context as _, anyhow, bail};
use scaleprof_analysis::export::{Compared, RungCosts, Wanted, choose, rung_costs, share_of_others, timeline};
use scaleprof_analysis::summarise;
use scaleprof_bundle::Bundle;
use scaleprof_experiment::import_in_memory;
use scaleprof_profile::import::{Leftovers, STANDARD_INPUT};
use scaleprof_profile::{CostProfile, firefox, folded, pprof, speedscope};
use std::io::IsTerminal as _;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn execute(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let to_terminal =
        arguments.output.as_deref() == Some(Path::new(STANDARD_OUTPUT)) && std::io::stdout().is_terminal();
    if to_terminal && arguments.format == ExportFormat::Pprof {
        bail!(
            "pprof's format is not for a terminal\nfix: name a file with -o FILE, or redirect the output with | or >"
        );
    }
    if arguments.base_rung.is_some() && arguments.format != ExportFormat::FoldedDiff {
        bail!(
            "--base-rung requires --format folded-diff\nfix: for pprof, export both rungs with --rung N and give one to \
             -diff_base"
        );
    }
    if let Some(output) = &arguments.output {
        must_not_replace_input(output, &arguments.bundle)?;
    }
    // The program ends behind this: what it holds goes with it, at once and not piece by piece.
    let opened = ManuallyDrop::new(opened(arguments)?);
    let (bundle, _) = &*opened;
    let wanted = arguments.wanted();
    let (bytes, rungs) = written(bundle, arguments, &wanted)?;
    if is_recording(&arguments.bundle) {
        tell_what_is_left_out(bundle, &wanted);
    }
    let path = match &arguments.output {
        Some(path) if path == Path::new(STANDARD_OUTPUT) => {
            output::print(&bytes)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(path) => path.clone(),
        None => {
            let path = default_name(&arguments.bundle, arguments.format, &rungs);
            must_not_replace_input(&path, &arguments.bundle)?;
            path
        }
    };
    show::write_whole(&path, &bytes)?;
    say!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// The bundle, or what a recording would be as one.
fn opened(arguments: &ExportArguments) -> anyhow::Result<(Bundle, Leftovers)> {
    let path = &arguments.bundle;
    if !is_recording(path) {
        if let Some(option) = arguments.recording.given().first() {
            bail!("{option} is for recordings, and {} is none", path.display());
        }
        std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        return Ok((show::opened(path)?, Leftovers::default()));
    }
    // What is exported may go to the standard output; progress and warnings go beside it.
    let mut progress = TerminalProgress::new(false);
    let read = import_in_memory(path, &arguments.recording.options(), &mut progress);
    progress.finish();
    Ok(read?)
}

/// Of a recording its maker knows all threads: who sees fewer here must be told why.
fn tell_what_is_left_out(bundle: &Bundle, wanted: &Wanted) {
    const WORTH_TELLING: f64 = 0.001;
    let left_out = share_of_others(bundle, wanted);
    if left_out > WORTH_TELLING {
        eprintln!(
            "omitted: {:.1} % of the time, of other threads (--threads all includes them)",
            left_out * 100.0
        );
    }
}

/// Whether it is a recording: a file, a pipe or the folder of `perf record --threads`; bundles are folders.
fn is_recording(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(facts) if facts.is_dir() => path.join("data").is_file() && !Bundle::is_at(path),
        Ok(_) => true,
        Err(_) => path == Path::new(STANDARD_INPUT),
    }
}

/// The file, and what of the bundle is in it in a word or two.
fn written(bundle: &Bundle, arguments: &ExportArguments, wanted: &Wanted) -> anyhow::Result<(Vec<u8>, String)> {
    let unit = arguments.unit();
    let rungs = rung_costs(bundle, wanted);
    let has_loads = rungs.iter().any(|rung| rung.connections.is_some());
    let summary = has_loads.then(|| summarise(bundle));
    let Compared { base, rung } = choose(&rungs, summary.as_ref(), arguments.base_rung, arguments.rung)
        .map_err(|problem| anyhow!("cannot export {}: {problem}", arguments.bundle.display()))?;
    let name = |rung: &RungCosts| rung.connections.map_or("watched".to_owned(), |n| n.to_string());
    Ok(match arguments.format {
        ExportFormat::Pprof => (pprof::write(&rung.profile)?, name(rung)),
        ExportFormat::Folded => (folded::write(&rung.profile, unit).into_bytes(), name(rung)),
        ExportFormat::FoldedDiff => {
            let base = base.ok_or_else(|| {
                anyhow!(
                    "a difference needs two rungs, and {} has one",
                    arguments.bundle.display()
                )
            })?;
            let text = folded::write_difference(&base.profile, &rung.profile, unit);
            (text.into_bytes(), format!("{}-{}", name(base), name(rung)))
        }
        ExportFormat::Speedscope if arguments.rung.is_none() => {
            let profiles: Vec<&CostProfile> = rungs.iter().map(|rung| &rung.profile).collect();
            let shown = rungs.iter().position(|one| one.connections == rung.connections);
            (
                speedscope::write(&profiles, shown.unwrap_or(0), unit)?,
                "rungs".to_owned(),
            )
        }
        ExportFormat::Speedscope => (speedscope::write(&[&rung.profile], 0, unit)?, name(rung)),
        ExportFormat::Firefox => {
            let wanted = Wanted {
                repeat: wanted.repeat.or(Some(0)),
                ..wanted.clone()
            };
            let timeline = timeline(bundle, rung.connections, &wanted).ok_or_else(|| {
                anyhow!("the first repeat of that rung has no samples\nfix: choose another with --repeat")
            })?;
            (firefox::write(&timeline)?, name(rung))
        }
    })
}

/// An export is easily made again; what it is made from is not.
fn must_not_replace_input(output: &Path, input: &Path) -> anyhow::Result<()> {
    let (Ok(whole), Ok(input)) = (output.canonicalize(), input.canonicalize()) else {
        return Ok(());
    };
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    // Of a bundle, or of a folder of `perf record --threads`; an earlier export may lie there too.
    let is_part =
        || whole.starts_with(&input) && (Bundle::has_file_called(&name) || name == "data" || name.starts_with("data."));
    if whole == input && whole.is_file() || is_part() {
        bail!(
            "{} is the input or a part of it, so it is not overwritten\nfix: name another file with -o FILE",
            output.display()
        );
    }
    Ok(())
}

/// A name that tells from which bundle and rung it comes, in the folder that the user is in.
fn default_name(bundle: &Path, format: ExportFormat, rungs: &str) -> PathBuf {
    let whole = bundle.canonicalize().unwrap_or_else(|_| bundle.to_owned());
    let name = whole
        .file_name()
        .unwrap_or("scaleprof".as_ref())
        .to_string_lossy()
        .into_owned();
    let ending = match format {
        ExportFormat::Pprof => "pb.gz",
        ExportFormat::Folded | ExportFormat::FoldedDiff => "folded",
        ExportFormat::Firefox => "firefox.json",
        ExportFormat::Speedscope => "speedscope.json",
    };
    PathBuf::from(format!("{name}-{rungs}.{ending}"))
}
