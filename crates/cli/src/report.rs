//! `scaleprof report`.

use crate::arguments::{ReportArguments, ReportFormat};
use crate::show;
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
            println!("{}", path.display());
        }
        (None, ReportFormat::Html) => {
            BundleWriter::reopen(&arguments.bundle)?.write_summary(&summary)?;
            let path = arguments.bundle.join("report.html");
            show::write_whole(&path, &content)?;
            println!("{}", path.display());
        }
        (None, _) => print!("{content}"),
    }
    Ok(ExitCode::SUCCESS)
}
