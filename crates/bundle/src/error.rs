//! What can go wrong with a bundle, in words that say which file and what to do.

use std::path::PathBuf;

/// An error of reading or writing a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The folder holds something else.
    #[error(
        "{path} is not empty and not a bundle (no manifest.json), so nothing was written\nfix: name another folder with --output"
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds an earlier run.
    #[error(
        "{path} already contains a run, so nothing was written\nfix: name another folder with --output or remove this one"
    )]
    AlreadyABundle {
        /// The folder.
        path: PathBuf,
    },
    /// Somebody else could change what is written there.
    #[error("{path} is not used: {source}\nfix: name a new folder with --output, or one that only you can write to")]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Who could.
        source: scaleprof_guard::Exposed,
    },
    /// The folder is no bundle.
    #[error(
        "{path} is not a bundle: it has no manifest.json\nfix: name a folder that scaleprof run, attach or import wrote"
    )]
    NotABundle {
        /// The folder.
        path: PathBuf,
    },
    /// The bundle was written by an earlier version, or a later one.
    #[error(
        "{path} has schema {found}; this scaleprof reads {known}\nfix: run the scaleprof that wrote it, or measure again"
    )]
    Schema {
        /// The manifest.
        path: PathBuf,
        /// The version it names.
        found: u32,
        /// The version that is known here.
        known: u32,
    },
    /// The operating system refused.
    #[error("could not {action} {path}: {source}")]
    Io {
        /// What was tried, such as `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A JSON file that does not hold what it should.
    #[error("{path} is damaged: {source}\nfix: copy the whole bundle again from the machine that measured it")]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A Parquet file that is cut short, damaged or of another shape.
    #[error(
        "{path} is damaged: {problem}\nfix: copy the bundle again from the machine that measured it, or remove the part of that \
         measurement from every table"
    )]
    Part {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A run that ended as planned, without the table that says what its measurements were.
    #[error(
        "{path} is incomplete: the table measurements is missing, though other tables have rows of {measurements} measurements\nfix: copy the whole bundle again from the machine that measured it"
    )]
    NoMeasurements {
        /// The bundle.
        path: PathBuf,
        /// Measurements of which other tables have rows.
        measurements: usize,
    },
    /// A mistake of the caller.
    #[error("measurement {measurement} was not written to {path}: {problem}")]
    Measurement {
        /// The measurement.
        measurement: i32,
        /// The bundle.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl BundleError {
    /// For `map_err` on operations of the file system.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> BundleError {
        let path = path.into();
        move |source| BundleError::Io { action, path, source }
    }
}
