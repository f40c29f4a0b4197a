//! Times of a recording that cannot be, made to ones that can, with words that say so.
//!
//! A thread cannot run longer than a recording lasts, samples at one moment do not tell how long it
//! was, and a clock may jump: figures per second are of a length that the samples allow, and work
//! and memory go by their number.

use scaleprof_analysis::numbers::{counted, grouped};
use scaleprof_profile::import::{Recording, RecordingFormat, Weights};
use std::collections::HashMap;

const SECOND: u64 = 1_000_000_000;

/// Gives the recording a length that can be. Its warnings say what could not be.
pub(super) fn settle(recording: &mut Recording) {
    let warnings = settled(recording);
    recording.warnings.extend(warnings);
}

fn settled(recording: &mut Recording) -> Vec<String> {
    // Other formats have no times of samples.
    let tells_times = [RecordingFormat::PerfData, RecordingFormat::PerfScript].contains(&recording.format);
    let Some(span) = recording.span.clone().filter(|_| tells_times) else {
        return Vec::new();
    };
    if recording.weights != Weights::Nanoseconds {
        return without_jump(recording).into_iter().collect();
    }
    let length = span.end - span.start;
    let busiest = busiest_thread(recording);
    // The first sample of a thread stands for time before it: by that much a recording is longer
    // than from its first sample to its last.
    if busiest > length {
        recording.span = Some(span.start..span.start.saturating_add(busiest));
    }
    let samples = recording.profile.samples.len();
    let cannot_be = match () {
        () if length == 0 && samples == 1 => Some("it has one sample: nothing tells how long it lasted".to_owned()),
        () if length == 0 => Some(format!(
            "all of its {} are of one moment: nothing tells how long it lasted",
            counted_samples(samples)
        )),
        () if busiest / 2 > length => Some(format!(
            "impossible: its busiest thread ran for {}, but it lasted {} (perf script --deltatime prints such times)",
            shown(busiest),
            shown(length)
        )),
        () => None,
    };
    let cannot_be = cannot_be.map(|what| {
        format!(
            "{what}. How many CPUs it used is not known: per second, it is taken to have lasted {}, as long as its busiest thread ran",
            shown(busiest)
        )
    });
    cannot_be.into_iter().chain(without_jump(recording)).collect()
}

/// Nanoseconds that the thread was on a CPU that was so longest, by its samples: on one CPU, as a
/// text may have one number for all threads of a process.
fn busiest_thread(recording: &Recording) -> u64 {
    let mut threads: HashMap<(u32, u32), f64> = HashMap::new();
    let samples = recording.profile.samples.iter();
    for sample in samples.filter(|sample| sample.state.is_on_cpu()) {
        *threads.entry((sample.thread, sample.cpu)).or_default() += sample.weight_ns;
    }
    threads.into_values().fold(0.0, f64::max) as u64
}

/// A recording that is far longer than its samples tell of: they become samples of one moment, so
/// that nothing is made for every second of it. In words, where that is so.
fn without_jump(recording: &mut Recording) -> Option<String> {
    /// Of a day with nothing but a sample in ten seconds all is kept.
    const SECONDS_OF_A_SAMPLE: u64 = 10;
    const ANY_RECORDING: u64 = 3600;
    let span = recording.span.clone()?;
    let samples = &mut recording.profile.samples;
    let seconds = (span.end - span.start) / SECOND;
    if seconds <= ANY_RECORDING + SECONDS_OF_A_SAMPLE * samples.len() as u64 {
        return None;
    }
    let mut times: Vec<u64> = samples.iter().map(|sample| sample.time_ns).collect();
    times.sort_unstable();
    let gap = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    for sample in samples {
        sample.time_ns = span.start;
    }
    Some(format!(
        "it lasted {} and has {}, none of them for {}: its clock jumped, or nothing ran. Times within it are not kept",
        shown(span.end - span.start),
        counted_samples(times.len()),
        shown(gap)
    ))
}

fn counted_samples(count: usize) -> String {
    counted(u32::try_from(count).unwrap_or(u32::MAX), "sample")
}

fn shown(nanoseconds: u64) -> String {
    match nanoseconds as f64 / SECOND as f64 {
        seconds if seconds < 1.0 => format!("{:.3} ms", seconds * 1e3),
        seconds if seconds < 100.0 => format!("{seconds:.3} s"),
        seconds => format!("{} s", grouped(seconds.round())),
    }
}
