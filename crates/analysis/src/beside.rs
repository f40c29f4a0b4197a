//! Servers beside the one under test: how its replicas follow, and what its neighbours do.

use crate::intervals;
use crate::measurement_rows::MeasurementRows;
use crate::numbers::{counted, grouped, percent};
use crate::totals::Window;
use scaleprof_bundle::{CounterRow, Estimate, ReplaySpeed, ReplicaSummary, RungSummary};
use std::collections::{BTreeMap, BTreeSet};

/// A replica that falls behind by no more than this part of what is committed keeps up: a position is read with some delay.
const KEEPS_UP: f64 = 0.01;
/// One that falls behind by more than this part of what is committed, and is more than a second behind, does not.
const FAR_TOO_SLOW: f64 = 0.1;
/// Nanoseconds in a second for which a node of Galera was told to hold its commits back.
const HELD_BACK: &str = "status.wsrep_flow_control_paused_ns";
/// Part of the time from which that is a limit.
const HELD_BACK_SHARE: f64 = 0.01;
/// Transactions from which a replica is so far behind that the time it takes to make them up says something.
const FAR_BEHIND: f64 = 1000.0;

/// One measurement's counters of other servers, by name: those of the measured seconds.
pub(crate) struct Measurement<'a> {
    by_second: BTreeMap<&'a str, BTreeMap<i32, f64>>,
    whole: BTreeMap<&'a str, f64>,
}

impl<'a> Measurement<'a> {
    pub(crate) fn of(rows: &MeasurementRows<'a>, window: &Window) -> Self {
        let mut measurement = Measurement {
            by_second: BTreeMap::new(),
            whole: BTreeMap::new(),
        };
        let others = |row: &&&CounterRow| {
            let name = row.counter.as_str();
            let others = ["source.", "replica.", "neighbour."];
            others.iter().any(|start| name.starts_with(start)) || name == HELD_BACK
        };
        for row in rows.counters.iter().filter(others) {
            match row.second {
                None => {
                    measurement.whole.insert(&row.counter, row.value);
                }
                Some(second) if window.seconds.contains_key(&second) => {
                    measurement
                        .by_second
                        .entry(&row.counter)
                        .or_default()
                        .insert(second, row.value);
                }
                Some(_) => {}
            }
        }
        measurement
    }

    fn seconds(&self, name: &str) -> Vec<f64> {
        let seconds = self.by_second.get(name);
        seconds.map_or_else(Vec::new, |seconds| seconds.values().copied().collect())
    }

    /// What is in the second counter less what is in the first, in every second that has both.
    fn differences(&self, less: &str, from: &str) -> Vec<f64> {
        let Some((less, from)) = self.by_second.get(less).zip(self.by_second.get(from)) else {
            return Vec::new();
        };
        let both = from
            .iter()
            .filter_map(|(second, value)| Some(value - less.get(second)?));
        both.collect()
    }
}

/// Numbers from 1 of those servers of a kind for which there is such a counter.
fn numbers(measurements: &[Measurement<'_>], kind: &str, what: &str) -> BTreeSet<u32> {
    let names = measurements.iter().flat_map(|measurement| measurement.by_second.keys());
    let number = |name: &str| {
        name.strip_prefix(kind)?
            .strip_prefix('.')?
            .strip_suffix(what)?
            .strip_suffix('.')?
            .parse()
            .ok()
    };
    names.filter_map(|name| number(name)).collect()
}

/// How the replicas followed at a rung.
pub(crate) fn replicas(measurements: &[Measurement<'_>]) -> Vec<ReplicaSummary> {
    let all = numbers(measurements, "replica", "replayed_transactions").into_iter();
    all.filter_map(|number| replica(measurements, number)).collect()
}

fn replica(measurements: &[Measurement<'_>], number: u32) -> Option<ReplicaSummary> {
    let name = |what: &str| format!("replica.{number}.{what}");
    let (replayed, committed) = (name("replayed_transactions"), "source.committed_transactions");
    let mean = |of: &dyn Fn(&Measurement<'_>) -> Vec<f64>| {
        intervals::throughput(&measurements.iter().map(of).collect::<Vec<_>>())
    };
    let replayed_per_second = mean(&|measurement| measurement.seconds(&replayed))?.estimate();
    let committed_per_second = mean(&|measurement| measurement.seconds(committed))?.estimate();
    let lag_growth_per_second = mean(&|measurement| measurement.differences(&replayed, committed))?.signed_estimate();
    let level = name("lag_level");
    let at_end = |measurement: &Measurement<'_>| measurement.by_second.get(level.as_str())?.values().last().copied();
    let lag_transactions = measurements.iter().filter_map(at_end).reduce(f64::max);
    let catch_up = |measurement: &Measurement<'_>| {
        let of = |what: &str| measurement.whole.get(name(what).as_str()).copied();
        let (transactions, seconds) = (of("catch_up_transactions")?, of("catch_up_seconds")?);
        (transactions >= FAR_BEHIND && seconds > 0.0).then_some((transactions, seconds))
    };
    let caught_up = measurements.iter().filter_map(catch_up);
    let (transactions, seconds) = caught_up.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let rate = committed_per_second.value;
    let paused: Vec<f64> = measurements
        .iter()
        .flat_map(|measurement| measurement.seconds(HELD_BACK))
        .collect();
    Some(ReplicaSummary {
        replica: number,
        flow_control_share: (!paused.is_empty()).then(|| paused.iter().sum::<f64>() / 1e9 / paused.len() as f64),
        committed_per_second,
        replayed_per_second,
        lag_growth_per_second,
        keeps_up: keeps_up(lag_growth_per_second, rate, lag_transactions),
        lag_transactions,
        lag_seconds: lag_transactions
            .map(|lag| lag.max(0.0) / rate)
            .filter(|lag| lag.is_finite()),
        catch_up_per_second: (seconds > 0.0).then(|| transactions / seconds),
    })
}

/// Whether a replica keeps up with this rate. Without an interval only what nobody could doubt is said.
fn keeps_up(lag_growth: Estimate, rate: f64, lag: Option<f64>) -> Option<bool> {
    let least = KEEPS_UP * rate;
    match (lag_growth.low, lag_growth.high) {
        (_, Some(high)) if high <= least => return Some(true),
        (Some(low), _) if low > least => return Some(false),
        _ => {}
    }
    let lag = lag?;
    match () {
        () if lag_growth.value > FAR_TOO_SLOW * rate && lag > rate => Some(false),
        () if lag_growth.value <= KEEPS_UP * rate && lag < KEEPS_UP * rate => Some(true),
        () => None,
    }
}

/// Transactions per second of each neighbour.
pub(crate) fn neighbours(measurements: &[Measurement<'_>]) -> Vec<Estimate> {
    let all = numbers(measurements, "neighbour", "transactions").into_iter();
    let estimates = all.filter_map(|number| {
        let name = format!("neighbour.{number}.transactions");
        let measurements: Vec<Vec<f64>> = measurements
            .iter()
            .map(|measurement| measurement.seconds(&name))
            .collect();
        intervals::throughput(&measurements).map(|measured| measured.estimate())
    });
    estimates.collect()
}

/// How fast each replica can follow: what it replayed at the rung at which it replayed most of those where it kept up. Where it falls
/// behind at others, its limit lies between that and what it replays there; where it does not, its limit is higher.
pub(crate) fn replay_speeds(rungs: &[RungSummary]) -> Vec<ReplaySpeed> {
    let replicas = rungs.iter().flat_map(|rung| &rung.replicas);
    let numbers: BTreeSet<u32> = replicas.map(|replica| replica.replica).collect();
    numbers
        .into_iter()
        .filter_map(|number| replay_speed(rungs, number))
        .collect()
}

fn replay_speed(rungs: &[RungSummary], number: u32) -> Option<ReplaySpeed> {
    let each = rungs.iter().filter_map(|rung| {
        let replica = rung.replicas.iter().find(|replica| replica.replica == number)?;
        Some((rung.connections, replica))
    });
    let of: Vec<(u32, &ReplicaSummary)> = each.collect();
    let speed = |one: &&(u32, &ReplicaSummary)| one.1.replayed_per_second.value;
    let most = |of: &mut dyn Iterator<Item = &(u32, &ReplicaSummary)>| -> Option<(u32, ReplicaSummary)> {
        let (connections, replica) = of.max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        Some((*connections, (*replica).clone()))
    };
    // What it replays where it falls behind is more than it can follow, or it would not.
    let followed = most(&mut of.iter().filter(|(_, replica)| replica.keeps_up == Some(true)));
    let not_behind = || most(&mut of.iter().filter(|(_, replica)| replica.keeps_up != Some(false)));
    let (connections, fastest) = followed.clone().or_else(not_behind).or_else(|| {
        of.first()
            .map(|(connections, replica)| (*connections, (*replica).clone()))
    })?;
    let behind = of.iter().find(|(_, replica)| replica.keeps_up == Some(false));
    // A rung at which nobody could answer in time is likely the one at which it is worst.
    let unknown = of.len() < rungs.len() || of.iter().any(|(_, replica)| replica.keeps_up.is_none());
    let held_back = fastest.flow_control_share.is_some_and(|share| share > HELD_BACK_SHARE);
    let balanced = rate(fastest.replayed_per_second);
    let sentence = match behind {
        Some((from, replica)) => {
            let catches_up = of
                .iter()
                .filter_map(|(_, replica)| replica.catch_up_per_second)
                .reduce(f64::max);
            let alone = catches_up.map_or_else(String::new, |rate| {
                format!(" After the load it replays {}/s.", grouped(rate))
            });
            let speed = match followed {
                Some((kept_at, _)) => format!(
                    "its sustained replay rate is at least {balanced}, at {}",
                    counted(kept_at, "connection")
                ),
                None if unknown => "its sustained replay rate is unknown (measure 20 s or more)".to_owned(),
                None => "its sustained replay rate is below that of the first rung (start from fewer connections)"
                    .to_owned(),
            };
            format!(
                "Replica {number} falls behind from {}: it replays {}/s of {}/s committed; {speed}.{alone}",
                counted(*from, "connection"),
                grouped(replica.replayed_per_second.value),
                grouped(replica.committed_per_second.value),
            )
        }
        None if held_back => format!(
            "Replica {number} keeps up only through flow control, active {} of the time at {}; its sustained replay rate is about \
             {balanced}.",
            percent(fastest.flow_control_share.unwrap_or_default()),
            counted(connections, "connection")
        ),
        None if unknown => format!(
            "Cannot tell whether replica {number} keeps up at every rung (measure 20 s or more); it replayed up to {balanced}, \
             at {}.",
            counted(connections, "connection")
        ),
        None => format!(
            "Replica {number} keeps up at every rung; its sustained replay rate is at least {balanced}, at {}.",
            counted(connections, "connection")
        ),
    };
    Some(ReplaySpeed {
        replica: number,
        sustained_per_second: fastest.replayed_per_second,
        is_lower_bound: match (behind, followed) {
            (None, _) if unknown && !held_back => None,
            (None, _) => Some(!held_back),
            (Some(_), Some(_)) => Some(true),
            (Some(_), None) if unknown => None,
            (Some(_), None) => Some(false),
        },
        connections,
        falls_behind_at: behind.map(|(connections, _)| *connections),
        sentence,
    })
}

/// A rate with its interval, where it has one.
fn rate(of: Estimate) -> String {
    let value = grouped(of.value);
    match of.low.zip(of.high) {
        Some((low, high)) => format!("{value}/s ({} to {})", grouped(low), grouped(high)),
        None => format!("{value}/s"),
    }
}

/// What a server and its neighbours came to together, at the rung at which that is most.
pub(crate) fn together(rungs: &[RungSummary]) -> Option<String> {
    let sum = |rung: &RungSummary| rung.throughput.value + rung.neighbours.iter().map(|one| one.value).sum::<f64>();
    let with = rungs.iter().filter(|rung| !rung.neighbours.is_empty());
    let best = with.max_by(|a, b| sum(a).total_cmp(&sum(b)))?;
    let all = sum(best);
    Some(format!(
        "With {} under the same load, {} complete at most {}/s together, at {} each; the measured server has {} of it.",
        counted(best.neighbours.len() as u32, "neighbour"),
        counted(best.neighbours.len() as u32 + 1, "server"),
        grouped(all),
        counted(best.connections, "connection"),
        percent(best.throughput.value / all),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(committed: &[f64], replayed: &[f64], whole: &[(&'static str, f64)]) -> Measurement<'static> {
        let seconds = |values: &[f64]| (0..).zip(values.iter().copied()).collect::<BTreeMap<i32, f64>>();
        let mut lag = 0.0;
        let levels = committed.iter().zip(replayed).map(|(a, b)| {
            lag += a - b;
            lag
        });
        let levels: Vec<f64> = levels.collect();
        Measurement {
            by_second: [
                ("source.committed_transactions", seconds(committed)),
                ("replica.1.replayed_transactions", seconds(replayed)),
                ("replica.1.lag_level", seconds(&levels)),
            ]
            .into(),
            whole: whole.iter().copied().collect(),
        }
    }

    /// Twenty seconds that scatter a little around a rate.
    fn around(rate: f64) -> Vec<f64> {
        (0..20).map(|second| rate + f64::from(second % 5) - 2.0).collect()
    }

    #[test]
    fn a_replica_that_replays_less_than_is_committed_falls_behind() {
        let catch_up = [
            ("replica.1.catch_up_transactions", 8000.0),
            ("replica.1.catch_up_seconds", 4.0),
        ];
        let found = replicas(&[measurement(&around(1000.0), &around(600.0), &catch_up)]);
        let replica = &found[0];
        assert_eq!((found.len(), replica.keeps_up), (1, Some(false)));
        assert!(
            (replica.lag_growth_per_second.value - 400.0).abs() < 1e-6,
            "{replica:?}"
        );
        assert_eq!(replica.lag_transactions.map(f64::round), Some(8000.0));
        assert_eq!(replica.lag_seconds.map(f64::round), Some(8.0));
        assert_eq!(replica.catch_up_per_second, Some(2000.0));
    }

    #[test]
    fn what_may_be_chance_is_neither_keeping_up_nor_falling_behind() {
        // Blocks of five seconds that scatter around 60 a second.
        let replayed: Vec<f64> = [965.0, 940.0, 915.0].iter().flat_map(|rate| [*rate; 5]).collect();
        let found = replicas(&[measurement(&[1000.0; 15], &replayed, &[])]);
        assert!(
            found[0].lag_growth_per_second.low.is_some_and(|low| low < 0.0),
            "{:?}",
            found[0]
        );
        assert_eq!(found[0].keeps_up, None);
    }

    #[test]
    fn replicas_keep_their_numbers_where_one_does_not_answer() {
        let mut second = measurement(&around(1000.0), &around(1000.0), &[]);
        let replayed = second.by_second.remove("replica.1.replayed_transactions").unwrap();
        second.by_second.insert("replica.2.replayed_transactions", replayed);
        let found = replicas(&[second]);
        assert_eq!(found.iter().map(|replica| replica.replica).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn commits_that_are_held_back_for_a_replica_are_its_limit() {
        let mut held = measurement(&around(1000.0), &around(1000.0), &[]);
        let paused = (0..20).map(|second| (second, 0.3e9)).collect();
        held.by_second.insert(HELD_BACK, paused);
        let found = replicas(&[held]);
        assert_eq!(
            (
                found[0].keeps_up,
                found[0].flow_control_share.map(|share| (share * 10.0).round())
            ),
            (Some(true), Some(3.0))
        );
    }

    fn rung(connections: u32, measurement: Measurement<'_>) -> RungSummary {
        RungSummary {
            replicas: replicas(&[measurement]),
            ..crate::findings::tests::made_up::rung(connections, 1000.0, 0.5, &[])
        }
    }

    #[test]
    fn the_balanced_speed_is_what_was_followed_and_not_what_was_replayed_while_it_fell_behind() {
        let at = |connections, committed, replayed| {
            rung(connections, measurement(&around(committed), &around(replayed), &[]))
        };
        let rungs = [at(1, 400.0, 400.0), at(4, 900.0, 900.0), at(16, 2000.0, 1200.0)];
        let found = &replay_speeds(&rungs)[0];
        assert!((found.sustained_per_second.value - 900.0).abs() < 20.0, "{found:?}");
        assert_eq!(
            (found.connections, found.falls_behind_at, found.is_lower_bound),
            (4, Some(16), Some(true))
        );
        assert!(
            found.sentence.contains("sustained replay rate is at least") && found.sentence.contains("at 4 connections"),
            "{found:?}"
        );
        let only_behind = &replay_speeds(&rungs[2..])[0];
        assert_eq!(
            (only_behind.falls_behind_at, only_behind.is_lower_bound),
            (Some(16), Some(false))
        );
        assert!(
            only_behind.sentence.contains("is below that of the first rung"),
            "{only_behind:?}"
        );
        let everywhere = &replay_speeds(&rungs[..2])[0];
        assert_eq!(
            (everywhere.falls_behind_at, everywhere.is_lower_bound),
            (None, Some(true))
        );
    }

    #[test]
    fn one_that_is_a_little_behind_all_the_time_keeps_up() {
        let level = measurement(
            &around(1000.0),
            &around(1000.0),
            &[("replica.1.catch_up_transactions", 12.0)],
        );
        let found = replicas(&[level]);
        assert_eq!((found[0].keeps_up, found[0].catch_up_per_second), (Some(true), None));
        assert!(replicas(&[measurement(&[], &[], &[])]).is_empty(), "nothing was read");
        let short = |rate| replicas(&[measurement(&around(1000.0)[..3], &around(rate)[..3], &[])])[0].keeps_up;
        assert_eq!([600.0, 950.0, 1000.0].map(short), [Some(false), None, Some(true)]);
    }
}
