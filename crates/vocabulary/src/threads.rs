//! What a thread does, and for whom.

use crate::word::words;

words! {
    /// The state of a thread at one moment. The states exclude one another and leave no time out: over a window the time in
    /// all of them is the time that the thread lived in it.
    ///
    /// The numbers are those of the kernel's programs.
    ThreadState {
        /// On a CPU.
        Cpu: "cpu" ("on a CPU"),
        /// On a CPU, inside a loop that waits for another thread and does nothing else. Only the stacks tell it from
        /// [`Cpu`](ThreadState::Cpu): the kernel counts the two as one.
        Spin: "spin" ("spinning"),
        /// It could run, and no CPU is free for it.
        RunQueue: "runq" ("waiting for a CPU"),
        /// Blocked by a lock: a futex (a mutex, a condition variable, a rwlock of user space) or a lock of the kernel.
        Lock: "lock" ("waiting for a lock"),
        /// Blocked until a disk has done something.
        Io: "io" ("waiting for a disk"),
        /// Blocked on a socket: the server waits for its client.
        Net: "net" ("waiting for the client"),
        /// Asleep for a time that it chose itself.
        Sleep: "sleep" ("asleep"),
        /// Blocked by anything else: a page fault, a signal, a pipe.
        Other: "other" ("blocked otherwise"),
        /// A thread of a pool that waits for work. No collector tells it from the others yet; when one does, it is by the role of the
        /// thread and the place where it waits.
        Idle: "idle" ("waiting for work"),
    }
}

impl ThreadState {
    /// How many of them the kernel's programs tell apart.
    pub const IN_KERNEL: usize = 8;

    /// Those that the kernel's programs tell apart.
    pub fn in_kernel() -> impl ExactSizeIterator<Item = ThreadState> {
        Self::ALL.into_iter().take(Self::IN_KERNEL)
    }

    /// The state that the kernel's programs mean by that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<ThreadState> {
        Self::ALL[..Self::IN_KERNEL].get(usize::from(number)).copied()
    }

    /// Whether the thread waits for something to do: for its client, or in a pool. That is no cost of the server's.
    #[must_use]
    pub const fn waits_for_work(self) -> bool {
        match self {
            ThreadState::Net | ThreadState::Idle => true,
            ThreadState::Cpu
            | ThreadState::Spin
            | ThreadState::RunQueue
            | ThreadState::Lock
            | ThreadState::Io
            | ThreadState::Sleep
            | ThreadState::Other => false,
        }
    }

    /// Whether the thread is on a CPU, whatever it does there.
    #[must_use]
    pub const fn is_on_cpu(self) -> bool {
        matches!(self, ThreadState::Cpu | ThreadState::Spin)
    }
}

words! {
    /// What a thread of the server is there for.
    Role {
        /// It serves a connection of the load: one of the N of the thread ledger.
        Connection: "connection",
        /// It serves another connection: ours, or an idle one.
        Control: "control",
        /// It serves no connection: purge, page cleaner, log writer.
        Background: "background",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_state() {
        for (number, state) in (0..).zip(ThreadState::ALL) {
            assert_eq!(state as u8, number);
            let is_in_kernel = usize::from(number) < ThreadState::IN_KERNEL;
            assert_eq!(ThreadState::from_number(number), is_in_kernel.then_some(state));
        }
    }
}
