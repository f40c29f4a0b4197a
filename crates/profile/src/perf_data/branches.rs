//! Jumps with the names of the places that they lead from and to.

use super::jumps::Jumps;
use super::resolve::Names;
use crate::FrameId;
use crate::import::{BranchCounts, RecordedBranch, RecordedBranches};
use crate::names::kernel_frame;
use foldhash::HashMap;
use std::cmp::Reverse;

/// The jumps of a recording; none where it has none. Places that nothing tells apart, as in a kernel without names, are one.
pub(super) fn branches(jumps: &Jumps, names: &mut Names) -> Option<RecordedBranches> {
    let mut found = RecordedBranches::default();
    let mut known: HashMap<u64, FrameId> = HashMap::default();
    let of_user = std::mem::take(&mut names.functions).into_iter();
    let in_kernel = jumps.ends_in_kernel().into_iter();
    let of_kernel = in_kernel.map(|end| (end, kernel_frame(names.kernel.as_ref(), end)));
    for (end, frame) in of_user.chain(of_kernel) {
        known.insert(end, found.frames.intern(frame));
    }
    let mut sums: HashMap<(FrameId, FrameId), BranchCounts> = HashMap::default();
    for ((from, to), counts) in jumps.iter() {
        if let (Some(from), Some(to)) = (known.get(&from), known.get(&to)) {
            sums.entry((*from, *to)).or_default().add(counts);
        }
    }
    let branches = sums.into_iter();
    found.branches = branches
        .map(|((from, to), counts)| RecordedBranch { from, to, counts })
        .collect();
    found
        .branches
        .sort_unstable_by_key(|branch| (Reverse(branch.counts.taken), branch.from, branch.to));
    (!found.branches.is_empty()).then_some(found)
}
