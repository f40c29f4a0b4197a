//! How long a thread was in each state.

use scaleprof_vocabulary::{PerState, ThreadState};
use std::ops::{AddAssign, Index, IndexMut};

/// Nanoseconds of one thread, or of several together, over some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// Nanoseconds in each state.
    pub by_state: PerState<u64>,
    /// Nanoseconds in which the thread was alive, measured apart from the states.
    pub lifetime: u64,
}

impl Index<ThreadState> for ThreadTimes {
    type Output = u64;
    fn index(&self, state: ThreadState) -> &u64 {
        &self.by_state[state]
    }
}

impl IndexMut<ThreadState> for ThreadTimes {
    fn index_mut(&mut self, state: ThreadState) -> &mut u64 {
        &mut self.by_state[state]
    }
}

impl AddAssign for ThreadTimes {
    fn add_assign(&mut self, other: ThreadTimes) {
        for state in ThreadState::ALL {
            self[state] += other[state];
        }
        self.lifetime += other.lifetime;
    }
}

impl ThreadTimes {
    /// Nanoseconds in all states together; the lifetime where none is missed.
    pub fn in_all_states(&self) -> u64 {
        self.by_state.iter().map(|(_, nanoseconds)| nanoseconds).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_state_by_state() {
        let mut all = ThreadTimes::default();
        for state in ThreadState::ALL {
            let mut one = ThreadTimes {
                lifetime: 10,
                ..ThreadTimes::default()
            };
            one[state] = 1 + state as u64;
            all += one;
        }
        assert_eq!((all.in_all_states(), all.lifetime, all[ThreadState::Lock]), (45, 90, 4));
    }
}
