//! The jumps of a recording as rows of its measurement.

use scaleprof_bundle::BranchRow;
use scaleprof_profile::Frame;
use scaleprof_profile::import::{RecordedBranch, RecordedBranches};

/// Some of the jumps as rows; all at once may take more memory than the recording.
pub(super) fn rows(measurement: i32, recorded: &RecordedBranches, some: &[RecordedBranch]) -> Vec<BranchRow> {
    some.iter().map(|branch| row(measurement, recorded, branch)).collect()
}

fn row(measurement: i32, recorded: &RecordedBranches, branch: &RecordedBranch) -> BranchRow {
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
        measurement,
        from_module,
        from_build_id,
        from_function,
        from_address,
        to_module,
        to_build_id,
        to_function,
        to_address,
        taken: count(counts.taken),
        with_prediction: count(counts.with_prediction),
        mispredicted: counts.mispredicted().map(count),
        with_cycles: count(counts.with_cycles),
        cycles: counts.cycles().map(count),
    }
}
