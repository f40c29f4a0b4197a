//! Threads that begin at once, on another CPU than the one that makes them.
//!
//! Linux may leave a new thread on its maker's CPU until its next tick, while another CPU idles (seen on 2 virtual CPUs of Linux 6.18): of work that
//! takes 50 ms in all that is a tenth. So the maker lets it begin, and the new thread goes elsewhere. Both may run wherever they were allowed to
//! from then on.

use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::thread;

/// The CPU of a thread that makes another one.
#[derive(Debug, Clone, Copy)]
pub struct MakersCpu(usize);

impl MakersCpu {
    /// The one that runs this, before it makes another.
    #[must_use]
    pub fn here() -> MakersCpu {
        MakersCpu(sched_getcpu())
    }

    /// For the new thread to begin with: leaves its maker's CPU, where it may use another one.
    pub fn leave(self) {
        if sched_getcpu() != self.0 {
            return;
        }
        let Ok(allowed) = sched_getaffinity(None) else { return };
        let mut others = allowed;
        others.unset(self.0);
        if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
            // What was allowed before still is.
            let _ = sched_setaffinity(None, &allowed);
        }
    }

    /// For the maker, once the other one is made: lets it begin.
    pub fn let_begin() {
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_thread_leaves_its_makers_cpu_and_may_come_back() {
        let allowed = sched_getaffinity(None).expect("known");
        let mut gone = 0;
        for _ in 0..20 {
            let (at, may_use) = thread::scope(|scope| {
                let new = scope.spawn(|| {
                    // Wherever it began: it was made by whoever is on its own CPU now.
                    let makers = MakersCpu::here();
                    makers.leave();
                    ((makers.0, sched_getcpu()), sched_getaffinity(None).expect("known"))
                });
                MakersCpu::let_begin();
                new.join().expect("ended")
            });
            assert_eq!(may_use, allowed);
            gone += u32::from(at.0 != at.1);
        }
        // It may be sent back at once, where others want that CPU.
        assert!(allowed.count() < 2 || gone > 5, "{gone}");
        // One that is alone has nowhere to go.
        thread::spawn(|| {
            let mut alone = sched_getaffinity(None).expect("known");
            alone.clear();
            alone.set(sched_getcpu());
            sched_setaffinity(None, &alone).expect("allowed");
            let makers = MakersCpu::here();
            makers.leave();
            assert_eq!(sched_getcpu(), makers.0);
            assert_eq!(sched_getaffinity(None).expect("known"), alone);
        })
        .join()
        .expect("ended");
    }
}
