//! How far the replicas are, once a second: what they replay, and how far they are behind.

use crate::boundary_watch::{Answer, Boundary, BoundaryWatch};
use crate::company::Beside;
use crate::error::RunError;
use crate::progress::Progress;
use crate::target::{Access, Target};
use scaleprof_bundle::CounterRow;
use scaleprof_server::{Position, Replicas};
use scaleprof_wire::Client;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest that an answer may take: later ones say too little about when it was true.
const LATEST: Duration = Duration::from_millis(500);
/// How long the last readings are waited for.
const LAST: Duration = Duration::from_secs(1);
/// How long a server may take to say how far it is; one that takes longer stands still.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked at whether replicas that catch up follow at all.
const CHECK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often replicas that catch up are asked how far they are.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// How far a server was at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    /// Seconds since the watch began.
    at: f64,
    transactions: f64,
}

/// Asks the source and its replicas at every [`tick`](ReplicaWatch::tick), each on a thread and a connection of its own.
pub(crate) struct ReplicaWatch {
    source: BoundaryWatch<Reading>,
    replicas: Vec<BoundaryWatch<Reading>>,
}

impl ReplicaWatch {
    /// Starts on connections that are opened now: opening one under load would wait behind the load. None where nobody follows.
    pub(crate) fn start(target: &Target, beside: &Beside) -> Result<Option<ReplicaWatch>, RunError> {
        let Beside::Replicas(replicas) = beside else {
            return Ok(None);
        };
        let [of_source, of_replica] = replicas.positions();
        let began = Instant::now();
        let source = watched(patient(&target.access())?, of_source, began)?;
        let all = replicas
            .servers()
            .iter()
            .map(|server| watched(patient(&Access::of(server))?, of_replica, began));
        Ok(Some(ReplicaWatch {
            source,
            replicas: all.collect::<Result<_, RunError>>()?,
        }))
    }

    /// A second ends now. Does not wait.
    pub(crate) fn tick(&self, boundary: Boundary) {
        for server in [&self.source].into_iter().chain(&self.replicas) {
            server.tick(boundary);
        }
    }

    /// What every second came to, as rows of the measurement: `source.committed_transactions`, and
    /// for each replica `replica.N.replayed_transactions` and `replica.N.lag_level`.
    pub(crate) fn finish(self, measurement: i32) -> Vec<CounterRow> {
        let source = self.source.finish(LAST);
        let replicas: Vec<_> = self.replicas.into_iter().map(|replica| replica.finish(LAST)).collect();
        let mut figures: Vec<(Boundary, String, f64)> = Vec::new();
        let mut add = |name: &str, values: Vec<(Boundary, f64)>| {
            figures.extend(
                values
                    .into_iter()
                    .map(|(second, value)| (second, name.to_owned(), value)),
            );
        };
        add("source.committed_transactions", rates(&source));
        for (number, replica) in (1..).zip(&replicas) {
            add(&format!("replica.{number}.replayed_transactions"), rates(replica));
            add(&format!("replica.{number}.lag_level"), lags(&source, replica));
        }
        let row = |(second, counter, value)| CounterRow {
            measurement,
            second: i32::try_from(second).ok(),
            counter,
            value,
            running_share: None,
        };
        figures.into_iter().map(row).collect()
    }
}

/// Watches one server. How late an answer comes does not matter, as its moment is kept with it, but how long it took does.
fn watched(client: Client, position: Position, began: Instant) -> Result<BoundaryWatch<Reading>, RunError> {
    let watch = BoundaryWatch::start("position", client, move |client, _| {
        let asked = began.elapsed();
        let Ok(transactions) = position.read(client) else {
            return Answer::Gone;
        };
        let took = began.elapsed() - asked;
        match took <= LATEST {
            true => Answer::Taken(Reading {
                at: (asked + took / 2).as_secs_f64(),
                transactions: transactions as f64,
            }),
            false => Answer::TooLate,
        }
    });
    watch.map_err(|error| RunError::Disk(format!("cannot start a thread: {error}")))
}

/// Transactions a second in every second that has a reading at both ends; such readings lie a second apart but for how long the answers
/// took.
fn rates(readings: &BTreeMap<Boundary, Reading>) -> Vec<(Boundary, f64)> {
    let both = readings
        .iter()
        .filter_map(|(&start, before)| Some((start, before, readings.get(&(start + 1))?)));
    both.filter(|(_, before, after)| after.at > before.at)
        .map(|(start, before, after)| {
            (
                start,
                (after.transactions - before.transactions) / (after.at - before.at),
            )
        })
        .collect()
}

/// How far a replica was behind at the end of every second: what the source had at the moment at which the replica was asked, by the
/// source's readings around it, less what the replica had. It may be a little below 0, as the source is not asked at that moment itself.
fn lags(source: &BTreeMap<Boundary, Reading>, replica: &BTreeMap<Boundary, Reading>) -> Vec<(Boundary, f64)> {
    let ends = replica.range(1..);
    ends.filter_map(|(&boundary, reading)| {
        let near = |at: Boundary| source.get(&at);
        let here = near(boundary)?;
        // The second on whose side the replica was asked, else the other.
        let (before, after) = (near(boundary - 1), near(boundary + 1));
        let other = if reading.at < here.at {
            before.or(after)
        } else {
            after.or(before)
        }?;
        let slope = (other.transactions - here.transactions) / (other.at - here.at);
        let had = here.transactions + slope * (reading.at - here.at);
        (slope.is_finite()).then_some((boundary - 1, had - reading.transactions))
    })
    .collect()
}

/// What replicas were behind at the end of a measurement, and how long they took to make it up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CatchUp {
    /// Of which replica, from 1.
    pub(crate) replica: usize,
    /// Transactions that it was behind when it was first asked.
    pub(crate) behind: f64,
    /// Seconds until it had that; none where it did not make it up in the time that it was given.
    pub(crate) seconds: Option<f64>,
}

impl CatchUp {
    /// As rows of the measurement.
    pub(crate) fn rows(&self, measurement: i32) -> impl Iterator<Item = CounterRow> {
        let of = |what: &str, value: f64| CounterRow {
            measurement,
            second: None,
            counter: format!("replica.{}.catch_up_{what}", self.replica),
            value,
            running_share: None,
        };
        let seconds = self.seconds.map(|seconds| of("seconds", seconds));
        [of("transactions", self.behind)].into_iter().chain(seconds)
    }
}

/// Waits until the replicas have what the source has, for as long as `longest` at most: a measurement must not begin with the rest of another.
///
/// # Errors
/// A replica that died or does not follow any more.
pub(crate) fn catch_up(
    target: &Target,
    beside: &mut Beside,
    longest: Duration,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Vec<CatchUp>, RunError> {
    let (Target::Private(source), Beside::Replicas(replicas)) = (target, beside) else {
        return Ok(Vec::new());
    };
    replicas.check(source)?;
    let began = Instant::now();
    let wanted = replicas.positions()[0].read(&mut patient(&target.access())?)?;
    let mut asked = asked(replicas)?;
    let mut all = Vec::new();
    for (replica, (position, client)) in (1..).zip(&mut asked) {
        let behind = wanted.saturating_sub(position.read(client)?) as f64;
        all.push(CatchUp {
            replica,
            behind,
            seconds: (behind <= 0.0).then_some(0.0),
        });
    }
    let mut checked = Instant::now();
    let mut told = false;
    while all.iter().any(|replica| replica.seconds.is_none()) {
        if began.elapsed() >= longest || stop.load(Ordering::Relaxed) {
            break;
        }
        if checked.elapsed() >= CHECK_AGAIN_AFTER {
            // One that gave up would be waited for in vain.
            replicas.check(source)?;
            checked = Instant::now();
            if !told {
                progress.stage("waiting until the replicas have caught up");
                told = true;
            }
        }
        std::thread::sleep(ASK_AGAIN_AFTER);
        for (found, (position, client)) in all.iter_mut().zip(&mut asked) {
            if found.seconds.is_none() && position.read(client)? >= wanted {
                found.seconds = Some(began.elapsed().as_secs_f64());
            }
        }
    }
    Ok(all)
}

/// Connections to all replicas, with how to ask them.
fn asked(replicas: &Replicas) -> Result<Vec<(Position, Client)>, RunError> {
    let [_, of_replica] = replicas.positions();
    let servers = replicas.servers().iter();
    servers
        .map(|server| Ok((of_replica, patient(&Access::of(server))?)))
        .collect()
}

/// A connection to a server that may have stood still.
fn patient(server: &Access) -> Result<Client, RunError> {
    let mut client = server.connect()?;
    client.set_patience(Some(ANSWERS_WITHIN));
    Ok(client)
}

/// A warning of replicas that did not make up what they were behind; none where it was asked to stop.
pub(crate) fn still_behind(replicas: &[CatchUp], with: &str, stop: &AtomicBool) -> Option<String> {
    let behind = replicas.iter().filter(|replica| replica.seconds.is_none());
    let named: Vec<String> = behind.map(|replica| replica.replica.to_string()).collect();
    (!named.is_empty() && !stop.load(Ordering::Relaxed)).then(|| {
        format!(
            "replica {} was still behind long after the end of a measurement with {with}: the next measurement begins with that",
            named.join(" and ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(all: &[(Boundary, f64, f64)]) -> BTreeMap<Boundary, Reading> {
        let each = all.iter();
        each.map(|&(boundary, at, transactions)| (boundary, Reading { at, transactions }))
            .collect()
    }

    #[test]
    fn rates_are_by_the_time_that_passed_and_not_by_the_second() {
        let found = rates(&readings(&[
            (0, 0.0, 0.0),
            (1, 1.1, 110.0),
            (2, 2.0, 200.0),
            (4, 4.0, 400.0),
        ]));
        let rounded: Vec<(u32, f64)> = found.into_iter().map(|(second, rate)| (second, rate.round())).collect();
        assert_eq!(rounded, [(0, 100.0), (1, 100.0)], "the third second has one end only");
    }

    #[test]
    fn a_replica_that_is_asked_later_is_not_taken_for_one_that_is_ahead() {
        let source = readings(&[(0, 0.0, 0.0), (1, 1.0, 1000.0), (2, 2.0, 2000.0)]);
        // It has all that the source has, and is asked 50 ms after it.
        let level = readings(&[(0, 0.05, 50.0), (1, 1.05, 1050.0), (2, 2.05, 2050.0)]);
        let found = lags(&source, &level);
        assert!(
            found.len() == 2 && found.iter().all(|(_, lag)| lag.abs() < 1e-6),
            "{found:?}"
        );
        let behind = readings(&[(1, 0.95, 450.0), (2, 2.0, 1500.0)]);
        let found: Vec<(u32, f64)> = lags(&source, &behind)
            .into_iter()
            .map(|(second, lag)| (second, lag.round()))
            .collect();
        assert_eq!(found, [(0, 500.0), (1, 500.0)]);
    }
}
