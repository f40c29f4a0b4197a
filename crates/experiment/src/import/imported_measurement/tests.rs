use super::*;
use scaleprof_profile::import::{RecordedThread, RecordingFormat};
use scaleprof_profile::{Frame, Profile};
use scaleprof_vocabulary::{ThreadState, UnwindStatus};

/// Samples at these times, of 100 ms each: every other one in the kernel.
fn recording(times_ms: &[u64], weights: Weights) -> Recording {
    let mut profile = Profile::default();
    let frame = |module: &str| Frame::named(module.to_owned(), Some("work".to_owned()));
    let frames = ["server", "[kernel]"].map(|module| profile.frames.intern(frame(module)));
    for (at, time) in times_ms.iter().enumerate() {
        let stack = profile.stacks.child(None, frames[at % 2]);
        profile.samples.push(Sample {
            time_ns: time * 1_000_000,
            thread: 7,
            cpu: 0,
            state: ThreadState::Cpu,
            weight_ns: 1e8,
            stack,
            ending: UnwindStatus::Complete,
            wait: None,
        });
    }
    let mut recording = Recording::new(RecordingFormat::PerfData, profile, weights);
    let first_and_last = times_ms.first().zip(times_ms.last());
    recording.span = first_and_last.map(|(first, last)| first * 1_000_000..last * 1_000_000);
    let thread = RecordedThread {
        process: 7,
        name: "server".to_owned(),
    };
    recording.threads.insert(7, thread);
    recording
}

fn known(load: Option<KnownLoad>) -> Known {
    Known {
        measurement: 0,
        repeat: 0,
        load,
        stat: None,
        started_at: UtcMicros(0),
    }
}

fn sum(rows: &MeasurementRows, counter: &str) -> f64 {
    let own = rows.counters.iter().filter(|row| row.counter == counter);
    own.map(|row| row.value).sum()
}

#[test]
fn states_add_up_to_the_samples_and_lifetimes_are_not_made_up() {
    let ImportedMeasurement { rung, rows, .. } =
        ImportedMeasurement::of(&known(None), recording(&[5000, 5100, 5200, 6900], Weights::Nanoseconds));
    assert_eq!((rung.connections, rows.seconds.len()), (UNKNOWN, 0));
    let by_second: Vec<(Option<i32>, i64)> = rows
        .states
        .iter()
        .filter(|row| row.thread.is_none())
        .map(|row| (row.second, row.nanoseconds))
        .collect();
    assert_eq!(by_second, [(Some(0), 300_000_000), (Some(1), 100_000_000)]);
    assert!(
        rows.states.iter().all(|row| row.state == ThreadState::Cpu),
        "nothing else is known"
    );
    assert!((sum(&rows, "probe.watched_seconds") - 1.9).abs() < 1e-9);
    assert!((sum(&rows, "server.cpu_user_seconds") - 0.2).abs() < 1e-9);
    assert!((sum(&rows, "server.cpu_system_seconds") - 0.2).abs() < 1e-9);
}

#[test]
fn a_second_in_which_nobody_was_seen_counts_too() {
    let ImportedMeasurement { rows, .. } =
        ImportedMeasurement::of(&known(None), recording(&[0, 100, 3100, 3900], Weights::Nanoseconds));
    let by_second = rows.states.iter().filter(|row| row.thread.is_none());
    let by_second: Vec<(Option<i32>, i64)> = by_second.map(|row| (row.second, row.nanoseconds)).collect();
    assert_eq!(
        by_second,
        [
            (Some(0), 200_000_000),
            (Some(1), 0),
            (Some(2), 0),
            (Some(3), 200_000_000)
        ]
    );
    let user = rows
        .counters
        .iter()
        .filter(|row| row.counter == "server.cpu_user_seconds");
    assert_eq!(user.count(), 4);
}

#[test]
fn a_known_throughput_gives_the_transactions_of_the_recording() {
    let load = KnownLoad {
        connections: 16,
        throughput: 1000.4,
    };
    let ImportedMeasurement { rung, rows, .. } =
        ImportedMeasurement::of(&known(Some(load)), recording(&[0, 2500], Weights::Nanoseconds));
    assert_eq!(rung.connections, 16);
    let transactions: i64 = rows.seconds.iter().map(|row| row.transactions).sum();
    assert_eq!((rows.seconds.len(), transactions), (3, 2501));
    let inside: i64 = rows.seconds.iter().map(|row| row.in_transaction_ns).sum();
    assert_eq!(
        inside,
        16 * 2_500_000_000,
        "in a closed loop all connections are inside all the time"
    );
}

#[test]
fn of_a_short_recording_too_the_throughput_is_what_was_told() {
    let load = KnownLoad {
        connections: 4,
        throughput: 150.5,
    };
    let measurement = ImportedMeasurement::of(&known(Some(load)), recording(&[0, 330], Weights::Nanoseconds));
    let transactions: i64 = measurement.rows.seconds.iter().map(|row| row.transactions).sum();
    let took: i64 = measurement.rows.seconds.iter().map(|row| row.duration_ns).sum();
    let found = transactions as f64 / took as f64 * 1e9;
    assert!((found / 150.5 - 1.0).abs() < 1e-6, "{found}");
}

#[test]
fn what_is_no_time_becomes_shares_of_the_whole() {
    let measurement = ImportedMeasurement::of(&known(None), recording(&[0, 1000, 2000], Weights::Counts));
    let rows = measurement.rest.rows(0..measurement.rest.len());
    let total: f64 = rows.iter().map(|row| row.weight_ns).sum();
    assert!((total - 2e9).abs() < 1.0, "1 is all of it: {total}");
    assert_eq!(sum(&measurement.rows, "server.cpu_user_seconds"), 0.0);
}
