//! How samples were taken whose recordings do not tell it: folded stacks are numbers of samples, and nothing else.

use super::ImportFailure;
use scaleprof_profile::import::{Recording, Weights};
use std::path::Path;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// What the user knows of how his samples were taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    /// Samples a second of a thread that runs; none where it is not known.
    pub frequency_hz: Option<f64>,
    /// How many seconds each recording took, in their order, or one number for all; empty where it is not known.
    pub seconds: Vec<f64>,
}

impl Sampling {
    /// Gives the recording at this place its length, and its samples the time that they stand for, as far as it does not tell them itself.
    /// Returns in words what it did not need.
    ///
    /// # Errors
    /// Its samples would be a time, but nobody knows of how long a time.
    pub(super) fn complete(
        &self,
        recording: &mut Recording,
        place: usize,
        file: &Path,
    ) -> Result<Vec<String>, ImportFailure> {
        let mut unneeded = Vec::new();
        let seconds = match self.seconds[..] {
            [all] => Some(all),
            _ => self.seconds.get(place).copied(),
        };
        match seconds {
            Some(_) if has_length(recording) => {
                unneeded.push("--seconds is ignored for it: it has its own duration".to_owned());
            }
            Some(seconds) => recording.span = Some(0..(seconds * SECOND) as u64),
            None => {}
        }
        let Some(frequency_hz) = self.frequency_hz else {
            return Ok(unneeded);
        };
        match (recording.weights, recording.samples_of_unknown_rate) {
            (Weights::Nanoseconds, _) => {
                unneeded.push("--frequency is ignored for it: it has its own sample period".to_owned())
            }
            (Weights::Counts, None) => {
                unneeded.push("--frequency is ignored for it: its samples have no rate".to_owned());
            }
            (Weights::Counts, Some(samples)) if has_length(recording) => {
                become_time(recording, samples * SECOND / frequency_hz);
            }
            (Weights::Counts, Some(_)) => return Err(ImportFailure::NoLength { path: file.to_owned() }),
        }
        Ok(unneeded)
    }
}

/// Its samples stand for so much time altogether, each for its share.
fn become_time(recording: &mut Recording, nanoseconds: f64) {
    let samples = &mut recording.profile.samples;
    let each = nanoseconds / samples.iter().map(|sample| sample.weight_ns).sum::<f64>();
    if each.is_finite() {
        for sample in samples {
            sample.weight_ns *= each;
        }
        recording.weights = Weights::Nanoseconds;
    }
}

/// A recording whose load is known tells how much time its samples stand for, and how long it took: nothing of it could be given per
/// transaction else.
pub(super) fn check_time(recording: &Recording, file: &Path) -> Result<(), ImportFailure> {
    let path = || file.to_owned();
    match (recording.weights, recording.samples_of_unknown_rate) {
        (Weights::Counts, Some(_)) => Err(ImportFailure::NoTime { path: path() }),
        (Weights::Counts, None) => Err(ImportFailure::OtherEvent {
            path: path(),
            event: recording.event.clone().unwrap_or_else(|| "an unknown event".to_owned()),
        }),
        (Weights::Nanoseconds, _) if !has_length(recording) => Err(ImportFailure::NoLength { path: path() }),
        (Weights::Nanoseconds, _) => Ok(()),
    }
}

fn has_length(recording: &Recording) -> bool {
    recording.span.as_ref().is_some_and(|span| span.end > span.start)
}
