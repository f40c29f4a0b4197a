//! Experiments: variants of a server held against each other in one session, start by start.
//!
//! A [`PlanFile`] is what a person writes, a [`Plan`] what was checked. [`Experiment::begin`] makes the folder and
//! [`Experiment::carry_out`] does the rest: every step is a run of its own in a bundle of its own ([`crate::run()`]), so that what was
//! measured stays however it ends, and [`Experiment::resume`] goes on from there. What it comes to is said by
//! [`scaleprof_analysis::trials`].
//!
//! In the starts that are compared nothing is watched but counters: watching costs a variant whose threads switch more often more.
//! Where the time goes is learnt from one watched run of each variant.

mod choices;
mod conduct;
mod design;
mod disturbed;
mod experiment_error;
mod folder;
mod laboratory;
mod order;
mod outcome;
mod plan;
mod plan_error;
mod plan_file;
mod recorded;
mod step;
mod torn;
mod work;

pub use design::Design;
pub use experiment_error::ExperimentError;
pub use folder::OUTCOME;
pub use laboratory::ExperimentProgress;
pub use plan::{Plan, PlanSource, ReadText, Variant};
pub use plan_error::PlanError;
pub use plan_file::{DesignText, LadderText, LoadText, PlanFile, RequiresText, ServerText, Value, VariantText};
pub use step::Step;
pub use work::{Pace, Work};

use crate::error::RunError;
use crate::options::ServerChoice;
use conduct::{Conducted, conduct};
use folder::{ExperimentFolder, KeptPlan};
use laboratory::RealLaboratory;
use outcome::{Facts, outcome};
use plan::Texts;
use recorded::RecordedLaboratory;
use scaleprof_analysis::comparison::{Choice, Comparison, compare};
use scaleprof_analysis::trials::{ExperimentState, Outcome};
use scaleprof_bundle::Bundle;
use scaleprof_server::memory::available;
use scaleprof_server::{Cache, WorkFolder, cache_size};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An experiment that can be carried out.
#[derive(Debug)]
pub struct Experiment {
    plan: Plan,
    folder: ExperimentFolder,
    /// The version of this program that began it.
    begun_by: String,
}

/// What the kept plan of a run's trials requires: the run, as a plan that follows from it cannot be gone on with.
const OF_A_RUN: &str = "the command of the run again: what its findings advise is tried anew";

/// What an experiment left.
#[derive(Debug)]
pub struct ExperimentResult {
    /// What it comes to; `experiment.json` holds the same.
    pub outcome: Outcome,
    /// The bundles of the watched runs.
    pub watched: Vec<PathBuf>,
    /// Why it ended before its time; what was measured until then is kept all the same.
    pub problem: Option<RunError>,
}

impl Experiment {
    /// Checks a plan and makes the folder that keeps everything.
    ///
    /// # Errors
    /// What is wrong with the plan; a folder that is not empty.
    pub fn begin(file: &PlanFile, source: PlanSource<'_>, output: &Path) -> Result<Experiment, ExperimentError> {
        let mut texts = Texts::new();
        let mut plan = Plan::new(file, source, &mut |path| {
            let text = std::fs::read_to_string(path)?;
            texts.insert(path.to_owned(), text.clone());
            Ok(text)
        })?;
        let available = available();
        plan.fit_to_memory(available);
        let kept = KeptPlan {
            scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
            plan: file.clone(),
            file: source.file.map(str::to_owned),
            folder: source.folder.to_owned(),
            work_folder: source.work_folder.map(Path::to_owned),
            texts,
            available_memory: Some(available),
            side_by_side: plan.design.side_by_side,
        };
        Ok(Experiment {
            plan,
            folder: ExperimentFolder::create(output, &kept)?,
            begun_by: kept.scaleprof,
        })
    }

    /// One whose plan was not written by a person but follows from a run. It cannot be gone on with.
    ///
    /// # Errors
    /// A folder that is not empty.
    pub(crate) fn of_plan(mut plan: Plan, output: &Path) -> Result<Experiment, ExperimentError> {
        let available = available();
        plan.fit_to_memory(available);
        let requires = RequiresText {
            comparison: Some(OF_A_RUN.to_owned()),
            ..RequiresText::default()
        };
        let kept = KeptPlan {
            scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
            plan: PlanFile {
                name: Some(plan.name.clone()),
                requires,
                ..PlanFile::default()
            },
            file: None,
            folder: PathBuf::from("/"),
            work_folder: None,
            texts: Texts::new(),
            available_memory: Some(available),
            side_by_side: plan.design.side_by_side,
        };
        Ok(Experiment {
            plan,
            folder: ExperimentFolder::create(output, &kept)?,
            begun_by: kept.scaleprof,
        })
    }

    /// One that was begun before: with the plan and the statements of then.
    ///
    /// # Errors
    /// A folder without an experiment; one that another process carries out.
    pub fn resume(folder: &Path) -> Result<Experiment, ExperimentError> {
        let path = folder;
        let (folder, kept) = ExperimentFolder::reopen(folder)?;
        if kept.plan.requires.comparison.as_deref() == Some(OF_A_RUN) {
            return Err(ExperimentError::FollowsRun { path: path.to_owned() });
        }
        let source = PlanSource {
            file: kept.file.as_deref(),
            folder: &kept.folder,
            work_folder: kept.work_folder.as_deref(),
        };
        let mut plan = Plan::new(&kept.plan, source, &mut |path| {
            let text = kept.texts.get(path).cloned();
            text.ok_or_else(|| io::ErrorKind::NotFound.into())
        })?;
        if let Some(available) = kept.available_memory {
            plan.fit_to_memory(available);
        }
        plan.go_on_as_begun(kept.side_by_side);
        Ok(Experiment {
            plan,
            folder,
            begun_by: kept.scaleprof,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Carries out what is not done yet. `stop` ends it early; what was measured is kept.
    ///
    /// # Errors
    /// Its own files cannot be written. All else is in [`ExperimentResult::problem`].
    pub fn carry_out(
        &self,
        stop: &Arc<AtomicBool>,
        progress: &mut dyn ExperimentProgress,
    ) -> Result<ExperimentResult, ExperimentError> {
        let Experiment { plan, folder, .. } = self;
        let mut laboratory = RealLaboratory::new(plan, folder, stop, progress);
        self.warn_of_versions(&mut laboratory.facts);
        let (conducted, end) = conduct(&plan.design, &bases(plan), known_out(plan, folder), &mut laboratory);
        let state = match &end {
            Ok(()) => ExperimentState::Complete,
            Err(RunError::Stopped) => ExperimentState::Interrupted,
            Err(_) => ExperimentState::Failed,
        };
        if state == ExperimentState::Complete {
            laboratory.progress.stage("comparing the watched runs");
        }
        let said = end.as_ref().err().map(RunError::for_bundle);
        let outcome = self.concluded(&conducted, &laboratory.facts, state, said);
        folder.write_outcome(&outcome)?;
        if state == ExperimentState::Complete {
            keep_usual_cache(plan);
        }
        let watched = conducted.watched.iter();
        Ok(ExperimentResult {
            outcome,
            watched: watched
                .map(|variant| folder.of(Step::Watched { variant: *variant }))
                .collect(),
            problem: end.err(),
        })
    }

    /// What there is so far, from what was measured: nothing is started and nothing is written. One that could not go on is still said to
    /// have failed, and why.
    pub fn so_far(&self) -> Outcome {
        let Experiment { plan, folder, .. } = self;
        let mut laboratory = RecordedLaboratory::new(plan, folder);
        let (conducted, end) = conduct(&plan.design, &bases(plan), known_out(plan, folder), &mut laboratory);
        let (state, said) = match (end, folder.kept_state()) {
            (Ok(()), _) => (ExperimentState::Complete, None),
            (Err(RunError::Stopped), Some((ExperimentState::Failed, problem))) => (ExperimentState::Failed, problem),
            (Err(end), _) if !matches!(end, RunError::Stopped) => (ExperimentState::Failed, Some(end.for_bundle())),
            (Err(stopped), _) => (ExperimentState::Interrupted, Some(stopped.for_bundle())),
        };
        self.concluded(&conducted, &laboratory.facts, state, said)
    }

    fn warn_of_versions(&self, facts: &mut Facts) {
        let now = env!("CARGO_PKG_VERSION");
        if self.begun_by != now {
            let before = &self.begun_by;
            facts.warn(format!(
                "begun with scaleprof {before} and gone on with {now}: starts of both are held against each other"
            ));
        }
    }

    /// The outcome; of a complete experiment with what its watched runs differ in.
    fn concluded(&self, conducted: &Conducted, facts: &Facts, state: ExperimentState, said: Option<String>) -> Outcome {
        let mut outcome = outcome(&self.plan, conducted, facts, state, said);
        if state != ExperimentState::Complete {
            return outcome;
        }
        for (comparison, other) in outcome.comparisons.iter_mut().zip(&conducted.session.others) {
            let both = [conducted.session.base_of(*other), *other];
            if both.iter().all(|variant| conducted.watched.contains(variant)) {
                let [a, b] = both.map(|variant| self.folder.of(Step::Watched { variant }));
                (comparison.watched, comparison.not_watched) = match watched(&a, &b) {
                    Ok(found) => (Some(found), None),
                    Err(why) => (None, Some(why)),
                };
            }
        }
        outcome
    }

    /// Whether a folder is one that an experiment keeps everything in.
    pub fn is_in(folder: &Path) -> bool {
        ExperimentFolder::is_at(folder)
    }

    /// Where it keeps everything.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// For each variant the place of the one that it is held against.
fn bases(plan: &Plan) -> Vec<usize> {
    plan.variants.iter().map(|variant| variant.base).collect()
}

/// Variants that were dropped before, by their places.
fn known_out(plan: &Plan, folder: &ExperimentFolder) -> BTreeMap<usize, String> {
    let dropped = folder.dropped();
    let variants = plan.variants.iter().enumerate();
    variants
        .filter_map(|(at, variant)| Some((at, dropped.get(&variant.name)?.clone())))
        .collect()
}

/// What `scaleprof diff` says of two watched runs.
fn watched(a: &Path, b: &Path) -> Result<Comparison, String> {
    let open = |folder: &Path| Bundle::open(folder).map_err(|error| error.to_string());
    compare(&open(a)?, &open(b)?, Choice::default()).map_err(|refusal| refusal.to_string().replace("\nfix: ", "; "))
}

/// Removes prepared data beyond what a run keeps: while an experiment went on, all that its variants need was kept. Where that cannot be
/// done the next run does it.
fn keep_usual_cache(plan: &Plan) {
    let mut folders = BTreeSet::new();
    for variant in &plan.variants {
        if let ServerChoice::Private { work_folder, .. } = &variant.server {
            folders.insert(work_folder.clone().unwrap_or_else(WorkFolder::default_path));
        }
    }
    let Ok(most) = cache_size() else { return };
    for folder in folders {
        let cache = WorkFolder::open(&folder).and_then(|work| Cache::open(&work));
        let _ = cache.and_then(|cache| cache.keep_to(most));
    }
}

#[cfg(test)]
mod tests;
