//! Recordings that other tools made.
//!
//! Every reader gives a [`Recording`]: a [`Profile`] and what the file tells beside it. One that finds addresses goes through
//! [`RawSample`](crate::RawSample), [`Converter`](crate::Converter) and [`Namer`](crate::Namer) as a live collector does; one that
//! finds names makes frames of them ([`Frame::named`](crate::Frame::named)). From there on nobody asks where a profile came from.

mod branches;
mod call_paths;
mod format;
mod gzip;
mod other_formats;
mod recording_file;

pub use branches::{BranchCounts, RecordedBranch, RecordedBranches};
pub use call_paths::{CallPaths, NO_CALLERS};
pub use format::RecordingFormat;
pub use recording_file::{RecordingFile, STANDARD_INPUT};

use crate::Profile;
use crate::legible::legible;
use gzip::Unfolded;
use scaleprof_binary::mapped_file::Bytes;
use scaleprof_binary::symbols::SymbolSearch;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A recording that another tool made. What the file does not tell is none, with its reason in `lacks`.
#[derive(Debug, Clone)]
pub struct Recording {
    /// What it is.
    pub format: RecordingFormat,
    /// What was sampled. Times are nanoseconds of the recording's own clock; 0 where it keeps none.
    pub profile: Profile,
    /// The jumps that the processor remembered before each sample; none where these were not recorded.
    pub branches: Option<RecordedBranches>,
    /// What the weights of the samples are.
    pub weights: Weights,
    /// How many samples were taken, where they came at a rate that nothing tells: with it, their number is a time. None where their time
    /// is told, and where they came with something else than time (bytes, page faults).
    pub samples_of_unknown_rate: Option<f64>,
    /// Whether the kernel was left out (`perf record -e cycles:u`, or without the right to it): CPU time in it is not known then.
    pub without_kernel: bool,
    /// The event that was sampled, as the recording calls it, such as `cpu-clock` or `cycles`.
    pub event: Option<String>,
    /// How its call paths were taken, where it tells.
    pub call_paths: Option<CallPaths>,
    /// From the first to the last moment, by the recording's clock.
    pub span: Option<Range<u64>>,
    /// The threads, by their numbers.
    pub threads: BTreeMap<u32, RecordedThread>,
    /// The program that most of the samples are of.
    pub program: Option<RecordedProgram>,
    /// The files of code in which samples are, and which are here.
    pub files: Vec<RecordedFile>,
    /// The machine that it was made on.
    pub machine: RecordedMachine,
    /// Samples that the recorder lost, as far as it counted them.
    pub samples_lost: Option<u64>,
    /// Whether code was searched for loops that wait, so that no time in them is a zero.
    pub spin_loops: Option<u64>,
    /// What is not in it: a figure or a part, and why.
    pub lacks: Vec<(String, String)>,
    /// What the reader of its figures should know.
    pub warnings: Vec<String>,
    /// What reading it needed.
    pub leftovers: Leftovers,
}

impl Recording {
    /// One in which nothing is known yet but its format.
    #[must_use]
    pub fn new(format: RecordingFormat, profile: Profile, weights: Weights) -> Recording {
        Recording {
            format,
            profile,
            branches: None,
            weights,
            samples_of_unknown_rate: None,
            without_kernel: false,
            event: None,
            call_paths: None,
            span: None,
            threads: BTreeMap::new(),
            program: None,
            files: Vec::new(),
            machine: RecordedMachine::default(),
            samples_lost: None,
            spin_loops: None,
            lacks: Vec::new(),
            warnings: Vec::new(),
            leftovers: Leftovers::default(),
        }
    }
}

/// Things that nobody needs any more, and that take a while to let go of, piece by piece: a program that ends need not, and others do it
/// when they have time.
#[derive(Clone, Default)]
pub struct Leftovers(Vec<Arc<dyn Any + Send + Sync>>);

impl Leftovers {
    /// This alone.
    #[must_use]
    pub fn of(thing: impl Send + Sync + 'static) -> Leftovers {
        let mut leftovers = Leftovers::default();
        leftovers.keep(thing);
        leftovers
    }

    /// Keeps one more.
    pub fn keep(&mut self, thing: impl Send + Sync + 'static) {
        self.0.push(Arc::new(thing));
    }
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Leftovers({})", self.0.len())
    }
}

/// What the weights of samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Thread-nanoseconds.
    Nanoseconds,
    /// Something else, such as numbers of samples: shares hold, times do not.
    Counts,
}

/// A thread of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedThread {
    /// The process that it belongs to.
    pub process: u32,
    /// Its name, as the kernel keeps it (15 bytes).
    pub name: String,
}

/// A program of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedProgram {
    /// Its process.
    pub process: u32,
    /// File name of the executable, without its folder.
    pub name: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
}

impl RecordedProgram {
    /// Whether a file of that name is a database server: `mysqld`, `mariadbd`, `mysqld-debug`, but not `mysqldump`.
    #[must_use]
    pub fn is_database_server(file_name: &str) -> bool {
        let rest = ["mysqld", "mariadbd"]
            .iter()
            .find_map(|name| file_name.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// A file of code that a recording names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// As frames name it.
    pub module: String,
    /// In hexadecimal, as frames have it.
    pub build_id: Option<String>,
    /// Where it was found.
    pub place: PathBuf,
    /// Where files that belong to it are looked for: a cache has it under a name that says nothing.
    pub own: PathBuf,
}

/// The machine of a recording. Its name is not among this.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedMachine {
    /// Such as `x86_64`.
    pub architecture: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub cpus: Option<u32>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
}

/// With a recording of so many bytes in memory we still take less of it than perf, which is slower in reading it.
const KEPT_IN_MEMORY: usize = 112 << 20;

/// Asks for all processes of a recording.
pub const ALL_PROCESSES: &str = "all";

/// What a reader may look at beside the recording, and what it takes of it.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The event to take, by its name; the first one that tells CPU time otherwise.
    pub event: Option<String>,
    /// Only threads of this process: its number or the name of one of its threads; [`ALL_PROCESSES`] for all. Without it the database
    /// server of a perf.data of a whole machine, where one runs, else all.
    pub process: Option<String>,
    /// A folder that holds the recorded machine's files, as `perf report --symfs`.
    pub symfs: Option<PathBuf>,
    /// Folders of files by build-id, as `perf buildid-cache` keeps them.
    pub build_id_caches: Vec<PathBuf>,
    /// Where names are looked for that a file does not hold itself.
    pub symbols: SymbolSearch,
    /// Whether functions that the compiler built into others are told apart; it takes most of the time.
    pub inlines: bool,
    /// A recording of perf that has no more bytes stays in memory until it is read; of a longer one what is needed comes from its file
    /// again.
    pub kept_in_memory: usize,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            event: None,
            process: None,
            symfs: None,
            build_id_caches: Vec::new(),
            symbols: SymbolSearch::default(),
            inlines: false,
            kept_in_memory: KEPT_IN_MEMORY,
        }
    }
}

impl ReadOptions {
    /// Where debug files and lists of symbols are looked for: among the recorded machine's files before this one's.
    pub fn symbol_search(&self) -> SymbolSearch {
        let mut search = self.symbols.clone();
        if let Some(symfs) = &self.symfs {
            search.debug_folders.insert(0, symfs.join("usr/lib/debug"));
            search.document_folders.insert(0, symfs.join("usr/share/doc"));
        }
        search
    }
}

/// Why nothing can be had of a recording.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is of no known format.
    #[error("unknown format of a recording: {found}\nfix: use {known}; perf.data is what `perf record` writes")]
    UnknownFormat {
        /// How it begins, in words.
        found: String,
        /// The formats that are known.
        known: String,
    },
    /// It is broken, or ends before anything was in it.
    #[error("it is broken: {what}")]
    Broken {
        /// What is wrong, and where.
        what: String,
    },
    /// It holds something that is not supported.
    #[error("{what}")]
    Unsupported {
        /// What it is, and what helps.
        what: String,
    },
    /// It has no event of that name.
    #[error("it has no event {asked:?}, but {present}\nfix: choose one with --event")]
    NoSuchEvent {
        /// As asked for.
        asked: String,
        /// Those that it has.
        present: String,
    },
    /// It has no sample that was asked for.
    #[error("it holds no sample{of}: {why}")]
    NoSamples {
        /// Of what.
        of: String,
        /// Why there may be none.
        why: String,
    },
}

/// Reads a file of any known format, compressed by gzip or not. Folded stacks with two columns are two recordings; all else is one.
/// The bytes may be lent or given: what is given is let go as soon as it is not needed any more, which a recording of a gigabyte is
/// worth.
///
/// # Errors
/// Nothing can be had of it. What is missing from one that can be read is in [`Recording::lacks`] and [`Recording::warnings`].
pub fn read_recordings(bytes: impl Bytes, options: &ReadOptions) -> Result<Vec<Recording>, ImportError> {
    let mut recordings = read_as_it_is(bytes, options)?;
    recordings.iter_mut().for_each(make_legible);
    Ok(recordings)
}

/// The names that it gives, and words that hold them. What names of functions a recording gives itself are so already; those of the
/// files of its programs are what these say.
fn make_legible(recording: &mut Recording) {
    let names = recording.threads.values_mut().map(|thread| &mut thread.name);
    let names = names.chain(&mut recording.event);
    let names = names.chain(recording.program.as_mut().map(|program| &mut program.name));
    let machine = &mut recording.machine;
    let names = names.chain(
        [&mut machine.architecture, &mut machine.kernel, &mut machine.cpu_model]
            .into_iter()
            .flatten(),
    );
    let words = recording.lacks.iter_mut().flat_map(|(figure, why)| [figure, why]);
    for text in names.chain(words).chain(&mut recording.warnings) {
        if let Cow::Owned(shown) = legible(text.as_str().into()) {
            *text = shown;
        }
    }
}

fn read_as_it_is(bytes: impl Bytes, options: &ReadOptions) -> Result<Vec<Recording>, ImportError> {
    if !gzip::is_gzip(&bytes) {
        return read_unfolded(bytes, options);
    }
    let unfolded = gzip::unfold(&bytes)?;
    drop(bytes);
    let Unfolded { bytes, problem } = unfolded;
    let mut recordings = read_unfolded(bytes, options).map_err(|error| match &problem {
        Some(problem) => ImportError::Broken {
            what: format!("{problem}, and of what is before that nothing can be had: {error}"),
        },
        None => error,
    })?;
    let words = problem.map(|problem| format!("{problem}: what is before that was imported"));
    for recording in &mut recordings {
        recording.warnings.extend(words.clone());
    }
    Ok(recordings)
}

/// The recording of a file that holds one; of folded stacks with two columns the first.
///
/// # Errors
/// As [`read_recordings`].
pub fn read_recording(bytes: impl Bytes, options: &ReadOptions) -> Result<Recording, ImportError> {
    let first = read_recordings(bytes, options)?.into_iter().next();
    first.ok_or_else(|| ImportError::NoSamples {
        of: String::new(),
        why: "the file is empty".to_owned(),
    })
}

fn read_unfolded(bytes: impl Bytes, options: &ReadOptions) -> Result<Vec<Recording>, ImportError> {
    let one = match RecordingFormat::of(&bytes)? {
        RecordingFormat::Folded => return crate::folded::read(without_mark(&bytes)),
        RecordingFormat::PerfData => crate::perf_data::read(bytes, options),
        RecordingFormat::PerfScript => crate::perf_script::read(without_mark(&bytes), options),
        RecordingFormat::Pprof => crate::pprof::read(&bytes, options),
    };
    Ok(vec![one?])
}

/// A text without the mark with which some programs begin one in UTF-8 (`EF BB BF`).
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// How many recordings there are in a file: two in folded stacks with two columns, else one. What cannot be read is one, too: why it
/// cannot is for [`read_recordings`] to say.
pub fn recordings_in(bytes: &[u8]) -> usize {
    let unfolded = gzip::is_gzip(bytes).then(|| gzip::unfold(bytes).ok()).flatten();
    let bytes = unfolded.as_ref().map_or(bytes, |unfolded| &unfolded.bytes);
    match RecordingFormat::of(bytes) {
        Ok(RecordingFormat::Folded) => crate::folded::columns_of(without_mark(bytes)),
        _ => 1,
    }
}
