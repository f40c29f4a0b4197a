//! The records that the BPF programs send.

use scaleprof_profile::{LockWait, RawStack};
use scaleprof_vocabulary::{ThreadState, UnwindStatus};

use super::layout::{KERNEL_LOCK, KERNEL_LOCK_UNSEEN, MAX_KERNEL_FRAMES, MAX_USER_FRAMES, RecordHead, record_kind};
use super::native::interrupted_frames;

/// One record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    /// The thread that it is about.
    pub thread: u32,
    pub cpu: u32,
    pub what: What,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// It ran, here.
    OnCpu {
        stack: RawStack,
        /// The lock of the kernel that it fought for.
        lock: Option<LockWait>,
        /// Whether nobody could see that: the programs rested.
        lock_is_unseen: bool,
    },
    /// It left its CPU here, and the coin chose this wait.
    Sleeps {
        sleep: u64,
        state: ThreadState,
        probability: f64,
        stack: RawStack,
        /// What it waits for in state `lock`, without the stack of the owner.
        lock: Option<LockWait>,
    },
    /// It has a CPU again.
    Runs {
        sleep: u64,
        /// When it could have had one.
        runnable_at: u64,
        waker_kind: u8,
        /// Of a wait that began unseen: nobody may have walked its stack before it was over.
        found: Option<Found>,
    },
    /// Where the owner of its futex was. Told once more, later, of one that ran at first.
    Owner {
        sleep: u64,
        owner: u32,
        state: ThreadState,
        stack: RawStack,
    },
    /// Where the thread was that woke it.
    Waker { sleep: u64, stack: RawStack },
}

/// A wait that was found under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    /// Since when it is known.
    pub at: u64,
    pub state: ThreadState,
    pub probability: f64,
}

/// What a coin's 32 bits say.
pub(crate) fn probability(coin: u32) -> f64 {
    f64::from(coin.max(1)) / f64::from(u32::MAX)
}

/// What is known of a futex by its address alone; nothing for address 0.
pub(crate) fn lock_wait(address: u64, operation: u32, owner: u32) -> Option<LockWait> {
    let kernel = operation & KERNEL_LOCK != 0;
    (address != 0).then(|| LockWait {
        address,
        kernel,
        operation: operation & !KERNEL_LOCK,
        owner: (owner != 0).then_some(owner),
        holder_stack: None,
        holder_state: None,
        goes_on: false,
    })
}

/// Reads one record; none for bytes that are no record.
pub(crate) fn parse(bytes: &[u8]) -> Option<Record> {
    let (head, rest) = head(bytes)?;
    let (user, kernel) = (usize::from(head.user_frames), usize::from(head.kernel_frames));
    if user > MAX_USER_FRAMES || kernel > MAX_KERNEL_FRAMES || rest.len() < (user + kernel) * 8 {
        return None;
    }
    let mut words = rest
        .chunks_exact(8)
        .filter_map(|chunk| Some(u64::from_ne_bytes(chunk.try_into().ok()?)));
    let stack = RawStack {
        user: words.by_ref().take(user).collect(),
        kernel: words.take(kernel).collect(),
        interrupted: interrupted_frames(head.interrupted),
        ending: UnwindStatus::from_number(head.ending)?,
    };
    let sleep = head.sleep;
    let lock = lock_wait(head.lock, head.lock_operation, head.other);
    let what = match head.kind {
        record_kind::CPU => What::OnCpu {
            stack,
            lock,
            lock_is_unseen: head.lock_operation == KERNEL_LOCK_UNSEEN,
        },
        record_kind::SLEEP => {
            let state = ThreadState::from_number(head.state)?;
            What::Sleeps {
                sleep,
                state,
                probability: probability(head.probability),
                stack,
                lock,
            }
        }
        record_kind::WAKE => What::Runs {
            sleep,
            runnable_at: head.runnable_at,
            waker_kind: head.waker_kind,
            found: match ThreadState::from_number(head.state) {
                Some(state) if stack.ending == UnwindStatus::NotTaken => Some(Found {
                    at: head.lock,
                    state,
                    probability: probability(head.probability),
                }),
                _ => None,
            },
        },
        record_kind::OWNER => What::Owner {
            sleep,
            owner: head.other,
            state: ThreadState::from_number(head.state)?,
            stack,
        },
        record_kind::WAKER => What::Waker { sleep, stack },
        _ => return None,
    };
    Some(Record {
        time: head.time,
        thread: head.thread,
        cpu: head.cpu,
        what,
    })
}

fn head(bytes: &[u8]) -> Option<(RecordHead, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<RecordHead>())?;
    // SAFETY: it has the size, any bytes are valid, and the read asks for no alignment.
    Some((unsafe { head.as_ptr().cast::<RecordHead>().read_unaligned() }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn frames_come_back_as_they_were_sent(
            user in proptest::collection::vec(any::<u64>(), 0..MAX_USER_FRAMES),
            kernel in proptest::collection::vec(any::<u64>(), 0..MAX_KERNEL_FRAMES),
        ) {
            let head = RecordHead {
                kind: record_kind::CPU,
                thread: 7,
                user_frames: user.len() as u16,
                kernel_frames: kernel.len() as u16,
                ..RecordHead::default()
            };
            // SAFETY: plain data, read as bytes.
            let head: [u8; size_of::<RecordHead>()] = unsafe { std::mem::transmute(head) };
            let mut bytes = head.to_vec();
            bytes.extend(user.iter().chain(&kernel).flat_map(|word| word.to_ne_bytes()));
            let record = parse(&bytes).expect("a record");
            let What::OnCpu { stack, .. } = record.what else { panic!("another kind") };
            prop_assert_eq!(stack.user, user);
            prop_assert_eq!(stack.kernel, kernel);
        }
    }
}
