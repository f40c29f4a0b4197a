//! Bundles whose writer is ended from outside.

use crate::error::BundleError;
use crate::reader::read_manifest;
use crate::writer::{MANIFEST, UNFINISHED};
use crate::{Manifest, RunState};
use std::fs;
use std::path::Path;

/// Says in the manifest of the bundle in `folder` that the user stopped it, where it says that it is being written. `ended_at` is now, as
/// the manifest has times.
///
/// For who ends the process at once, beside threads that still write: it has a file of its own until it is renamed, so that the
/// manifest is whole whichever comes last. A writer that was just done has said so, and keeps that word, unless it says it in the
/// moment between the look and the rename.
///
/// # Errors
/// Those of the file system, and of a manifest that cannot be read.
pub fn tell_interrupted(folder: &Path, ended_at: String) -> Result<(), BundleError> {
    let path = folder.join(MANIFEST);
    let manifest = read_manifest(&path)?;
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
    let unfinished = folder.join(format!(".{MANIFEST}.interrupted{UNFINISHED}"));
    let replaced = || {
        fs::write(&unfinished, text).map_err(BundleError::io("write", &unfinished))?;
        match read_manifest(&path)?.state {
            RunState::Running => fs::rename(&unfinished, &path).map_err(BundleError::io("rename into place", &path)),
            _ => fs::remove_file(&unfinished).map_err(BundleError::io("remove", &unfinished)),
        }
    };
    replaced().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}
