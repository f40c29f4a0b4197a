//! The command line of scaleprof. It reads arguments, shows progress and results, and has no logic of its own.

#![allow(rustdoc::broken_intra_doc_links)] // Help is written for terminals: brackets in it are no links.

mod address_arguments;
mod annotate;
mod arguments;
mod attach;
mod bench_load;
mod cache;
mod cachelines;
mod check;
mod choice;
mod credentials;
mod diff;
mod error_text;
mod exit;
mod experiment;
mod experiment_arguments;
mod experiment_progress;
mod export;
mod export_arguments;
mod global_arguments;
mod import;
mod import_arguments;
mod load_arguments;
mod manual;
mod output;
mod probe_arguments;
mod public_command;
mod recording;
mod report;
mod run;
mod same_build;
mod sanitized;
mod selfbench;
mod servers;
mod servers_arguments;
mod show;
mod spinloops;
mod stop;
mod terminal;
mod tls_arguments;
mod topology_arguments;
mod trying;

use arguments::{Arguments, Command};
use clap::Parser;
use exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The janitor is started by re-executing this file; it must not read arguments or touch the terminal.
    if std::env::args_os().nth(1).as_deref() == Some(scaleprof_server::janitor::ARGUMENT.as_ref()) {
        scaleprof_server::janitor::main_loop(stop::standard_input());
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    arguments.global.color.decide();
    let quiet = arguments.global.quiet;
    let result = match arguments.command {
        Command::Run(run) => run::execute(*run, quiet),
        Command::Attach(attach) => attach::execute(&attach, quiet),
        Command::Report(report) => report::execute(&report),
        Command::Diff(diff) => diff::execute(&diff),
        Command::Experiment(experiment) => experiment::execute(&experiment, quiet),
        Command::Export(export) => export::execute(&export),
        Command::Import(import) => import::execute(&import, quiet),
        Command::Check(check) => check::execute(&check),
        Command::SpinLoops(spinloops) => spinloops::execute(&spinloops),
        Command::Annotate(annotate) => annotate::execute(&annotate),
        Command::CacheLines(cachelines) => cachelines::execute(&cachelines),
        Command::Selfbench(selfbench) => selfbench::execute(&selfbench),
        Command::Servers(servers) => servers::execute(&servers, quiet),
        Command::Cache(cache) => cache::execute(&cache),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::man_pages(&folder),
    };
    let result = match scaleprof_probe::truncated_files().first() {
        None => result,
        Some(path) => {
            let cut = format!(
                "{} was truncated during the read, or its disk is unreadable, so results may be wrong\nfix: run the \
                 command again when nobody writes the file",
                path.display()
            );
            match result {
                Ok(_) => Err(anyhow::anyhow!(cut)),
                Err(error)
                    if matches!(
                        error.downcast_ref(),
                        Some(scaleprof_experiment::ImportFailure::Truncated { .. })
                    ) =>
                {
                    Err(error)
                }
                Err(error) => Err(error.context(cut)),
            }
        }
    };
    match result {
        Ok(code) => code,
        // As for a program that the kernel ends there: nobody reads an error.
        Err(error)
            if error
                .downcast_ref::<output::Unwritten>()
                .is_some_and(output::Unwritten::reader_is_gone) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", error_text::of(&error));
            let was_stopped = matches!(error.downcast_ref(), Some(scaleprof_experiment::RunError::Stopped))
                || matches!(error.downcast_ref(), Some(scaleprof_builds::Error::Stopped));
            let exit = match was_stopped {
                true => Exit::Stopped(stop::signal()),
                false if error.is::<exit::NoConsent>() => Exit::Usage,
                false => Exit::Failed,
            };
            exit.into()
        }
    }
}
