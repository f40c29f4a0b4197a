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
use crate::run::{RunResult, run};
use crate::side_by_side::run_side_by_side;
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

    /// Several runs, of variants of these names, take turns.
    fn run(&mut self, runs: &[RunOptions], names: &[&str]) -> Vec<Result<RunResult, RunError>> {
        match runs {
            [alone] => vec![run(alone, self.stop, self.progress)],
            several => run_side_by_side(several, names, self.stop, self.progress),
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
    fn carry_out(&mut self, steps: &[Step], left: Work) -> Result<Vec<Result<Start, StepFailure>>, RunError> {
        let kept = steps
            .iter()
            .map(|step| self.kept(*step))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(starts) = kept.into_iter().collect::<Option<Vec<Start>>>() {
            return Ok(starts.into_iter().map(Ok).collect());
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        let suits: Vec<Result<(), StepFailure>> = steps.iter().map(|step| self.suits(step.variant())).collect();
        // One that was measured beside another that was broken off is measured again.
        steps.iter().try_for_each(|step| self.folder.clear(*step))?;
        let plan = self.plan;
        let name = |step: &Step| &*plan.variants[step.variant()].name;
        let (runs, started): (Vec<RunOptions>, Vec<&str>) = steps
            .iter()
            .zip(&suits)
            .filter(|(_, suits)| suits.is_ok())
            .map(|(step, _)| (self.options(*step), name(step)))
            .unzip();
        let names: Vec<&str> = steps.iter().map(name).collect();
        let words = Step::words(steps, &names, &plan.design);
        self.progress.step_begins(&words, left.seconds(&self.pace));
        let began = Instant::now();
        let mut results = self.run(&runs, &started).into_iter();
        let mut found = Vec::new();
        for (step, suits) in steps.iter().zip(suits) {
            let result = match suits {
                Ok(()) => results.next(),
                Err(failure) => {
                    found.push(Err(failure));
                    continue;
                }
            };
            let error = match result {
                Some(Ok(result)) => result.problem,
                Some(Err(error)) => Some(error),
                None => None,
            };
            if error.is_some() && self.stop.load(Ordering::Relaxed) {
                // Whatever the end broke off says nothing of the variant.
                return Err(RunError::Stopped);
            }
            found.push(match error {
                Some(error) => Err(failure(error, self.facts.has_started(step.variant()))?),
                None => self.kept(*step)?.ok_or_else(|| {
                    let why = "its bundle cannot be read back: see the folder of this start";
                    StepFailure::WhenItRan(Why::plain(why.to_owned()))
                }),
            });
        }
        if found.iter().all(Result::is_ok) {
            let is_watched = matches!(steps, [Step::Watched { .. }]);
            self.pace
                .learn(is_watched, began.elapsed().as_secs_f64() / steps.len() as f64);
        }
        Ok(found)
    }

    fn kept(&mut self, step: Step) -> Result<Option<Start>, RunError> {
        let kept = self.folder.kept(step)?;
        Ok(kept.map(|kept| self.taken(step, kept)))
    }

    fn try_again(&mut self, step: Step, why: &Why) -> Result<(), RunError> {
        let name = &self.plan.variants[step.variant()].name;
        let words = Step::words(&[step], &[name], &self.plan.design);
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
fn failure(error: RunError, has_started: bool) -> Result<StepFailure, RunError> {
    use scaleprof_server::Error as Server;
    match error {
        RunError::Server(Server::NoMemory { .. }) if has_started => Err(error),
        RunError::Server(Server::NoSpace { .. } | Server::Locked { .. } | Server::NotOurs { .. })
        | RunError::Stopped
        | RunError::Bundle(_)
        | RunError::Disk(_)
        | RunError::DiskFull { .. }
        | RunError::OpenFiles { .. } => Err(error),
        RunError::Server(_) | RunError::Options(_) | RunError::Script(_) if !has_started => {
            Ok(StepFailure::CannotStart(Why::of(&error)))
        }
        _ => Ok(StepFailure::WhenItRan(Why::of(&error))),
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
