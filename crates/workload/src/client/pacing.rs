//! When a transaction begins: at once after the one before, or at its appointed time.

use crate::random::ConnectionRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

/// How the load is paced.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum LoopKind {
    /// Every connection begins its next transaction as soon as one ends.
    #[default]
    Closed,
    /// Transactions are due at a fixed rate, whether or not the server keeps up. Response time counts from when a
    /// transaction was due, so that waiting for a free connection is not left out.
    Open {
        /// Transactions per second over all connections.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// How the arrivals of an open loop are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrivals {
    /// Independent of one another, as sysbench's `--rate` has them.
    #[default]
    Poisson,
    /// Evenly.
    Even,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Even => "constant",
        })
    }
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "poisson" => Ok(Arrivals::Poisson),
            "constant" => Ok(Arrivals::Even),
            other => Err(format!("there are no arrivals '{other}': use poisson or constant")),
        }
    }
}

/// The appointments of one worker's share of an open loop.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Mean distance, nanoseconds.
    interval_ns: f64,
    arrivals: Arrivals,
    rng: ConnectionRng,
    next_ns: f64,
}

impl Schedule {
    /// Appointments at `rate` per second from `start_ns` on.
    pub(crate) fn new(rate: f64, arrivals: Arrivals, start_ns: u64, rng: ConnectionRng) -> Self {
        let mut schedule = Schedule {
            interval_ns: 1e9 / rate,
            arrivals,
            rng,
            next_ns: start_ns as f64,
        };
        schedule.advance();
        schedule
    }

    /// When the next transaction is due.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// Takes the next appointment if its time has come.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        let due = self.next_ns();
        (due <= now_ns).then(|| {
            self.advance();
            due
        })
    }

    /// About how many appointments have passed that nobody took.
    pub(crate) fn overdue(&self, now_ns: u64) -> u64 {
        ((now_ns as f64 - self.next_ns) / self.interval_ns).max(0.0) as u64
    }

    fn advance(&mut self) {
        self.next_ns += match self.arrivals {
            Arrivals::Even => self.interval_ns,
            Arrivals::Poisson => -(1.0 - self.rng.unit()).ln() * self.interval_ns,
        };
    }
}

/// Connections that rest until a time of their own, such as a user who reads and types.
#[derive(Debug, Default)]
pub(crate) struct Pauses(BinaryHeap<Reverse<(u64, u32)>>);

impl Pauses {
    /// A connection rests until then.
    pub(crate) fn rest(&mut self, until_ns: u64, connection: u32) {
        self.0.push(Reverse((until_ns, connection)));
    }

    /// The time at which the next rest is over.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((until_ns, _))| *until_ns)
    }

    /// Takes a connection whose rest is over, with the time at which it was.
    pub(crate) fn take_over(&mut self, now_ns: u64) -> Option<(u64, u32)> {
        self.next_ns().filter(|&until_ns| until_ns <= now_ns)?;
        self.0.pop().map(|Reverse(rested)| rested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals_in_a_second(arrivals: Arrivals) -> usize {
        let mut schedule = Schedule::new(10_000.0, arrivals, 5, ConnectionRng::new(1, 0));
        std::iter::from_fn(|| schedule.take_due(1_000_000_005)).count()
    }

    #[test]
    fn the_rate_is_kept() {
        let even = arrivals_in_a_second(Arrivals::Even);
        assert!((9_999..=10_000).contains(&even), "{even}");
        let poisson = arrivals_in_a_second(Arrivals::Poisson);
        assert!((9_600..=10_400).contains(&poisson), "{poisson} is over 4 sigma off");
    }

    #[test]
    fn connections_rest_until_their_time_and_leave_in_its_order() {
        let mut pauses = Pauses::default();
        [(30, 1), (10, 2), (20, 3)]
            .into_iter()
            .for_each(|(until, connection)| pauses.rest(until, connection));
        assert_eq!(pauses.next_ns(), Some(10));
        assert_eq!(pauses.take_over(9), None);
        let mut taken = std::iter::from_fn(|| pauses.take_over(20));
        assert_eq!(taken.next(), Some((10, 2)));
        assert_eq!(taken.next(), Some((20, 3)));
        assert_eq!(taken.next(), None);
    }

    #[test]
    fn what_is_not_due_is_not_given() {
        let mut schedule = Schedule::new(1.0, Arrivals::Even, 0, ConnectionRng::new(1, 0));
        assert_eq!(schedule.take_due(999_999_999), None);
        assert_eq!(schedule.take_due(1_000_000_000), Some(1_000_000_000));
    }
}
