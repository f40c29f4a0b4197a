//! An experiment as far as it was carried out: steps are read back, and the first that is not there ends it.

use super::conduct::{Conducted, Laboratory, StepFailure, Why};
use super::folder::ExperimentFolder;
use super::outcome::Facts;
use super::plan::Plan;
use super::step::Step;
use super::work::Work;
use crate::error::RunError;
use scaleprof_analysis::trials::Start;

/// What an experiment's folder holds. It starts nothing and writes nothing.
pub(crate) struct RecordedLaboratory<'a> {
    folder: &'a ExperimentFolder,
    pub(crate) facts: Facts,
}

impl<'a> RecordedLaboratory<'a> {
    pub(crate) fn new(plan: &Plan, folder: &'a ExperimentFolder) -> Self {
        let mut facts = Facts::new(plan.variants.len());
        folder.retried().into_values().for_each(|words| facts.warn(words));
        RecordedLaboratory { folder, facts }
    }
}

impl Laboratory for RecordedLaboratory<'_> {
    fn carry_out(&mut self, steps: &[Step], _: Work) -> Result<Vec<Result<Start, StepFailure>>, RunError> {
        let kept = steps
            .iter()
            .map(|step| self.kept(*step)?.ok_or(RunError::Stopped).map(Ok));
        kept.collect()
    }

    fn kept(&mut self, step: Step) -> Result<Option<Start>, RunError> {
        let Some(kept) = self.folder.kept(step)? else {
            return Ok(None);
        };
        self.facts
            .learn(step.variant(), &kept.manifest, kept.fingerprint.as_deref());
        Ok(Some(kept.start))
    }

    fn try_again(&mut self, _: Step, _: &Why) -> Result<(), RunError> {
        Ok(())
    }

    fn drop_variant(&mut self, _: usize, _: &Why) {}

    fn keep(&mut self, _: &Conducted) -> Result<(), RunError> {
        Ok(())
    }
}
