//! `run --try`: what the findings advise is tried, and the measured effect stands with them.

use crate::error_text;
use crate::experiment_progress::TerminalExperiment;
use crate::output::say;
use crate::show;
use anyhow::bail;
use scaleprof_analysis::summarise;
use scaleprof_bundle::{BundleWriter, RemedyResult, Summary};
use scaleprof_experiment::trying::{folder_beside, remedies, try_remedies};
use scaleprof_experiment::{RunError, RunOptions, RunResult};
use scaleprof_report::experiment_page;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Refuses, before the run, a folder that the trials could not be kept in.
pub(crate) fn check(options: &RunOptions) -> anyhow::Result<()> {
    let folder = folder_beside(&options.output);
    if folder.exists() {
        bail!(
            "{} exists already, and --try writes its server starts there\nfix: remove it, or name another folder with \
             --output",
            folder.display()
        );
    }
    Ok(())
}

/// Tries the remedies of a run that has ended well; the run's bundle and summary with what they came to.
pub(crate) fn after(
    options: &RunOptions,
    mut result: RunResult,
    stop: &Arc<AtomicBool>,
    quiet: bool,
) -> anyhow::Result<RunResult> {
    if result.problem.is_some() {
        return Ok(result);
    }
    let (wanted, others) = remedies(&result.summary.findings);
    if wanted.is_empty() {
        if !quiet {
            eprintln!("No finding advises a setting of the server, so there is nothing to try.");
        }
        return Ok(result);
    }
    if others > 0 && !quiet {
        let settings = if others == 1 {
            "setting that is"
        } else {
            "settings that are"
        };
        eprintln!("Not tried: {others} {settings} for another rung or of less effect; `experiment --vary` tries any.");
    }
    let mut progress = TerminalExperiment::new(quiet);
    let tried = try_remedies(options, &result.summary.findings, stop, &mut progress);
    progress.finish();
    // The run itself is done, and worth more than what was to be tried.
    let kept = tried.map_err(anyhow::Error::from).and_then(|trials| {
        let Some(trials) = trials else { return Ok(()) };
        keep(&mut result, &trials.tried)?;
        let page = folder_beside(&options.output).join("report.html");
        show::write_whole(&page, experiment_page::render(&trials.outcome))
    });
    if let Err(error) = kept {
        eprintln!(
            "{}",
            error_text::warning(&format!("what was tried is not kept: {error:#}"))
        );
    }
    if stop.load(Ordering::Relaxed) {
        result.problem = Some(RunError::Stopped);
    }
    Ok(result)
}

/// Keeps what was tried in the bundle, and tells it anew.
fn keep(result: &mut RunResult, tried: &[RemedyResult]) -> anyhow::Result<()> {
    let writer = BundleWriter::reopen(&result.bundle.path)?;
    writer.write_remedy_results(tried)?;
    result.bundle.remedy_results = tried.to_vec();
    result.summary = summarise(&result.bundle);
    result.bundle.summary = Some(result.summary.clone());
    writer.write_summary(&result.summary)?;
    Ok(())
}

/// Where the starts of the trials are.
pub(crate) fn say_where(options: &RunOptions, summary: &Summary) -> anyhow::Result<()> {
    if summary
        .findings
        .iter()
        .any(|finding| !finding.remedy_results.is_empty())
    {
        say!(
            "Tried: {}",
            folder_beside(&options.output).join("report.html").display()
        );
    }
    Ok(())
}
