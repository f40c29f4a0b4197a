//! `scaleprof servers`.

mod progress;
mod table;

use crate::output::say;
use crate::servers_arguments::{FetchArguments, ServersArguments, ServersCommand};
use crate::stop;
use progress::FetchProgress;
use scaleprof_builds::{Build, Fetched, Request, Shelf, fetch};
use scaleprof_probe::symbol_search;
use scaleprof_server::Installation;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// As `--json` gives it.
#[derive(Debug, Serialize)]
struct Listing {
    /// Where the builds are.
    folder: PathBuf,
    servers: Vec<Build>,
}

pub(crate) fn execute(arguments: &ServersArguments, quiet: bool) -> anyhow::Result<ExitCode> {
    let shelf = Shelf::at(&Shelf::default_path())?;
    match &arguments.command {
        None => list(&shelf, arguments.list.json)?,
        Some(ServersCommand::List(list_arguments)) => list(&shelf, list_arguments.json)?,
        Some(ServersCommand::Fetch(arguments)) => fetch_one(&shelf, arguments, quiet)?,
        Some(ServersCommand::Remove { names }) => {
            // All of them are looked for before the first one goes.
            for name in names {
                shelf.find(name)?;
            }
            for name in names {
                shelf.remove(name)?;
                say!("removed {name}");
            }
        }
        Some(ServersCommand::Path { name }) => say!("{}", shelf.find(name)?.path.display()),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(shelf: &Shelf, json: bool) -> anyhow::Result<()> {
    let search = symbol_search();
    let mut servers: Vec<Build> = shelf
        .list()?
        .iter()
        .map(|shelved| Build::of_shelf(shelved, &search))
        .collect();
    let installed = Installation::installed();
    servers.extend(installed.iter().map(|found| Build::installed(found, &search)));
    match json {
        true => {
            let folder = shelf.path().to_owned();
            say!("{}", serde_json::to_string_pretty(&Listing { folder, servers })?);
        }
        false => table::print(shelf, &servers)?,
    }
    Ok(())
}

fn fetch_one(shelf: &Shelf, arguments: &FetchArguments, quiet: bool) -> anyhow::Result<()> {
    let request = Request {
        source: arguments.source.parse()?,
        name: arguments.name.clone(),
        sha256: arguments.sha256.clone(),
        force: arguments.replace,
        repository: arguments.repository.clone(),
    };
    let stop = stop::flag()?;
    let mut progress = FetchProgress::new(quiet);
    let result = fetch(shelf, &request, &mut progress, &stop);
    progress.finish();
    let (there, new) = match result? {
        Fetched::New(there) => (there, true),
        Fetched::WasThere(there) => (there, false),
    };
    if quiet {
        say!("{}", there.path.display());
        return Ok(());
    }
    let build = Build::of_shelf(&there, &symbol_search());
    table::print(shelf, std::slice::from_ref(&build))?;
    match new {
        true => say!("\nfetched: scaleprof run --server {}", there.name),
        false => say!("\n{} exists already; --replace fetches it again", there.name),
    }
    Ok(())
}
