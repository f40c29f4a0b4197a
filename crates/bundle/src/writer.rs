//! Writing a bundle while the run goes on.

use crate::error::BundleError;
use crate::in_parallel;
use crate::number_map::NumberMap;
use crate::part::{RowsToCome, Table, write_groups};
use crate::{
    BranchRow, DataAccessRow, InstructionRow, Manifest, MeasurementRow, MeasurementRows, MeasurementTables,
    RemedyResult, SampleRow, SettingRow, Summary,
};
use foldhash::fast::RandomState;
use scaleprof_guard::{Folder, NoOutput, part_of as part_of_file, replace_in};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher as _, Hash};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const SUMMARY: &str = "summary.json";
pub(crate) const REMEDY_RESULTS: &str = "remedies.json";
pub(crate) const SETTINGS_PART: &str = "settings.parquet";
pub(crate) const INSTRUCTIONS_PART: &str = "instructions.parquet";
pub(crate) const DATA_ACCESSES_PART: &str = "data_accesses.parquet";
/// Files that were not finished end in this; engines skip names that begin with a dot.
pub(crate) use scaleprof_guard::UNFINISHED;

/// Read while a file is renamed into place; written by who ends the process, so that nothing is from then on.
pub(crate) static ENDING: RwLock<()> = RwLock::new(());

/// Writes one bundle. Every file is written under another name, flushed to the disk (but for imports, [`without_flushing`](BundleWriter::without_flushing))
/// and then renamed, so that a run that is killed at any time leaves a bundle that can be read.
#[derive(Debug)]
pub struct BundleWriter {
    folder: Folder,
    known: Mutex<Known>,
    flushes: bool,
}

/// Entries of the dictionaries that are on the disk: by their numbers a hash of all of each.
#[derive(Debug, Default)]
struct Known {
    stacks: NumberMap<i64, u64>,
    frames: NumberMap<i64, u64>,
    hasher: RandomState,
}

impl BundleWriter {
    /// A new bundle in `folder`, which is made where it is missing and must be empty where it is not.
    ///
    /// # Errors
    /// [`BundleError::NotEmpty`] or [`BundleError::AlreadyABundle`] where something is there, [`BundleError::Exposed`] where the folder is
    /// somebody else's; nothing is changed then.
    pub fn create(folder: impl Into<PathBuf>) -> Result<BundleWriter, BundleError> {
        let path = folder.into();
        let folder = Folder::for_output(&path).map_err(|error| match error {
            NoOutput::Exposed(source) => BundleError::Exposed {
                path: path.clone(),
                source,
            },
            NoOutput::System(source) => BundleError::io("create the folder", &path)(source),
        })?;
        let names = folder.names().map_err(BundleError::io("look into", &path))?;
        if !names.is_empty() {
            return Err(match names.iter().any(|name| name == MANIFEST) {
                true => BundleError::AlreadyABundle { path },
                false => BundleError::NotEmpty { path },
            });
        }
        Ok(BundleWriter::new(folder))
    }

    /// The bundle that is already in `folder`, to write its manifest or summary anew.
    ///
    /// # Errors
    /// [`BundleError::NotABundle`] where there is none.
    pub fn reopen(folder: impl Into<PathBuf>) -> Result<BundleWriter, BundleError> {
        let path = folder.into();
        match path.join(MANIFEST).exists() {
            true => {
                let folder = Folder::open_linked(&path).map_err(BundleError::io("open", &path))?;
                Ok(BundleWriter::new(folder))
            }
            false => Err(BundleError::NotABundle { path }),
        }
    }

    fn new(folder: Folder) -> BundleWriter {
        BundleWriter {
            folder,
            known: Mutex::default(),
            flushes: true,
        }
    }

    /// Leaves it to the kernel when files go to the disk: for what can be made again, such as an import. A writer that is killed leaves
    /// what it would have left; after a power cut files of the last half minute may be empty.
    #[must_use]
    pub fn without_flushing(self) -> BundleWriter {
        BundleWriter { flushes: false, ..self }
    }

    /// The bundle's folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes `manifest.json`; first when the run begins, again when it ends. Of paths in its words only the last part is
    /// kept: what somebody's error message says is in it must not say whose machine it was.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), BundleError> {
        self.write_json(MANIFEST, &manifest.without_folders())
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// Those of the file system, and [`BundleError::Json`] for a figure that is not finite.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), BundleError> {
        self.write_json(SUMMARY, summary)
    }

    /// Writes `remedies.json`: what the remedies of a run came to.
    ///
    /// # Errors
    /// Those of the file system, and [`BundleError::Json`] for a figure that is not finite.
    pub fn write_remedy_results(&self, tried: &[RemedyResult]) -> Result<(), BundleError> {
        self.write_json(REMEDY_RESULTS, &tried.to_vec())
    }

    /// Writes the server's settings.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_settings(&self, settings: &[SettingRow]) -> Result<(), BundleError> {
        self.write_table(SETTINGS_PART, settings)
    }

    /// Writes the machine code of the functions that took most CPU time; once, when the run ends.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_instructions(&self, instructions: &[InstructionRow]) -> Result<(), BundleError> {
        self.write_table(INSTRUCTIONS_PART, instructions)
    }

    /// Writes who touches the variables in the cache lines of hot instructions; once, when the run ends.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_data_accesses(&self, accesses: &[DataAccessRow]) -> Result<(), BundleError> {
        self.write_table(DATA_ACCESSES_PART, accesses)
    }

    /// Writes all that is known of one measurement: one part a table, that of `measurements` last, because a measurement counts only when it
    /// is there. Of stacks and frames only those are written that no earlier measurement of this writer had.
    ///
    /// # Errors
    /// Those of the file system; [`BundleError::Measurement`] when rows name another measurement or it was written before.
    pub fn write_measurement(&self, rung: &MeasurementRow, rows: &MeasurementRows) -> Result<(), BundleError> {
        self.write_measurement_with(rung, rows.tables(), 0, |_| Vec::new())
    }

    /// The same with `count` further samples, of which `make` makes those at some places when they are written, on any thread, so that
    /// they are never held all at once: an imported recording may have millions.
    ///
    /// # Errors
    /// Those of [`write_measurement`](Self::write_measurement).
    pub fn write_measurement_with(
        &self,
        rung: &MeasurementRow,
        rows: MeasurementTables<'_>,
        count: usize,
        make: impl Fn(Range<usize>) -> Vec<SampleRow> + Sync,
    ) -> Result<(), BundleError> {
        let measurement = rung.measurement;
        let name = part_of(measurement);
        let refuse = |problem: &str| {
            Err(BundleError::Measurement {
                measurement,
                path: self.path().to_owned(),
                problem: problem.to_owned(),
            })
        };
        if measurement < 0 || !rows.are_all_of(measurement) {
            return refuse("its rows carry other numbers");
        }
        if self.path().join(MeasurementRow::NAME).join(&name).exists() {
            return refuse("it was written before");
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let frames = only_new(rows.frames, (&known.frames, &known.hasher), |row| row.frame);
        let stacks = only_new(rows.stacks, (&known.stacks, &known.hasher), |row| row.stack);
        let ((frames, new_frames), (stacks, new_stacks)) = match (frames, stacks) {
            (Ok(frames), Ok(stacks)) => (frames, stacks),
            (Err(number), _) | (_, Err(number)) => {
                return refuse(&format!(
                    "its number {number} stands for two different frames or stacks"
                ));
            }
        };
        // Rows of another measurement are the caller's mistake; what was written of them is left
        // out by readers, as this one has no rung.
        let foreign = AtomicBool::new(false);
        let make = |places: Range<usize>| {
            let rows = make(places);
            foreign.fetch_or(rows.iter().any(|row| row.measurement != measurement), Ordering::Relaxed);
            rows
        };
        let samples = RowsToCome { count, make: &make };
        // Each is a file of its own; the longest come first.
        let tables: [&(dyn Fn() -> Result<(), BundleError> + Sync); 9] = [
            &|| self.write_rows(&name, rows.samples, &samples),
            &|| self.write_table(&name, &stacks),
            &|| self.write_table(&name, &frames),
            &|| self.write_table(&name, rows.states),
            &|| self.write_table(&name, rows.counters),
            &|| self.write_table(&name, rows.latency),
            &|| self.write_table(&name, rows.locks),
            &|| self.write_table(&name, rows.seconds),
            &|| self.write_table(&name, rows.errors),
        ];
        in_parallel(tables.to_vec(), |write| write())
            .into_iter()
            .collect::<Result<(), BundleError>>()?;
        if foreign.load(Ordering::Relaxed) {
            return refuse("its rows carry other numbers");
        }
        self.write_table(&name, std::slice::from_ref(rung))?;
        known.frames.extend(new_frames);
        known.stacks.extend(new_stacks);
        Ok(())
    }

    /// Writes the jumps of a measurement that is written after it: `count` rows, of which `make` makes those at some places when they are
    /// written, as [`write_measurement_with`](Self::write_measurement_with) does.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_branches(
        &self,
        measurement: i32,
        count: usize,
        make: impl Fn(Range<usize>) -> Vec<BranchRow> + Sync,
    ) -> Result<(), BundleError> {
        self.write_rows(&part_of(measurement), &[], &RowsToCome { count, make: &make })
    }

    fn write_table<T: Table>(&self, name: &str, rows: &[T]) -> Result<(), BundleError> {
        self.write_rows(name, rows, &RowsToCome::none())
    }

    fn write_rows<T: Table>(&self, name: &str, rows: &[T], more: &RowsToCome<'_, T>) -> Result<(), BundleError> {
        let folder = self.table_folder(OsStr::new(T::NAME))?;
        self.replace(&folder, name, |file| {
            write_groups(file, rows, more).map(drop).map_err(io::Error::other)
        })
    }

    fn write_json<T: Serialize + DeserializeOwned>(&self, name: &str, value: &T) -> Result<(), BundleError> {
        let path = self.path().join(name);
        let broken = |source| BundleError::Json {
            path: path.clone(),
            source,
        };
        let mut text = serde_json::to_vec_pretty(value).map_err(broken)?;
        // JSON has no infinity: serde writes null, which would only be noticed when the bundle is read.
        serde_json::from_slice::<T>(&text).map_err(broken)?;
        text.push(b'\n');
        self.replace(&self.folder, name, |file| file.write_all(&text))
    }

    /// The folder of a table, made where it is missing.
    fn table_folder(&self, name: &OsStr) -> Result<Folder, BundleError> {
        let path = self.path().join(name);
        match self.folder.folder(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = self.folder.new_folder(name, 0o777);
                let made = made.map_err(BundleError::io("create the folder", &path))?;
                self.flush_folder(&self.folder)?;
                Ok(made)
            }
            opened => opened.map_err(BundleError::io("open", &path)),
        }
    }

    /// Writes `folder/name` so that it is there whole or not at all, also after a power cut if it flushes.
    fn replace(
        &self,
        folder: &Folder,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), BundleError> {
        let name = OsStr::new(name);
        let flushed = |file: &mut File| {
            write(file)?;
            match self.flushes {
                true => file.sync_all(),
                false => Ok(()),
            }
        };
        let not_ending = || ENDING.read().unwrap_or_else(PoisonError::into_inner);
        replace_in(folder, (name, &part_of_file(name)), flushed, not_ending)
            .map_err(BundleError::io("write", folder.path().join(name)))?;
        self.flush_folder(folder)
    }

    fn flush_folder(&self, folder: &Folder) -> Result<(), BundleError> {
        match self.flushes {
            true => folder
                .flush()
                .map_err(BundleError::io("flush to the disk", folder.path())),
            false => Ok(()),
        }
    }
}

/// The name of a measurement's part of a table.
fn part_of(measurement: i32) -> String {
    format!("measurement-{measurement:05}.parquet")
}

/// The rows whose number is not known yet, each number once, with the hashes of them; as an error, a number that stands for two
/// different ones.
#[expect(clippy::type_complexity, reason = "what is new, twice")]
fn only_new<'rows, T: Clone + Hash>(
    rows: &'rows [T],
    (known, hasher): (&NumberMap<i64, u64>, &RandomState),
    number: impl Fn(&T) -> i64,
) -> Result<(Cow<'rows, [T]>, NumberMap<i64, u64>), i64> {
    let mut seen: NumberMap<i64, u64> = NumberMap::default();
    seen.reserve(rows.len());
    let mut is_new = Vec::with_capacity(rows.len());
    for row in rows {
        let (number, hash) = (number(row), hasher.hash_one(row));
        let before = known.get(&number).copied().or_else(|| seen.insert(number, hash));
        if before.is_some_and(|before| before != hash) {
            return Err(number);
        }
        is_new.push(before.is_none());
    }
    // Those of a first measurement are all new, and there are many.
    let new = match is_new.contains(&false) {
        false => Cow::Borrowed(rows),
        true => {
            let new = rows.iter().zip(&is_new).filter(|(_, is_new)| **is_new);
            Cow::Owned(new.map(|(row, _)| row.clone()).collect())
        }
    };
    Ok((new, seen))
}
