//! How much CPU time a sample stands for.
//!
//! `cpu-clock` and `task-clock` count nanoseconds, so a sample's period is its time. Of other events (cycles) a sample stands for a
//! number of them, and only how these relate to time is to be found: with a frequency the kernel changes the period so that a
//! thread is sampled that often while it runs, so all samples together stand for their number divided by the frequency. With a
//! fixed period it is taken from threads that run all the time: the time from one sample of a thread to its next on the same CPU
//! is CPU time there, and less is impossible. The share of each sample stays that of its period, as in `perf report`.

use super::attribute::Attribute;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;
/// Of the gaps between samples of a thread, the one at this place tells how long a period takes on a busy CPU: shorter ones come
/// from a faster clock for a moment, longer ones from threads that slept.
const BUSY_QUANTILE: f64 = 0.25;
/// Fewer gaps say nothing.
const FEWEST_GAPS: usize = 20;

/// A sample, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) time_ns: u64,
    pub(super) thread: u32,
    pub(super) cpu: u32,
    pub(super) period: f64,
}

/// A period under this part of the usual one is of an event that is starting.
const STARTING: f64 = 0.1;

/// How events relate to time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// Nanoseconds for each of them.
    Nanoseconds(f64),
    /// Nobody knows: shares hold, times do not.
    Unknown,
}

/// Whether only its samples tell the scale of an event.
pub(super) fn needs_samples(event: &Attribute) -> bool {
    event.tells_cpu_time() && !event.counts_nanoseconds() && !event.is_off_cpu()
}

/// The scale of all samples of one event, by time; they may be left out where it does not need them.
pub(super) fn scale(event: &Attribute, samples: &[Counted]) -> Scale {
    if event.counts_nanoseconds() || event.is_off_cpu() {
        return Scale::Nanoseconds(1.0);
    }
    if !event.tells_cpu_time() {
        return Scale::Unknown;
    }
    let total: f64 = samples.iter().map(|sample| sample.period).sum();
    if event.in_hertz && event.period_or_frequency > 0 && total > 0.0 {
        let seconds = at_frequency(samples) / event.period_or_frequency as f64;
        return Scale::Nanoseconds(seconds * SECOND / total);
    }
    busy(samples)
}

/// How many of the samples came at the frequency that was asked for.
///
/// The kernel begins every hardware event with a period of 1 and finds the right one in some five to ten samples
/// (perf_event_open(), perf_adjust_period() of kernel/events/core.c). With an event for each of hundreds of threads these would be
/// most of the samples, and stand for no time: what has a far smaller period than the others counts as that part of a sample.
fn at_frequency(samples: &[Counted]) -> f64 {
    let mut periods: Vec<f64> = samples.iter().map(|sample| sample.period).collect();
    periods.sort_by(f64::total_cmp);
    let half = periods.iter().sum::<f64>() / 2.0;
    let mut below = 0.0;
    let usual = periods.iter().copied().find(|period| {
        below += period;
        below >= half
    });
    let usual = usual.unwrap_or(1.0);
    let counts = |period: f64| match period < usual * STARTING {
        true => period / usual,
        false => 1.0,
    };
    periods.into_iter().map(counts).sum()
}

/// From the gaps between samples of threads that never leave their CPUs.
fn busy(samples: &[Counted]) -> Scale {
    let mut last: std::collections::HashMap<u32, Counted> = std::collections::HashMap::new();
    let mut gaps = Vec::new();
    for sample in samples {
        if let Some(before) = last.insert(sample.thread, *sample)
            && before.cpu == sample.cpu
            && sample.period > 0.0
        {
            gaps.push(sample.time_ns.saturating_sub(before.time_ns) as f64 / sample.period);
        }
    }
    gaps.retain(|gap| *gap > 0.0);
    gaps.sort_by(f64::total_cmp);
    let place = (gaps.len() as f64 * BUSY_QUANTILE) as usize;
    match gaps.get(place) {
        Some(gap) if gaps.len() >= FEWEST_GAPS => Scale::Nanoseconds(*gap),
        _ => Scale::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64, gap_ns: u64, period: f64) -> Vec<Counted> {
        let one = |at| Counted {
            time_ns: at * gap_ns,
            thread: 1,
            cpu: 0,
            period,
        };
        (0..count).map(one).collect()
    }

    const CYCLES: u32 = 0;
    const SOFTWARE: u32 = 1;

    #[test]
    fn a_clock_counts_nanoseconds() {
        let clock = Attribute {
            kind: SOFTWARE,
            ..Attribute::default()
        };
        assert_eq!(scale(&clock, &samples(3, 5, 7.0)), Scale::Nanoseconds(1.0));
    }

    #[test]
    fn with_a_frequency_the_number_of_samples_is_the_time() {
        let cycles = Attribute {
            kind: CYCLES,
            in_hertz: true,
            period_or_frequency: 100,
            ..Attribute::default()
        };
        // Half of the time asleep, which must not count: 100 samples at 100/s are one second of 3e9 cycles.
        let found = scale(&cycles, &samples(100, 20_000_000, 3e7));
        assert_eq!(found, Scale::Nanoseconds(1.0 / 3.0));
    }

    #[test]
    fn samples_of_events_that_are_starting_are_no_time() {
        let cycles = Attribute {
            kind: CYCLES,
            in_hertz: true,
            period_or_frequency: 100,
            ..Attribute::default()
        };
        let mut all = samples(100, 20_000_000, 3e7);
        for period in [1.0, 40.0, 1600.0, 64_000.0] {
            all.extend(samples(100, 1000, period));
        }
        let Scale::Nanoseconds(each) = scale(&cycles, &all) else {
            panic!("a frequency tells the time");
        };
        let seconds = each * all.iter().map(|sample| sample.period).sum::<f64>() / 1e9;
        assert!((seconds - 1.0).abs() < 0.01, "{seconds}");
    }

    #[test]
    fn with_a_fixed_period_busy_threads_tell_the_time() {
        let cycles = Attribute {
            kind: CYCLES,
            period_or_frequency: 3_000_000,
            ..Attribute::default()
        };
        let mut mixed = samples(50, 1_000_000, 3e6);
        let asleep = samples(40, 9_000_000, 3e6);
        mixed.extend(asleep.iter().map(|sample| Counted { thread: 2, ..*sample }));
        assert_eq!(scale(&cycles, &mixed), Scale::Nanoseconds(1.0 / 3.0));
        assert_eq!(scale(&cycles, &mixed[..5]), Scale::Unknown);
    }

    #[test]
    fn what_does_not_come_with_work_tells_no_time() {
        let faults = Attribute {
            kind: SOFTWARE,
            config: 2,
            ..Attribute::default()
        };
        assert_eq!(scale(&faults, &samples(100, 1, 1.0)), Scale::Unknown);
    }
}
