//! `scaleprof import`.

use crate::arguments::ImportArguments;
use crate::run::{our_arguments, public_command};
use crate::show;
use crate::terminal::TerminalProgress;
use anyhow::bail;
use scaleprof_experiment::{ImportFile, ImportRequest, ImportResult, KnownLoad, import};
use scaleprof_probe::symbol_search;
use scaleprof_profile::import::ReadOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn execute(arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    let request = ImportRequest {
        files: files(arguments)?,
        name: arguments.name.clone(),
        options: ReadOptions {
            event: arguments.event.clone(),
            process: arguments.process.clone(),
            symfs: arguments.symfs.clone(),
            build_id_caches: build_id_caches(),
            symbols: symbol_search(),
            inlines: !arguments.no_inline,
        },
        output: arguments
            .output
            .clone()
            .unwrap_or_else(|| Path::new("scaleprof-runs").join(format!("import-{}", show::compact_time()))),
        command: public_command(our_arguments()),
    };
    let mut progress = TerminalProgress::new(arguments.quiet);
    let result = import(&request, &mut progress);
    progress.finish();
    let ImportResult { bundle, summary } = result?;
    match arguments.json {
        true => print!("{}", show::summary_json(&summary)?),
        false => print!("{}", show::table(&summary)),
    }
    if !arguments.no_report {
        let page = show::write_page(&bundle, &summary, &bundle.path)?;
        if !arguments.json {
            println!("\nReport: {}", page.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The recordings with what is known of each.
fn files(arguments: &ImportArguments) -> anyhow::Result<Vec<ImportFile>> {
    let count = arguments.files.len();
    for (option, given) in [
        ("--connections", arguments.connections.len()),
        ("--throughput", arguments.throughput.len()),
    ] {
        if given != 0 && given != count {
            bail!("{option} has {given} numbers for {count} files: give one for each, in the order of the files");
        }
    }
    let loads = arguments.connections.iter().zip(&arguments.throughput);
    let mut loads = loads.map(|(connections, throughput)| KnownLoad {
        connections: *connections,
        throughput: *throughput,
    });
    let files = arguments.files.iter().map(|path| ImportFile {
        path: path.clone(),
        load: loads.next(),
    });
    Ok(files.collect())
}

/// Where `perf buildid-cache` keeps files.
fn build_id_caches() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".debug"));
    home.into_iter().collect()
}
