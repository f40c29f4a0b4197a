//! From a profile to the rows of one measurement.

use crate::{FrameRow, LockRow, MeasurementRows, SampleRow, StackRow, UtcMicros};
use scaleprof_profile::{Frames, Profile, Sample, StackTree};
use scaleprof_vocabulary::Role;

/// When a measurement began, by the clock of the samples and by that of the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasurementClock {
    /// Start of second 0, nanoseconds of CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// The same moment in UTC.
    pub utc: UtcMicros,
}

impl MeasurementClock {
    /// The second of the measurement at a time of CLOCK_MONOTONIC; negative before the measurement.
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

impl MeasurementRows {
    /// Adds the samples, locks, stacks and frames of a profile as rows of `measurement`. `role`
    /// tells whom a thread serves.
    pub fn add_profile(
        &mut self,
        measurement: i32,
        mut profile: Profile,
        clock: &MeasurementClock,
        role: impl Fn(u32) -> Role,
    ) {
        self.samples
            .extend(sample_rows(measurement, &profile.samples, clock, role));
        self.take_profile_without_samples(measurement, &mut profile);
    }

    /// Adds the locks, stacks and frames of a profile alone: its samples go to
    /// [`write_measurement_with`](crate::BundleWriter::write_measurement_with). Its frames are
    /// taken, as they are many words.
    pub fn take_profile_without_samples(&mut self, measurement: i32, profile: &mut Profile) {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.locks.extend(profile.locks.iter().map(|lock| LockRow {
            measurement,
            lock: lock.id.0,
            name: lock.variable.as_ref().map(|variable| variable.name.clone()),
            module: lock.variable.as_ref().map(|variable| variable.module.clone()),
            operation: lock.operation.clone(),
            waits: count(lock.waits),
            wait_ns: lock.wait_ns,
            holder_stack: lock.holder_stack.map(|stack| stack.0),
            holder_samples: count(lock.holder_samples),
        }));
        self.stacks.extend(stack_rows(&profile.stacks));
        self.frames.extend(frame_rows(std::mem::take(&mut profile.frames)));
    }
}

/// Samples of a profile as rows of `measurement`. `role` tells whom a thread serves.
pub fn sample_rows(
    measurement: i32,
    samples: &[Sample],
    clock: &MeasurementClock,
    role: impl Fn(u32) -> Role,
) -> impl Iterator<Item = SampleRow> {
    samples.iter().map(move |sample| {
        let wait = sample.wait.as_deref().cloned().unwrap_or_default();
        SampleRow {
            measurement,
            second: clock.second(sample.time_ns),
            time_us: clock.utc(sample.time_ns),
            thread: i64::from(sample.thread),
            role: role(sample.thread),
            cpu: i32::try_from(sample.cpu).unwrap_or(i32::MAX),
            state: sample.state,
            stack: sample.stack.0,
            unwind_status: sample.ending,
            weight_ns: sample.weight_ns,
            lock: wait.lock.map(|lock| lock.0),
            waker_kind: wait.waker_kind,
            waker_stack: wait.waker_stack.map(|stack| stack.0),
            holder_stack: wait.holder_stack.map(|stack| stack.0),
            holder_state: wait.holder_state,
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
        symbol_source: frame.symbol_source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_measurement_are_in_negative_seconds() {
        let clock = MeasurementClock {
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
