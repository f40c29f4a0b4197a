//! Loops that wait for a store of somebody else's without telling the CPU so.
//!
//! `while (!flag);` is a load, a comparison and a branch back. No instruction gives such a loop away, but what is missing does:
//! it stores nothing, calls nothing, and no register carries anything from one turn to the next. Each turn then computes the
//! same from the same memory, so that only somebody else can end the loop. Loops that count, search or follow a list all carry
//! something. Only loops in one piece are looked for, whose instructions run one after the other, so some are missed; and what is found
//! rests on less than an instruction that says it waits.

use std::collections::BTreeSet;
use std::ops::Range;

use super::counting::{only_counts, only_passes_time};
use super::flow::Flow;

/// Most bytes of such a loop; the short branches of x86-64 reach back that far.
pub(super) const MOST_BYTES: usize = 64;
/// Instructions of it.
const MOST_INSTRUCTIONS: usize = 16;

/// A loop that no instruction gives away. Its bytes were found anywhere: it counts where a function's instructions fall on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unrelaxed {
    /// Looks at memory in every turn.
    Poll(Range<u64>),
    /// Only counts, so that a compiler may leave it out.
    Count(Range<u64>),
    /// Only counts, and nothing but time comes of it.
    Delay(Range<u64>),
}

impl Unrelaxed {
    /// Its addresses.
    pub(super) fn range(&self) -> &Range<u64> {
        let (Unrelaxed::Poll(range) | Unrelaxed::Count(range) | Unrelaxed::Delay(range)) = self;
        range
    }

    /// What these instructions are, laid one behind another in these addresses; none where they are an ordinary loop.
    pub(super) fn of(flows: &[Flow], range: Range<u64>) -> Option<Self> {
        if waits(flows, range.start, range.end) {
            return Some(Unrelaxed::Poll(range));
        }
        if only_passes_time(flows, &range) {
            return Some(Unrelaxed::Delay(range));
        }
        only_counts(flows, range.start).then_some(Unrelaxed::Count(range))
    }
}

/// Whether instructions, laid one behind another from `start` to `end`, wait in a loop for somebody else's store. The last one
/// branches back to the first.
pub(super) fn waits(flows: &[Flow], start: u64, end: u64) -> bool {
    let within = start..end;
    let leaves = |flow: &Flow| flow.branch.is_some_and(|target| !within.contains(&target));
    let Some((last, before)) = flows.split_last() else {
        return false;
    };
    flows.len() <= MOST_INSTRUCTIONS
        && last.branch == Some(start)
        && flows.iter().all(|flow| !flow.is_out_of_question)
        && flows.iter().any(|flow| flow.loads)
        // One way through all of it, which is left or not: else the branch back may just go to code that two ways share.
        && before.iter().all(|flow| flow.goes_on && (flow.branch.is_none() || leaves(flow)))
        && (last.goes_on || before.iter().any(leaves))
        && !carries(flows)
        && looks_before_it_decides(flows)
}

/// Whether all that branches decide by comes from memory that the loop reads: else it goes on for ever or not at all, or asks what does not
/// change, which compilers mostly take out of a loop that only waits.
fn looks_before_it_decides(flows: &[Flow]) -> bool {
    let mut seen: BTreeSet<u16> = BTreeSet::new();
    let mut last_saw = false;
    for flow in flows {
        let saw = flow.loads || flow.reads.iter().any(|register| seen.contains(register));
        match flow.branch {
            // Those that ask no register decide by what was done last.
            Some(_) => {
                let decides = if flow.reads.is_empty() { last_saw } else { saw };
                if flow.goes_on && !decides {
                    return false;
                }
            }
            None => last_saw = saw,
        }
        for register in &flow.writes {
            match saw {
                true => seen.insert(*register),
                false => seen.remove(register),
            };
        }
    }
    true
}

/// Whether a register that the loop changes is read before it is set: its value came from the turn before.
fn carries(flows: &[Flow]) -> bool {
    let changed: BTreeSet<u16> = flows.iter().flat_map(|flow| flow.writes.iter().copied()).collect();
    let mut set: BTreeSet<u16> = BTreeSet::new();
    flows.iter().any(|flow| {
        let carried = flow
            .reads
            .iter()
            .any(|register| changed.contains(register) && !set.contains(register));
        set.extend(&flow.writes);
        carried
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(reads: &[u16], writes: &[u16], loads: bool) -> Flow {
        Flow {
            reads: reads.to_vec(),
            writes: writes.to_vec(),
            loads,
            goes_on: true,
            ..Flow::default()
        }
    }

    fn back() -> Flow {
        Flow {
            branch: Some(0),
            ..flow(&[], &[], false)
        }
    }

    #[test]
    fn what_computes_the_same_in_every_turn_waits() {
        assert!(waits(&[flow(&[1], &[2], true), flow(&[2], &[], false), back()], 0, 8));
        // A pointer that is read anew in every turn.
        let anew = [
            flow(&[1], &[2], true),
            flow(&[2], &[3], true),
            flow(&[3], &[], false),
            back(),
        ];
        assert!(waits(&anew, 0, 8));
    }

    #[test]
    fn what_carries_a_register_on_or_never_ends_or_looks_at_nothing_does_not() {
        // Adds up; follows a list; counts.
        for first in [flow(&[1, 2], &[2], true), flow(&[2], &[2], true)] {
            assert!(!waits(&[first, flow(&[2], &[], false), back()], 0, 8));
        }
        let counts = [flow(&[1], &[2], true), flow(&[3], &[3], false), back()];
        assert!(!waits(&counts, 0, 8));
        let for_ever = Flow {
            goes_on: false,
            ..back()
        };
        assert!(!waits(&[flow(&[1], &[2], true), for_ever], 0, 8));
        assert!(!waits(&[flow(&[1], &[2], false), back()], 0, 8));
        let jumps_away = Flow {
            branch: Some(100),
            goes_on: false,
            ..flow(&[], &[], false)
        };
        assert!(!waits(&[flow(&[1], &[2], true), jumps_away, back()], 0, 8));
        let skips = Flow {
            branch: Some(6),
            ..flow(&[], &[], false)
        };
        assert!(!waits(&[flow(&[1], &[2], true), skips, back()], 0, 8));
        let blind = [flow(&[1], &[2], true), flow(&[3], &[4], false), back()];
        assert!(!waits(&blind, 0, 8));
        // Asks beside it what does not change.
        let out = Flow {
            branch: Some(100),
            ..flow(&[], &[], false)
        };
        let asks_too = [
            flow(&[3], &[], false),
            out,
            flow(&[1], &[2], true),
            flow(&[2], &[], false),
            back(),
        ];
        assert!(!waits(&asks_too, 0, 8));
        assert!(waits(&asks_too[2..], 0, 8));
        let stores = Flow {
            is_out_of_question: true,
            ..flow(&[1], &[], true)
        };
        assert!(!waits(&[stores, back()], 0, 8));
    }
}
