//! What a load thread did with its time: on a CPU, or ready to run and waiting for one.
//!
//! Connections that wait for the load generator do so because its threads are at the limit of their
//! CPUs, because others hold these CPUs, or because the replies are still on their way. These two
//! times tell which (docs/adr/0024).

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Time of load threads. The rest of their time they slept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// On a CPU, nanoseconds.
    pub cpu_ns: u64,
    /// Ready to run and waiting for a CPU, nanoseconds.
    pub run_queue_ns: u64,
}

impl ThreadTimes {
    /// The first two fields of `/proc/PID/task/TID/schedstat`
    /// (Documentation/scheduler/sched-stats.rst).
    fn parse(text: &str) -> Option<ThreadTimes> {
        let mut fields = text.split_ascii_whitespace().map(str::parse);
        Some(ThreadTimes {
            cpu_ns: fields.next()?.ok()?,
            run_queue_ns: fields.next()?.ok()?,
        })
    }

    /// Both times of two threads together.
    pub(super) fn plus(self, other: ThreadTimes) -> ThreadTimes {
        ThreadTimes {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            run_queue_ns: self.run_queue_ns + other.run_queue_ns,
        }
    }

    fn since(self, before: ThreadTimes) -> ThreadTimes {
        ThreadTimes {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            run_queue_ns: self.run_queue_ns.saturating_sub(before.run_queue_ns),
        }
    }
}

/// Reads the times of the thread that made it. A kernel without `CONFIG_SCHED_INFO` has none.
pub(super) struct ThreadClock {
    file: Option<File>,
    before: Option<ThreadTimes>,
}

impl ThreadClock {
    /// Of the calling thread, from now on.
    pub(super) fn of_this_thread() -> ThreadClock {
        let mut clock = ThreadClock {
            file: File::open("/proc/thread-self/schedstat").ok(),
            before: None,
        };
        clock.before = clock.read();
        clock
    }

    /// What the thread did since the last call. None where the kernel does not tell.
    pub(super) fn lap(&mut self) -> Option<ThreadTimes> {
        let now = self.read();
        let before = std::mem::replace(&mut self.before, now);
        Some(now?.since(before?))
    }

    fn read(&self) -> Option<ThreadTimes> {
        let mut text = [0; 64];
        let count = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        ThreadTimes::parse(std::str::from_utf8(&text[..count]).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    #[test]
    fn the_kernels_line_is_read_and_nothing_else() {
        let times = ThreadTimes::parse("3307003 1200 17\n");
        assert_eq!(
            times,
            Some(ThreadTimes {
                cpu_ns: 3_307_003,
                run_queue_ns: 1200
            })
        );
        assert_eq!(ThreadTimes::parse("3307003"), None);
        assert_eq!(ThreadTimes::parse("a b c"), None);
    }

    /// Two threads that never rest on one CPU: what one has not, it waits for.
    #[test]
    fn a_thread_that_shares_its_cpu_is_on_it_or_waits_for_it() {
        let cpu = sched_getcpu();
        let both = Barrier::new(2);
        let busy = || {
            let mut here = CpuSet::new();
            here.set(cpu);
            sched_setaffinity(None, &here).expect("the CPU it ran on");
            both.wait();
            let mut clock = ThreadClock::of_this_thread();
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(400) {}
            (clock.lap(), began.elapsed())
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(busy);
            let one = scope.spawn(busy);
            (one.join().expect("no panic"), other.join().expect("no panic"))
        });
        for (times, elapsed) in [one, other] {
            let Some(times) = times else {
                testing::skip!("times of threads: the kernel has no /proc/PID/schedstat");
                return;
            };
            let accounted = Duration::from_nanos(times.cpu_ns + times.run_queue_ns).as_secs_f64();
            assert!(
                (0.9..1.1).contains(&(accounted / elapsed.as_secs_f64())),
                "{times:?} of {elapsed:?}"
            );
            assert!(times.run_queue_ns > 100_000_000, "{times:?}");
        }
    }
}
