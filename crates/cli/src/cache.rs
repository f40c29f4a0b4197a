//! `scaleprof cache`.

use crate::arguments::{CacheArguments, CacheCommand};
use crate::output::say;
use scaleprof_server::{Cache, WorkFolder, cache_size};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn execute(arguments: &CacheArguments) -> anyhow::Result<ExitCode> {
    let folder = arguments
        .work_dir
        .as_deref()
        .map_or_else(WorkFolder::default_path, Path::to_path_buf);
    if let Some(CacheCommand::Path) = arguments.command {
        say!("{}", WorkFolder::cache_in(&folder).display());
        return Ok(ExitCode::SUCCESS);
    }
    let cache = Cache::open(&WorkFolder::open(&folder)?)?;
    match arguments.command {
        None | Some(CacheCommand::Path) => list(&cache, &folder, false)?,
        Some(CacheCommand::List { json }) => list(&cache, &folder, json)?,
        Some(CacheCommand::Remove { keep }) => {
            let count = match keep {
                None => cache.remove_all()?,
                Some(most) => cache.keep_to(most)?.len(),
            };
            say!("removed {count} prepared data folders");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// As `--json` gives it.
#[derive(Serialize)]
struct Listing {
    /// Layout of this document.
    schema: u32,
    /// Where they are.
    folder: String,
    /// What a run keeps at most, bytes.
    limit_bytes: u64,
    prepared: Vec<Prepared>,
}

/// One prepared data folder.
#[derive(Serialize)]
struct Prepared {
    server: String,
    workload: String,
    bytes: u64,
    /// When it was made, seconds since 1970.
    created: u64,
}

fn list(cache: &Cache, folder: &Path, json: bool) -> anyhow::Result<()> {
    let list = cache.list()?;
    let limit = cache_size().map_err(anyhow::Error::msg)?;
    if json {
        let entries = list.iter().map(|prepared| prepared.entry());
        let prepared = entries.map(|entry| Prepared {
            server: entry.key.server.clone(),
            workload: entry.key.workload.clone(),
            bytes: entry.bytes,
            created: entry.created,
        });
        let listing = Listing {
            schema: 1,
            folder: WorkFolder::cache_in(folder).display().to_string(),
            limit_bytes: limit,
            prepared: prepared.collect(),
        };
        say!("{}", serde_json::to_string_pretty(&listing)?);
        return Ok(());
    }
    if list.is_empty() {
        say!("no prepared data folders in {}", folder.display());
        return Ok(());
    }
    let bytes: u64 = list.iter().map(|prepared| prepared.entry().bytes).sum();
    for prepared in list {
        let entry = prepared.entry();
        say!(
            "{:>7} MiB  {}  {}",
            entry.bytes >> 20,
            short(&entry.key.server),
            entry.key.workload
        );
    }
    say!(
        "{:>7} MiB  in all; a run keeps at most {} MiB (--cache-size) and removes the least recently used first",
        bytes >> 20,
        limit >> 20
    );
    Ok(())
}

/// The server with as much of its build-id or hash as tells builds apart.
fn short(server: &str) -> String {
    const DIGITS: usize = 12;
    match server.rsplit_once(':') {
        Some((what, hash)) if hash.len() > DIGITS && hash.is_ascii() => format!("{what}:{}", &hash[..DIGITS]),
        _ => server.to_owned(),
    }
}
