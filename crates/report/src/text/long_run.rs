//! Whether throughput held over a long measurement: a line a rung.

use crate::figures;
use scaleprof_bundle::{LongRun, RungSummary};

/// What TPC-C lets pass, and in how many seconds.
const ALLOWED: f64 = 0.02;
const OF_SECONDS: u32 = 7200;
/// Levels that are told one by one.
const MOST_LEVELS: usize = 8;

/// A line for each rung that had a long measurement.
pub(super) fn lines(rungs: &[RungSummary]) -> Vec<String> {
    let long = rungs.iter().filter_map(|rung| Some((rung, rung.long_run.as_ref()?)));
    long.map(|(rung, run)| line(rung.connections, rung.repeat_count, run))
        .collect()
}

fn line(connections: u32, measurements: u32, run: &LongRun) -> String {
    let change = &run.change_per_hour;
    let signed = |share: f64| format!("{:+.1} %", share * 100.0);
    let interval = match (change.low, change.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", signed(low), signed(high)),
        _ => String::new(),
    };
    let verdict = match (run.jitter_window_seconds >= OF_SECONDS, run.jitter < ALLOWED) {
        (false, _) => "TPC-C's rule is of two hours",
        (true, true) => "TPC-C lets 2 % pass",
        (true, false) => "more than the 2 % that TPC-C lets pass",
    };
    let of_measurements = match measurements {
        0 | 1 => String::new(),
        many => format!(", the least even of {many} measurements"),
    };
    let mut text = format!(
        "{} at {connections} connections{of_measurements}: throughput changes by {}{interval} an hour; halves of {} differ by up to {} ({verdict})",
        time(run.seconds),
        signed(change.value),
        match run.jitter_window_seconds < run.seconds {
            true => format!("any {}", time(run.jitter_window_seconds)),
            false => "it".to_owned(),
        },
        figures::percent(run.jitter),
    );
    if run.levels.len() > 1 {
        let told = run.levels.iter().take(MOST_LEVELS);
        let told: Vec<String> = told
            .map(|level| {
                format!(
                    "{}/s from {}",
                    figures::number(level.throughput),
                    time(level.from_second)
                )
            })
            .collect();
        text.push_str(&format!("; its levels: {}", told.join(", ")));
        if run.levels.len() > MOST_LEVELS {
            text.push_str(&format!(", and {} more", run.levels.len() - MOST_LEVELS));
        }
    }
    text
}

/// Such as `2 h 5 min`, `7 min`, `40 s`, `0 s`.
fn time(seconds: u32) -> String {
    let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) if seconds.is_multiple_of(60) => format!("{minutes} min"),
        (0, _) => format!("{minutes} min {} s", seconds % 60),
        (_, 0) => format!("{hours} h"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_bundle::{Estimate, Level};

    #[test]
    fn a_run_of_hours_is_told_with_its_levels() {
        let level = |from_second, throughput| Level {
            from_second,
            seconds: 1000,
            throughput,
        };
        let run = LongRun {
            seconds: 14_700,
            jitter: 0.034,
            jitter_window_seconds: 7200,
            change_per_hour: Estimate {
                value: -0.012,
                low: Some(-0.015),
                high: Some(-0.009),
            },
            levels: vec![level(0, 1000.0), level(5400, 960.0)],
        };
        assert_eq!(
            line(64, 1, &run),
            "4 h 5 min at 64 connections: throughput changes by -1.2 % (-1.5 % to -0.9 %) an hour; halves of any 2 h differ by up to \
             3.4 % (more than the 2 % that TPC-C lets pass); its levels: 1 000/s from 0 s, 960/s from 1 h 30 min"
        );
    }

    #[test]
    fn a_run_of_minutes_is_its_own_window() {
        let run = LongRun {
            seconds: 310,
            jitter: 0.004,
            jitter_window_seconds: 310,
            change_per_hour: Estimate {
                value: 0.1,
                low: None,
                high: None,
            },
            levels: Vec::new(),
        };
        let told = line(1, 3, &run);
        assert!(
            told.starts_with("5 min 10 s at 1 connections, the least even of 3 measurements: "),
            "{told}"
        );
        assert!(
            told.contains("halves of it differ by up to 0.4 % (TPC-C's rule is of two hours)"),
            "{told}"
        );
    }
}
