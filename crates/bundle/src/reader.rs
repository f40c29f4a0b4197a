//! Reading a bundle back, as much of it as was finished.

use crate::error::BundleError;
use crate::number_map::NumberMap;
use crate::part::{Groups, Table, read_part, read_samples};
use crate::writer::{MANIFEST, REMEDY_RESULTS, SUMMARY, UNFINISHED};
use crate::{
    BranchRow, CounterRow, DataAccessRow, ErrorRow, FrameRow, InstructionRow, LatencyRow, LockRow, Manifest,
    MeasurementRow, MeasurementRows, RemedyResult, SCHEMA, SampleBlock, SampleRow, Samples, SecondRow, SettingRow,
    StackRow, StateRow, Summary,
};
use crate::{both, in_parallel};
use scaleprof_vocabulary::RunState;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

/// A bundle in memory. Rows stand in the order of the measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// Its folder.
    pub path: PathBuf,
    /// What was run.
    pub manifest: Manifest,
    /// One row a finished measurement.
    pub measurements: Vec<MeasurementRow>,
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
    pub samples: Samples,
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
    /// What the remedies of the run's findings came to; empty where none was tried.
    pub remedy_results: Vec<RemedyResult>,
    /// Measurements that a killed run began to write and did not finish; their rows are left out.
    pub partial_measurements: Vec<i32>,
    /// Files that were being written when the run was killed, by their path in the bundle.
    pub unfinished_files: Vec<String>,
}

impl Bundle {
    /// Hash of the server's file, where it has no build-id.
    pub fn server_fingerprint(&self) -> Option<&str> {
        self.setting("scaleprof.server_fingerprint")
    }

    /// How the threads of the load were scheduled; none where there was no load of ours.
    pub fn load_scheduling(&self) -> Option<&str> {
        self.setting("scaleprof.load_scheduling")
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let row = self.settings.iter().find(|row| row.name == name);
        row.map(|row| row.value.as_str())
    }

    /// Reads all of a bundle.
    ///
    /// # Errors
    /// [`BundleError::NotABundle`], [`BundleError::Schema`], [`BundleError::NoMeasurements`], and for the first file that cannot be read
    /// [`BundleError::Part`], [`BundleError::Json`] or [`BundleError::Io`]. Files that a killed run left unfinished are no
    /// error.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Bundle, BundleError> {
        let path = folder.into();
        if !path.join(MANIFEST).exists() {
            return Err(BundleError::NotABundle { path });
        }
        let manifest = read_manifest(&path.join(MANIFEST))?;
        let mut unfinished_files = Vec::new();
        macro_rules! parts {
            ($($row:ident),*) => {
                ($(parts_of::<$row>(&path, &mut unfinished_files)?),*)
            };
        }
        let (rungs, seconds, counters, latency, errors, states, samples, locks, stacks, frames, settings) = parts!(
            MeasurementRow,
            SecondRow,
            CounterRow,
            LatencyRow,
            ErrorRow,
            StateRow,
            SampleRow,
            LockRow,
            StackRow,
            FrameRow,
            SettingRow
        );
        // Read apart by who wants them; what a killed run left of them is told with the rest.
        parts!(BranchRow, InstructionRow, DataAccessRow);
        let rungs: Vec<MeasurementRow> = read_table(&rungs)?;
        let finished: BTreeSet<i32> = rungs.iter().map(|row| row.measurement).collect();
        let mut unfinished = BTreeSet::new();
        let mut keep = |measurement: i32| {
            let kept = finished.contains(&measurement);
            if !kept {
                unfinished.insert(measurement);
            }
            kept
        };
        let mut seconds: Vec<SecondRow> = read_table(&seconds)?;
        seconds.retain(|row| keep(row.measurement));
        let mut counters: Vec<CounterRow> = read_table(&counters)?;
        counters.retain(|row| keep(row.measurement));
        let mut latency: Vec<LatencyRow> = read_table(&latency)?;
        latency.retain(|row| keep(row.measurement));
        let mut errors: Vec<ErrorRow> = read_table(&errors)?;
        errors.retain(|row| keep(row.measurement));
        let mut states: Vec<StateRow> = read_table(&states)?;
        states.retain(|row| keep(row.measurement));
        // The call paths take as long to read as the samples.
        let (dictionaries, samples) = both(|| dictionaries(&path, &stacks, &frames), || read_all_samples(samples));
        let mut samples = samples?;
        samples.retain_measurements(&mut keep);
        let mut locks: Vec<LockRow> = read_table(&locks)?;
        locks.retain(|row| keep(row.measurement));
        let (stacks, frames) = dictionaries?;
        let settings = read_table(&settings)?;
        let summary = read_json_where_it_is(&path.join(SUMMARY))?;
        let tried = read_json_where_it_is(&path.join(REMEDY_RESULTS))?.unwrap_or_default();
        if finished.is_empty() && !unfinished.is_empty() && manifest.state == RunState::Complete {
            return Err(BundleError::NoMeasurements {
                path,
                measurements: unfinished.len(),
            });
        }
        let partial_measurements = unfinished.into_iter().collect();
        Ok(Bundle {
            path,
            manifest,
            measurements: rungs,
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
            remedy_results: tried,
            partial_measurements,
            unfinished_files,
        })
    }

    /// Whether files of that name are what a bundle is made of; beside them may lie what can be made of it again.
    #[must_use]
    pub fn has_file_called(name: &str) -> bool {
        name.ends_with(".parquet") || [MANIFEST, SUMMARY, REMEDY_RESULTS].contains(&name)
    }

    /// Whether a folder is that of a bundle, readable or not.
    #[must_use]
    pub fn is_at(path: &Path) -> bool {
        path.join(MANIFEST).exists()
    }

    /// What [`open`](Self::open) gives of a bundle to which this measurement alone was written,
    /// with this manifest and no settings: for who just wrote it and would read it back. Its
    /// samples come apart from the rows of the other tables.
    #[must_use]
    pub fn of_one_measurement(
        path: &Path,
        manifest: &Manifest,
        rung: MeasurementRow,
        rows: MeasurementRows,
        samples: Samples,
    ) -> Bundle {
        debug_assert!(rows.samples.is_empty(), "they come apart");
        Bundle {
            path: path.to_owned(),
            manifest: manifest.without_folders(),
            measurements: vec![rung],
            seconds: rows.seconds,
            counters: rows.counters,
            latency: rows.latency,
            errors: rows.errors,
            states: rows.states,
            samples,
            locks: rows.locks,
            stacks: rows.stacks,
            frames: rows.frames,
            settings: Vec::new(),
            summary: None,
            remedy_results: Vec::new(),
            partial_measurements: Vec::new(),
            unfinished_files: Vec::new(),
        }
    }

    /// Reads the machine code of the functions that took most CPU time, by function and address. It is read apart because only
    /// few readers want it. Empty for a bundle of a run that was killed.
    ///
    /// # Errors
    /// [`BundleError::Part`] and [`BundleError::Io`].
    pub fn instructions(&self) -> Result<Vec<InstructionRow>, BundleError> {
        read_table(&parts_of::<InstructionRow>(&self.path, &mut Vec::new())?)
    }

    /// Reads the jumps that the processor remembered, of finished measurements; none for a bundle that has no such table, because they were
    /// not recorded.
    ///
    /// # Errors
    /// [`BundleError::Part`] and [`BundleError::Io`].
    pub fn branches(&self) -> Result<Option<Vec<BranchRow>>, BundleError> {
        if !self.path.join(BranchRow::NAME).exists() {
            return Ok(None);
        }
        let mut rows: Vec<BranchRow> = read_table(&parts_of::<BranchRow>(&self.path, &mut Vec::new())?)?;
        let finished: BTreeSet<i32> = self.measurements.iter().map(|rung| rung.measurement).collect();
        rows.retain(|row| finished.contains(&row.measurement));
        Ok(Some(rows))
    }

    /// Reads who touches the variables in the cache lines of hot instructions; none for a bundle of a run that was
    /// killed.
    ///
    /// # Errors
    /// [`BundleError::Part`] and [`BundleError::Io`].
    pub fn data_accesses(&self) -> Result<Option<Vec<DataAccessRow>>, BundleError> {
        if !self.path.join(DataAccessRow::NAME).exists() {
            return Ok(None);
        }
        read_table(&parts_of::<DataAccessRow>(&self.path, &mut Vec::new())?).map(Some)
    }
}

/// Looks at the version first: a newer manifest may well have another shape.
pub(crate) fn read_manifest(path: &Path) -> Result<Manifest, BundleError> {
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

fn read_json_where_it_is<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, BundleError> {
    match path.exists() {
        true => read_json(path).map(Some),
        false => Ok(None),
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, BundleError> {
    let text = fs::read(path).map_err(BundleError::io("read", path))?;
    serde_json::from_slice(&text).map_err(|source| BundleError::Json {
        path: path.to_owned(),
        source,
    })
}

/// The files of a table by their names; those that were not finished are noted.
fn parts_of<T: Table>(bundle: &Path, unfinished: &mut Vec<String>) -> Result<Vec<PathBuf>, BundleError> {
    let folder = bundle.join(T::NAME);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut parts: Vec<String> = Vec::new();
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
    Ok(parts.into_iter().map(|name| folder.join(name)).collect())
}

fn read_table<T: Table>(parts: &[PathBuf]) -> Result<Vec<T>, BundleError> {
    let mut rows = Vec::new();
    for part in parts {
        read_part(part, &mut rows)?;
    }
    Ok(rows)
}

/// The samples are nearly all of a large bundle: their parts are read at the same time, or the groups of one that is alone, as that of
/// an imported recording is.
fn read_all_samples(parts: Vec<PathBuf>) -> Result<Samples, BundleError> {
    let blocks: Result<Vec<Vec<SampleBlock>>, BundleError> = match &parts[..] {
        [alone] => Ok(vec![read_samples(alone, Groups::AtTheSameTime)?]),
        _ => in_parallel(parts, |part| read_samples(&part, Groups::OneByOne))
            .into_iter()
            .collect(),
    };
    Ok(Samples::of_blocks(blocks?.into_iter().flatten().collect()))
}

/// The call paths and their frames.
fn dictionaries(
    bundle: &Path,
    stacks: &[PathBuf],
    frames: &[PathBuf],
) -> Result<(Vec<StackRow>, Vec<FrameRow>), BundleError> {
    let stacks = one_of_each(bundle, read_table(stacks)?, |row: &StackRow| row.stack)?;
    let frames = one_of_each(bundle, read_table(frames)?, |row: &FrameRow| row.frame)?;
    Ok((stacks, frames))
}

/// A dictionary without its repetitions; one number with two meanings is an error.
fn one_of_each<T: Table + PartialEq>(
    bundle: &Path,
    rows: Vec<T>,
    number: impl Fn(&T) -> i64,
) -> Result<Vec<T>, BundleError> {
    let mut places: NumberMap<i64, usize> = NumberMap::default();
    places.reserve(rows.len());
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
