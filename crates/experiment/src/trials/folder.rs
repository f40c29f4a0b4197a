//! An experiment's folder: the plan as it was given, a bundle for each step, what it comes to.
//!
//! ```text
//! DIR/plan.json          the plan with all that the command line added, and the statements that it names; for `experiment resume`
//! DIR/dropped.json       variants that take no part any more
//! DIR/retried.json       steps that failed once and were tried again
//! DIR/starts/...         a bundle for each server start; of one that failed and was tried again with `-failed` behind it
//! DIR/watched/...        a bundle for each variant's watched run, with its report.html
//! DIR/experiment.json    what it comes to, anew after every step
//! DIR/report.html        the same as a page, when it ends
//! ```

use super::ExperimentError;
use super::plan::Texts;
use super::plan_file::PlanFile;
use super::step::Step;
use crate::error::RunError;
use crate::run::error_log_beside;
use scaleprof_analysis::summarise;
use scaleprof_analysis::trials::{ExperimentState, Outcome, RungFigures, Start};
use scaleprof_bundle::{Bundle, Manifest, RungSummary, Summary};
use scaleprof_guard::{Folder, NoOutput};
use scaleprof_server::FileLock;
use scaleprof_vocabulary::RunState;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const PLAN: &str = "plan.json";
const DROPPED: &str = "dropped.json";
const RETRIED: &str = "retried.json";
/// Behind the name of a step's folder: what it left when it failed.
const FAILED: &str = "-failed";
/// The file of [`Outcome`].
pub const OUTCOME: &str = "experiment.json";
const STARTS: &str = "starts";
const WATCHED: &str = "watched";

/// What is needed to go on with an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptPlan {
    pub(crate) scaleprof: String,
    pub(crate) plan: PlanFile,
    /// What the plan is called in errors.
    pub(crate) file: Option<String>,
    /// What its paths are relative to.
    pub(crate) folder: PathBuf,
    pub(crate) work_folder: Option<PathBuf>,
    pub(crate) texts: Texts,
    /// Bytes of memory that were free when it began, by which buffer pools are sized; none in folders of before that was kept.
    #[serde(default)]
    pub(crate) available_memory: Option<u64>,
    /// Whether starts that belong together run side by side; folders of before that was kept were measured one after the other.
    #[serde(default)]
    pub(crate) side_by_side: bool,
}

/// The folder of an experiment that this process carries out: nobody else may meanwhile.
#[derive(Debug)]
pub(crate) struct ExperimentFolder {
    path: PathBuf,
    _lock: FileLock,
}

impl ExperimentFolder {
    /// A new one, which is made where it is missing and must be empty where it is not.
    pub(crate) fn create(path: &Path, kept: &KeptPlan) -> Result<Self, ExperimentError> {
        let folder = Folder::for_output(path).map_err(|error| match error {
            NoOutput::Exposed(source) => ExperimentError::Exposed {
                path: path.to_owned(),
                source,
            },
            NoOutput::System(source) => ExperimentError::disk("make the folder", path)(source),
        })?;
        if !folder
            .names()
            .map_err(ExperimentError::disk("look into", path))?
            .is_empty()
        {
            return Err(ExperimentError::NotEmpty {
                path: path.to_owned(),
                resumable: path.join(PLAN).is_file(),
            });
        }
        for folder in [STARTS, WATCHED] {
            let folder = path.join(folder);
            fs::create_dir(&folder).map_err(ExperimentError::disk("make the folder", &folder))?;
        }
        write_json(&path.join(PLAN), kept)?;
        Self::locked(path)
    }

    /// Whether an experiment was begun there.
    pub(crate) fn is_at(path: &Path) -> bool {
        path.join(PLAN).is_file()
    }

    /// One that was begun before.
    pub(crate) fn reopen(path: &Path) -> Result<(Self, KeptPlan), ExperimentError> {
        if !Self::is_at(path) {
            return Err(ExperimentError::NoExperiment { path: path.to_owned() });
        }
        let folder = Self::locked(path)?;
        Ok((folder, read_json(&path.join(PLAN))?))
    }

    fn locked(path: &Path) -> Result<Self, ExperimentError> {
        let plan = path.join(PLAN);
        let lock = File::open(&plan).map_err(ExperimentError::disk("open", &plan))?;
        let lock = FileLock::exclusive(lock)
            .map_err(ExperimentError::disk("lock", &plan))?
            .ok_or_else(|| ExperimentError::UnderWay { path: path.to_owned() })?;
        Ok(ExperimentFolder {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the bundle of a step is or will be.
    pub(crate) fn of(&self, step: Step) -> PathBuf {
        self.path.join(step.folder())
    }

    /// What a step gave, if it was carried out to its end.
    ///
    /// # Errors
    /// It was carried out and cannot be read: to measure it anew would throw it away.
    pub(crate) fn kept(&self, step: Step) -> Result<Option<KeptStep>, ExperimentError> {
        let folder = self.of(step);
        let path = folder.join("manifest.json");
        if !path.exists() {
            return Ok(None);
        }
        let manifest: Manifest = read_json(&path)?;
        if manifest.state != RunState::Complete {
            return Ok(None);
        }
        // A summary is made of the rest: one of another version of this program is made anew.
        let summary: Summary = match read_json(&folder.join("summary.json")) {
            Ok(summary) => summary,
            Err(_) => summarise(&Bundle::open(&folder).map_err(RunError::from)?),
        };
        let began = OffsetDateTime::parse(&manifest.started_at, &Rfc3339)
            .map_err(|error| ExperimentError::disk("understand", &path)(io::Error::other(error)))?;
        let figures = |rung: &RungSummary| (rung.connections, RungFigures::of(rung, &manifest.workload));
        Ok(Some(KeptStep {
            start: Start {
                began: began.unix_timestamp() as f64,
                rungs: summary.rungs.iter().map(figures).collect(),
            },
            fingerprint: match manifest.server.build_id {
                Some(_) => None,
                None => {
                    let bundle = Bundle::open(&folder).map_err(RunError::from)?;
                    bundle.server_fingerprint().map(str::to_owned)
                }
            },
            manifest,
        }))
    }

    /// Puts what a step left that failed, its server's log too, beside the place of the step, which is tried again; in place of what
    /// failed there before.
    pub(crate) fn set_aside(&self, step: Step) -> Result<(), ExperimentError> {
        let folder = self.of(step);
        let aside = with_behind(&folder, FAILED);
        for (from, to) in [
            (folder.clone(), aside.clone()),
            (error_log_beside(&folder), error_log_beside(&aside)),
        ] {
            let failed = ExperimentError::disk("set aside", &from);
            let cleared = match to.is_dir() {
                true => fs::remove_dir_all(&to),
                false => Ok(()),
            };
            match cleared.and_then(|()| fs::rename(&from, &to)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes what a step left that was not carried out to its end. It is in our folder and under a name of ours.
    pub(crate) fn clear(&self, step: Step) -> Result<(), ExperimentError> {
        let folder = self.of(step);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ExperimentError::disk("remove the unfinished", &folder)(error))
            }
            _ => Ok(()),
        }
    }

    /// Variants that were dropped, by name.
    pub(crate) fn dropped(&self) -> BTreeMap<String, String> {
        read_json(&self.path.join(DROPPED)).unwrap_or_default()
    }

    pub(crate) fn keep_dropped(&self, dropped: &BTreeMap<String, String>) -> Result<(), ExperimentError> {
        write_json(&self.path.join(DROPPED), dropped)
    }

    /// Steps that failed once and were tried again, by their folders, in words.
    pub(crate) fn retried(&self) -> BTreeMap<String, String> {
        read_json(&self.path.join(RETRIED)).unwrap_or_default()
    }

    pub(crate) fn keep_retried(&self, retried: &BTreeMap<String, String>) -> Result<(), ExperimentError> {
        write_json(&self.path.join(RETRIED), retried)
    }

    /// How it stood when its outcome was last written, and why it could not go on; none where nothing was written yet.
    pub(crate) fn kept_state(&self) -> Option<(ExperimentState, Option<String>)> {
        let kept: KeptOutcome = read_json(&self.path.join(OUTCOME)).ok()?;
        Some((kept.state, kept.problem))
    }

    pub(crate) fn write_outcome(&self, outcome: &Outcome) -> Result<(), ExperimentError> {
        write_json(&self.path.join(OUTCOME), outcome)
    }
}

/// What of [`Outcome`] cannot be found out from the steps again.
#[derive(Deserialize)]
struct KeptOutcome {
    state: ExperimentState,
    problem: Option<String>,
}

/// A step that was carried out.
#[derive(Debug, Clone)]
pub(crate) struct KeptStep {
    pub(crate) start: Start,
    pub(crate) manifest: Manifest,
    /// Hash of the server's file, where it has no build-id.
    pub(crate) fingerprint: Option<String>,
}

/// A path with more behind its last part.
fn with_behind(path: &Path, more: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(more);
    path.with_file_name(name)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ExperimentError> {
    let text = fs::read(path).map_err(ExperimentError::disk("read", path))?;
    serde_json::from_slice(&text).map_err(|error| ExperimentError::disk("understand", path)(error.into()))
}

/// Written whole or not at all, however this ends.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ExperimentError> {
    let failed = |doing| ExperimentError::disk(doing, path);
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| failed("write")(error.into()))?;
    text.push(b'\n');
    let written = scaleprof_guard::replace(path, |file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    written.map_err(failed("write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> KeptPlan {
        KeptPlan {
            scaleprof: "0".into(),
            plan: PlanFile::default(),
            file: None,
            folder: "/plans".into(),
            work_folder: None,
            texts: [(PathBuf::from("/plans/a.sql"), "SELECT 1".to_owned())].into(),
            available_memory: Some(1 << 30),
            side_by_side: true,
        }
    }

    #[test]
    fn an_experiment_is_found_again_and_belongs_to_one_process() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("e");
        let folder = ExperimentFolder::create(&path, &kept()).expect("created");
        let dropped = BTreeMap::from([("b".to_owned(), "died".to_owned())]);
        folder.keep_dropped(&dropped).expect("kept");
        assert!(matches!(
            ExperimentFolder::reopen(&path),
            Err(ExperimentError::UnderWay { .. })
        ));
        drop(folder);
        let (folder, plan) = ExperimentFolder::reopen(&path).expect("found");
        assert_eq!((plan, folder.dropped()), (kept(), dropped));
        let error = ExperimentFolder::create(&path, &kept())
            .expect_err("it is not empty")
            .to_string();
        assert!(error.contains("experiment resume"), "{error}");
        let error = ExperimentFolder::reopen(place.path()).expect_err("none").to_string();
        assert!(error.contains("plan.json"), "{error}");
    }

    #[test]
    fn a_plan_that_does_not_say_how_it_was_measured_was_measured_one_after_the_other() {
        let mut plan = serde_json::to_value(kept()).expect("a plan");
        let side_by_side = plan.as_object_mut().expect("fields").remove("side_by_side");
        assert_eq!(side_by_side, Some(true.into()));
        let old: KeptPlan = serde_json::from_value(plan).expect("a plan of before");
        let expected = KeptPlan {
            side_by_side: false,
            ..kept()
        };
        assert_eq!(old, expected);
    }

    #[test]
    fn a_step_that_was_cut_short_is_done_again() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("e");
        let folder = ExperimentFolder::create(&path, &kept()).expect("created");
        let step = Step::Round { round: 0, variant: 1 };
        let kept = || folder.kept(step).expect("nothing is there to be read");
        assert!(kept().is_none());
        fs::create_dir_all(folder.of(step).join("measurements")).expect("a folder");
        assert!(kept().is_none());
        folder.set_aside(step).expect("set aside");
        fs::create_dir_all(folder.of(step)).expect("a folder");
        folder.set_aside(step).expect("set aside in place of the first");
        folder.set_aside(step).expect("what is not there need not go");
        fs::create_dir_all(folder.of(step)).expect("a folder");
        folder.clear(step).expect("cleared");
        folder.clear(step).expect("what is not there need not go");
        assert!(!folder.of(step).exists());
    }

    #[test]
    fn a_step_that_was_measured_and_cannot_be_read_is_not_measured_anew() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = ExperimentFolder::create(&place.path().join("e"), &kept()).expect("created");
        let step = Step::Round { round: 0, variant: 1 };
        fs::create_dir_all(folder.of(step)).expect("a folder");
        fs::write(folder.of(step).join("manifest.json"), "{\"schema\": ").expect("written");
        let error = folder.kept(step).expect_err("it is damaged").to_string();
        assert!(error.contains("manifest.json"), "{error}");
    }
}
