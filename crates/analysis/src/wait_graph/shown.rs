//! What of all waits is told: the locks with most waiting threads, those that chains lead to, and of each the most frequent places.

use super::chains::Chains;
use super::waits::{OfLock, Time, Waits};
use super::{
    Holder, HolderSource, Known, LEAST_SHARE, LeftOut, LockName, MOST_CHAINED, MOST_LOCKS, MOST_OF_EACH, Place,
    WaitGraph, WaitedLock, Waiters, WaitsFor, Waker,
};
use crate::call_paths::{CallPaths, PathId};
use crate::findings::knowledge::Knowledge;
use crate::measurement_rows::MeasurementRows;
use scaleprof_bundle::LockRow;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

/// Functions of a place that are told in few words.
const FEW: usize = 2;

/// Names of locks and of places.
pub(super) struct Labels<'a> {
    knowledge: &'a Knowledge,
    rows: BTreeMap<i64, Vec<&'a LockRow>>,
}

impl<'a> Labels<'a> {
    pub(super) fn of(measurements: &[&MeasurementRows<'a>], knowledge: &'a Knowledge) -> Labels<'a> {
        let mut rows: BTreeMap<i64, Vec<&LockRow>> = BTreeMap::new();
        for row in measurements
            .iter()
            .flat_map(|measurement| measurement.locks.iter().copied())
        {
            rows.entry(row.lock).or_default().push(row);
        }
        Labels { knowledge, rows }
    }

    fn place(&self, place: PathId, call_paths: &CallPaths<'_>) -> Place {
        let path = call_paths.functions(place);
        let label = self.knowledge.takers(&path, FEW);
        Place {
            label: label.into_iter().map(str::to_owned).collect(),
            path,
        }
    }

    fn lock(&self, lock: Option<i64>, waiters: Option<&OfLock>, call_paths: &CallPaths<'_>) -> LockName {
        let rows = || lock.and_then(|lock| self.rows.get(&lock)).into_iter().flatten();
        let named = rows().find(|row| row.name.is_some());
        let mut operations: Vec<String> = rows().map(|row| row.operation.clone()).collect();
        operations.sort();
        operations.dedup();
        let waiters = waiters.into_iter().flat_map(|of_lock| &of_lock.waiters);
        let most = waiters.max_by(|(_, a), (_, b)| a.sum().total_cmp(&b.sum()));
        let waited_for_in = most
            .and_then(|((place, _), _)| Some(self.place((*place)?, call_paths).label))
            .unwrap_or_default();
        LockName {
            lock,
            name: named.and_then(|row| row.name.clone()),
            module: named.and_then(|row| row.module.clone()),
            operations,
            waited_for_in,
        }
    }
}

impl Waits {
    /// The graph; none where nobody waits for a lock.
    pub(super) fn graph(
        &self,
        connections: Option<u32>,
        measurements: usize,
        holders: HolderSource,
        chains: &Chains,
        labels: &Labels<'_>,
        call_paths: &CallPaths<'_>,
    ) -> Option<WaitGraph> {
        let nobody = self.locks.values().all(|of_lock| of_lock.weight() <= 0.0);
        if nobody || self.seconds() <= 0.0 {
            return None;
        }
        let told = self.told(chains);
        let telling = Telling {
            waits: self,
            chains,
            labels,
            call_paths,
            told: &told,
        };
        let locks = told.iter().filter_map(|lock| telling.lock(*lock)).collect();
        let others = || self.locks.iter().filter(|(lock, _)| !told.contains(lock));
        Some(WaitGraph {
            connections,
            measurements,
            seconds: self.seconds(),
            waiting: self.estimate(&self.all),
            attribution: self
                .locks
                .values()
                .map(|of_lock| telling.known(of_lock))
                .fold(Known::default(), plus),
            holders,
            locks,
            omitted: LeftOut {
                count: others().count(),
                threads: self.threads(others().map(|(_, of_lock)| of_lock.weight()).sum()),
            },
        })
    }

    /// The locks that are told: those with most threads, and those that the holders of these wait for, step by step.
    fn told(&self, chains: &Chains) -> Vec<Option<i64>> {
        let mut ranked: Vec<(&Option<i64>, f64)> = self.locks.iter().map(|(lock, of)| (lock, of.weight())).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut told: Vec<Option<i64>> = ranked.into_iter().map(|(lock, _)| *lock).take(MOST_LOCKS).collect();
        let first = told.len();
        let mut next = 0;
        while let Some(of_lock) = told.get(next).and_then(|lock| self.locks.get(lock)) {
            for (place, _) in blocked_holders(of_lock) {
                for (lock, _) in chains.from(place) {
                    let is_new = self.locks.contains_key(&Some(lock)) && !told.contains(&Some(lock));
                    if is_new && told.len() < first + MOST_CHAINED {
                        told.push(Some(lock));
                    }
                }
            }
            next += 1;
        }
        told
    }
}

/// The places of a lock's most frequent holders that wait for a lock themselves.
fn blocked_holders<'a>(of_lock: &'a OfLock) -> impl Iterator<Item = (PathId, &'a Time)> {
    let (most, _) = heaviest(of_lock.holders.iter(), of_lock.weight());
    let blocked = |((place, state), time): (&(Option<PathId>, Option<ThreadState>), &'a Time)| {
        let place = place.filter(|_| *state == Some(ThreadState::Lock))?;
        Some((place, time))
    };
    most.into_iter().filter_map(blocked)
}

/// Whatever is told of a lock, with its time.
type Times<'a, K> = Vec<(K, &'a Time)>;

/// The first few by their time, as far as they have a part of `all` that is worth a word, and what is left.
fn heaviest<'a, K>(times: impl Iterator<Item = (K, &'a Time)>, all: f64) -> (Times<'a, K>, Times<'a, K>) {
    let mut times: Times<'a, K> = times.collect();
    times.sort_by(|a, b| b.1.sum().total_cmp(&a.1.sum()));
    let worth_a_word = times
        .iter()
        .take_while(|(_, time)| time.sum() >= LEAST_SHARE * all)
        .count();
    let rest = times.split_off(worth_a_word.clamp(1, MOST_OF_EACH).min(times.len()));
    (times, rest)
}

fn plus(a: Known, b: Known) -> Known {
    Known {
        holder: a.holder + b.holder,
        waker: a.waker + b.waker,
        neither: a.neither + b.neither,
    }
}

/// All that it takes to tell of a lock.
struct Telling<'a> {
    waits: &'a Waits,
    chains: &'a Chains,
    labels: &'a Labels<'a>,
    call_paths: &'a CallPaths<'a>,
    told: &'a [Option<i64>],
}

impl Telling<'_> {
    fn lock(&self, lock: Option<i64>) -> Option<WaitedLock> {
        let of_lock = self.waits.locks.get(&lock)?;
        let (waiters, other_waiters) = heaviest(of_lock.waiters.iter(), of_lock.weight());
        let (holders, other_holders) = heaviest(of_lock.holders.iter(), of_lock.weight());
        let (wakers, other_wakers) = heaviest(of_lock.wakers.iter(), of_lock.weight());
        Some(WaitedLock {
            lock: self.labels.lock(lock, Some(of_lock), self.call_paths),
            waiting: self.waits.estimate(&of_lock.waiting),
            on_cpu: self.waits.threads(of_lock.on_cpu),
            samples: of_lock.waiting.samples,
            attribution: self.known(of_lock),
            waiters: waiters
                .into_iter()
                .map(|((place, on_cpu), time)| Waiters {
                    place: self.place(*place).unwrap_or_else(|| Place {
                        path: Vec::new(),
                        label: Vec::new(),
                    }),
                    on_cpu: *on_cpu,
                    threads: self.waits.estimate(time),
                    samples: time.samples,
                })
                .collect(),
            omitted_waiters: self.left_out(&other_waiters),
            holders: holders
                .into_iter()
                .map(|((place, state), time)| Holder {
                    place: self.place(*place),
                    state: *state,
                    threads: self.waits.threads(time.sum()),
                    samples: time.samples,
                    waits_for: match (place, state) {
                        (Some(place), Some(ThreadState::Lock)) => self.waits_for(*place),
                        _ => Vec::new(),
                    },
                })
                .collect(),
            omitted_holders: self.left_out(&other_holders),
            wakers: wakers
                .into_iter()
                .map(|((kind, place), time)| Waker {
                    kind: *kind,
                    place: self.place(*place),
                    threads: self.waits.threads(time.sum()),
                    samples: time.samples,
                })
                .collect(),
            omitted_wakers: self.left_out(&other_wakers),
        })
    }

    fn place(&self, place: Option<PathId>) -> Option<Place> {
        place.map(|place| self.labels.place(place, self.call_paths))
    }

    fn waits_for(&self, place: PathId) -> Vec<WaitsFor> {
        let locks = self.chains.from(place).into_iter().take(MOST_OF_EACH);
        locks
            .map(|(lock, share)| WaitsFor {
                lock: self
                    .labels
                    .lock(Some(lock), self.waits.locks.get(&Some(lock)), self.call_paths),
                told_as: self.told.iter().position(|told| *told == Some(lock)),
                share,
            })
            .collect()
    }

    fn known(&self, of_lock: &OfLock) -> Known {
        let sum = |times: &mut dyn Iterator<Item = &Time>| self.waits.threads(times.map(Time::sum).sum());
        Known {
            holder: sum(&mut of_lock.holders.values()),
            waker: sum(&mut of_lock.wakers.values()),
            neither: self.waits.threads(of_lock.neither),
        }
    }

    fn left_out<K>(&self, rest: &[(K, &Time)]) -> LeftOut {
        LeftOut {
            count: rest.len(),
            threads: self.waits.threads(rest.iter().map(|(_, time)| time.sum()).sum()),
        }
    }
}
