//! The samples of a rung that count, each with the thread-seconds that it stands for.

use crate::call_paths::{CallPaths, PathId};
use crate::ledger::Watched;
use crate::measured_seconds::MeasuredSeconds;
use crate::totals::Window;
use scaleprof_bundle::{Coded, Estimate, NumberMap, SampleBlock};
use scaleprof_vocabulary::{PerState, Role, ThreadState, WakerKind};

/// The samples of the connections' threads in the measured windows.
pub(crate) struct Sampled<'a> {
    /// The measured seconds.
    pub seconds: MeasuredSeconds,
    rows: Vec<Row>,
    /// What the rows are about, in the order in which it first appears.
    pairs: Vec<Pair>,
    /// By what the weights of each state were multiplied.
    scales: PerState<Option<f64>>,
    waits: Vec<WaitRow>,
    /// Where the samples come from.
    blocks: Vec<&'a SampleBlock>,
    /// Lock by number.
    locks: Vec<i64>,
}

/// One sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Thread-seconds that it stands for.
    pub seconds: f64,
    /// The place of its second.
    pub second: u32,
    /// The place of its state and stack.
    pub pair: u32,
}

/// A stack in a state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub state: ThreadState,
    /// As in the table `stacks`.
    pub stack: i64,
}

/// A sample that waits for a lock, and where the rest of what is known of it stands.
#[derive(Debug, Clone, Copy)]
struct WaitRow {
    row: u32,
    /// The number of the lock; none where it is not known which one it is.
    lock: Option<u32>,
    /// Its block, and its place there.
    block: u32,
    at: u32,
}

/// A sample that waits for a lock: off its CPU in the state `lock`, or on it for a lock of the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    pub row: Row,
    /// As in the table `locks`; none where it is not known which one it is.
    pub lock: Option<i64>,
    /// The rest as in the table `samples`.
    pub waker_kind: Option<WakerKind>,
    pub waker_stack: Option<i64>,
    pub holder_stack: Option<i64>,
    pub holder_state: Option<ThreadState>,
}

impl<'a> Sampled<'a> {
    /// Time on and off the CPU is known exactly by state, and samples only share it out: with these times per
    /// transaction, the weights of a state's samples are scaled to the time in that state. So the paths of a state add up to
    /// it, whatever was lost.
    pub(crate) fn of(
        windows: &[Window],
        watched: &Watched<'a>,
        per_transaction: Option<&PerState<Option<f64>>>,
    ) -> Sampled<'a> {
        let mut sampled = Sampled {
            seconds: MeasuredSeconds::of(windows),
            rows: Vec::new(),
            pairs: Vec::new(),
            scales: PerState::default(),
            waits: Vec::new(),
            blocks: Vec::new(),
            locks: Vec::new(),
        };
        let mut lock_numbers = NumberMap::default();
        for block in &watched.samples {
            sampled.add(block, &mut lock_numbers);
        }
        sampled.scale_to(per_transaction);
        sampled
    }

    fn add(&mut self, block: &'a SampleBlock, lock_numbers: &mut NumberMap<i64, u32>) {
        let second_of = self.seconds.places(block);
        let serves = block.roles().by_code(|role| *role == Role::Connection);
        let state_of = block.states().values();
        let stack_of = block.stacks().values();
        let lock_of = block
            .locks()
            .by_code(|lock| lock.map(|lock| self.lock(lock, lock_numbers)));
        let mut pairs: NumberMap<u64, u32> = NumberMap::default();
        let codes = block
            .seconds()
            .codes()
            .iter()
            .zip(block.roles().codes())
            .zip(block.states().codes())
            .zip(block.stacks().codes())
            .zip(block.locks().codes())
            .zip(block.weights_ns());
        self.rows.reserve(block.len());
        let number = self.blocks.len() as u32;
        self.blocks.push(block);
        for (at, (((((second, role), state), stack), lock), weight)) in codes.enumerate() {
            let Some(second) = second_of[*second as usize] else {
                continue;
            };
            if !serves[*role as usize] || !weight.is_finite() || *weight < 0.0 {
                continue;
            }
            let pair = *pairs
                .entry(u64::from(*stack) << 32 | u64::from(*state))
                .or_insert_with(|| {
                    self.pairs.push(Pair {
                        state: state_of[*state as usize],
                        stack: stack_of[*stack as usize],
                    });
                    (self.pairs.len() - 1) as u32
                });
            let lock = lock_of[*lock as usize];
            if lock.is_some() || state_of[*state as usize] == ThreadState::Lock {
                self.waits.push(WaitRow {
                    row: self.rows.len() as u32,
                    lock,
                    block: number,
                    at: at as u32,
                });
            }
            self.rows.push(Row {
                seconds: weight / 1e9,
                second,
                pair,
            });
        }
    }

    fn lock(&mut self, lock: i64, numbers: &mut NumberMap<i64, u32>) -> u32 {
        *numbers.entry(lock).or_insert_with(|| {
            self.locks.push(lock);
            (self.locks.len() - 1) as u32
        })
    }

    fn scale_to(&mut self, per_transaction: Option<&PerState<Option<f64>>>) {
        let all = self.seconds.transactions.all();
        let mut sums: PerState<f64> = PerState::default();
        for row in &self.rows {
            sums[self.pairs[row.pair as usize].state] += row.seconds;
        }
        self.scales = PerState::from_fn(|state| {
            let (exact, sampled) = (per_transaction?[state]? * all, sums[state]);
            // Only a damaged table has so little against so much.
            let scale = (exact > 0.0 && sampled > 0.0).then(|| exact / sampled);
            scale.filter(|scale| scale.is_finite())
        });
        for row in &mut self.rows {
            row.seconds *= self.scales[self.pairs[row.pair as usize].state].unwrap_or(1.0);
        }
    }

    /// By what the weights of a state's samples were multiplied to add up to the exact time; 1 where that is not known.
    pub(crate) fn scale(&self, state: ThreadState) -> f64 {
        self.scales[state].unwrap_or(1.0)
    }

    /// The samples in their order.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What the rows are about, in the order in which it first appears.
    pub(crate) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Time per transaction of the thread-seconds of some samples by the place of the second; none without transactions.
    pub(crate) fn per_transaction(&self, parts: impl IntoIterator<Item = (u32, f64)>) -> Option<Estimate> {
        self.seconds.transactions.ratio(parts)
    }

    /// The `most` locks that were waited for longest, with the time per transaction and the number of samples.
    pub(crate) fn heaviest_locks(&self, most: usize) -> Vec<WaitedFor> {
        let mut sums = vec![(0.0, 0_u64); self.locks.len()];
        for wait in &self.waits {
            if let Some(lock) = wait.lock {
                let sum = &mut sums[lock as usize];
                sum.0 += self.rows[wait.row as usize].seconds;
                sum.1 += 1;
            }
        }
        let mut order: Vec<usize> = (0..self.locks.len()).filter(|number| sums[*number].1 > 0).collect();
        order.sort_by(|a, b| {
            let (one, other) = (sums[*a].0, sums[*b].0);
            other.total_cmp(&one).then(self.locks[*a].cmp(&self.locks[*b]))
        });
        order.truncate(most);
        let found = order.into_iter().filter_map(|number| {
            let waits = self.rows_for(number as u32).map(|row| (row.second, row.seconds));
            Some(WaitedFor {
                lock: self.locks[number],
                number: number as u32,
                seconds_per_txn: self.per_transaction(waits)?,
                samples: sums[number].1,
            })
        });
        found.collect()
    }

    /// The samples that wait for locks, in their order.
    pub(crate) fn waits(&self) -> impl Iterator<Item = Wait> {
        self.waits.iter().map(|wait| self.wait(wait))
    }

    /// The samples that wait for a lock of which it is known which one it is, in their order, without what only the table has.
    pub(crate) fn waits_of_locks(&self) -> impl Iterator<Item = (i64, Row)> {
        let of_locks = self.waits.iter().filter_map(|wait| Some((wait.lock?, wait.row)));
        of_locks.map(|(lock, row)| (self.locks[lock as usize], self.rows[row as usize]))
    }

    /// The samples that wait for one lock, in their order.
    pub(crate) fn waits_for(&self, number: u32) -> impl Iterator<Item = Wait> {
        let of_lock = self.waits.iter().filter(move |wait| wait.lock == Some(number));
        of_lock.map(|wait| self.wait(wait))
    }

    /// The same without what only the table has.
    fn rows_for(&self, number: u32) -> impl Iterator<Item = Row> {
        let of_lock = self.waits.iter().filter(move |wait| wait.lock == Some(number));
        of_lock.map(|wait| self.rows[wait.row as usize])
    }

    fn wait(&self, wait: &WaitRow) -> Wait {
        let block = self.blocks[wait.block as usize];
        let at = wait.at as usize;
        let number = |column: &Coded<Option<i64>>| column.get(at).copied().flatten();
        Wait {
            row: self.rows[wait.row as usize],
            lock: wait.lock.map(|lock| self.locks[lock as usize]),
            waker_kind: block.waker_kinds().get(at).copied().flatten(),
            waker_stack: number(block.waker_stacks()),
            holder_stack: number(block.holder_stacks()),
            holder_state: block.holder_states().get(at).copied().flatten(),
        }
    }

    /// Numbers the call paths of the samples, those that come first before others.
    pub(crate) fn on(self, call_paths: &mut CallPaths<'_>) -> SampledPaths<'a> {
        let paths = self.pairs.iter().map(|pair| call_paths.path(pair.stack)).collect();
        SampledPaths { paths, sampled: self }
    }
}

/// A lock that samples waited for.
pub(crate) struct WaitedFor {
    /// As in the table `locks`.
    pub lock: i64,
    /// Its number among the locks of the samples.
    pub number: u32,
    /// Time per transaction.
    pub seconds_per_txn: Estimate,
    pub samples: u64,
}

/// The samples of a rung with their call paths.
pub(crate) struct SampledPaths<'a> {
    /// The samples.
    pub sampled: Sampled<'a>,
    /// The path of each of the pairs of state and stack.
    paths: Vec<PathId>,
}

impl SampledPaths<'_> {
    /// The path of a sample.
    pub(crate) fn path(&self, row: &Row) -> PathId {
        self.paths[row.pair as usize]
    }

    /// The path of each of [`Sampled::pairs`].
    pub(crate) fn paths_of_pairs(&self) -> &[PathId] {
        &self.paths
    }
}
