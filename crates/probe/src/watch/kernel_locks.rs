//! Which lock of the kernel a running thread fought for while nobody saw it.
//!
//! The programs that see fights for the kernel's locks rest as those at switches do (see `pace.rs`), but the timer goes on. A
//! sample that it takes in a rest is told the lock of a sample that was seen at the same calls before: each of the last ones
//! in turn, those without a lock too, so that each lock keeps its share. Where these calls were never seen, the two innermost must
//! do: they are in the kernel's own code for locks, and whose lock it is may be another one then.

use std::collections::{HashMap, VecDeque};

use scaleprof_profile::{LockWait, RawStack};

/// Calls that are kept apart. When there are more, all are forgotten: another load has come, and what is frequent comes back soon.
const MOST_CALLS: usize = 4096;
/// Innermost calls that must do where all of them were never seen together.
const INNERMOST: usize = 2;
/// Samples of the same calls that are remembered.
const MOST_SEEN: usize = 16;

/// What was seen of the kernel's locks at each place of the kernel.
#[derive(Debug, Default)]
pub(crate) struct KernelLocks {
    /// By return addresses in the kernel: the instruction itself differs from turn to turn of a waiting loop.
    seen: HashMap<Vec<u64>, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    locks: VecDeque<Option<LockWait>>,
    next: usize,
}

impl KernelLocks {
    /// A sample of which is known which lock it fought for, if any.
    pub(crate) fn learn(&mut self, stack: &RawStack, lock: Option<&LockWait>) {
        for calls in both(stack) {
            let seen = match self.seen.get_mut(calls) {
                Some(seen) => seen,
                None => {
                    if self.seen.len() >= MOST_CALLS {
                        self.seen.clear();
                    }
                    self.seen.entry(calls.to_vec()).or_default()
                }
            };
            if seen.locks.len() == MOST_SEEN {
                seen.locks.pop_front();
            }
            seen.locks.push_back(lock.cloned());
        }
    }

    /// The lock of a sample of which it is not known.
    pub(crate) fn conclude(&mut self, stack: &RawStack) -> Option<LockWait> {
        let calls = both(stack).find(|calls| self.seen.contains_key(*calls))?;
        let seen = self.seen.get_mut(calls)?;
        seen.next = (seen.next + 1) % seen.locks.len().max(1);
        seen.locks.get(seen.next)?.clone()
    }
}

/// All calls in the kernel, then the innermost alone.
fn both(stack: &RawStack) -> impl Iterator<Item = &[u64]> {
    let all = stack.kernel.get(1..).filter(|calls| !calls.is_empty());
    let innermost = all
        .and_then(|calls| calls.get(..INNERMOST))
        .filter(|some| Some(*some) != all);
    all.into_iter().chain(innermost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::layout::KERNEL_LOCK;
    use crate::watch::records::lock_wait;

    fn stack(kernel: &[u64]) -> RawStack {
        RawStack {
            kernel: kernel.to_vec(),
            ..RawStack::default()
        }
    }

    #[test]
    fn locks_keep_their_shares_whatever_the_instruction() {
        let mut locks = KernelLocks::default();
        for round in 0..12 {
            let lock = [
                lock_wait(64, KERNEL_LOCK, 0),
                lock_wait(128, KERNEL_LOCK, 0),
                None,
                None,
            ][round % 4]
                .clone();
            locks.learn(&stack(&[1000 + round as u64, 20, 30]), lock.as_ref());
        }
        let told: Vec<Option<u64>> = (0..120)
            .map(|round| Some(locks.conclude(&stack(&[2000 + round, 20, 30]))?.address))
            .collect();
        let times = |which: Option<u64>| told.iter().filter(|lock| **lock == which).count();
        assert_eq!([times(Some(64)), times(Some(128)), times(None)], [30, 30, 60]);
    }

    #[test]
    fn nothing_is_told_of_calls_that_were_never_seen() {
        let mut locks = KernelLocks::default();
        locks.learn(&stack(&[1, 20]), lock_wait(64, KERNEL_LOCK, 0).as_ref());
        for never in [&[1, 21][..], &[1], &[]] {
            assert_eq!(locks.conclude(&stack(never)), None);
        }
    }

    #[test]
    fn the_innermost_calls_do_where_the_whole_way_was_never_seen() {
        let mut locks = KernelLocks::default();
        locks.learn(&stack(&[1, 20, 30, 40]), lock_wait(64, KERNEL_LOCK, 0).as_ref());
        let told = |kernel: &[u64], locks: &mut KernelLocks| Some(locks.conclude(&stack(kernel))?.address);
        assert_eq!(told(&[2, 20, 30, 41], &mut locks), Some(64));
        assert_eq!(told(&[2, 20, 31, 40], &mut locks), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut locks = KernelLocks::default();
        for calls in 0..2 * MOST_CALLS as u64 {
            for _ in 0..2 * MOST_SEEN {
                locks.learn(&stack(&[0, calls]), None);
            }
        }
        assert!((1..=MOST_CALLS).contains(&locks.seen.len()));
        assert!(locks.seen.values().all(|seen| seen.locks.len() <= MOST_SEEN));
    }
}
