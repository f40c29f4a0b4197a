//! For which lock a thread waits, where calls of futex(2) were recorded (`syscalls:sys_enter_futex`) beside switches: the address that it went
//! into the call with.
//!
//! Where ends of calls were not recorded (`syscalls:sys_exit_futex`), a thread seems to stay in its last call: a wait counts as one for a lock
//! only if its stack says so, too.

use super::tracepoint_format::{TracepointFormats, number};
use std::collections::HashMap;
use std::num::NonZero;
use std::ops::Range;

/// How the tracepoint is called that tells of a call.
pub(super) const ENTER: &str = "syscalls:sys_enter_futex";
/// And that of its end.
pub(super) const EXIT: &str = "syscalls:sys_exit_futex";
/// FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME (include/uapi/linux/futex.h).
const FLAGS: u32 = 128 | 256;
/// Operations in which a thread waits: FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI and FUTEX_LOCK_PI2.
const WAITS: [u32; 5] = [0, 6, 9, 11, 13];
/// Waits that are told apart; of more than this the lock is not told.
const MOST_WAITS: usize = 1 << 24;

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FutexCall {
    /// Of the futex, in the process.
    pub(super) address: u64,
    /// Without its flags.
    pub(super) operation: u32,
}

/// The number of a wait, counted from 1: none of it takes no room in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FutexWait(NonZero<u32>);

/// Calls that threads are in, and the waits in them.
#[derive(Debug)]
pub(super) struct Futexes {
    address: Range<usize>,
    operation: Range<usize>,
    inside: HashMap<u32, FutexCall>,
    waits: Vec<FutexCall>,
}

impl Futexes {
    /// By the formats that a recording keeps, or as 64-bit kernels have had them since the tracepoints exist.
    pub(super) fn of(formats: &TracepointFormats) -> Futexes {
        let field = |name| formats.field("sys_enter_futex", name);
        Futexes {
            address: field("uaddr").unwrap_or(16..24),
            operation: field("op").unwrap_or(24..32),
            inside: HashMap::new(),
            waits: Vec::new(),
        }
    }

    /// A thread calls.
    pub(super) fn enter(&mut self, thread: u32, raw: &[u8]) {
        let call = number(raw, &self.address).zip(number(raw, &self.operation));
        let call = call.map(|(address, operation)| FutexCall {
            address,
            operation: operation as u32 & !FLAGS,
        });
        match call.filter(|call| WAITS.contains(&call.operation)) {
            Some(call) => self.inside.insert(thread, call),
            None => self.inside.remove(&thread),
        };
    }

    /// Its call is over.
    pub(super) fn exit(&mut self, thread: u32) {
        self.inside.remove(&thread);
    }

    /// A thread leaves its CPU to wait: for a lock, if it is in such a call.
    pub(super) fn wait(&mut self, thread: u32) -> Option<FutexWait> {
        let call = self.inside.get(&thread).filter(|_| self.waits.len() < MOST_WAITS)?;
        self.waits.push(*call);
        NonZero::new(self.waits.len() as u32).map(FutexWait)
    }

    /// What a wait is for.
    pub(super) fn call(&self, wait: FutexWait) -> Option<FutexCall> {
        self.waits.get(wait.0.get() as usize - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(address: u64, operation: u64) -> Vec<u8> {
        [[0; 16].as_slice(), &address.to_le_bytes(), &operation.to_le_bytes()].concat()
    }

    #[test]
    fn a_wait_is_for_the_address_of_the_call_that_goes_on() {
        let mut futexes = Futexes::of(&TracepointFormats::default());
        assert_eq!(futexes.wait(7), None);
        // FUTEX_WAIT_BITSET, private, by the clock on the wall.
        futexes.enter(7, &says(0x5000, 9 | 128 | 256));
        let wait = futexes.wait(7).expect("it waits");
        let call = FutexCall {
            address: 0x5000,
            operation: 9,
        };
        assert_eq!(futexes.call(wait), Some(call));
        assert_eq!(futexes.wait(8), None, "another thread");
        futexes.exit(7);
        assert_eq!(futexes.wait(7), None, "the call is over");
        // Who wakes others waits for nothing, nor does a record that is cut say anything.
        futexes.enter(7, &says(0x5000, 128));
        futexes.enter(7, &says(0x5000, 129));
        assert_eq!(futexes.wait(7), None);
        futexes.enter(7, &says(0x5000, 0)[..20]);
        assert_eq!(futexes.wait(7), None);
    }
}
