//! Recordings that are cut, broken or made to do harm: an error or a part of what is in them, in bounded time and memory.

use super::broken::{RECORDINGS, cases, changed, changes, recordings};
use proptest::prelude::*;
use scaleprof_profile::Profile;
use scaleprof_profile::import::{ImportError, ReadOptions, Recording, RecordingFile, read_recording};
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Reads it; the time that it may take follows from its length.
fn read(bytes: &[u8]) -> Result<Recording, ImportError> {
    let begun = Instant::now();
    let found = read_recording(bytes, &away_from_this_machine());
    let most = Duration::from_secs(2) + Duration::from_micros(bytes.len() as u64 / 2);
    assert!(
        begun.elapsed() < most,
        "{} bytes took {:?}",
        bytes.len(),
        begun.elapsed()
    );
    if let Ok(recording) = &found {
        // Every sample has at least a header.
        assert!(recording.profile.samples.len() <= bytes.len() * 100 / 8);
        assert!(
            recording
                .profile
                .samples
                .iter()
                .all(|sample| sample.weight_ns.is_finite())
        );
    }
    found
}

/// A broken path must not lead to files of this machine: looking at these takes time that is not the recording's.
fn away_from_this_machine() -> ReadOptions {
    ReadOptions {
        symfs: Some("/nonexistent".into()),
        ..ReadOptions::default()
    }
}

/// All that a recording tells, in words.
fn told(recording: Result<Recording, ImportError>) -> String {
    recording.map_or_else(
        |error| error.to_string(),
        |recording| {
            let Recording {
                profile,
                branches,
                span,
                event,
                threads,
                program,
                machine,
                samples_lost,
                lacks,
                warnings,
                ..
            } = recording;
            let Profile {
                frames,
                stacks,
                samples,
                locks,
            } = profile;
            let frames: Vec<_> = frames.iter().collect();
            let stacks: Vec<_> = stacks.iter().collect();
            let of_samples = (frames, stacks, samples, locks, branches);
            let of_file = (span, event, threads, program, machine, samples_lost, lacks, warnings);
            format!("{of_samples:?} {of_file:?}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_changed_in_a_recording_ends_in_words_or_in_a_part_of_it(which in 0..RECORDINGS, changes in changes()) {
        if let Some(bytes) = recordings().get(which) {
            let _ = read(&changed(bytes, &changes));
        }
    }

    #[test]
    fn what_is_read_from_a_file_bit_by_bit_is_what_its_bytes_in_memory_tell(which in 0..RECORDINGS, changes in prop_oneof![Just(Vec::new()), changes()]) {
        if let Some(bytes) = recordings().get(which) {
            let bytes = changed(bytes, &changes);
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(&bytes).expect("written");
            let options = ReadOptions { kept_in_memory: 0, ..away_from_this_machine() };
            let opened = RecordingFile::open(file.path()).expect("opened");
            prop_assert_eq!(told(read_recording(opened, &options)), told(read(&bytes)));
        }
    }

    #[test]
    fn bytes_that_only_begin_like_a_recording_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..4000), pipe: bool) {
        let length: u64 = if pipe { 16 } else { 104 };
        let _ = read(&[b"PERFILE2", &length.to_le_bytes()[..], &bytes].concat());
    }
}

#[test]
fn a_recording_that_is_cut_gives_what_was_before_and_says_so() {
    let Some(whole) = recordings().first() else { return };
    let all = read(whole).expect("whole").profile.samples.len();
    // Where in it the samples lie depends on how busy the machine was that recorded it.
    let kept: Vec<usize> = (1..16)
        .map(|part| {
            let (told, samples) = match read(&whole[..whole.len() * part / 16]) {
                Ok(cut) => (cut.warnings.join("; "), cut.profile.samples.len()),
                // One without any sample is none.
                Err(complaint) => (complaint.to_string(), 0),
            };
            // Behind the samples perf writes what it knows of the machine and the files.
            assert!(
                told.contains("cut") || samples == all,
                "{part} of 16: {samples} of {all}, {told}"
            );
            samples
        })
        .collect();
    assert!(kept.is_sorted(), "{kept:?}");
    assert!(kept.iter().any(|kept| *kept > 0 && *kept < all), "{kept:?} of {all}");
    let complaint = read(&whole[..60]).expect_err("no more than a header").to_string();
    assert!(complaint.contains("header"), "{complaint}");
}

#[test]
fn a_recording_whose_perf_was_killed_gives_what_was_written() {
    let Some(whole) = recordings().first() else { return };
    let mut killed = whole.clone();
    // The length of the data, which perf writes when it ends.
    killed[48..56].fill(0);
    let found = read(&killed).expect("what was written");
    assert!(
        found.warnings.iter().any(|warning| warning.contains("killed")),
        "{:?}",
        found.warnings
    );
    assert_eq!(
        found.profile.samples.len(),
        read(whole).expect("whole").profile.samples.len()
    );
}
