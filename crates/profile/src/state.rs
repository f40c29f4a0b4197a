//! What a thread can be doing.

/// The state of a thread at one moment. The states exclude one another and leave no time out: over a window the time in
/// all of them is the time that the thread lived in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ThreadState {
    /// On a CPU.
    Cpu = 0,
    /// On a CPU, inside a loop that waits for another thread and does nothing else. Only the stacks tell it from
    /// [`Cpu`](ThreadState::Cpu): the kernel counts the two as one.
    Spin = 1,
    /// It could run, and no CPU is free for it.
    RunQueue = 2,
    /// Blocked in a futex: a mutex, a condition variable, a rwlock of user space.
    Lock = 3,
    /// Blocked until a disk has done something.
    Io = 4,
    /// Blocked on a socket: the server waits for its client.
    Net = 5,
    /// Asleep for a time that it chose itself.
    Sleep = 6,
    /// Blocked by anything else: a lock of the kernel, a page fault, a signal, a pipe.
    Other = 7,
}

impl ThreadState {
    /// All states, in the order of their numbers.
    pub const ALL: [ThreadState; 8] = [
        ThreadState::Cpu,
        ThreadState::Spin,
        ThreadState::RunQueue,
        ThreadState::Lock,
        ThreadState::Io,
        ThreadState::Net,
        ThreadState::Sleep,
        ThreadState::Other,
    ];

    /// Its name in tables, summaries and reports.
    pub fn name(self) -> &'static str {
        match self {
            ThreadState::Cpu => "cpu",
            ThreadState::Spin => "spin",
            ThreadState::RunQueue => "runq",
            ThreadState::Lock => "lock",
            ThreadState::Io => "io",
            ThreadState::Net => "net",
            ThreadState::Sleep => "sleep",
            ThreadState::Other => "other",
        }
    }

    /// The state of that name.
    pub fn of_name(name: &str) -> Option<ThreadState> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state of that number.
    pub fn of_number(number: u8) -> Option<ThreadState> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back_to_their_state() {
        for (number, state) in ThreadState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
            assert_eq!(ThreadState::of_number(number as u8), Some(state));
            assert_eq!(ThreadState::of_name(state.name()), Some(state));
        }
        assert_eq!(ThreadState::of_number(8), None);
        assert_eq!(ThreadState::of_name("CPU"), None);
    }
}
