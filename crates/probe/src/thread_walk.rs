//! Context switches thread by thread from `/proc/PID/task/*/status`: the way that needs no
//! privilege.
//!
//! It costs about 20 µs a thread (40 to 47 ms at 2000 threads), so it is done at the ends of a
//! measurement only, and a thread that ends in between takes its counts away: take the closing
//! sample before connections are closed. How much was lost shows in CPU time, which the process
//! keeps for ended threads and the threads give one by one (`schedstat`).

use std::collections::BTreeMap;
use std::io::Read as _;

use crate::taskstats::Switches;

/// What one thread did since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// Its context switches.
    pub switches: Switches,
    /// Its CPU time in nanoseconds, as the scheduler counts it.
    pub cpu_nanoseconds: u64,
}

/// What every living thread did, by thread id.
pub type ThreadUses = BTreeMap<u32, ThreadUse>;

/// Reads the two counts out of `/proc/PID/task/TID/status` (man 5 proc_pid_status).
pub fn parse_status(text: &str) -> Option<Switches> {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
    };
    Some(Switches {
        voluntary: value("voluntary_ctxt_switches:")?,
        involuntary: value("nonvoluntary_ctxt_switches:")?,
    })
}

/// Reads the CPU time out of `/proc/PID/task/TID/schedstat` (Documentation/scheduler/sched-stats.rst).
pub fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Reads all threads of a process. Threads that end while the walk goes on are left out.
pub(crate) fn walk(pid: u32) -> Result<ThreadUses, String> {
    let folder = format!("/proc/{pid}/task");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{folder} cannot be read: {error}"))?;
    let mut threads = ThreadUses::new();
    let mut bytes = Vec::with_capacity(4096);
    for entry in entries.flatten() {
        let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let place = entry.path();
        let mut read = |name: &str| {
            bytes.clear();
            std::fs::File::open(place.join(name))
                .and_then(|mut file| file.read_to_end(&mut bytes))
                .ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let switches = read("status").and_then(|text| parse_status(&text));
        let cpu_nanoseconds = read("schedstat").and_then(|text| parse_schedstat(&text));
        if let Some((switches, cpu_nanoseconds)) = switches.zip(cpu_nanoseconds) {
            threads.insert(
                thread,
                ThreadUse {
                    switches,
                    cpu_nanoseconds,
                },
            );
        }
    }
    if threads.is_empty() {
        return Err(format!(
            "no thread of process {pid} can be read: it has ended, or the kernel has no CONFIG_SCHED_INFO"
        ));
    }
    Ok(threads)
}

/// What the threads that live at the second walk did between the two; those that began in between with all of theirs. A
/// thread whose counts fell is a new one with an old number. What threads did that ended in between is not in it.
pub fn thread_delta(before: &ThreadUses, after: &ThreadUses) -> ThreadUse {
    let mut sum = ThreadUse::default();
    for (thread, now) in after {
        let then = before
            .get(thread)
            .filter(|then| is_later(then, now))
            .copied()
            .unwrap_or_default();
        sum.switches.add(Switches {
            voluntary: now.switches.voluntary - then.switches.voluntary,
            involuntary: now.switches.involuntary - then.switches.involuntary,
        });
        sum.cpu_nanoseconds = sum
            .cpu_nanoseconds
            .wrapping_add(now.cpu_nanoseconds - then.cpu_nanoseconds);
    }
    sum
}

fn is_later(then: &ThreadUse, now: &ThreadUse) -> bool {
    now.switches.voluntary >= then.switches.voluntary
        && now.switches.involuntary >= then.switches.involuntary
        && now.cpu_nanoseconds >= then.cpu_nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn thread(voluntary: u64, involuntary: u64, cpu_nanoseconds: u64) -> ThreadUse {
        ThreadUse {
            switches: Switches { voluntary, involuntary },
            cpu_nanoseconds,
        }
    }

    #[test]
    fn both_counts_are_found_at_the_end_of_the_file() {
        let text =
            "Name:\tmysqld\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(
            parse_status(text),
            Some(Switches {
                voluntary: 12,
                involuntary: 3
            })
        );
        assert_eq!(parse_status("Name:\tmysqld\n"), None);
        assert_eq!(parse_schedstat("31897 191 12\n"), Some(31897));
    }

    #[test]
    fn new_threads_count_wholly_even_with_an_old_number() {
        let before = ThreadUses::from([(1, thread(10, 1, 5)), (2, thread(100, 5, 50)), (3, thread(7, 7, 7))]);
        let after = ThreadUses::from([(1, thread(30, 2, 9)), (3, thread(2, 0, 1)), (4, thread(5, 5, 5))]);
        assert_eq!(thread_delta(&before, &after), thread(20 + 2 + 5, 1 + 5, 4 + 1 + 5));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            let _ = (parse_status(&text), parse_schedstat(&text));
        }

        #[test]
        fn any_counts_are_compared_without_panic(counts: [u64; 12]) {
            let of = |w: &[u64]| ThreadUses::from([(1, thread(w[0], w[1], w[2])), (2, thread(w[3], w[4], w[5]))]);
            let _ = thread_delta(&of(&counts[..6]), &of(&counts[6..]));
        }
    }
}
