//! The jumps of a recording as rows of its visit.

use scaleprof_bundle::BranchRow;
use scaleprof_profile::Frame;
use scaleprof_profile::import::{RecordedBranch, RecordedBranches};

/// Some of the jumps as rows; all at once may take more memory than the recording.
pub(super) fn rows(visit: i32, recorded: &RecordedBranches, some: &[RecordedBranch]) -> Vec<BranchRow> {
    some.iter().map(|branch| row(visit, recorded, branch)).collect()
}

fn row(visit: i32, recorded: &RecordedBranches, branch: &RecordedBranch) -> BranchRow {
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let end = |frame| match recorded.frames.get(frame) {
        Some(Frame {
            module,
            build_id,
            function,
            address,
            ..
        }) => (
            module.to_string(),
            build_id.as_deref().map(str::to_owned),
            function.as_deref().map(str::to_owned),
            *address,
        ),
        None => Default::default(),
    };
    let (from_module, from_build_id, from_function, from_address) = end(branch.from);
    let (to_module, to_build_id, to_function, to_address) = end(branch.to);
    let counts = &branch.counts;
    BranchRow {
        visit,
        from_module,
        from_build_id,
        from_function,
        from_address,
        to_module,
        to_build_id,
        to_function,
        to_address,
        taken: count(counts.taken),
        prediction_known: count(counts.prediction_known),
        mispredicted: counts.mispredicted().map(count),
        cycles_known: count(counts.cycles_known),
        cycles: counts.cycles().map(count),
    }
}
