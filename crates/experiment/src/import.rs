//! Recordings that other tools made become a bundle.
//!
//! A recording is a measurement: with the connections and the throughput that the user knows of it,
//! of a rung of a ladder that was climbed by hand; without them, of a watch, whose figures are per
//! second. What a recording does not tell stays unknown.

mod doubts;
mod fair_sample;
mod import_failure;
mod imported_branches;
mod imported_code;
mod imported_manifest;
mod imported_measurement;
mod in_memory;
mod plausible_time;
mod sampling;
mod stat_counters;
mod written_measurement;

use crate::instructions::keep_code;
use crate::manifest::timestamp;
use crate::observe::now;
use crate::progress::Progress;
use fair_sample::FairSample;
pub use import_failure::ImportFailure;
use imported_code::ImportedCode;
use imported_manifest::{begin, describe, has_shares_only, unknown_of_machine};
use imported_measurement::{ImportedMeasurement, Known};
pub use in_memory::import_in_memory;
pub use sampling::Sampling;
use sampling::check_time;
use scaleprof_analysis::summarise;
use scaleprof_binary::truncated::truncated_files;
use scaleprof_bundle::{
    Bundle, BundleError, BundleWriter, Halt, Manifest, Missing, Samples, Summary, tell_interrupted,
};
use scaleprof_profile::import::{
    CallPaths, Leftovers, ReadOptions, Recording, RecordingFile, Weights, read_recordings, recordings_in,
};
use scaleprof_profile::perf_stat::PerfStat;
use scaleprof_vocabulary::RunState;
use std::collections::{BTreeMap, HashSet};
use std::iter::Copied;
use std::path::{Path, PathBuf};
use std::slice::Iter;
use std::vec::IntoIter;
use written_measurement::{sum_up_and_write, write};

/// What to say of a recording whose samples do not tell how much time they stand for.
const NO_TIME: &str =
    "what its samples stand for is not known as time: figures per second are shares, and 1 is all of it";

/// What to say of counts that do not tell how long was counted.
const NO_ELAPSED: &str = "perf stat -x and -j have no duration, so that of the recording is used; also count \
                          duration_time (-e duration_time)";

/// A recording that is alone and has no more samples is summed up from memory while it is written: reading a few of them back takes longer
/// than writing them. Of more the columns that are read back take less room.
const MOST_NOT_READ_BACK: usize = 1 << 16;

/// What to import.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// The recordings; in their order they are the measurements of the bundle.
    pub files: Vec<PathBuf>,
    /// What is known of the load that they were made under, one for each recording in their order, or none at all. Folded stacks
    /// with two columns are two recordings.
    pub loads: Vec<KnownLoad>,
    /// What `perf stat` printed beside each recording, in their order, or none at all.
    pub stats: Vec<PathBuf>,
    /// Recordings without call graphs of the same loads, one for each recording in their order, or none at all: whether the others
    /// are fair samples is held against them, and nothing else is taken from them.
    pub flat: Vec<PathBuf>,
    /// How samples were taken whose recordings do not tell it.
    pub sampling: Sampling,
    /// CPUs that the server could use, where the user knows it.
    pub cpus: Option<u32>,
    /// What the load is called.
    pub name: Option<String>,
    /// How they are read.
    pub options: ReadOptions,
    /// Whether the machine code of the hot functions is kept, so that `annotate` and the page can show it elsewhere.
    pub keep_code: bool,
    /// Where the bundle goes.
    pub output: PathBuf,
    /// The command line that repeats it, without paths.
    pub command: Vec<String>,
}

/// A load that the user knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownLoad {
    /// Connections that ran transactions.
    pub connections: u32,
    /// Transactions a second.
    pub throughput: f64,
}

/// What an import left.
#[derive(Debug)]
pub struct ImportResult {
    /// The bundle as it can be read.
    pub bundle: Bundle,
    /// What it comes to.
    pub summary: Summary,
    /// What making them needed.
    pub leftovers: Leftovers,
}

/// Reads the recordings and keeps what is in them as a bundle.
///
/// # Errors
/// A file cannot be read, or the bundle not be written. Nothing is left of the bundle where the first file already fails.
pub fn import(request: &ImportRequest, progress: &mut dyn Progress) -> Result<ImportResult, ImportFailure> {
    // Before a pipe is read, which can be done once: an output that is taken or cannot be made must not cost a recording.
    let is_new = !request.output.exists();
    let bundle = BundleWriter::create(&request.output)?.without_flushing();
    let (opened, stats) = opened(request).inspect_err(|_| {
        if is_new {
            // Only where it is empty.
            let _ = std::fs::remove_dir(&request.output);
        }
    })?;
    let mut import = Import {
        request,
        bundle,
        manifest: begin(request, !request.loads.is_empty()),
        missing: BTreeMap::new(),
        code: ImportedCode::new(request.options.symbol_search()),
        repeats: BTreeMap::new(),
        loads: request.loads.iter().copied(),
        stats: stats.into_iter(),
        measurement: 0,
        call_paths: None,
        waiting: None,
    };
    for (file, bytes) in request.files.iter().zip(opened) {
        if let Err(failure) = import.take_file(file, bytes, progress) {
            import.give_up(&failure)?;
            return Err(failure);
        }
    }
    import.finish(progress)
}

/// Says in the bundle of an import that it was stopped; for who ends the process while [`import`] works, which writes nothing more as long
/// as the result lives.
///
/// # Errors
/// Those of the file system, and of a bundle that cannot be read.
pub fn tell_import_stopped(output: &Path) -> Result<Halt, BundleError> {
    tell_interrupted(output, timestamp())
}

/// The recordings and counts, as far as they are known to go together.
fn opened(request: &ImportRequest) -> Result<(Vec<RecordingFile>, Vec<PerfStat>), ImportFailure> {
    if let Some(path) = given_twice(&request.files) {
        return Err(ImportFailure::Twice { path: path.clone() });
    }
    let opened = request.files.iter().map(|file| bytes_of(file));
    let opened = opened.collect::<Result<Vec<RecordingFile>, ImportFailure>>()?;
    check_loads(request, &opened)?;
    let stats = request.stats.iter().map(|path| counts_of(path));
    Ok((opened, stats.collect::<Result<Vec<PerfStat>, ImportFailure>>()?))
}

/// A file that stands among those before it too, by the same path or by another one to it.
fn given_twice(files: &[PathBuf]) -> Option<&PathBuf> {
    let mut met = HashSet::new();
    // What cannot be found is told when it is opened.
    files
        .iter()
        .find(|file| !met.insert(file.canonicalize().unwrap_or_else(|_| file.to_path_buf())))
}

/// An import under way.
struct Import<'a> {
    request: &'a ImportRequest,
    bundle: BundleWriter,
    manifest: Manifest,
    missing: BTreeMap<String, String>,
    code: ImportedCode,
    /// Recordings of each number of connections so far.
    repeats: BTreeMap<u32, i32>,
    loads: Copied<Iter<'a, KnownLoad>>,
    stats: IntoIter<PerfStat>,
    /// Recordings so far.
    measurement: i32,
    /// How call paths were taken in the first recording that tells it, and its number.
    call_paths: Option<(CallPaths, i32)>,
    /// The only one so far, where it is small, with its samples: it is written when it is clear whether another one follows.
    waiting: Option<(ImportedMeasurement, Samples)>,
}

impl Import<'_> {
    fn take_file(
        &mut self,
        file: &Path,
        bytes: RecordingFile,
        progress: &mut dyn Progress,
    ) -> Result<(), ImportFailure> {
        progress.stage(&format!("reading {}", file.display()));
        for recording in read(file, bytes, self.request)? {
            self.take(recording, file, progress)?;
        }
        Ok(())
    }

    /// A recording becomes a measurement.
    fn take(
        &mut self,
        mut recording: Recording,
        file: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), ImportFailure> {
        self.write_waiting()?;
        let number = self.measurement + 1;
        let place = self.measurement.unsigned_abs() as usize;
        for words in self.request.sampling.complete(&mut recording, place, file)? {
            self.warn(format!("recording {number}: {words}"), progress);
        }
        let load = self.loads.next();
        if load.is_some() {
            check_time(&recording, file)?;
        }
        plausible_time::settle(&mut recording);
        let is_alone = number == 1 && self.request.files.len() == 1;
        let is_small = is_alone && recording.profile.samples.len() <= MOST_NOT_READ_BACK;
        if !is_small {
            // Others follow, or it is large: the room is needed.
            recording.leftovers = Leftovers::default();
        }
        for warning in &recording.warnings {
            progress.warning(warning);
            let of_file = match self.request.files.len() {
                1 => warning.clone(),
                _ => format!("recording {number}: {warning}"),
            };
            self.keep_warning(of_file);
        }
        self.missing.extend(recording.lacks.iter().cloned());
        if recording.weights == Weights::Counts {
            self.warn(NO_TIME.to_owned(), progress);
            has_shares_only(&mut self.manifest);
        }
        let inlines = self.request.options.inlines;
        describe(&mut self.manifest, &recording, inlines, &mut self.missing);
        self.tell_fairness(&recording, number, progress)?;
        let stat = self.stats.next();
        if stat.as_ref().is_some_and(|stat| stat.elapsed_seconds.is_none()) {
            self.warn(format!("recording {number}: {NO_ELAPSED}"), progress);
        }
        let repeat = self.repeats.entry(load.map_or(0, |load| load.connections)).or_default();
        let known = Known {
            measurement: self.measurement,
            repeat: *repeat,
            load,
            stat,
            started_at: now(),
        };
        *repeat += 1;
        let ladder = &mut self.manifest.ladder;
        ladder.repeats = ladder.repeats.max(repeat.unsigned_abs());
        self.measurement += 1;
        let mut doubtful = self.doubts(&recording, number, load);
        // Code is looked for in what was written.
        let waits = is_small && !self.request.keep_code;
        let (imported, samples) = match waits {
            true => {
                let (imported, samples) = ImportedMeasurement::with_samples(&known, recording);
                (imported, Some(samples))
            }
            false => (ImportedMeasurement::of(&known, recording), None),
        };
        doubtful.extend(load.and_then(|load| doubts::many_clients(imported.rest.clients(), load)));
        for words in doubtful {
            self.warn(format!("recording {number}: {words}"), progress);
        }
        // Who is killed while he writes leaves a bundle that says so.
        self.bundle.write_manifest(&self.manifest)?;
        if let Some(recorded) = imported.rest.branches() {
            let all = &recorded.branches;
            self.bundle.write_branches(known.measurement, all.len(), |places| {
                imported_branches::rows(known.measurement, recorded, all.get(places).unwrap_or_default())
            })?;
        }
        self.code.files.extend(imported.rest.files().iter().cloned());
        if let Some(samples) = samples {
            self.waiting = Some((imported, samples));
            return Ok(());
        }
        write(&self.bundle, &imported)
    }

    fn write_waiting(&mut self) -> Result<(), ImportFailure> {
        let waiting = self.waiting.take();
        waiting.map_or(Ok(()), |(imported, _)| write(&self.bundle, &imported))
    }

    fn warn(&mut self, words: String, progress: &mut dyn Progress) {
        progress.warning(&words);
        self.keep_warning(words);
    }

    /// Once: both columns of folded stacks say the same.
    fn keep_warning(&mut self, words: String) {
        let warnings = &mut self.manifest.warnings;
        if !warnings.contains(&words) {
            warnings.push(words);
        }
    }

    /// What its reader should doubt.
    fn doubts(&mut self, recording: &Recording, number: i32, load: Option<KnownLoad>) -> Vec<String> {
        let call_paths = recording.call_paths.and_then(|here| {
            let first = *self.call_paths.get_or_insert((here, number));
            doubts::other_call_paths(here, first)
        });
        let of_load = load.map(|load| [doubts::no_threads(recording), doubts::few_threads(recording, load)]);
        let of_load = of_load.into_iter().flatten().flatten();
        let all = call_paths.into_iter().chain(doubts::no_kernel(recording));
        let all = all.chain(doubts::no_samples(recording, load));
        all.chain(of_load).collect()
    }

    /// Compares a recording with the flat one of the same load, where there is one.
    fn tell_fairness(
        &mut self,
        recording: &Recording,
        number: i32,
        progress: &mut dyn Progress,
    ) -> Result<(), ImportFailure> {
        let Some(flat) = self.request.flat.get(self.measurement as usize) else {
            return Ok(());
        };
        progress.stage(&format!("comparing with {}", flat.display()));
        let others = read(flat, bytes_of(flat)?, self.request)?;
        let told = FairSample::of(recording, others.first());
        if told.flat_has_callers {
            self.warn(
                format!(
                    "recording {number}: its --flat recording has call graphs too, so their effect on the load is \
                     unknown"
                ),
                progress,
            );
        }
        if told.is_distorted {
            self.warn(format!("recording {number}: {}", told.words), progress);
        } else {
            let options = &mut self.manifest.workload.options;
            options.push((format!("fairness_of_recording_{number}"), told.words));
        }
        Ok(())
    }

    /// Keeps what was imported, if anything was.
    fn give_up(mut self, failure: &ImportFailure) -> Result<(), ImportFailure> {
        if self.measurement == 0 {
            // Only where it is empty.
            let _ = std::fs::remove_dir(self.bundle.path());
            return Ok(());
        }
        self.manifest.state = RunState::Failed;
        self.manifest.problem = Some(failure.without_path(self.measurement + 1));
        Ok(self.bundle.write_manifest(&self.manifest)?)
    }

    fn finish(mut self, progress: &mut dyn Progress) -> Result<ImportResult, ImportFailure> {
        if let Some(path) = truncated_files().into_iter().next() {
            let failure = ImportFailure::Truncated { path };
            self.give_up(&failure)?;
            return Err(failure);
        }
        if self.request.keep_code {
            progress.stage("reading the code of the hot functions");
            self.missing.extend(keep_code(&self.bundle, &mut self.code)?);
        } else {
            for table in ["instructions", "data_accesses"] {
                self.missing
                    .insert(table.to_owned(), "imported with --no-code".to_owned());
            }
        }
        let manifest = &mut self.manifest;
        unknown_of_machine(&manifest.machine, &mut self.missing);
        manifest.missing = self
            .missing
            .into_iter()
            .map(|(figure, reason)| Missing { figure, reason })
            .collect();
        manifest.ended_at = Some(timestamp());
        manifest.state = RunState::Complete;
        progress.stage("summing up");
        let mut result = match self.waiting.take() {
            Some((imported, samples)) => sum_up_and_write(&self.bundle, manifest, imported, samples)?,
            None => {
                // There is more to come than what is left of it would be worth.
                drop(std::mem::take(&mut self.code));
                self.bundle.write_settings(&[])?;
                self.bundle.write_manifest(manifest)?;
                let bundle = Bundle::open(self.bundle.path())?;
                let summary = summarise(&bundle);
                ImportResult {
                    bundle,
                    summary,
                    leftovers: Leftovers::default(),
                }
            }
        };
        self.bundle.write_summary(&result.summary)?;
        result.leftovers.keep(self.code.into_leftovers());
        Ok(result)
    }
}

/// Before anything is written.
fn check_loads(request: &ImportRequest, opened: &[RecordingFile]) -> Result<(), ImportFailure> {
    let mut recordings = 0;
    for (file, bytes) in request.files.iter().zip(opened) {
        let found = recordings_in(bytes);
        if found > 1 && request.loads.is_empty() {
            return Err(ImportFailure::TwoColumns { path: file.clone() });
        }
        recordings += found;
    }
    let stats = request.stats.len();
    if stats != 0 && stats != recordings {
        return Err(ImportFailure::Stats { recordings, stats });
    }
    let flat = request.flat.len();
    if flat != 0 && flat != recordings {
        return Err(ImportFailure::Flat { recordings, flat });
    }
    let seconds = request.sampling.seconds.len();
    if seconds > 1 && seconds != recordings {
        return Err(ImportFailure::Seconds { recordings, seconds });
    }
    let loads = request.loads.len();
    match loads == 0 || loads == recordings {
        true => Ok(()),
        false => Err(ImportFailure::Loads { recordings, loads }),
    }
}

fn counts_of(path: &Path) -> Result<PerfStat, ImportFailure> {
    let text = String::from_utf8_lossy(&bytes_of(path)?).into_owned();
    PerfStat::parse(&text).map_err(|source| ImportFailure::Counts {
        path: path.to_owned(),
        source,
    })
}

fn read(file: &Path, bytes: RecordingFile, request: &ImportRequest) -> Result<Vec<Recording>, ImportFailure> {
    read_recordings(bytes, &request.options).map_err(|source| ImportFailure::Import {
        path: file.to_owned(),
        source,
    })
}

fn bytes_of(file: &Path) -> Result<RecordingFile, ImportFailure> {
    RecordingFile::open(file).map_err(|source| ImportFailure::Read {
        path: file.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_profile::import::ReadOptions;

    struct Silent;
    impl Progress for Silent {}

    #[test]
    fn a_small_recording_that_is_alone_is_given_as_it_would_be_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let stacks = folder.path().join("stacks.folded");
        let lines =
            "mysqld;do_command;row_search;buf_page_get 70\nmysqld;do_command;row_search 20\nmysqld;purge;[unknown] 3\n";
        std::fs::write(&stacks, lines).expect("written");
        let request = |files: Vec<PathBuf>, output: &str| ImportRequest {
            cpus: None,
            files,
            loads: Vec::new(),
            stats: Vec::new(),
            flat: Vec::new(),
            sampling: Sampling::default(),
            name: None,
            options: ReadOptions::default(),
            keep_code: false,
            output: folder.path().join(output),
            command: Vec::new(),
        };
        let same = folder.path().join("same.folded");
        std::fs::copy(&stacks, &same).expect("copied");
        for (files, output) in [(vec![stacks.clone()], "alone"), (vec![stacks, same], "two")] {
            let request = request(files, output);
            let ImportResult { bundle, summary, .. } = import(&request, &mut Silent).expect("imported");
            let read = Bundle::open(&request.output).expect("readable");
            let read = Bundle { summary: None, ..read };
            assert_eq!(summarise(&read), summary);
            assert_eq!(read, bundle);
        }
    }
}
