//! Who held a lock when a wait for it began.

use super::HolderSource;
use crate::call_paths::{CallPaths, PathId};
use crate::measurement_rows::MeasurementRows;
use crate::sampled::Wait;
use scaleprof_bundle::SampleBlock;
use scaleprof_vocabulary::ThreadState;

/// A holder: where it was, as far as that is known, and what it was doing.
pub(super) type HolderKey = (Option<PathId>, Option<ThreadState>);

/// How it is known who held locks.
pub(super) fn source(measurements: &[&MeasurementRows<'_>]) -> HolderSource {
    let mut samples = measurements.iter().flat_map(|rows| rows.samples.iter());
    match samples.any(|block| names_owners(block)) {
        true => HolderSource::PerWait,
        false => HolderSource::Unknown,
    }
}

/// Who held the lock of a wait when it began; none where that is not known.
pub(super) fn holder(wait: &Wait, call_paths: &mut CallPaths<'_>) -> Option<HolderKey> {
    let state = wait.holder_state?;
    let place = wait.holder_stack.and_then(|stack| place_of(stack, call_paths));
    Some((place, Some(state)))
}

/// Whether some sample says what the holder of a lock was doing.
fn names_owners(block: &SampleBlock) -> bool {
    let states = block.holder_states();
    // A value may be that of no row.
    states.values().iter().any(Option::is_some)
        && states
            .codes()
            .iter()
            .any(|code| states.values()[*code as usize].is_some())
}

/// The functions of the server at the inner end of a stack: without those of the kernel, in which a thread that is off its CPU
/// always is. None where no function is known.
pub(super) fn place_of(stack: i64, call_paths: &mut CallPaths<'_>) -> Option<PathId> {
    let mut at = Some(call_paths.path(stack));
    while let Some(path) = at.filter(|path| call_paths.innermost(*path).ends_with(" [k]")) {
        at = call_paths.parent(path);
    }
    at.filter(|path| !call_paths.innermost(*path).starts_with("[incomplete"))
}
