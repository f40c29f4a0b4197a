//! Why recordings could not be made a bundle.

use scaleprof_bundle::BundleError;
use scaleprof_profile::import::ImportError;
use scaleprof_profile::perf_stat::PerfStatError;
use std::path::PathBuf;

/// Why a bundle could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImportFailure {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file was cut meanwhile: the recording, or one that its stacks need.
    #[error(
        "{} was truncated during the read, so results are wrong\nfix: run the command again when nobody writes the file",
        path.display()
    )]
    Truncated {
        /// Which one.
        path: PathBuf,
    },
    /// Nothing can be had of a file.
    #[error("cannot import {}: {source}", path.display())]
    Import {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: ImportError,
    },
    /// There are not as many known loads as recordings.
    #[error(
        "{recordings} recordings (folded stacks with two columns are two), but {loads} numbers for --connections and \
         --throughput\nfix: give one for each recording, in order"
    )]
    Loads {
        /// Recordings in the files.
        recordings: usize,
        /// Known loads.
        loads: usize,
    },
    /// There are not as many counts as recordings.
    #[error("{recordings} recordings, but {stats} files for --stat\nfix: give one for each recording, in order")]
    Stats {
        /// Recordings in the files.
        recordings: usize,
        /// Files of counts.
        stats: usize,
    },
    /// There are not as many flat recordings as recordings.
    #[error("{recordings} recordings, but {flat} files for --flat\nfix: give one for each recording, in order")]
    Flat {
        /// Recordings in the files.
        recordings: usize,
        /// Flat ones.
        flat: usize,
    },
    /// A file holds no counts.
    #[error("cannot take the counts of {}: {source}", path.display())]
    Counts {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: PerfStatError,
    },
    /// Two columns, of which nobody knows how they differ.
    #[error(
        "{} has two columns of unknown loads\nfix: give them as two files, or with --connections 16,256 --throughput \
         9000,7000 --frequency 99 --seconds 10", path.display()
    )]
    TwoColumns {
        /// Which one.
        path: PathBuf,
    },
    /// A load is known of a recording that is a number of samples alone.
    #[error(
        "{} has no sample period, so times per transaction are unknown\nfix: give --frequency HZ and --seconds S, or omit \
         --connections and --throughput", path.display()
    )]
    NoTime {
        /// Which one.
        path: PathBuf,
    },
    /// Neither the recording nor the user says how long it took, but how its samples stand to time or to a load.
    #[error(
        "{} has no duration, so times per second or transaction are unknown\nfix: give --seconds S, or omit --frequency, \
         --connections and --throughput", path.display()
    )]
    NoLength {
        /// Which one.
        path: PathBuf,
    },
    /// A load is known of a recording of an event that is no time.
    #[error(
        "{} has samples of {event}, which measure no time\nfix: record cpu-clock, or cycles with -F; choose another \
         --event; or omit --connections and --throughput", path.display()
    )]
    OtherEvent {
        /// Which one.
        path: PathBuf,
        /// The event.
        event: String,
    },
    /// There are not as many lengths as recordings.
    #[error(
        "{recordings} recordings (folded stacks with two columns are two), but {seconds} numbers for --seconds\nfix: give \
         one, or one for each recording, in order"
    )]
    Seconds {
        /// Recordings in the files.
        recordings: usize,
        /// Lengths.
        seconds: usize,
    },
    /// The same recording is none of another time.
    #[error(
        "{} is given twice\nfix: give each recording once; repeats are separate recordings", path.display()
    )]
    Twice {
        /// Which one.
        path: PathBuf,
    },
    /// The bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl ImportFailure {
    /// The same for a bundle, which names nobody's folders; files are told by the number of the recording, from 1.
    pub(super) fn without_path(&self, recording: i32) -> String {
        match self {
            ImportFailure::Read { source, .. } => format!("recording {recording} could not be read: {source}"),
            ImportFailure::Import { source, .. } => format!("recording {recording} could not be imported: {source}"),
            ImportFailure::Counts { source, .. } => {
                format!("the counts of recording {recording} could not be read: {source}")
            }
            ImportFailure::TwoColumns { .. } => format!("recording {recording} has two columns and no known loads"),
            ImportFailure::Twice { .. } => format!("recording {recording} was given before"),
            ImportFailure::NoTime { .. } | ImportFailure::NoLength { .. } | ImportFailure::OtherEvent { .. } => {
                format!("recording {recording} does not tell time, and its load was given")
            }
            ImportFailure::Loads { .. }
            | ImportFailure::Seconds { .. }
            | ImportFailure::Stats { .. }
            | ImportFailure::Flat { .. }
            | ImportFailure::Truncated { .. }
            | ImportFailure::Bundle(_) => self.to_string(),
        }
    }
}
