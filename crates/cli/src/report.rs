//! `scaleprof report`.

use crate::arguments::{ReportArguments, ReportFormat};
use crate::output::{STANDARD_OUTPUT, put, say};
use crate::show;
use anyhow::{Context as _, bail};
use scaleprof_analysis::summarise;
use scaleprof_bundle::{Bundle, BundleWriter};
use scaleprof_experiment::trials::Experiment;
use scaleprof_report::{bug, experiment_page, html, text};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn execute(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let format = match arguments.json {
        true => ReportFormat::Json,
        false => arguments.format,
    };
    match Experiment::is_in(&arguments.bundle) {
        true => of_experiment(arguments, format),
        false => of_bundle(arguments, format),
    }
}

fn of_bundle(arguments: &ReportArguments, format: ReportFormat) -> anyhow::Result<ExitCode> {
    let bundle = Bundle::open(&arguments.bundle)?;
    // Made anew from the tables: a newer scaleprof may see more in them.
    let summary = summarise(&bundle);
    let content = match format {
        ReportFormat::Html => html::render(&bundle, &summary),
        ReportFormat::Text => text::table(&summary, style(arguments)),
        ReportFormat::Json => show::summary_json(&summary)?,
        ReportFormat::Bug => bug::markdown(&bundle, &summary),
    };
    if arguments.output.is_none() && format == ReportFormat::Html {
        BundleWriter::reopen(&arguments.bundle)
            .and_then(|writer| writer.write_summary(&summary))
            .context("the bundle is not writable\nfix: write the page elsewhere with --output FILE")?;
    }
    deliver(arguments, format, &content)
}

/// What an experiment came to, said anew from what its starts measured. Nothing is measured: of one that was interrupted it is what there
/// is so far.
fn of_experiment(arguments: &ReportArguments, format: ReportFormat) -> anyhow::Result<ExitCode> {
    if format == ReportFormat::Bug {
        bail!(
            "a bug report needs one run, and {} is an experiment\nfix: name one of the folders in its `watched`",
            arguments.bundle.display()
        );
    }
    let outcome = Experiment::resume(&arguments.bundle)?.so_far();
    let content = match format {
        ReportFormat::Html => experiment_page::render(&outcome),
        ReportFormat::Json => format!("{}\n", serde_json::to_string_pretty(&outcome)?),
        _ => text::experiment::table(&outcome, style(arguments)),
    };
    deliver(arguments, format, &content)
}

/// Of a file there is no width, and it has no colours.
fn style(arguments: &ReportArguments) -> text::Style {
    match arguments.output {
        Some(_) => text::Style::plain(),
        None => show::style(),
    }
}

fn deliver(arguments: &ReportArguments, format: ReportFormat, content: &str) -> anyhow::Result<ExitCode> {
    let beside = (format == ReportFormat::Html).then(|| arguments.bundle.join("report.html"));
    match arguments.output.clone().or(beside) {
        Some(path) if path == Path::new(STANDARD_OUTPUT) => put!("{content}"),
        Some(path) => {
            show::write_whole(&path, content)?;
            say!("{}", path.display());
        }
        None => put!("{content}"),
    }
    Ok(ExitCode::SUCCESS)
}
