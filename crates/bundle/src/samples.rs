//! The samples of a bundle, column by column: there may be tens of millions of them.

use crate::{Coded, MeasurementClock, SampleRow, UtcMicros};
use scaleprof_profile::{Sample, Wait};
use scaleprof_vocabulary::{Role, ThreadState, UnwindStatus, WakerKind};
use std::hash::Hash;

/// All rows of the table `samples`, in their order.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    blocks: Vec<SampleBlock>,
}

/// Samples of one measurement that stand one behind the other: a column for each field of
/// [`SampleRow`], all of one length.
#[derive(Debug, Clone, Default)]
pub struct SampleBlock {
    pub(crate) measurement: i32,
    pub(crate) second: Coded<i32>,
    pub(crate) time_us: Vec<UtcMicros>,
    pub(crate) thread: Coded<i64>,
    pub(crate) role: Coded<Role>,
    pub(crate) cpu: Coded<i32>,
    pub(crate) state: Coded<ThreadState>,
    pub(crate) stack: Coded<i64>,
    pub(crate) unwind_status: Coded<UnwindStatus>,
    pub(crate) weight_ns: Vec<f64>,
    pub(crate) lock: Coded<Option<i64>>,
    pub(crate) waker_kind: Coded<Option<WakerKind>>,
    pub(crate) waker_stack: Coded<Option<i64>>,
    pub(crate) holder_stack: Coded<Option<i64>>,
    pub(crate) holder_state: Coded<Option<ThreadState>>,
}

impl Samples {
    pub(crate) fn of_blocks(blocks: Vec<SampleBlock>) -> Samples {
        let blocks = blocks.into_iter().filter(|block| !block.is_empty());
        Samples {
            blocks: blocks.collect(),
        }
    }

    pub(crate) fn into_blocks(self) -> Vec<SampleBlock> {
        self.blocks
    }

    /// The rows as stretches of one measurement each; a measurement may have several.
    pub fn blocks(&self) -> &[SampleBlock] {
        &self.blocks
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(SampleBlock::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The rows, put together from their columns.
    pub fn rows(&self) -> impl Iterator<Item = SampleRow> {
        self.blocks.iter().flat_map(SampleBlock::rows)
    }

    /// Samples of a profile as those of `measurement`, as [`sample_rows`](crate::sample_rows) makes
    /// rows of them. `role` tells whom a thread serves.
    pub fn of_profile(
        measurement: i32,
        samples: &[Sample],
        clock: &MeasurementClock,
        role: impl Fn(u32) -> Role,
    ) -> Samples {
        Samples::of_blocks(vec![SampleBlock {
            measurement,
            second: fields(samples, |sample| clock.second(sample.time_ns)),
            time_us: samples.iter().map(|sample| clock.utc(sample.time_ns)).collect(),
            thread: fields(samples, |sample| i64::from(sample.thread)),
            role: fields(samples, |sample| role(sample.thread)),
            cpu: fields(samples, |sample| i32::try_from(sample.cpu).unwrap_or(i32::MAX)),
            state: fields(samples, |sample| sample.state),
            stack: fields(samples, |sample| sample.stack.0),
            unwind_status: fields(samples, |sample| sample.ending),
            weight_ns: samples.iter().map(|sample| sample.weight_ns).collect(),
            lock: of_waits(samples, |wait| Some(wait.lock?.0)),
            waker_kind: of_waits(samples, |wait| wait.waker_kind),
            waker_stack: of_waits(samples, |wait| Some(wait.waker_stack?.0)),
            holder_stack: of_waits(samples, |wait| Some(wait.holder_stack?.0)),
            holder_state: of_waits(samples, |wait| wait.holder_state),
        }])
    }

    /// Leaves out the measurements that are not wanted.
    pub fn retain_measurements(&mut self, mut is_wanted: impl FnMut(i32) -> bool) {
        self.blocks.retain(|block| is_wanted(block.measurement));
    }
}

impl SampleBlock {
    /// The measurement.
    pub fn measurement(&self) -> i32 {
        self.measurement
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.weight_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.weight_ns.is_empty()
    }

    /// [`SampleRow::second`].
    pub fn seconds(&self) -> &Coded<i32> {
        &self.second
    }

    /// [`SampleRow::time_us`].
    pub fn times_us(&self) -> &[UtcMicros] {
        &self.time_us
    }

    /// [`SampleRow::thread`].
    pub fn threads(&self) -> &Coded<i64> {
        &self.thread
    }

    /// [`SampleRow::role`].
    pub fn roles(&self) -> &Coded<Role> {
        &self.role
    }

    /// [`SampleRow::cpu`].
    pub fn cpus(&self) -> &Coded<i32> {
        &self.cpu
    }

    /// [`SampleRow::state`].
    pub fn states(&self) -> &Coded<ThreadState> {
        &self.state
    }

    /// [`SampleRow::stack`].
    pub fn stacks(&self) -> &Coded<i64> {
        &self.stack
    }

    /// [`SampleRow::unwind_status`].
    pub fn unwind_statuses(&self) -> &Coded<UnwindStatus> {
        &self.unwind_status
    }

    /// [`SampleRow::weight_ns`].
    pub fn weights_ns(&self) -> &[f64] {
        &self.weight_ns
    }

    /// [`SampleRow::lock`].
    pub fn locks(&self) -> &Coded<Option<i64>> {
        &self.lock
    }

    /// [`SampleRow::waker_kind`].
    pub fn waker_kinds(&self) -> &Coded<Option<WakerKind>> {
        &self.waker_kind
    }

    /// [`SampleRow::waker_stack`].
    pub fn waker_stacks(&self) -> &Coded<Option<i64>> {
        &self.waker_stack
    }

    /// [`SampleRow::holder_stack`].
    pub fn holder_stacks(&self) -> &Coded<Option<i64>> {
        &self.holder_stack
    }

    /// [`SampleRow::holder_state`].
    pub fn holder_states(&self) -> &Coded<Option<ThreadState>> {
        &self.holder_state
    }

    /// The rows, put together from their columns.
    pub fn rows(&self) -> impl Iterator<Item = SampleRow> {
        (0..self.len()).map_while(|row| self.row(row))
    }

    /// One row by its place in the block; none past the last.
    pub fn row(&self, row: usize) -> Option<SampleRow> {
        Some(SampleRow {
            measurement: self.measurement,
            second: *self.second.get(row)?,
            time_us: *self.time_us.get(row)?,
            thread: *self.thread.get(row)?,
            role: *self.role.get(row)?,
            cpu: *self.cpu.get(row)?,
            state: *self.state.get(row)?,
            stack: *self.stack.get(row)?,
            unwind_status: *self.unwind_status.get(row)?,
            weight_ns: *self.weight_ns.get(row)?,
            lock: *self.lock.get(row)?,
            waker_kind: *self.waker_kind.get(row)?,
            waker_stack: *self.waker_stack.get(row)?,
            holder_stack: *self.holder_stack.get(row)?,
            holder_state: *self.holder_state.get(row)?,
        })
    }

    /// Rows of one measurement.
    fn of(measurement: i32, rows: &[SampleRow]) -> SampleBlock {
        SampleBlock {
            measurement,
            second: fields(rows, |row| row.second),
            time_us: rows.iter().map(|row| row.time_us).collect(),
            thread: fields(rows, |row| row.thread),
            role: fields(rows, |row| row.role),
            cpu: fields(rows, |row| row.cpu),
            state: fields(rows, |row| row.state),
            stack: fields(rows, |row| row.stack),
            unwind_status: fields(rows, |row| row.unwind_status),
            weight_ns: rows.iter().map(|row| row.weight_ns).collect(),
            lock: fields(rows, |row| row.lock),
            waker_kind: fields(rows, |row| row.waker_kind),
            waker_stack: fields(rows, |row| row.waker_stack),
            holder_stack: fields(rows, |row| row.holder_stack),
            holder_state: fields(rows, |row| row.holder_state),
        }
    }
}

fn fields<R, T: Hash + Eq + Copy>(rows: &[R], field: impl Fn(&R) -> T) -> Coded<T> {
    Coded::by(rows.iter().map(field), |value| value)
}

fn of_waits<T: Hash + Eq + Copy>(samples: &[Sample], field: impl Fn(&Wait) -> Option<T>) -> Coded<Option<T>> {
    fields(samples, |sample| field(sample.wait.as_deref()?))
}

impl Extend<SampleRow> for Samples {
    fn extend<I: IntoIterator<Item = SampleRow>>(&mut self, rows: I) {
        let rows: Vec<SampleRow> = rows.into_iter().collect();
        let of_one_measurement = rows.chunk_by(|a, b| a.measurement == b.measurement);
        self.blocks
            .extend(of_one_measurement.filter_map(|rows| Some(SampleBlock::of(rows.first()?.measurement, rows))));
    }
}

impl FromIterator<SampleRow> for Samples {
    fn from_iter<I: IntoIterator<Item = SampleRow>>(rows: I) -> Samples {
        let mut samples = Samples::default();
        samples.extend(rows);
        samples
    }
}

/// The same rows in the same order, however their columns are kept.
impl PartialEq for Samples {
    fn eq(&self, other: &Samples) -> bool {
        self.len() == other.len() && self.rows().eq(other.rows())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_rows;
    use scaleprof_profile::{LockId, StackId};

    #[test]
    fn those_of_a_profile_are_what_its_rows_tell() {
        let wait = Wait {
            lock: Some(LockId(7)),
            waker_kind: Some(WakerKind::SameProcess),
            waker_stack: Some(StackId(-3)),
            holder_stack: Some(StackId(4)),
            holder_state: Some(ThreadState::Io),
        };
        let sample = |number: u64, wait: Option<Wait>| Sample {
            time_ns: number * 400_000_000,
            thread: 10 + number as u32 % 3,
            cpu: number as u32 % 2,
            state: ThreadState::ALL[number as usize % ThreadState::ALL.len()],
            weight_ns: number as f64 * 1e6,
            stack: StackId(number as i64 % 4 - 2),
            ending: [UnwindStatus::Complete, UnwindStatus::TooDeep][number as usize % 2],
            wait: wait.map(Box::new),
        };
        let without_lock = Wait {
            lock: None,
            holder_state: None,
            ..wait.clone()
        };
        let waits = [None, Some(wait), Some(without_lock), None, None];
        let samples: Vec<Sample> = (0..).zip(waits).map(|(number, wait)| sample(number, wait)).collect();
        let clock = MeasurementClock {
            monotonic_ns: 100_000_000,
            utc: UtcMicros(1_700_000_000_000_000),
        };
        let role = |thread| match thread {
            10 => Role::Background,
            _ => Role::Connection,
        };
        let columns = Samples::of_profile(3, &samples, &clock, role);
        let rows: Vec<SampleRow> = sample_rows(3, &samples, &clock, role).collect();
        assert_eq!(columns.rows().collect::<Vec<SampleRow>>(), rows);
        assert_eq!(Samples::of_profile(3, &[], &clock, role).len(), 0);
    }
}
