//! Threads that were followed when they were found, which may have been followed already.
//!
//! A thread inherits the events of the one that made it. One of whose beginning nobody told is followed by events of its own; if it has
//! inherited events besides, all that it does would be told twice, and all that the threads do that it makes. Nothing says beforehand
//! whether it has, but records name the event that wrote them: where two events tell of one thread on one CPU by turns, the later one
//! is one too many.

use std::collections::{HashMap, HashSet};

use super::record::{Record, moment_of, parse};

/// The events of threads that were found; `E` is an open one, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct FollowedLate<E> {
    /// By number.
    open: HashMap<u64, E>,
    /// The numbers of those that were too many. What they wrote before may still be in the ring.
    ended: HashSet<u64>,
    /// By thread and CPU.
    tellers: HashMap<u32, HashMap<u32, Tellers>>,
}

/// The numbers of the events that told of a thread on a CPU.
#[derive(Debug, Clone, Copy)]
struct Tellers {
    last: u64,
    /// The last one that was another.
    before: u64,
}

impl<E> Default for FollowedLate<E> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            ended: HashSet::new(),
            tellers: HashMap::new(),
        }
    }
}

impl<E> FollowedLate<E> {
    /// `number` stands in all records that the event writes, and in those of what threads inherit from it. The kernel gives rising
    /// ones.
    pub(super) fn add(&mut self, number: u64, event: E) {
        self.open.insert(number, event);
    }

    /// Those that are open.
    pub(super) fn events(&self) -> impl Iterator<Item = &E> {
        self.open.values()
    }

    /// Nobody tells which threads end from now on, so their numbers may be given to others.
    pub(super) fn forget_threads(&mut self) {
        self.tellers.clear();
    }

    /// Whether a record tells what another event tells as well, and does not count. An event that is found to be one too many is
    /// ended, with what threads inherited from it; a record or two of it have counted by then.
    pub(super) fn tells_again(&mut self, bytes: &[u8]) -> bool {
        if self.open.is_empty() && self.ended.is_empty() {
            return false;
        }
        let (Some(record), Some(moment)) = (parse(bytes), moment_of(bytes)) else {
            return false;
        };
        // These tell of a ring and of an event, not of a thread.
        if matches!(record, Record::Lost(_) | Record::Throttled) {
            return false;
        }
        let number = moment.event;
        if self.ended.contains(&number) {
            return true;
        }
        if matches!(record, Record::Exit { thread, .. } if thread == moment.thread) {
            self.tellers.remove(&moment.thread);
            return false;
        }
        let by_cpu = self.tellers.entry(moment.thread).or_default();
        let tellers = by_cpu.entry(moment.cpu).or_insert(Tellers {
            last: number,
            before: number,
        });
        let other = tellers.last;
        if number == other {
            return false;
        }
        // Once may be another thread of that number, which has another maker.
        let by_turns = tellers.before == number;
        *tellers = Tellers {
            last: number,
            before: other,
        };
        if by_turns {
            self.end_later_of(number, other);
        }
        self.ended.contains(&number)
    }

    fn end_later_of(&mut self, one: u64, other: u64) {
        let later = [one.max(other), one.min(other)];
        if let Some(number) = later.into_iter().find(|number| self.open.contains_key(number)) {
            self.open.remove(&number);
            self.ended.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: u32 = 9;
    const SWITCH: u32 = 14;
    const LOST: u32 = 2;
    const EXIT: u32 = 4;

    /// A record of an event that tells of a thread on a CPU.
    fn record(kind: u32, thread: u32, cpu: u32, event: u64) -> Vec<u8> {
        let before: &[u64] = match kind {
            EXIT => &[7 | 7 << 32, u64::from(thread) | u64::from(thread) << 32, 1000],
            LOST => &[1, 5],
            _ => &[],
        };
        let after: &[u64] = match kind {
            // A period, no call chain, no registers, no stack.
            SAMPLE => &[1, 0, 0, 0],
            _ => &[],
        };
        let moment = [7 | u64::from(thread) << 32, 1000, event, u64::from(cpu)];
        let words = [before, &moment, after].concat();
        let header = [u64::from(kind) | (8 + words.len() as u64 * 8) << 48];
        header
            .iter()
            .chain(&words)
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    /// Event 10 was there first.
    fn followed() -> FollowedLate<&'static str> {
        let mut late = FollowedLate::default();
        late.add(50, "on CPU 0");
        late.add(51, "on CPU 1");
        late
    }

    #[test]
    fn of_a_thread_that_inherited_events_these_count() {
        let mut late = followed();
        assert!(
            !late.tells_again(&record(SAMPLE, 8, 0, 50)),
            "nothing else tells of it yet"
        );
        assert!(!late.tells_again(&record(SAMPLE, 8, 0, 10)), "this one did not before");
        assert!(late.tells_again(&record(SAMPLE, 8, 0, 50)));
        assert_eq!(late.events().collect::<Vec<_>>(), [&"on CPU 1"]);
        assert!(!late.tells_again(&record(SAMPLE, 8, 0, 10)));
        assert!(
            late.tells_again(&record(SWITCH, 9, 0, 50)),
            "still in the ring, of a thread that it made"
        );
        assert!(
            !late.tells_again(&record(SWITCH, 8, 1, 51)),
            "it inherited half of them only"
        );
        assert!(!late.tells_again(&record(LOST, 8, 0, 50)));
    }

    #[test]
    fn a_thread_that_it_made_may_be_the_first_that_is_told_of_twice() {
        let mut late = followed();
        let told = [10, 51, 10, 51].map(|event| late.tells_again(&record(SWITCH, 9, 1, event)));
        assert_eq!(told, [false, false, false, true]);
        assert_eq!(late.events().collect::<Vec<_>>(), [&"on CPU 0"]);
    }

    #[test]
    fn of_two_threads_that_were_found_the_maker_is_followed_on() {
        let mut late = followed();
        late.add(60, "of a thread that was made");
        let told = [50, 60, 50, 60].map(|event| late.tells_again(&record(SWITCH, 9, 0, event)));
        assert_eq!(told, [false, false, false, true]);
        assert_eq!(late.events().count(), 2);
    }

    #[test]
    fn a_thread_that_nobody_follows_otherwise_is_followed_on() {
        let mut late = followed();
        for (kind, thread, event) in [(SAMPLE, 8, 50), (SWITCH, 9, 10), (LOST, 8, 10), (SWITCH, 8, 50)] {
            assert!(!late.tells_again(&record(kind, thread, 0, event)));
        }
        // Another thread of the same number.
        assert!(!late.tells_again(&record(EXIT, 8, 0, 50)));
        for event in [10, 10] {
            assert!(!late.tells_again(&record(SWITCH, 8, 0, event)));
        }
        assert_eq!(late.events().count(), 2);
    }
}
