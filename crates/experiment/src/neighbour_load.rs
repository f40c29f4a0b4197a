//! The load of the servers beside the one that is measured: the same, at the same time.

use scaleprof_bundle::CounterRow;
use scaleprof_workload::{LoadError, LoadObserver, LoadPlan, SecondRecord, drive};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Seconds that a neighbour's load goes on at most: it is ended before.
const LONGEST_SECONDS: u32 = 7 * 86_400;
/// How often it is looked at whether all of them have begun.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Loads that run on threads of their own until they are ended.
///
/// Dropping them ends them.
pub(crate) struct NeighbourLoads {
    loads: Vec<NeighbourLoad>,
    end: Arc<AtomicBool>,
    /// Whether one ended before it was asked to.
    failed: Arc<AtomicBool>,
}

/// What one load did.
#[derive(Debug, Default)]
struct Done {
    /// Starts of seconds, with the transactions of each.
    seconds: Vec<(Instant, u64)>,
    /// Connections that were given up in the middle of a transaction.
    unfinished: Vec<u32>,
}

/// What is left of loads that were ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// What each did in every second, as rows of the measurement: `neighbour.N.transactions`.
    pub(crate) rows: Vec<CounterRow>,
    /// Of each, connections that were given up in the middle of a transaction.
    pub(crate) unfinished: Vec<Vec<u32>>,
}

/// A neighbour's number, from 1, and why its load ended.
pub(crate) type Failure = (usize, LoadError);

struct NeighbourLoad {
    thread: std::thread::JoinHandle<Result<(), LoadError>>,
    begun: Receiver<()>,
    done: Arc<Mutex<Done>>,
}

impl NeighbourLoads {
    /// Starts them, and returns when all have begun.
    ///
    /// # Errors
    /// The first one that cannot begin; the others are ended.
    pub(crate) fn start(plans: Vec<LoadPlan>, stop: &AtomicBool) -> Result<NeighbourLoads, Failure> {
        let mut all = NeighbourLoads {
            loads: Vec::new(),
            end: Arc::default(),
            failed: Arc::default(),
        };
        for (number, plan) in (1..).zip(plans) {
            let load = NeighbourLoad::start(plan, &all).map_err(|error| (number, error))?;
            all.loads.push(load);
        }
        for at in 0..all.loads.len() {
            loop {
                let load = &all.loads[at];
                let has_begun = load.begun.recv_timeout(LOOK_AGAIN_AFTER).is_ok();
                if load.thread.is_finished() {
                    // Ended before its time: its error is the first.
                    return Err(all.end_all().err().unwrap_or((at + 1, LoadError::Stopped)));
                }
                if has_begun {
                    break;
                }
                if stop.load(Ordering::Relaxed) {
                    return Err((at + 1, LoadError::Stopped));
                }
            }
        }
        Ok(all)
    }

    /// Is set when one ends before it was asked to: then what is measured beside it is not what was asked for.
    pub(crate) fn failed(&self) -> Arc<AtomicBool> {
        self.failed.clone()
    }

    /// Ends them; their seconds are counted from `began` on.
    ///
    /// # Errors
    /// The first one that ended before.
    pub(crate) fn finish(mut self, measurement: i32, began: Option<Instant>, seconds: u32) -> Result<Ended, Failure> {
        let all = self.end_all()?;
        let mut ended = Ended::default();
        for (number, done) in (1..).zip(all) {
            ended.unfinished.push(done.unfinished);
            let figures = began.map_or_else(Vec::new, |began| by_second(&done.seconds, began, seconds));
            ended.rows.extend(figures.into_iter().map(|(second, value)| CounterRow {
                measurement,
                second: i32::try_from(second).ok(),
                counter: format!("neighbour.{number}.transactions"),
                value,
                running_share: None,
            }));
        }
        Ok(ended)
    }

    fn end_all(&mut self) -> Result<Vec<Done>, Failure> {
        self.end.store(true, Ordering::Relaxed);
        let mut problem = None;
        let mut all = Vec::new();
        for (number, load) in (1..).zip(self.loads.drain(..)) {
            let ended = load.thread.join();
            match ended {
                Ok(Ok(()) | Err(LoadError::Stopped)) => {}
                Ok(Err(error)) => problem = problem.or(Some((number, error))),
                Err(_) => {
                    let panicked = io::Error::other("it panicked");
                    problem = problem.or(Some((number, LoadError::System("the thread of its load", panicked))));
                }
            }
            let mut done = load.done.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(std::mem::take(&mut *done));
        }
        match problem {
            Some(problem) => Err(problem),
            None => Ok(all),
        }
    }
}

impl Drop for NeighbourLoads {
    fn drop(&mut self) {
        // Nobody asks any more why one ended.
        let _ = self.end_all();
    }
}

impl NeighbourLoad {
    fn start(plan: LoadPlan, all: &NeighbourLoads) -> Result<NeighbourLoad, LoadError> {
        let plan = LoadPlan {
            seconds: LONGEST_SECONDS,
            ..plan
        };
        let (sender, begun) = channel();
        let done: Arc<Mutex<Done>> = Arc::default();
        let mut observer = Counting {
            begun: sender,
            began: None,
            done: done.clone(),
        };
        let (end, failed) = (all.end.clone(), all.failed.clone());
        let thread = std::thread::Builder::new()
            .name("neighbour".to_owned())
            .spawn(move || {
                let ended = drive(&plan, &end, &mut observer).map(|_| ());
                if !end.load(Ordering::Relaxed) {
                    failed.store(true, Ordering::Relaxed);
                }
                ended
            })
            .map_err(|error| LoadError::System("starting a thread", error))?;
        Ok(NeighbourLoad { thread, begun, done })
    }
}

/// Counts what ends well in every second.
struct Counting {
    begun: Sender<()>,
    began: Option<Instant>,
    done: Arc<Mutex<Done>>,
}

impl Counting {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoadObserver for Counting {
    fn connected(&mut self, _open: u32, _wanted: u32) {}

    fn begins(&mut self) {
        self.began = Some(Instant::now());
        // Nobody listens any more when the measurement was given up meanwhile.
        let _ = self.begun.send(());
    }

    fn second_ended(&mut self, _second: u32) {}

    fn record(&mut self, record: SecondRecord) {
        let Some(began) = self.began else { return };
        let start = began + Duration::from_secs(u64::from(record.second));
        self.done().seconds.push((start, record.transactions));
    }

    fn left_unfinished(&mut self, connection_ids: &[u32]) {
        self.done().unfinished.extend(connection_ids);
    }
}

/// Transactions of each second after `began`: two loads' seconds do not begin at the same moment, so that each is made of the two that it
/// lies across, in proportion. A second that is not covered whole is left out.
fn by_second(load: &[(Instant, u64)], began: Instant, seconds: u32) -> Vec<(u32, f64)> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (start, transactions) in load {
        let offset = match start.checked_duration_since(began) {
            Some(after) => after.as_secs_f64(),
            None => -began.duration_since(*start).as_secs_f64(),
        };
        let second = offset.floor();
        let later = offset - second;
        for (second, part) in [(second, 1.0 - later), (second + 1.0, later)] {
            if (0.0..f64::from(seconds)).contains(&second) {
                let sum = sums.entry(second as u32).or_default();
                sum.0 += *transactions as f64 * part;
                sum.1 += part;
            }
        }
    }
    let whole = sums.into_iter().filter(|(_, (_, covered))| *covered > 0.999);
    whole
        .map(|(second, (transactions, _))| (second, transactions))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_takes_its_part_of_those_that_it_lies_across() {
        let began = Instant::now() + Duration::from_secs(10);
        let early = began - Duration::from_millis(750);
        let load: Vec<(Instant, u64)> = [100, 200, 400]
            .into_iter()
            .zip(0..)
            .map(|(count, second)| (early + Duration::from_secs(second), count))
            .collect();
        let found: Vec<(u32, f64)> = by_second(&load, began, 4)
            .into_iter()
            .map(|(at, value)| (at, value.round()))
            .collect();
        // A quarter of the first and three of the second; a quarter of the second and three of the third; then nothing is whole.
        assert_eq!(found, [(0, 175.0), (1, 350.0)]);
    }
}
