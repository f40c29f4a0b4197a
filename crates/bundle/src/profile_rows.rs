//! From a profile to the rows of one visit.

use crate::{FrameRow, LockRow, SampleRow, StackRow, StateRow, UtcMicros, VisitRows};
use scaleprof_profile::{Frames, Profile, Role, Sample, StackTree, ThreadState, ThreadTimes};
use std::borrow::Cow;

/// When a visit began, by the clock of the samples and by that of the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisitClock {
    /// Start of second 0, nanoseconds of CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// The same moment in UTC.
    pub utc: UtcMicros,
}

impl VisitClock {
    /// The second of the visit at a time of CLOCK_MONOTONIC; negative before the visit.
    pub fn second(&self, monotonic_ns: u64) -> i32 {
        let second = self.since_start_ns(monotonic_ns).div_euclid(1_000_000_000);
        i32::try_from(second).unwrap_or(if second < 0 { i32::MIN } else { i32::MAX })
    }

    /// The time in UTC.
    pub fn utc(&self, monotonic_ns: u64) -> UtcMicros {
        let micros = self.since_start_ns(monotonic_ns).div_euclid(1000);
        UtcMicros(self.utc.0.saturating_add(micros))
    }

    fn since_start_ns(&self, monotonic_ns: u64) -> i64 {
        let difference = i128::from(monotonic_ns) - i128::from(self.monotonic_ns);
        i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
    }
}

impl VisitRows {
    /// Adds the time in each state as rows of `visit`, of a second or of all of it: of one thread by its number and name, or of
    /// all threads of the role together. A state without time has no row; the lifetime always has one.
    pub fn add_times(
        &mut self,
        visit: i32,
        second: Option<i32>,
        role: Role,
        thread: Option<(u32, &str)>,
        times: &ThreadTimes,
    ) {
        let states = ThreadState::ALL.map(|state| (state.name(), times[state]));
        let named = states.into_iter().filter(|(_, nanoseconds)| *nanoseconds > 0);
        let rows = named.chain([("lifetime", times.lifetime)]);
        self.states.extend(rows.map(|(state, nanoseconds)| StateRow {
            visit,
            second,
            role: role.name().to_owned(),
            thread: thread.map(|(number, _)| i64::from(number)),
            name: thread.map(|(_, name)| name.to_owned()),
            state: state.to_owned(),
            nanoseconds: i64::try_from(nanoseconds).unwrap_or(i64::MAX),
        }));
    }

    /// Adds the samples, locks, stacks and frames of a profile as rows of `visit`. `role` tells whom a thread serves.
    pub fn add_profile(&mut self, visit: i32, mut profile: Profile, clock: &VisitClock, role: impl Fn(u32) -> Role) {
        self.samples.extend(sample_rows(visit, &profile.samples, clock, role));
        self.take_profile_without_samples(visit, &mut profile);
    }

    /// Adds the locks, stacks and frames of a profile alone: its samples go to
    /// [`write_visit_with`](crate::BundleWriter::write_visit_with). Its frames are taken, as they are many words.
    pub fn take_profile_without_samples(&mut self, visit: i32, profile: &mut Profile) {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.locks.extend(profile.locks.iter().map(|lock| LockRow {
            visit,
            lock: lock.id.0,
            name: lock.variable.as_ref().map(|variable| variable.name.clone()),
            module: lock.variable.as_ref().map(|variable| variable.module.clone()),
            operation: lock.operation.clone(),
            waits: count(lock.waits),
            wait_ns: lock.wait_ns,
            owner_stack: lock.owner_stack.map(|stack| stack.0),
            owner_samples: count(lock.owner_samples),
        }));
        self.stacks.extend(stack_rows(&profile.stacks));
        self.frames.extend(frame_rows(std::mem::take(&mut profile.frames)));
    }
}

/// Samples of a profile as rows of `visit`. `role` tells whom a thread serves.
pub fn sample_rows(
    visit: i32,
    samples: &[Sample],
    clock: &VisitClock,
    role: impl Fn(u32) -> Role,
) -> impl Iterator<Item = SampleRow> {
    samples.iter().map(move |sample| {
        let wait = sample.wait.as_deref().cloned().unwrap_or_default();
        SampleRow {
            visit,
            second: clock.second(sample.time_ns),
            time_us: clock.utc(sample.time_ns),
            thread: i64::from(sample.thread),
            role: Cow::Borrowed(role(sample.thread).name()),
            cpu: i32::try_from(sample.cpu).unwrap_or(i32::MAX),
            state: Cow::Borrowed(sample.state.name()),
            stack: sample.stack.0,
            ending: Cow::Borrowed(sample.ending.name()),
            weight_ns: sample.weight_ns,
            lock: wait.lock.map(|lock| lock.0),
            waker_kind: wait.waker_kind.map(Cow::Borrowed),
            waker_stack: wait.waker_stack.map(|stack| stack.0),
            owner_stack: wait.owner_stack.map(|stack| stack.0),
            owner_state: wait.owner_state.map(|state| Cow::Borrowed(state.name())),
        }
    })
}

fn stack_rows(stacks: &StackTree) -> impl Iterator<Item = StackRow> {
    stacks.iter().map(|(stack, node)| StackRow {
        stack: stack.0,
        parent: node.parent.map(|parent| parent.0),
        frame: node.frame.0,
        depth: stacks
            .depth(stack)
            .and_then(|depth| i32::try_from(depth).ok())
            .unwrap_or(i32::MAX),
    })
}

fn frame_rows(frames: Frames) -> impl Iterator<Item = FrameRow> {
    frames.into_iter().map(|(id, frame)| FrameRow {
        frame: id.0,
        module: frame.module,
        build_id: frame.build_id,
        address: frame.address,
        function: frame.function,
        inlined: frame.inlined,
        file: frame.file,
        line: frame.line,
        name_source: frame.name_source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_without_time_have_no_row() {
        let mut times = ThreadTimes {
            lifetime: 9,
            ..ThreadTimes::default()
        };
        times[ThreadState::RunQueue] = 8;
        let mut rows = VisitRows::default();
        rows.add_times(3, None, Role::Background, Some((7, "purge")), &times);
        rows.add_times(3, Some(1), Role::Connection, None, &ThreadTimes::default());
        let found: Vec<_> = rows
            .states
            .iter()
            .map(|row| (row.state.as_str(), row.nanoseconds))
            .collect();
        assert_eq!(found, [("runq", 8), ("lifetime", 9), ("lifetime", 0)]);
        assert_eq!(
            (rows.states[0].thread, rows.states[0].name.as_deref()),
            (Some(7), Some("purge"))
        );
        assert_eq!((rows.states[2].thread, rows.states[2].second), (None, Some(1)));
    }

    #[test]
    fn times_before_the_visit_are_in_negative_seconds() {
        let clock = VisitClock {
            monotonic_ns: 5_000_000_000,
            utc: UtcMicros(1_000),
        };
        let at = |ns| (clock.second(ns), clock.utc(ns).0);
        assert_eq!(at(5_000_000_000), (0, 1_000));
        assert_eq!(at(6_999_999_999), (1, 2_000_999));
        assert_eq!(at(4_999_999_999), (-1, 999));
        assert_eq!(at(u64::MAX).0, i32::MAX);
    }
}
