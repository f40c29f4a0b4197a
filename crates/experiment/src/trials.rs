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
mod experiment_error;
mod folder;
mod laboratory;
mod order;
mod outcome;
mod plan;
mod plan_error;
mod plan_file;
mod step;
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
use conduct::conduct;
use folder::{ExperimentFolder, KeptPlan};
use laboratory::RealLaboratory;
use outcome::outcome;
use plan::Texts;
use scaleprof_analysis::comparison::{Choice, Comparison, compare};
use scaleprof_analysis::trials::{ExperimentState, Outcome};
use scaleprof_bundle::Bundle;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An experiment that can be carried out.
#[derive(Debug)]
pub struct Experiment {
    plan: Plan,
    folder: ExperimentFolder,
}

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
        let plan = Plan::new(file, source, &mut |path| {
            let text = std::fs::read_to_string(path)?;
            texts.insert(path.to_owned(), text.clone());
            Ok(text)
        })?;
        let kept = KeptPlan {
            scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
            plan: file.clone(),
            file: source.file.map(str::to_owned),
            folder: source.folder.to_owned(),
            work_folder: source.work_folder.map(Path::to_owned),
            texts,
        };
        Ok(Experiment {
            plan,
            folder: ExperimentFolder::create(output, &kept)?,
        })
    }

    /// One whose plan was not written by a person but follows from a run. It cannot be gone on with.
    ///
    /// # Errors
    /// A folder that is not empty.
    pub(crate) fn of_plan(plan: Plan, output: &Path) -> Result<Experiment, ExperimentError> {
        let requires = RequiresText {
            comparison: Some("the command of the run again: what its findings advise is tried anew".to_owned()),
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
        };
        Ok(Experiment {
            plan,
            folder: ExperimentFolder::create(output, &kept)?,
        })
    }

    /// One that was begun before: with the plan and the statements of then.
    ///
    /// # Errors
    /// A folder without an experiment; one that another process carries out.
    pub fn resume(folder: &Path) -> Result<Experiment, ExperimentError> {
        let (folder, kept) = ExperimentFolder::reopen(folder)?;
        let source = PlanSource {
            file: kept.file.as_deref(),
            folder: &kept.folder,
            work_folder: kept.work_folder.as_deref(),
        };
        let plan = Plan::new(&kept.plan, source, &mut |path| {
            let text = kept.texts.get(path).cloned();
            text.ok_or_else(|| io::ErrorKind::NotFound.into())
        })?;
        Ok(Experiment { plan, folder })
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
        let Experiment { plan, folder } = self;
        let mut laboratory = RealLaboratory::new(plan, folder, stop, progress);
        let known_out = laboratory.known_out();
        let bases: Vec<usize> = plan.variants.iter().map(|variant| variant.base).collect();
        let (conducted, end) = conduct(&plan.design, &bases, known_out, &mut laboratory);
        let state = match &end {
            Ok(()) => ExperimentState::Complete,
            Err(RunError::Stopped) => ExperimentState::Interrupted,
            Err(_) => ExperimentState::Failed,
        };
        let said = end.as_ref().err().map(RunError::for_bundle);
        let mut outcome = outcome(plan, &conducted, &laboratory.facts, state, said);
        let bundle_of = |variant: usize| folder.of(Step::Watched { variant });
        if state == ExperimentState::Complete {
            laboratory.progress.stage("comparing the watched runs");
            let others = conducted.session.others.iter();
            for (comparison, other) in outcome.comparisons.iter_mut().zip(others) {
                let both = [conducted.session.base_of(*other), *other];
                if both.iter().all(|variant| conducted.watched.contains(variant)) {
                    let [a, b] = both.map(bundle_of);
                    (comparison.watched, comparison.not_watched) = match watched(&a, &b) {
                        Ok(found) => (Some(found), None),
                        Err(why) => (None, Some(why)),
                    };
                }
            }
        }
        folder.write_outcome(&outcome)?;
        Ok(ExperimentResult {
            outcome,
            watched: conducted.watched.iter().map(|variant| bundle_of(*variant)).collect(),
            problem: end.err(),
        })
    }

    /// Where it keeps everything.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What `scaleprof diff` says of two watched runs.
fn watched(a: &Path, b: &Path) -> Result<Comparison, String> {
    let open = |folder: &Path| Bundle::open(folder).map_err(|error| error.to_string());
    compare(&open(a)?, &open(b)?, Choice::default()).map_err(|refusal| refusal.to_string())
}
