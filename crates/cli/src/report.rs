//! `scaleprof report`.

use crate::arguments::{ReportArguments, ReportFormat};
use crate::output::{put, say};
use crate::show;
use anyhow::Context as _;
use scaleprof_analysis::summarise;
use scaleprof_bundle::{Bundle, BundleWriter};
use scaleprof_report::{bug, html, text};
use std::process::ExitCode;

pub(crate) fn execute(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let bundle = Bundle::open(&arguments.bundle)?;
    // Made anew from the tables: a newer scaleprof may see more in them.
    let summary = summarise(&bundle);
    let format = match arguments.bug {
        true => ReportFormat::Bug,
        false => arguments.format,
    };
    let content = match format {
        ReportFormat::Html => html::render(&bundle, &summary),
        ReportFormat::Text if arguments.output.is_some() => text::table(&summary, text::Style::plain()),
        ReportFormat::Text => show::table(&summary),
        ReportFormat::Json => show::summary_json(&summary)?,
        ReportFormat::Bug => bug::markdown(&bundle, &summary),
    };
    match (&arguments.output, format) {
        (Some(path), _) => {
            show::write_whole(path, &content)?;
            say!("{}", path.display());
        }
        (None, ReportFormat::Html) => {
            BundleWriter::reopen(&arguments.bundle)
                .and_then(|writer| writer.write_summary(&summary))
                .context("the bundle cannot be written to; --output FILE puts the page elsewhere")?;
            let path = arguments.bundle.join("report.html");
            show::write_whole(&path, &content)?;
            say!("{}", path.display());
        }
        (None, _) => put!("{content}"),
    }
    Ok(ExitCode::SUCCESS)
}
