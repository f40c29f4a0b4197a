//! What the threads of the load generator did with their time, and so why connections wait for
//! them.

use crate::guards::CLIENT_CPU;
use crate::numbers::percent;
use crate::totals::Total;
use scaleprof_bundle::LoadThreads;
use std::collections::BTreeMap;

/// From this part of their time on, the wait of load threads for a CPU is what connections wait
/// for.
const STARVED: f64 = 0.1;

/// The shares of their time of `count` load threads. None where they were not counted.
pub(crate) fn load_threads(sums: &BTreeMap<String, Total>, count: Option<u32>) -> Option<LoadThreads> {
    let count = count.filter(|count| *count > 0)?;
    let share = |counter: &str| Some(sums.get(counter)?.per_second()? / f64::from(count));
    Some(LoadThreads {
        count,
        cpu_share: share("client.threads_cpu_seconds")?,
        run_queue_share: share("client.threads_run_queue_seconds")?,
    })
}

/// Why connections wait for a load whose threads did this, in words that follow "the load
/// generator".
pub(crate) fn reason(threads: Option<&LoadThreads>) -> String {
    let Some(threads) = threads else { return String::new() };
    let whose = match threads.count {
        1 => "whose one thread",
        _ => "whose threads",
    };
    let (cpu, queue) = (threads.cpu_share, threads.run_queue_share);
    // Both are reasons where both are; the larger one comes first.
    if cpu > CLIENT_CPU && cpu > queue {
        format!(", {whose} used a CPU {} of the time", percent(cpu))
    } else if queue > STARVED {
        format!(", {whose} waited for a CPU {} of the time", percent(queue))
    } else {
        let asleep = (1.0 - cpu - queue).max(0.0);
        format!(
            ", {whose} neither ran nor waited for a CPU {} of the time: a slow network, or a stopped load generator",
            percent(asleep)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::Amount;

    fn counted(cpu: f64, queue: f64) -> BTreeMap<String, Total> {
        let over = Amount {
            seconds: 10.0,
            transactions: 5.0,
        };
        let total = |value| Total {
            value,
            over,
            running_share: 1.0,
        };
        [
            ("client.threads_cpu_seconds", cpu),
            ("client.threads_run_queue_seconds", queue),
        ]
        .map(|(name, value)| (name.to_owned(), total(value)))
        .into()
    }

    #[test]
    fn shares_are_of_the_time_of_all_load_threads() {
        let two = load_threads(&counted(4.0, 1.0), Some(2)).expect("counted");
        assert_eq!((two.cpu_share, two.run_queue_share), (0.2, 0.05));
        assert_eq!(load_threads(&counted(4.0, 1.0), None), None);
        assert_eq!(load_threads(&BTreeMap::new(), Some(2)), None);
    }

    /// A load at the limit of its CPU, one whose CPU others hold (654 ms of 5 s on a CPU, 4 422 ms
    /// waiting for it), and one that pauses.
    #[test]
    fn each_kind_of_slow_load_is_named() {
        let of = |cpu, queue| reason(load_threads(&counted(cpu, queue), Some(1)).as_ref());
        assert!(of(9.7, 0.2).contains("used a CPU 97"), "{}", of(9.7, 0.2));
        assert!(of(1.3, 8.8).contains("waited for a CPU 88"), "{}", of(1.3, 8.8));
        assert!(of(0.9, 0.3).contains("stopped load generator"), "{}", of(0.9, 0.3));
        assert_eq!(reason(None), "");
    }
}
