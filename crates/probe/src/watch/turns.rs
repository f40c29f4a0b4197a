//! Watching and resting by turns: whose turn it is, and what that means for the weights of what was seen.

use scaleprof_vocabulary::ThreadState;
use std::time::Duration;

use scaleprof_profile::RawSample;

use super::pace::Pace;

/// What is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A stint of watching: it may rest now.
    Watched,
    /// A rest.
    Rested,
}

/// Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Turns {
    pace: Pace,
    /// Since when it watches, or rests.
    since: u64,
    until: u64,
    resting: bool,
    /// Time watched before `since`.
    watched: u64,
    watched_at_reading: u64,
    switches: u64,
    /// Rests that samples of waits must still stand for, nanoseconds: those seen since then stand for the rest before as well.
    rested: f64,
    /// Up to when waits were told and have their weight.
    weighed_until: u64,
    /// So many of the samples at hand have it.
    weighed: usize,
}

impl Turns {
    pub(crate) fn begin(now: u64, pace: Pace) -> Self {
        Self {
            pace,
            since: now,
            until: now + pace.stint().as_nanos() as u64,
            resting: false,
            watched: 0,
            watched_at_reading: 0,
            switches: 0,
            rested: 0.0,
            weighed_until: now,
            weighed: 0,
        }
    }

    fn stint_ns(&self) -> u64 {
        self.pace.stint().as_nanos() as u64
    }

    /// How long until something is due.
    pub(crate) fn until_next(&self, now: u64) -> Duration {
        match !self.resting && self.pace.is_restless() {
            true => Duration::MAX,
            false => Duration::from_nanos(self.until.saturating_sub(now)),
        }
    }

    pub(crate) fn due(&self, now: u64) -> Option<Turn> {
        if now < self.until || (!self.resting && self.pace.is_restless()) {
            return None;
        }
        Some(if self.resting { Turn::Rested } else { Turn::Watched })
    }

    /// After a stint in which the count of switches came to `switches`: how long to rest. Where it need not, the next stint begins.
    pub(crate) fn rest_after(&mut self, switches: u64, now: u64) -> Option<Duration> {
        let stint = Duration::from_nanos(now.saturating_sub(self.since));
        let rest = self.pace.rest_after(switches.saturating_sub(self.switches), stint);
        self.switches = switches;
        if rest.is_none() {
            self.watched += now.saturating_sub(self.since);
            self.since = now;
            self.until = now + self.stint_ns();
        }
        rest
    }

    pub(crate) fn rest(&mut self, now: u64, rest: Duration) {
        self.watched += now.saturating_sub(self.since);
        self.since = now;
        self.until = now + rest.as_nanos() as u64;
        self.resting = true;
    }

    /// Goes on as it is, because the kernel refused the change: it is due again after another stint.
    pub(crate) fn put_off(&mut self, now: u64) {
        self.until = now + self.stint_ns();
    }

    /// How much is left of the turn under way.
    pub(crate) fn left(&self, now: u64) -> Duration {
        Duration::from_nanos(self.until.saturating_sub(now))
    }

    /// The turn under way is over in so long.
    pub(crate) fn end_in(&mut self, left: Duration, now: u64) {
        self.until = now.saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn resting_since(&self) -> Option<u64> {
        self.resting.then_some(self.since)
    }

    pub(crate) fn go_on(&mut self, now: u64) {
        self.rested += now.saturating_sub(self.since) as f64;
        self.weighed_until = now;
        self.since = now;
        self.until = now + self.stint_ns();
        self.resting = false;
    }

    /// How long it has watched in all.
    pub(crate) fn watched(&self, now: u64) -> u64 {
        match self.resting {
            true => self.watched,
            false => self.watched + now.saturating_sub(self.since),
        }
    }

    /// How long it has watched since the last time that this was asked.
    pub(crate) fn watched_since_reading(&mut self, now: u64) -> u64 {
        let watched = self.watched(now);
        watched.saturating_sub(std::mem::replace(&mut self.watched_at_reading, watched))
    }

    /// Gives the samples of waits that came since the last time their weight: they tell of the time up to `until`, and stand for the
    /// rests before it too. A stint in which they are read keeps a part of that for its other half. Samples of the timer come in
    /// rests as well.
    pub(crate) fn weigh(&mut self, samples: &mut [RawSample], until: u64) {
        let told = until.saturating_sub(self.weighed_until) as f64;
        let end = if self.resting { until } else { until.max(self.until) };
        let stint = end.saturating_sub(self.weighed_until) as f64;
        if stint > 0.0 {
            let weight = 1.0 + self.rested / stint;
            let fresh = samples.get_mut(self.weighed..).unwrap_or_default();
            for sample in fresh.iter_mut().filter(|sample| sample.state != ThreadState::Cpu) {
                sample.weight_ns *= weight;
            }
            self.rested -= self.rested * told / stint;
            self.weighed_until = until.max(self.weighed_until);
        }
        self.weighed = samples.len();
    }

    /// Hands all samples over, weighed.
    pub(crate) fn take(&mut self, samples: &mut Vec<RawSample>, until: u64) -> Vec<RawSample> {
        self.weigh(samples, until);
        self.weighed = 0;
        std::mem::take(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pace::STINT;
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const STINT_NS: u64 = STINT.as_nanos() as u64;

    #[test]
    fn a_change_that_the_kernel_refuses_is_not_asked_for_again_at_once() {
        let mut turns = Turns::begin(0, Pace::new(0.0, 2.0));
        assert_eq!(turns.due(STINT_NS), Some(Turn::Watched));
        turns.put_off(STINT_NS);
        assert_eq!(
            (turns.due(STINT_NS + MS), turns.due(2 * STINT_NS)),
            (None, Some(Turn::Watched))
        );

        let rest = turns
            .rest_after(1_000_000, 2 * STINT_NS)
            .expect("it may not cost anything");
        turns.rest(2 * STINT_NS, rest);
        let over = 2 * STINT_NS + rest.as_nanos() as u64;
        assert_eq!(turns.due(over), Some(Turn::Rested));
        turns.put_off(over);
        assert_eq!(
            (turns.due(over + MS), turns.due(over + STINT_NS)),
            (None, Some(Turn::Rested))
        );
        assert_eq!(
            turns.watched(over + STINT_NS),
            2 * STINT_NS,
            "nothing was seen meanwhile"
        );
    }

    fn wait(nanoseconds: u64) -> RawSample {
        RawSample {
            time_ns: 0,
            thread: 1,
            cpu: 0,
            state: ThreadState::Lock,
            weight_ns: nanoseconds as f64,
            stack: scaleprof_profile::RawStack::default(),
            lock: None,
            waker: None,
        }
    }

    proptest! {
        /// A thread that waits all the time is told to have waited all the time, however long the stints really were and
        /// whenever somebody read.
        #[test]
        fn what_was_seen_stands_for_the_rests_before_it(
            turns in proptest::collection::vec((100u64..300, 20u64..600, proptest::option::of(1u64..99)), 1..20)
        ) {
            let mut all = Turns::begin(0, Pace::new(0.0, 2.0));
            let (mut now, mut told, mut sum) = (0, 0, 0.0);
            for (stint, rest, read) in turns {
                let begins = now;
                if let Some(read) = read {
                    let mut samples = vec![wait((begins + read) * MS - told)];
                    told = (begins + read) * MS;
                    sum += all.take(&mut samples, told)[0].weight_ns;
                }
                now += stint;
                all.rest(now * MS, Duration::from_millis(rest));
                let mut samples = vec![wait(now * MS - told)];
                sum += all.take(&mut samples, now * MS)[0].weight_ns;
                now += rest;
                all.go_on(now * MS);
                told = now * MS;
            }
            // The last rest is for the stint after it to stand for.
            let expected = (now * MS) as f64 - all.rested;
            prop_assert!((sum / expected - 1.0).abs() < 1e-9, "{sum} of {expected}");
        }
    }
}
