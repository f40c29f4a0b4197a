//! `scaleprof cache`.

use crate::arguments::{CacheArguments, CacheCommand};
use crate::output::say;
use scaleprof_server::{CACHE_SIZE, Cache, WorkFolder};
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
        None | Some(CacheCommand::List | CacheCommand::Path) => list(&cache, &folder)?,
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

fn list(cache: &Cache, folder: &Path) -> anyhow::Result<()> {
    let list = cache.list()?;
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
        "{:>7} MiB  in all; a run keeps {} GiB at most (--cache-size) and removes what was not used for longest",
        bytes >> 20,
        CACHE_SIZE >> 30
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
