//! The sampled waits, summed up by lock, and in each by who waits and by who held it or ended the wait.

use super::owners::{HolderKey, holder, place_of};
use crate::call_paths::{CallPaths, PathId};
use crate::intervals::throughput;
use crate::sampled::Sampled;
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::{ThreadState, WakerKind};
use std::collections::BTreeMap;

/// Thread-seconds by measurement and second, and the samples behind them.
#[derive(Default)]
pub(super) struct Time {
    blocks: BTreeMap<(i32, i32), f64>,
    pub samples: u64,
}

impl Time {
    fn add(&mut self, second: (i32, i32), thread_seconds: f64, samples: u64) {
        *self.blocks.entry(second).or_default() += thread_seconds;
        self.samples += samples;
    }

    /// All of it, thread-seconds.
    pub(super) fn sum(&self) -> f64 {
        self.blocks.values().sum()
    }
}

/// How what ended a wait is told: its kind, and where that thread of the server was.
pub(super) type WakerKey = (WakerKind, Option<PathId>);

/// All waits for one lock.
#[derive(Default)]
pub(super) struct OfLock {
    pub waiting: Time,
    pub on_cpu: f64,
    /// By place, and whether on a CPU.
    pub waiters: BTreeMap<(Option<PathId>, bool), Time>,
    pub holders: BTreeMap<HolderKey, Time>,
    pub wakers: BTreeMap<WakerKey, Time>,
    pub neither: f64,
}

impl OfLock {
    /// Threads off and on their CPUs, thread-seconds: by this locks are ranked.
    pub(super) fn weight(&self) -> f64 {
        self.waiting.sum() + self.on_cpu
    }
}

/// All waits of a rung.
pub(super) struct Waits {
    /// By lock; none for waits of which it is not known.
    pub locks: BTreeMap<Option<i64>, OfLock>,
    pub all: Time,
    /// The measured seconds with their lengths.
    lengths: BTreeMap<(i32, i32), f64>,
}

impl Waits {
    pub(super) fn of(sampled: &Sampled<'_>, call_paths: &mut CallPaths<'_>) -> Waits {
        let seconds: Vec<(i32, i32)> = sampled.seconds.iter().map(|(second, _)| second).collect();
        let mut waits = Waits {
            locks: BTreeMap::new(),
            all: Time::default(),
            lengths: seconds
                .iter()
                .copied()
                .zip(sampled.seconds.lengths.iter().copied())
                .collect(),
        };
        let places: Vec<Option<PathId>> = sampled
            .pairs()
            .iter()
            .map(|pair| place_of(pair.stack, call_paths))
            .collect();
        for wait in sampled.waits() {
            let row = wait.row;
            let thread_seconds = row.seconds;
            let second = seconds[row.second as usize];
            let place = places[row.pair as usize];
            if sampled.pairs()[row.pair as usize].state != ThreadState::Lock {
                let of_lock = waits.locks.entry(wait.lock).or_default();
                of_lock.on_cpu += thread_seconds;
                let fighting = of_lock.waiters.entry((place, true)).or_default();
                fighting.add(second, thread_seconds, 1);
                continue;
            }
            waits.all.add(second, thread_seconds, 1);
            let of_lock = waits.locks.entry(wait.lock).or_default();
            of_lock.waiting.add(second, thread_seconds, 1);
            let waiting = of_lock.waiters.entry((place, false)).or_default();
            waiting.add(second, thread_seconds, 1);
            if let Some(holder) = holder(&wait, call_paths) {
                of_lock
                    .holders
                    .entry(holder)
                    .or_default()
                    .add(second, thread_seconds, 1);
                continue;
            }
            match wait.waker_kind {
                Some(kind) => {
                    let waker = wait.waker_stack.and_then(|stack| place_of(stack, call_paths));
                    let woken = of_lock.wakers.entry((kind, waker)).or_default();
                    woken.add(second, thread_seconds, 1);
                }
                None => of_lock.neither += thread_seconds,
            }
        }
        waits
    }

    /// How long all measured seconds were together.
    pub(super) fn seconds(&self) -> f64 {
        self.lengths.values().sum()
    }

    /// Thread-seconds as a mean number of threads.
    pub(super) fn threads(&self, thread_seconds: f64) -> f64 {
        thread_seconds / self.seconds()
    }

    /// The same with an interval: from the measurements where there are several, else from the
    /// seconds.
    pub(super) fn estimate(&self, time: &Time) -> Estimate {
        let mut rates: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
        for (second, length) in self.lengths.iter().filter(|(_, length)| **length > 0.0) {
            let thread_seconds = time.blocks.get(second).copied().unwrap_or(0.0);
            rates.entry(second.0).or_default().push(thread_seconds / length);
        }
        let rates: Vec<Vec<f64>> = rates.into_values().collect();
        let value = self.threads(time.sum());
        let around = throughput(&rates).map(|measured| measured.estimate());
        let half = around.and_then(|around| Some(around.high? - around.value));
        Estimate {
            value,
            low: half.map(|half| (value - half).max(0.0)),
            high: half.map(|half| value + half),
        }
    }
}
