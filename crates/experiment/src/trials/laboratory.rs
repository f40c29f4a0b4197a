//! Carrying out the steps of an experiment on real servers: each is a run in a bundle of its own.

use super::ExperimentError;
use super::conduct::{Conducted, Laboratory, StepFailure, Why};
use super::folder::{ExperimentFolder, KeptStep};
use super::outcome::{Facts, outcome};
use super::plan::Plan;
use super::step::Step;
use super::work::{Pace, WATCHED_REPEATS, Work};
use crate::error::RunError;
use crate::options::{RunOptions, ServerChoice};
use crate::progress::Progress;
use crate::run::run;
use scaleprof_analysis::trials::{ExperimentState, Start};
use scaleprof_probe::WatchOptions;
use scaleprof_server::{Installation, Product};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Hears how far an experiment is.
pub trait ExperimentProgress: Progress {
    /// A step begins, in words such as `round 3 of 8, innodb_sync_array_size=64`; all of it takes so many seconds more, at most.
    fn step_begins(&mut self, words: &str, seconds_left: f64);
    /// A variant takes no part any more.
    fn variant_dropped(&mut self, name: &str, why: &str);
}

/// Real servers.
pub(crate) struct RealLaboratory<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a ExperimentFolder,
    pub(crate) stop: &'a Arc<AtomicBool>,
    pub(crate) progress: &'a mut dyn ExperimentProgress,
    pub(crate) pace: Pace,
    pub(crate) facts: Facts,
    pub(crate) dropped: BTreeMap<String, String>,
}

impl<'a> RealLaboratory<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        folder: &'a ExperimentFolder,
        stop: &'a Arc<AtomicBool>,
        progress: &'a mut dyn ExperimentProgress,
    ) -> Self {
        let mut facts = Facts::new(plan.variants.len());
        folder.retried().into_values().for_each(|words| facts.warn(words));
        RealLaboratory {
            plan,
            folder,
            stop,
            progress,
            pace: Pace::expected(&plan.design),
            facts,
            dropped: folder.dropped(),
        }
    }

    fn options(&self, step: Step) -> RunOptions {
        let variant = &self.plan.variants[step.variant()];
        let design = &self.plan.design;
        let is_watched = matches!(step, Step::Watched { .. });
        RunOptions {
            server: variant.server.clone(),
            load: variant.load.clone(),
            connections: design.connections.clone(),
            refine: false,
            repeats: if is_watched { WATCHED_REPEATS } else { 1 },
            order_seed: step.order_seed(design.seed),
            seconds: design.seconds,
            watch: is_watched.then(WatchOptions::default),
            output: self.folder.of(step),
            command: ["scaleprof", "experiment", "..."].map(str::to_owned).to_vec(),
        }
    }

    /// A variant that is for servers of other makers than the one it would have cannot be started.
    fn suits(&self, variant: usize) -> Result<(), StepFailure> {
        let variant = &self.plan.variants[variant];
        let ServerChoice::Private { path, .. } = &variant.server else {
            return Ok(());
        };
        if variant.only_for.is_empty() {
            return Ok(());
        }
        let found = match path {
            Some(path) => Installation::at(path),
            None => Installation::distribution(),
        };
        let found = found.map_err(|error| StepFailure::CannotStart(Why::of(&error.into())))?;
        if variant.only_for.contains(&found.product) {
            return Ok(());
        }
        let makers: Vec<String> = variant.only_for.iter().map(Product::to_string).collect();
        Err(StepFailure::CannotStart(Why::plain(format!(
            "it is for {}, and this server is {} {}",
            makers.join(" and "),
            found.product,
            found.version_text
        ))))
    }

    fn taken(&mut self, step: Step, kept: KeptStep) -> Start {
        self.facts
            .learn(step.variant(), &kept.manifest, kept.fingerprint.as_deref());
        kept.start
    }
}

impl Laboratory for RealLaboratory<'_> {
    fn carry_out(&mut self, step: Step, left: Work) -> Result<Start, StepFailure> {
        if let Some(start) = self.kept(step).map_err(StepFailure::Experiment)? {
            return Ok(start);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(StepFailure::Experiment(RunError::Stopped));
        }
        self.suits(step.variant())?;
        self.folder
            .clear(step)
            .map_err(|error| StepFailure::Experiment(error.into()))?;
        let words = step.words(&self.plan.variants[step.variant()].name, &self.plan.design);
        self.progress.step_begins(&words, left.seconds(&self.pace));
        let began = Instant::now();
        let has_started = self.facts.has_started(step.variant());
        let stopped = || self.stop.load(Ordering::Relaxed);
        let failure = |error| match stopped() {
            // Whatever the end broke off says nothing of the variant.
            true => StepFailure::Experiment(RunError::Stopped),
            false => failure(error, has_started),
        };
        let result = run(&self.options(step), self.stop, self.progress).map_err(failure)?;
        if let Some(problem) = result.problem {
            return Err(failure(problem));
        }
        let is_watched = matches!(step, Step::Watched { .. });
        self.pace.learn(is_watched, began.elapsed().as_secs_f64());
        let kept = self.kept(step).map_err(StepFailure::Experiment)?;
        kept.ok_or_else(|| {
            let why = "its bundle cannot be read back: see the folder of this start";
            StepFailure::WhenItRan(Why::plain(why.to_owned()))
        })
    }

    fn kept(&mut self, step: Step) -> Result<Option<Start>, RunError> {
        let kept = self.folder.kept(step)?;
        Ok(kept.map(|kept| self.taken(step, kept)))
    }

    fn try_again(&mut self, step: Step, why: &Why) -> Result<(), RunError> {
        let name = &self.plan.variants[step.variant()].name;
        let words = step.words(name, &self.plan.design);
        let failed = |why: &str| format!("{words} failed and was started again: {why}");
        self.progress.warning(&failed(&why.told));
        self.facts.warn(failed(&why.kept));
        // Servers that crash at times must not look sound because they were asked twice.
        let mut retried = self.folder.retried();
        retried.insert(step.folder().display().to_string(), failed(&why.kept));
        self.folder.keep_retried(&retried)?;
        Ok(self.folder.set_aside(step)?)
    }

    fn drop_variant(&mut self, variant: usize, why: &Why) {
        let name = &self.plan.variants[variant].name;
        self.progress.variant_dropped(name, &why.told);
        self.dropped.insert(name.clone(), why.kept.clone());
        if let Err(error) = self.folder.keep_dropped(&self.dropped) {
            self.progress.warning(&error.to_string());
        }
    }

    fn keep(&mut self, so_far: &Conducted) -> Result<(), RunError> {
        let outcome = outcome(self.plan, so_far, &self.facts, ExperimentState::Running, None);
        Ok(self.folder.write_outcome(&outcome)?)
    }
}

/// What a failed run means for the experiment. A variant that has started before can be started: then it is the machine that has
/// changed, and what failed may not another time.
fn failure(error: RunError, has_started: bool) -> StepFailure {
    use scaleprof_server::Error as Server;
    match error {
        RunError::Server(Server::NoMemory { .. }) if has_started => StepFailure::Experiment(error),
        RunError::Server(Server::NoSpace { .. } | Server::Locked { .. } | Server::NotOurs { .. })
        | RunError::Stopped
        | RunError::Bundle(_)
        | RunError::Disk(_)
        | RunError::DiskFull { .. }
        | RunError::OpenFiles { .. } => StepFailure::Experiment(error),
        RunError::Server(_) | RunError::Options(_) | RunError::Script(_) if !has_started => {
            StepFailure::CannotStart(Why::of(&error))
        }
        _ => StepFailure::WhenItRan(Why::of(&error)),
    }
}

impl Why {
    /// What may stand anywhere.
    fn plain(words: String) -> Why {
        Why {
            kept: words.clone(),
            told: words,
        }
    }

    /// Of a start the log says which setting it stumbled over, and settings stand in a bundle anyway. What is said of a statement
    /// can quote it.
    fn of(error: &RunError) -> Why {
        use scaleprof_server::Error as Server;
        Why {
            told: error.to_string(),
            kept: match error {
                RunError::Server(Server::StatementAfterStart { at, .. }) => {
                    format!("statement {at} of those to be run after the start (sql) failed")
                }
                // These quote what a server says of a statement, or an answer of its.
                RunError::Server(Server::NotFollowing { .. } | Server::Wire { .. } | Server::Unreadable { .. }) => {
                    error.for_bundle()
                }
                RunError::Server(error) => error.to_string(),
                other => other.for_bundle(),
            },
        }
    }
}

impl From<ExperimentError> for RunError {
    /// An experiment's own files are to it what a run's bundle is to the run.
    fn from(error: ExperimentError) -> RunError {
        match error {
            ExperimentError::Run(error) => error,
            other => RunError::Disk(other.to_string()),
        }
    }
}
