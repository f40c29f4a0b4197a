//! `scaleprof attach --pid`: watching a server under a load that is not ours.

use crate::arguments::{Arguments, AttachArguments};
use crate::output::{put, say};
use crate::run::{our_arguments, public_command};
use crate::show;
use crate::stop;
use crate::terminal::TerminalProgress;
use anyhow::{Context, bail};
use clap::CommandFactory;
use clap::parser::ValueSource;
use scaleprof_experiment::{WatchRequest, WatchResult, watch};
use std::process::ExitCode;

/// The options that say something to a watch; all others are about a load.
const OPTIONS: [&str; 10] = [
    "pid",
    "force",
    "seconds",
    "output",
    "quiet",
    "json",
    "frequency",
    "wait-stacks",
    "wait-cost",
    "debuginfod",
];

pub(crate) fn execute(pid: u32, arguments: &AttachArguments) -> anyhow::Result<ExitCode> {
    let others = other_options();
    if !others.is_empty() {
        bail!(
            "--pid only watches the server, without a connection and without a load of ours, so it does not go with {}: \
             leave {} out, or give --socket or --dsn instead of --pid",
            others.join(", "),
            if others.len() == 1 { "it" } else { "them" }
        );
    }
    let request = WatchRequest {
        pid,
        force: arguments.force,
        seconds: arguments.ladder.seconds,
        options: arguments
            .probe
            .options()?
            .context("--pid does nothing without the probe")?,
        output: arguments.ladder.output("watch"),
        command: public_command(our_arguments()),
    };
    let stop = stop::flag()?;
    let mut progress = TerminalProgress::new(arguments.ladder.quiet);
    let result = watch(&request, &stop, &mut progress);
    progress.finish();
    let WatchResult {
        bundle,
        summary,
        problem,
    } = result?;
    match arguments.ladder.json {
        true => put!("{}", show::summary_json(&summary)?),
        false => {
            put!("{}", show::table(&summary));
            let page = show::write_page(&bundle, &summary, &bundle.path)?;
            say!("\nReport: {}", page.display());
        }
    }
    match problem {
        None => Ok(ExitCode::SUCCESS),
        Some(problem) => bail!("{problem}; what was seen until then is in {}", bundle.path.display()),
    }
}

/// The options on the command line that say nothing to a watch.
fn other_options() -> Vec<String> {
    let command = Arguments::command();
    let matches = command.clone().get_matches();
    let Some((name, given)) = matches.subcommand() else {
        return Vec::new();
    };
    let options = command
        .find_subcommand(name)
        .into_iter()
        .flat_map(|command| command.get_arguments());
    options
        .filter(|option| given.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine))
        .filter_map(|option| option.get_long())
        .filter(|name| !OPTIONS.contains(name))
        .map(|name| format!("--{name}"))
        .collect()
}
