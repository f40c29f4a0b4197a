//! What the waits for each lock cost a transaction at one rung, by call path and second by second.

use crate::block_ratio::Transactions;
use crate::call_paths::PathId;
use crate::grouped::Grouped;
use crate::sampled::{SampledPaths, WaitedFor};
use scaleprof_bundle::{Estimate, NumberMap};
use scaleprof_vocabulary::ThreadState;

/// The thread-seconds of the connections' threads by lock and call path.
#[derive(Debug, Default)]
pub(crate) struct LockCosts {
    /// Transactions of each measured second.
    transactions: Transactions,
    waits: Vec<Waits>,
    /// Their thread-seconds by place of the second.
    blocks: Grouped,
    /// The locks that the rung's summary tells, in its order.
    told: Vec<i64>,
}

/// Waits for one lock on one path.
#[derive(Debug, Clone, Copy)]
struct Waits {
    lock: i64,
    path: PathId,
    /// In the state `lock`; else on a CPU, for a lock of the kernel.
    off_cpu: bool,
}

impl LockCosts {
    /// `told` are the locks that the summary tells.
    pub(crate) fn of(samples: &SampledPaths<'_>, told: &[WaitedFor]) -> LockCosts {
        let sampled = &samples.sampled;
        let mut numbers: NumberMap<(i64, u32), u32> = NumberMap::default();
        let mut waits = Vec::new();
        let mut rows = Vec::new();
        for wait in sampled.waits_of_locks() {
            let (lock, row) = wait;
            let number = *numbers.entry((lock, row.pair)).or_insert_with(|| {
                waits.push(Waits {
                    lock,
                    path: samples.path(&row),
                    off_cpu: sampled.pairs()[row.pair as usize].state == ThreadState::Lock,
                });
                (waits.len() - 1) as u32
            });
            rows.push((number, row.second, row.seconds));
        }
        LockCosts {
            transactions: sampled.seconds.transactions.clone(),
            blocks: Grouped::of(waits.len(), || rows.iter().copied()).merged(),
            waits,
            told: told.iter().map(|lock| lock.lock).collect(),
        }
    }

    /// The locks of the summary, each by its number in the table `locks`: the same at all rungs of a bundle.
    pub(crate) fn told(&self) -> &[i64] {
        &self.told
    }

    /// What all waits for a lock take of a transaction, however seldom they were; none where nobody was seen to wait.
    pub(crate) fn estimate(&self, lock: i64) -> Option<Estimate> {
        let mut waits = self.waits().filter(|(waits, _)| waits.lock == lock).peekable();
        waits.peek()?;
        self.transactions.ratio(waits.flat_map(|(_, parts)| parts).copied())
    }

    /// The waits in the state `lock` for some locks: each path with its thread-seconds by place of the second.
    pub(crate) fn off_cpu<'a>(&'a self, locks: &'a [i64]) -> impl Iterator<Item = (PathId, &'a [(u32, f64)])> + Clone {
        let of_these = self
            .waits()
            .filter(|(waits, _)| waits.off_cpu && locks.contains(&waits.lock));
        of_these.map(|(waits, parts)| (waits.path, parts))
    }

    fn waits(&self) -> impl Iterator<Item = (&Waits, &[(u32, f64)])> + Clone {
        (0..self.waits.len()).map(|place| (&self.waits[place], self.blocks.get(place)))
    }
}
