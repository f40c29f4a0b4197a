//! What can end an experiment, or keep it from beginning.

use super::plan_error::PlanError;
use crate::error::RunError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment ended before its time or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A step failed in a way that all others would.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The output folder holds something.
    #[error(
        "{} is not empty: {}", path.display(),
        if *.resumable { "it contains an experiment: continue it with `experiment resume`, or name another folder \
                          with --output" }
        else { "name another folder with --output" }
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// Whether an experiment is in it.
        resumable: bool,
    },
    /// Somebody else could change what is written there.
    #[error(
        "{} is not used: {source}\nfix: name a new folder with --output, or one that only you can write to",
        path.display()
    )]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Who could.
        source: scaleprof_guard::Exposed,
    },
    /// The folder to go on with holds no experiment.
    #[error("{} holds no experiment: it has no plan.json", path.display())]
    NoExperiment {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is that of the trials of a run, whose plan follows from what the run found.
    #[error(
        "{} has the results of `run --try` (report.html, experiment.json)\nfix: repeat the run to try again",
        path.display()
    )]
    FollowsRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process carries it out.
    #[error("another scaleprof runs the experiment in {}\nfix: wait until it ends", path.display())]
    UnderWay {
        /// The folder.
        path: PathBuf,
    },
    /// The experiment's own files.
    #[error("cannot {doing} {}: {source}", path.display())]
    Disk {
        /// What we tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl ExperimentError {
    /// For `map_err`: the system refused `doing` on `path`.
    pub(crate) fn disk(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ExperimentError {
        let path = path.to_owned();
        move |source| ExperimentError::Disk { doing, path, source }
    }
}
