//! `scaleprof diff`.

use crate::arguments::DiffArguments;
use crate::output::{put, say};
use crate::show;
use anyhow::Context;
use scaleprof_analysis::comparison::{Choice, compare};
use scaleprof_bundle::Bundle;
use scaleprof_report::text::comparison;
use std::process::ExitCode;

pub(crate) fn execute(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let (a, b) = (Bundle::open(&arguments.before)?, Bundle::open(&arguments.after)?);
    let choice = Choice {
        connections: arguments.connections,
        base_rung: arguments.base_rung,
        force: arguments.force,
    };
    let found = compare(&a, &b, choice).with_context(|| {
        format!(
            "cannot compare {} with {}",
            arguments.before.display(),
            arguments.after.display()
        )
    })?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&found)?),
        false => put!("{}", comparison::table(&found, show::style())),
    }
    Ok(ExitCode::SUCCESS)
}
