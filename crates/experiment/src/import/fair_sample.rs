//! Whether a recording is a fair sample of its load, in words: it is held against one without call graphs.

use scaleprof_profile::fairness::{Distortion, distortions};
use scaleprof_profile::import::{CallPaths, Recording};

/// Functions that are told.
const MOST_TOLD: usize = 5;

/// What holding a recording against a flat one of the same load gave.
pub(super) struct FairSample {
    /// Whether the other one is not flat.
    pub(super) flat_has_callers: bool,
    /// Whether the recording is no fair sample, or nobody knows.
    pub(super) is_distorted: bool,
    /// What to say of it.
    pub(super) words: String,
}

impl FairSample {
    /// Of a recording and the flat one, which may be empty.
    pub(super) fn of(recording: &Recording, flat: Option<&Recording>) -> FairSample {
        let found = flat.and_then(|flat| distortions(&flat.profile, &recording.profile));
        let words = match found.as_deref() {
            None => "one of the two recordings has no samples on a CPU, so they cannot be compared".to_owned(),
            Some([]) => "no function's share of the CPU time differs from that in the flat recording by a hundredth or more that chance \
                         does not explain"
                .to_owned(),
            Some(found) => told(found),
        };
        let call_paths = flat.and_then(|flat| flat.call_paths);
        FairSample {
            flat_has_callers: call_paths.is_some_and(|way| way != CallPaths::NoCallers),
            is_distorted: found.is_none_or(|found| !found.is_empty()),
            words,
        }
    }
}

fn told(found: &[Distortion]) -> String {
    let per_cent = |share: f64| format!("{:.1} %", share * 100.0);
    let first = found.iter().take(MOST_TOLD).map(|one| {
        let (graph, flat) = (per_cent(one.graph), per_cent(one.flat));
        format!(
            "{} has {graph} of the CPU time and {flat} in the flat recording",
            one.function
        )
    });
    let more = match found.len().saturating_sub(MOST_TOLD) {
        0 => String::new(),
        more => format!(", and {more} functions more"),
    };
    format!(
        "it is no fair sample of the load, which taking call graphs changed: {}{more}. Record with a lower -F",
        first.collect::<Vec<String>>().join("; ")
    )
}
