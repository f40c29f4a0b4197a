//! Recordings that are cut, broken or made to do harm: an error or a part of what is in them, in bounded time and memory.

use crate::recorded::{Recorded, compiled};
use proptest::prelude::*;
use scaleprof_profile::import::{ImportError, ReadOptions, Recording, read_recording};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Real recordings, of some 10 KiB to 1 MiB: frame pointers, copied stacks, compressed, from a pipe, of several processes.
fn recordings() -> &'static [Vec<u8>] {
    static RECORDINGS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    RECORDINGS.get_or_init(|| {
        let clock = ["-e", "cpu-clock:u", "-F", "199"];
        let kinds: [&[&str]; 4] = [
            &["-g"],
            &["--call-graph", "dwarf,1024"],
            &["-g", "-z"],
            &["-g", "-e", "page-faults", "-o", "-"],
        ];
        let Some(program) = compiled("work.c", &["-O2", "-g"]) else {
            return Vec::new();
        };
        let other = program.copied("other_program");
        let recorded = kinds.iter().filter_map(|kind| {
            let options = [&clock[..], kind].concat();
            Some(Recorded::of(&program, &["children", &other], &options)?.bytes())
        });
        recorded.collect()
    })
}

/// Reads it; the time that it may take follows from its length.
fn read(bytes: &[u8]) -> Result<Recording, ImportError> {
    let begun = Instant::now();
    let options = ReadOptions {
        // A broken path must not lead to files of this machine: looking at these takes time that is not the recording's.
        symfs: Some("/nonexistent".into()),
        ..ReadOptions::default()
    };
    let found = read_recording(bytes, &options);
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

/// A change of some bytes: where, as a part of the file, and what to.
#[derive(Debug, Clone)]
enum Change {
    Byte(f64, u8),
    /// A number of 8 bytes, at the beginning of one.
    Word(f64, u64),
    Cut(f64),
    /// Some bytes are repeated, so that what follows is moved.
    Repeat(f64, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let words = prop_oneof![
        Just(0),
        Just(u64::MAX),
        Just(1 << 63),
        Just(u64::from(u32::MAX)),
        0..70_000_u64,
        any::<u64>()
    ];
    let near_the_start = prop_oneof![0.0..1.0_f64, 0.0..0.01_f64];
    let change = prop_oneof![
        (near_the_start.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (near_the_start, words).prop_map(|(at, word)| Change::Word(at, word)),
        (0.0..1.0).prop_map(Change::Cut),
        (0.0..1.0, 1..64_usize).prop_map(|(at, length)| Change::Repeat(at, length)),
    ];
    proptest::collection::vec(change, 1..12)
}

fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in changes {
        let place = |at: f64| ((at * bytes.len() as f64) as usize).min(bytes.len().saturating_sub(1));
        match *change {
            Change::Byte(at, byte) => {
                let at = place(at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            Change::Word(at, word) => {
                let at = place(at) / 8 * 8;
                if let Some(old) = bytes.get_mut(at..at + 8) {
                    old.copy_from_slice(&word.to_le_bytes());
                }
            }
            Change::Cut(at) => bytes.truncate(place(at).max(16)),
            Change::Repeat(at, length) => {
                let at = place(at);
                let again: Vec<u8> = bytes[at..(at + length).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_changed_in_a_recording_ends_in_words_or_in_a_part_of_it(which in 0..4_usize, changes in changes()) {
        if let Some(bytes) = recordings().get(which) {
            let _ = read(&changed(bytes, &changes));
        }
    }

    #[test]
    fn bytes_that_only_begin_like_a_recording_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..4000), pipe: bool) {
        let length: u64 = if pipe { 16 } else { 104 };
        let _ = read(&[b"PERFILE2", &length.to_le_bytes()[..], &bytes].concat());
    }
}

/// `FUZZ_CASES` of them: a few in every run of the tests, millions by hand.
fn cases() -> u32 {
    let asked = std::env::var("FUZZ_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

#[test]
fn a_recording_that_is_cut_gives_what_was_before_and_says_so() {
    let Some(whole) = recordings().first() else { return };
    let all = read(whole).expect("whole").profile.samples.len();
    let half = read(&whole[..whole.len() / 2]).expect("half of it");
    assert!(!half.profile.samples.is_empty() && half.profile.samples.len() < all);
    assert!(
        half.warnings.iter().any(|warning| warning.contains("cut")),
        "{:?}",
        half.warnings
    );
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
