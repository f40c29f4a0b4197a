//! The load of the servers beside the one that is measured: the same, at the same time.

use scaleprof_bundle::CounterRow;
use scaleprof_workload::{LoadError, LoadObserver, LoadPlan, SecondRecord, drive};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Seconds that a neighbour's load goes on at most: it is ended before.
const LONGEST_SECONDS: u32 = 7 * 86_400;
/// How often it is looked at whether all of them have begun.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Loads that run on threads of their own until they are ended.
pub(crate) struct NeighbourLoads {
    loads: Vec<NeighbourLoad>,
    end: Arc<AtomicBool>,
}

struct NeighbourLoad {
    thread: std::thread::JoinHandle<Result<(), LoadError>>,
    begun: Receiver<()>,
    seconds: Arc<Mutex<Vec<(Instant, u64)>>>,
}

impl NeighbourLoads {
    /// Starts them, and returns when all have begun.
    ///
    /// # Errors
    /// The first one that cannot begin; the others are ended.
    pub(crate) fn start(plans: Vec<LoadPlan>, stop: &AtomicBool) -> Result<NeighbourLoads, LoadError> {
        let end = Arc::new(AtomicBool::new(false));
        let mut all = NeighbourLoads { loads: Vec::new(), end };
        for plan in plans {
            let load = NeighbourLoad::start(plan, all.end.clone())?;
            all.loads.push(load);
        }
        for at in 0..all.loads.len() {
            loop {
                let load = &all.loads[at];
                let has_begun = load.begun.recv_timeout(LOOK_AGAIN_AFTER).is_ok();
                if load.thread.is_finished() {
                    // Ended before its time: its error is the first.
                    return Err(all.end_all().1.unwrap_or(LoadError::Stopped));
                }
                if has_begun {
                    break;
                }
                if stop.load(Ordering::Relaxed) {
                    all.end_all();
                    return Err(LoadError::Stopped);
                }
            }
        }
        Ok(all)
    }

    /// Ends them. Gives what each did in every second since `began`, as rows of the visit: `neighbour.N.transactions`.
    ///
    /// # Errors
    /// One that ended before.
    pub(crate) fn finish(self, visit: i32, began: Option<Instant>, seconds: u32) -> Result<Vec<CounterRow>, LoadError> {
        let (ended, problem) = self.end_all();
        if let Some(problem) = problem {
            return Err(problem);
        }
        let Some(began) = began else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        for (number, load) in (1..).zip(ended) {
            for (second, value) in by_second(&load, began, seconds) {
                rows.push(CounterRow {
                    visit,
                    second: i32::try_from(second).ok(),
                    counter: format!("neighbour.{number}.transactions"),
                    value,
                    counted_share: None,
                });
            }
        }
        Ok(rows)
    }

    fn end_all(self) -> (Vec<Vec<(Instant, u64)>>, Option<LoadError>) {
        self.end.store(true, Ordering::Relaxed);
        let mut problem = None;
        let mut all = Vec::new();
        for load in self.loads {
            let ended = load.thread.join().unwrap_or(Err(LoadError::Stopped));
            match ended {
                Ok(()) | Err(LoadError::Stopped) => {}
                Err(error) => problem = problem.or(Some(error)),
            }
            let seconds = load.seconds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.push(seconds.clone());
        }
        (all, problem)
    }
}

impl NeighbourLoad {
    fn start(plan: LoadPlan, end: Arc<AtomicBool>) -> Result<NeighbourLoad, LoadError> {
        let plan = LoadPlan {
            seconds: LONGEST_SECONDS,
            ..plan
        };
        let (sender, begun) = channel();
        let seconds = Arc::new(Mutex::new(Vec::new()));
        let mut observer = Counting {
            begun: sender,
            began: None,
            seconds: seconds.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("neighbour".to_owned())
            .spawn(move || drive(&plan, &end, &mut observer).map(|_| ()))
            .map_err(|error| LoadError::System("starting a thread", error))?;
        Ok(NeighbourLoad { thread, begun, seconds })
    }
}

/// Counts what ends well in every second.
struct Counting {
    begun: Sender<()>,
    began: Option<Instant>,
    /// Starts of seconds, with the transactions of each.
    seconds: Arc<Mutex<Vec<(Instant, u64)>>>,
}

impl LoadObserver for Counting {
    fn connected(&mut self, _open: u32, _wanted: u32) {}

    fn begins(&mut self) {
        self.began = Some(Instant::now());
        // Nobody listens any more when the visit was given up meanwhile.
        let _ = self.begun.send(());
    }

    fn second_ended(&mut self, _second: u32) {}

    fn record(&mut self, record: SecondRecord) {
        let Some(began) = self.began else { return };
        let start = began + Duration::from_secs(u64::from(record.second));
        let mut seconds = self.seconds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        seconds.push((start, record.transactions));
    }
}

/// Transactions of each second after `began`: two loads' seconds do not begin at the same moment, so that each is made of the two that it
/// lies across, in proportion. A second that is not covered whole is left out.
fn by_second(load: &[(Instant, u64)], began: Instant, seconds: u32) -> Vec<(u32, f64)> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (start, transactions) in load {
        for second in 0..seconds {
            let from = began + Duration::from_secs(u64::from(second));
            let (first, last) = (
                (*start).max(from),
                (*start + Duration::from_secs(1)).min(from + Duration::from_secs(1)),
            );
            let overlap = last.saturating_duration_since(first).as_secs_f64();
            if overlap > 0.0 {
                let sum = sums.entry(second).or_default();
                sum.0 += *transactions as f64 * overlap;
                sum.1 += overlap;
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
