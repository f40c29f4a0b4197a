//! Delays that no instruction gives away: those that nothing but a compiler's mercy keeps, and those of which nothing but time comes.
//!
//! `for (i = 0; i < delay * 50; i++) j += i;` is a delay to whoever wrote it, and to a compiler a sum that it may know without counting:
//! what registers hold after so many turns of additions of constants, or of what itself only counts, is a polynomial of that number
//! (Bachmann, Wang and Zima, "Chains of Recurrences", 1994; GCC and LLVM call the analysis scalar evolution). The next version of the
//! compiler, or other options, may leave the loop out, and who waited for it then hammers at what he waits for. `ut_delay` of MySQL is
//! such a loop wherever `UT_RELAX_CPU` is empty (MDEV-8684). Only loops in one piece are looked for. Ordinary code counts so too, so
//! what is found counts only where a loop around it, or one that calls its function, looks at memory (see `find.rs`), or where nothing
//! but time comes of it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::flow::Flow;

/// Instructions of it: a counter or two, what they count up to, and the branch.
const MOST_INSTRUCTIONS: usize = 8;

/// Whether instructions, laid one behind another from `start` on, do nothing but count. The last one branches back to the first.
pub(super) fn only_counts(flows: &[Flow], start: u64) -> bool {
    let Some((last, before)) = flows.split_last() else {
        return false;
    };
    flows.len() <= MOST_INSTRUCTIONS
        && last.branch == Some(start)
        && last.goes_on
        && !last.is_out_of_question
        && before.iter().all(|flow| flow.counts && flow.branch.is_none())
        && before.iter().any(|flow| !flow.writes.is_empty())
}

/// Whether nothing comes of such a loop but time: one register is counted down by ones to a constant, so that what it holds at the end is
/// known without counting. Compilers that optimise keep that where they must not look into it (a barrier, `volatile`), as MariaDB has it on
/// aarch64 in place of PAUSE. The loop may be left before its end instead: `cbz; sub; b`. Loops that count up are not recognised: GCC leaves some
/// of which it took all else out (`add rax, 1; cmp rax, 256; jne` in the row events of MySQL 5.6).
pub(super) fn only_passes_time(flows: &[Flow], range: &Range<u64>) -> bool {
    let Some((last, before)) = flows.split_last() else {
        return false;
    };
    let leaves = |flow: &Flow| flow.goes_on && flow.branch.is_some_and(|target| !range.contains(&target));
    let (ways_out, others): (Vec<&Flow>, Vec<&Flow>) = before.iter().partition(|flow| flow.branch.is_some());
    let is_left = match last.goes_on {
        true => ways_out.is_empty(),
        false => ways_out.len() == 1 && ways_out.iter().all(|flow| leaves(flow)),
    };
    let mut counters = others.iter().filter(|flow| !flow.writes.is_empty());
    let counter = counters
        .next()
        .filter(|flow| flow.takes_one && flow.writes == flow.reads);
    let asks_for_it = |flow: &Flow| counter.is_some_and(|counter| is_within(&flow.reads, &counter.writes));
    flows.len() <= MOST_INSTRUCTIONS
        && last.branch == Some(range.start)
        && is_left
        && counter.is_some()
        && counters.next().is_none()
        && others.iter().all(|flow| flow.counts)
        && flows.iter().all(|flow| !flow.is_out_of_question && asks_for_it(flow))
}

fn is_within(some: &[u16], all: &[u16]) -> bool {
    some.iter().all(|register| all.contains(register))
}

/// Whether a loop around a delay waits: it looks at memory, stores nothing, and what it carries from one turn to the next only
/// counts too, such as how often it will look.
pub(super) fn waits_around(flows: &[Flow]) -> bool {
    let changed: BTreeSet<u16> = flows.iter().flat_map(|flow| flow.writes.iter().copied()).collect();
    let mut set: BTreeSet<u16> = BTreeSet::new();
    let mut carried: BTreeSet<u16> = BTreeSet::new();
    for flow in flows {
        let reads = flow.reads.iter().copied();
        carried.extend(reads.filter(|register| changed.contains(register) && !set.contains(register)));
        set.extend(&flow.writes);
    }
    let only_counts = |flow: &Flow| flow.counts || flow.branch.is_some();
    let works = |flow: &Flow| !only_counts(flow) && flow.reads.iter().any(|register| carried.contains(register));
    flows.iter().all(|flow| !flow.is_out_of_question) && flows.iter().any(|flow| flow.loads) && !flows.iter().any(works)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adds(to: u16) -> Flow {
        Flow {
            reads: vec![to],
            writes: vec![to],
            counts: true,
            goes_on: true,
            ..Flow::default()
        }
    }

    fn back() -> Flow {
        Flow {
            branch: Some(0),
            goes_on: true,
            ..Flow::default()
        }
    }

    #[test]
    fn additions_and_a_branch_back_only_count() {
        assert!(only_counts(&[adds(1), back()], 0));
        assert!(only_counts(&[adds(1), adds(2), back()], 0));
    }

    #[test]
    fn of_counting_one_register_down_by_ones_nothing_comes_but_time() {
        let one = Flow {
            takes_one: true,
            ..adds(1)
        };
        let asks = |reads: &[u16]| Flow {
            reads: reads.to_vec(),
            counts: true,
            goes_on: true,
            ..Flow::default()
        };
        let passes_time = |flows: &[Flow]| only_passes_time(flows, &(0..flows.len() as u64 * 4));
        assert!(passes_time(&[one.clone(), back()]));
        assert!(passes_time(&[one.clone(), asks(&[1]), back()]));
        assert!(!passes_time(&[one.clone(), asks(&[1, 5]), back()]), "not to a constant");
        // `cbz w1, out; sub w1, w1, #1; b`.
        let out = |to: u64| Flow {
            branch: Some(to),
            ..asks(&[1])
        };
        let for_ever = Flow {
            goes_on: false,
            ..back()
        };
        assert!(passes_time(&[out(100), one.clone(), for_ever.clone()]));
        assert!(
            !passes_time(&[out(4), one.clone(), for_ever.clone()]),
            "it is never left"
        );
        assert!(!passes_time(&[one.clone(), for_ever.clone()]));
        // A remainder; a quotient beside it; what is asked is another register.
        assert!(!passes_time(&[adds(1), back()]));
        assert!(!passes_time(&[one.clone(), adds(2), back()]));
        let other = Flow {
            reads: vec![9],
            ..back()
        };
        assert!(!passes_time(&[one, other]));
    }

    #[test]
    fn a_loop_that_looks_and_counts_its_looks_waits() {
        let look = Flow {
            loads: true,
            reads: vec![7],
            writes: vec![8],
            goes_on: true,
            ..Flow::default()
        };
        assert!(waits_around(&[adds(1), look.clone(), back()]));
        assert!(!waits_around(&[adds(1), back()]), "it looks at nothing");
        let along = Flow {
            reads: vec![1],
            ..look.clone()
        };
        assert!(!waits_around(&[adds(1), along, back()]), "it walks along an array");
        let stores = Flow {
            is_out_of_question: true,
            ..look
        };
        assert!(!waits_around(&[adds(1), stores, back()]));
    }

    #[test]
    fn what_does_anything_else_or_nothing_does_not() {
        let other = Flow {
            counts: false,
            ..adds(1)
        };
        assert!(!only_counts(&[adds(1), other, back()], 0));
        assert!(!only_counts(&[back()], 0));
        assert!(!only_counts(&[adds(1), back(), back()], 0));
        let for_ever = Flow {
            goes_on: false,
            ..back()
        };
        assert!(!only_counts(&[adds(1), for_ever], 0));
        assert!(!only_counts(&vec![adds(1); 9], 0));
    }
}
