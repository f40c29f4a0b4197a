//! One sample for tests, of which most of the rest does not matter.

use scaleprof_bundle::{SampleRow, UtcMicros};
use scaleprof_vocabulary::{Role, ThreadState, UnwindStatus};

/// A sample of a connection's thread in the first measurement.
pub(crate) fn sample(second: i32, state: ThreadState, stack: i64, milliseconds: f64) -> SampleRow {
    SampleRow {
        measurement: 0,
        second,
        time_us: UtcMicros(0),
        thread: 1,
        role: Role::Connection,
        cpu: 0,
        state,
        stack,
        unwind_status: UnwindStatus::Complete,
        weight_ns: milliseconds * 1e6,
        lock: None,
        waker_kind: None,
        waker_stack: None,
        holder_stack: None,
        holder_state: None,
    }
}
