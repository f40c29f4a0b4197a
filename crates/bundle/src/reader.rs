//! Reading a bundle back, as much of it as was finished.

use crate::error::BundleError;
use crate::part::{Table, read_part};
use crate::writer::{MANIFEST, SUMMARY, UNFINISHED};
use crate::{
    CounterRow, DataAccessRow, ErrorRow, FrameRow, InstructionRow, LatencyRow, LockRow, Manifest, RungRow, SCHEMA,
    SampleRow, SecondRow, SettingRow, StackRow, StateRow, Summary,
};
use serde::de::DeserializeOwned;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// A bundle in memory. Rows stand in the order of the visits.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// Its folder.
    pub path: PathBuf,
    /// What was run.
    pub manifest: Manifest,
    /// One row a finished visit.
    pub rungs: Vec<RungRow>,
    /// Their seconds.
    pub seconds: Vec<SecondRow>,
    /// Their counters.
    pub counters: Vec<CounterRow>,
    /// Their latency histograms.
    pub latency: Vec<LatencyRow>,
    /// Their errors.
    pub errors: Vec<ErrorRow>,
    /// What their threads did.
    pub states: Vec<StateRow>,
    /// Their threads' call paths.
    pub samples: Vec<SampleRow>,
    /// The locks that were waited for.
    pub locks: Vec<LockRow>,
    /// The call paths of the samples, every one once.
    pub stacks: Vec<StackRow>,
    /// The frames of the call paths, every one once.
    pub frames: Vec<FrameRow>,
    /// The server's settings; empty where they were not written yet.
    pub settings: Vec<SettingRow>,
    /// The summary that was kept; none before the run's end.
    pub summary: Option<Summary>,
    /// Visits that a killed run began to write and did not finish; their rows are left out.
    pub unfinished_visits: Vec<i32>,
    /// Files that were being written when the run was killed, by their path in the bundle.
    pub unfinished_files: Vec<String>,
}

impl Bundle {
    /// Reads all of a bundle.
    ///
    /// # Errors
    /// [`BundleError::NotABundle`], [`BundleError::Schema`], and for the first file that cannot be read
    /// [`BundleError::Part`], [`BundleError::Json`] or [`BundleError::Io`]. Files that a killed run left unfinished are no
    /// error.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Bundle, BundleError> {
        let path = folder.into();
        if !path.join(MANIFEST).exists() {
            return Err(BundleError::NotABundle { path });
        }
        let manifest = read_manifest(&path.join(MANIFEST))?;
        let mut unfinished_files = Vec::new();
        let rungs: Vec<RungRow> = read_table(&path, &mut unfinished_files)?;
        let finished: BTreeSet<i32> = rungs.iter().map(|row| row.visit).collect();
        let mut unfinished = BTreeSet::new();
        let mut keep = |visit: i32| {
            let kept = finished.contains(&visit);
            if !kept {
                unfinished.insert(visit);
            }
            kept
        };
        let mut seconds: Vec<SecondRow> = read_table(&path, &mut unfinished_files)?;
        seconds.retain(|row| keep(row.visit));
        let mut counters: Vec<CounterRow> = read_table(&path, &mut unfinished_files)?;
        counters.retain(|row| keep(row.visit));
        let mut latency: Vec<LatencyRow> = read_table(&path, &mut unfinished_files)?;
        latency.retain(|row| keep(row.visit));
        let mut errors: Vec<ErrorRow> = read_table(&path, &mut unfinished_files)?;
        errors.retain(|row| keep(row.visit));
        let mut states: Vec<StateRow> = read_table(&path, &mut unfinished_files)?;
        states.retain(|row| keep(row.visit));
        let mut samples: Vec<SampleRow> = read_table(&path, &mut unfinished_files)?;
        samples.retain(|row| keep(row.visit));
        let mut locks: Vec<LockRow> = read_table(&path, &mut unfinished_files)?;
        locks.retain(|row| keep(row.visit));
        let stacks: Vec<StackRow> = read_table(&path, &mut unfinished_files)?;
        let stacks = one_of_each(&path, stacks, |row| row.stack)?;
        let frames: Vec<FrameRow> = read_table(&path, &mut unfinished_files)?;
        let frames = one_of_each(&path, frames, |row| row.frame)?;
        let settings = read_table(&path, &mut unfinished_files)?;
        let summary_path = path.join(SUMMARY);
        let summary = if summary_path.exists() {
            Some(read_json(&summary_path)?)
        } else {
            None
        };
        let unfinished_visits = unfinished.into_iter().collect();
        Ok(Bundle {
            path,
            manifest,
            rungs,
            seconds,
            counters,
            latency,
            errors,
            states,
            samples,
            locks,
            stacks,
            frames,
            settings,
            summary,
            unfinished_visits,
            unfinished_files,
        })
    }

    /// Reads the machine code of the functions that took most CPU time, by function and address. It is read apart because only
    /// few readers want it. Empty for a bundle of a version that did not keep it, or of a run that was killed.
    ///
    /// # Errors
    /// [`BundleError::Part`] and [`BundleError::Io`].
    pub fn instructions(&self) -> Result<Vec<InstructionRow>, BundleError> {
        read_table(&self.path, &mut Vec::new())
    }

    /// Reads who touches the variables in the cache lines of hot instructions; none for a bundle that has no such table, because
    /// an earlier version wrote it or the run was killed.
    ///
    /// # Errors
    /// [`BundleError::Part`] and [`BundleError::Io`].
    pub fn data_accesses(&self) -> Result<Option<Vec<DataAccessRow>>, BundleError> {
        if !self.path.join(DataAccessRow::NAME).exists() {
            return Ok(None);
        }
        read_table(&self.path, &mut Vec::new()).map(Some)
    }
}

/// Looks at the version first: a newer manifest may well have another shape.
fn read_manifest(path: &Path) -> Result<Manifest, BundleError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema: u32,
    }
    let Version { schema } = read_json(path)?;
    if schema != SCHEMA {
        return Err(BundleError::Schema {
            path: path.to_owned(),
            found: schema,
            known: SCHEMA,
        });
    }
    read_json(path)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, BundleError> {
    let text = fs::read(path).map_err(BundleError::io("read", path))?;
    serde_json::from_slice(&text).map_err(|source| BundleError::Json {
        path: path.to_owned(),
        source,
    })
}

fn read_table<T: Table>(bundle: &Path, unfinished: &mut Vec<String>) -> Result<Vec<T>, BundleError> {
    let folder = bundle.join(T::NAME);
    let mut rows = Vec::new();
    if !folder.exists() {
        return Ok(rows);
    }
    let mut parts = Vec::new();
    for entry in fs::read_dir(&folder).map_err(BundleError::io("look into", &folder))? {
        let name = entry
            .map_err(BundleError::io("look into", &folder))?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if name.ends_with(UNFINISHED) {
            unfinished.push(format!("{}/{name}", T::NAME));
        } else if name.ends_with(".parquet") && !name.starts_with(['.', '_']) {
            parts.push(name);
        }
    }
    parts.sort_by_key(|name| (name.len(), name.clone()));
    for name in parts {
        read_part(&folder.join(name), &mut rows)?;
    }
    Ok(rows)
}

/// A dictionary without its repetitions; one number with two meanings is an error.
fn one_of_each<T: Table + PartialEq>(
    bundle: &Path,
    rows: Vec<T>,
    number: impl Fn(&T) -> i64,
) -> Result<Vec<T>, BundleError> {
    let mut places = HashMap::with_capacity(rows.len());
    let mut unique: Vec<T> = Vec::with_capacity(rows.len());
    for row in rows {
        match places.entry(number(&row)) {
            Entry::Vacant(place) => {
                place.insert(unique.len());
                unique.push(row);
            }
            Entry::Occupied(place) if unique[*place.get()] == row => {}
            Entry::Occupied(place) => {
                return Err(BundleError::Part {
                    path: bundle.join(T::NAME),
                    problem: format!("the number {} stands for two different entries", place.key()),
                });
            }
        }
    }
    Ok(unique)
}
