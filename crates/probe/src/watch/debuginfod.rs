//! Debug files from a debuginfod server: only when asked for, through elfutils' own client, which keeps what it fetched.

use scaleprof_guard::{FOR_DOWNLOADS, with_clean_environment};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CLIENT: &str = "debuginfod-find";

/// Folders in which the client keeps what it fetched, as debuginfod-find(1) says: `FOLDER/BUILD-ID/debuginfo`.
pub(crate) fn caches() -> Vec<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = variable("HOME");
    [
        variable("DEBUGINFOD_CACHE_PATH"),
        variable("XDG_CACHE_HOME").map(|cache| cache.join("debuginfod_client")),
        home.as_deref().map(|home| home.join(".cache/debuginfod_client")),
        home.as_deref().map(|home| home.join(".debuginfod_client_cache")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether debuginfod can be asked at all; an error says what it lacks and how to mend that.
pub fn debuginfod_can_be_asked() -> Result<(), String> {
    if std::env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
        return Err(
            "the variable DEBUGINFOD_URLS names no server: export DEBUGINFOD_URLS=https://debuginfod.debian.net (or \
             https://debuginfod.ubuntu.com)"
                .to_owned(),
        );
    }
    let client = client()
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match client {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("the program {CLIENT} is not here: apt-get install debuginfod")),
    }
}

fn client() -> Command {
    let mut command = Command::new(CLIENT);
    with_clean_environment(&mut command, &FOR_DOWNLOADS);
    command
}

/// Fetches the debug file of a build-id (in hexadecimal) into the client's cache. An error says why not.
pub(crate) fn fetch(build_id: &str) -> Result<PathBuf, String> {
    let output = client()
        .args(["debuginfo", build_id])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{CLIENT}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().last().unwrap_or("it was not found").trim().to_owned());
    }
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match Path::new(&path).is_file() {
        true => Ok(path.into()),
        false => Err(format!("{CLIENT} named no file")),
    }
}
