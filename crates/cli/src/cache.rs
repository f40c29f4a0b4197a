//! `scaleprof cache`.

use crate::arguments::CacheArguments;
use crate::output::say;
use scaleprof_server::{CACHE_SIZE, Cache, WorkFolder};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn execute(arguments: &CacheArguments) -> anyhow::Result<ExitCode> {
    let folder = arguments
        .work_folder
        .as_deref()
        .map_or_else(WorkFolder::default_path, Path::to_path_buf);
    let cache = Cache::open(&WorkFolder::open(&folder)?)?;
    if arguments.remove {
        let count = cache.remove_all()?;
        say!("removed {count} prepared data folders");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(most) = arguments.cache_size {
        let gone = cache.keep_to(most)?;
        say!("removed {} prepared data folders", gone.len());
    }
    let list = cache.list()?;
    if list.is_empty() {
        say!("no prepared data folders in {}", folder.display());
        return Ok(ExitCode::SUCCESS);
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
    Ok(ExitCode::SUCCESS)
}

/// The server with as much of its build-id or hash as tells builds apart.
fn short(server: &str) -> String {
    const DIGITS: usize = 12;
    match server.rsplit_once(':') {
        Some((what, hash)) if hash.len() > DIGITS && hash.is_ascii() => format!("{what}:{}", &hash[..DIGITS]),
        _ => server.to_owned(),
    }
}
