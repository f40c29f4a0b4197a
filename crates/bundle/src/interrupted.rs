//! Bundles whose writer is ended from outside.

use crate::Manifest;
use crate::error::BundleError;
use crate::reader::read_manifest;
use crate::writer::{ENDING, MANIFEST, UNFINISHED};
use scaleprof_guard::{Folder, replace_in};
use scaleprof_vocabulary::RunState;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::sync::{PoisonError, RwLockWriteGuard};

/// As long as this lives no writer of this process puts anything into a bundle: it is for who ends the process.
#[derive(Debug)]
#[must_use = "what is written behind it may say that it goes on"]
pub struct Halt {
    _nothing_is_renamed: RwLockWriteGuard<'static, ()>,
}

/// Says in the manifest of the bundle in `folder` that the user stopped it, where it says that it is being written; a writer that was
/// done has said so, and keeps that word. `ended_at` is now, as the manifest has times.
///
/// # Errors
/// Those of the file system, and of a manifest that cannot be read.
pub fn tell_interrupted(folder: &Path, ended_at: String) -> Result<Halt, BundleError> {
    let halt = Halt {
        _nothing_is_renamed: ENDING.write().unwrap_or_else(PoisonError::into_inner),
    };
    let path = folder.join(MANIFEST);
    let manifest = read_manifest(&path)?;
    if manifest.state != RunState::Running {
        return Ok(halt);
    }
    let manifest = Manifest {
        state: RunState::Interrupted,
        ended_at: Some(ended_at),
        problem: Some("stopped by the user".to_owned()),
        ..manifest
    };
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(|source| BundleError::Json {
        path: path.clone(),
        source,
    })?;
    text.push(b'\n');
    // Another name than that of a writer who waits with his.
    let part = format!(".{MANIFEST}.interrupted{UNFINISHED}");
    let names = (OsStr::new(MANIFEST), OsStr::new(&part));
    Folder::open_linked(folder)
        .and_then(|folder| replace_in(&folder, names, |file| file.write_all(&text), || {}))
        .map_err(BundleError::io("write", &path))?;
    Ok(halt)
}
