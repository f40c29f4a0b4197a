//! A recording as a bundle that is not kept, for who only wants it in another format.

use super::imported_manifest::{begin, describe, has_shares_only};
use super::imported_measurement::{ImportedMeasurement, Known};
use super::{ImportFailure, ImportRequest, NO_TIME, Sampling, bytes_of, check_loads, doubts, plausible_time, read};
use crate::observe::now;
use crate::progress::Progress;
use scaleprof_bundle::Bundle;
use scaleprof_profile::import::{Leftovers, ReadOptions, Weights};
use scaleprof_vocabulary::RunState;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::slice;

/// What [`import`](super::import()) would leave of one recording without a known load: nothing is written. Its path is that of the recording.
///
/// # Errors
/// The file cannot be read, or holds two recordings.
pub fn import_in_memory(
    file: &Path,
    options: &ReadOptions,
    progress: &mut dyn Progress,
) -> Result<(Bundle, Leftovers), ImportFailure> {
    let request = ImportRequest {
        cpus: None,
        files: vec![file.to_owned()],
        loads: Vec::new(),
        stats: Vec::new(),
        flat: Vec::new(),
        sampling: Sampling::default(),
        name: None,
        options: options.clone(),
        keep_code: false,
        output: PathBuf::new(),
        command: Vec::new(),
    };
    let bytes = bytes_of(file)?;
    check_loads(&request, slice::from_ref(&bytes))?;
    progress.stage(&format!("reading {}", file.display()));
    let mut manifest = begin(&request, false);
    let read = read(file, bytes, &request)?.into_iter().next();
    let mut recording = read.unwrap_or_else(|| unreachable!("a file that can be read holds a recording"));
    plausible_time::settle(&mut recording);
    for warning in &recording.warnings {
        progress.warning(warning);
    }
    if let Some(words) = doubts::no_kernel(&recording) {
        progress.warning(&words);
    }
    if recording.weights == Weights::Counts {
        progress.warning(NO_TIME);
        has_shares_only(&mut manifest);
    }
    describe(&mut manifest, &recording, options.inlines, &mut BTreeMap::new());
    manifest.state = RunState::Complete;
    let known = Known {
        measurement: 0,
        repeat: 0,
        load: None,
        stat: None,
        started_at: now(),
    };
    let (imported, samples) = ImportedMeasurement::with_samples(&known, recording);
    let (bundle, mut rest) = imported.into_bundle(file, &manifest, samples);
    rest.forget();
    Ok((bundle, Leftovers::of(rest)))
}
