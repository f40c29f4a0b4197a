//! `scaleprof diff`.

use crate::arguments::DiffArguments;
use crate::output::{put, say};
use crate::show;
use anyhow::Context;
use scaleprof_analysis::comparison::{Choice, compare_with_runs};
use scaleprof_bundle::Bundle;
use scaleprof_report::diff_page::{self, Compared};
use scaleprof_report::text::comparison;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn execute(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let (a, b) = (Bundle::open(&arguments.before)?, Bundle::open(&arguments.after)?);
    let choice = Choice {
        connections: arguments.rung,
        base_rung: arguments.base_rung,
        force: arguments.any_workload,
    };
    let (found, runs) = compare_with_runs(&a, &b, choice).with_context(|| {
        format!(
            "cannot compare {} with {}",
            arguments.before.display(),
            arguments.after.display()
        )
    })?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&found)?),
        false => {
            let names = [&arguments.before, &arguments.after].map(|folder| folder.display().to_string());
            put!(
                "{}",
                comparison::table(&found, names.each_ref().map(String::as_str), show::style())
            );
        }
    }
    // What was found stands on the terminal also where the page cannot be written.
    if let Some(path) = &arguments.html {
        let names = [&arguments.before, &arguments.after].map(|folder| folder_name(folder));
        let page = diff_page::render(&Compared {
            bundles: [&a, &b],
            names: names.each_ref().map(String::as_str),
            comparison: &found,
            runs: &runs,
            connections: arguments.rung,
        });
        show::write_whole(path, page)?;
        match arguments.json {
            true => eprintln!("Report: {}", path.display()),
            false => say!("\nReport: {}", path.display()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder's own name, for a page that is given away: the folders around it say who works where.
fn folder_name(folder: &Path) -> String {
    let own = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    own(folder)
        // Such as `.`, which has no name of its own.
        .or_else(|| own(&folder.canonicalize().ok()?))
        .unwrap_or_default()
}
