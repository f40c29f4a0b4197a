//! The memory that a broken recording takes is bounded by its length, whatever its numbers say. A program of its own, as all memory of it is
//! counted.

#[allow(dead_code)]
#[path = "../integration/recordings/broken.rs"]
mod broken;
#[allow(dead_code)]
#[path = "../integration/recordings/recorded.rs"]
mod recorded;
use scaleprof_vocabulary::{Role, ThreadState};
use testing::counted_memory::{Counting, most_taken_by};
use testing::perf_recording;

use broken::{RECORDINGS, cases, changed, changes, recordings};
use perf_recording::{Event, Written, chain, field};
use proptest::test_runner::{Config, TestRunner};
use scaleprof_profile::import::{ReadOptions, read_recording};
use scaleprof_profile::{About, Amount, Cost, CostProfile, Frame, pprof};
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static COUNTING: Counting = Counting;

/// All memory of this program is counted: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes that reading these takes at once.
fn taken_by(bytes: &[u8]) -> usize {
    let options = ReadOptions {
        symfs: Some("/nonexistent".into()),
        ..ReadOptions::default()
    };
    most_taken_by(|| drop(read_recording(bytes, &options)))
}

/// What any recording may take: tables, and the list of this kernel's functions, which a kernel makes for whoever asks.
const ALWAYS: usize = 48 << 20;
/// What each byte of one may take. A record of 8 bytes is the smallest, and one of them has a place and a time in memory.
const FOR_A_BYTE: usize = 24;
/// Compressed ones may become so many times longer.
const EXPANDED: usize = 100;

/// The most that this may take.
fn bound(bytes: &[u8], which: usize) -> usize {
    /// The one among the recordings that is compressed.
    const COMPRESSED: usize = 2;
    let times = if which == COMPRESSED { EXPANDED } else { 1 };
    ALWAYS + bytes.len() * times * FOR_A_BYTE
}

#[test]
fn what_a_broken_recording_takes_is_bounded_by_its_length() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let all = recordings();
    for (which, whole) in all.iter().enumerate() {
        let taken = taken_by(whole);
        assert!(
            taken < bound(whole, which),
            "{which}: {taken} for {} bytes",
            whole.len()
        );
    }
    let mut runner = TestRunner::new(Config {
        cases: cases(),
        ..Config::default()
    });
    let result = runner.run(&(0..RECORDINGS, changes()), |(which, changes)| {
        if let Some(whole) = all.get(which) {
            let bytes = changed(whole, &changes);
            let (taken, bound) = (taken_by(&bytes), bound(&bytes, which));
            assert!(taken < bound, "{taken} of {bound} for {} bytes", bytes.len());
        }
        Ok(())
    });
    result.expect("bounded");
}

/// Numbers that claim much: of events, of identifiers, of processes' files, of a table of features.
#[test]
fn numbers_that_claim_much_take_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(whole) = recordings().first() else { return };
    for place in (16..104).step_by(8) {
        for claim in [u64::MAX, 1 << 40, whole.len() as u64 * 3 / 2] {
            let mut bytes = whole.clone();
            bytes[place..place + 8].copy_from_slice(&claim.to_le_bytes());
            let taken = taken_by(&bytes);
            assert!(taken < bound(&bytes, 0), "{claim} at {place}: {taken}");
        }
    }
}

/// Jumps of which no two are equal, from few samples and from many: one that is told takes many times its entry.
#[test]
fn different_jumps_without_end_take_no_memory_without_end() {
    const ANY: u64 = 1 << 3;
    const FIELDS: u64 =
        field::TID | field::TIME | field::PERIOD | field::CALLCHAIN | field::IDENTIFIER | field::BRANCH_STACK;
    const START: u64 = 1 << 32;
    const IN_A_SAMPLE: u64 = 2000;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for samples in [30, 300] {
        let mut file = Written::new(&[Event {
            branches: ANY,
            ..Event::clock(FIELDS)
        }]);
        file.map(7, START, 1 << 30, "/srv/server");
        for sample in 0..samples {
            let mut content = chain(&[START]);
            content.extend(IN_A_SAMPLE.to_le_bytes());
            for jump in 0..IN_A_SAMPLE {
                let from = START + 2 * (sample * IN_A_SAMPLE + jump);
                content.extend([from, from + 1, 0].into_iter().flat_map(u64::to_le_bytes));
            }
            file.sample(&[1, 7 << 32 | 7, sample, 1000], &content);
        }
        let (taken, bound) = (taken_by(&file.bytes), bound(&file.bytes, 0));
        assert!(taken < bound, "{taken} of {bound} for {} bytes", file.bytes.len());
    }
}

#[test]
fn a_name_that_many_places_share_is_kept_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut profile = CostProfile {
        about: About {
            amount: Amount::Seconds(1.0),
            ..About::default()
        },
        ..CostProfile::default()
    };
    // Three times in each of them: 300 MB.
    let name: std::sync::Arc<str> = "f".repeat(25_000).into();
    for address in 0..4_000 {
        let frame = profile.frames.intern(Frame {
            address,
            file: Some(name.clone()),
            ..Frame::named(name.clone(), Some(name.clone()))
        });
        profile.costs.push(Cost {
            stack: profile.stacks.child(None, frame),
            state: ThreadState::Cpu,
            role: Role::Connection,
            thread: None,
            lock: None,
            thread_seconds: 0.1,
            samples: 1,
        });
    }
    let bytes = pprof::write(&profile).expect("written");
    drop(profile);
    assert!(bytes.len() < 4_000_000, "{}", bytes.len());
    let taken = taken_by(&bytes);
    assert!(taken < ALWAYS + bytes.len() * FOR_A_BYTE, "{taken} for {}", bytes.len());
}

/// Records of 2 KB without a meaning, a hundred thousand in a few KB (RFC 8878, 3.1.1.2.2).
#[test]
fn what_is_compressed_lies_in_no_memory_when_it_is_much() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for _ in 0..2000 {
        frame.extend([0x02, 0x00, 0x10, 8]);
    }
    let words = frame.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    const COMPRESSED: u32 = 81;
    let mut file = Written::new(&[Event::clock(field::TID | field::IDENTIFIER)]);
    file.record(COMPRESSED, 0, &words.collect::<Vec<u64>>());
    // 262 MB of records.
    let taken = taken_by(&file.bytes);
    assert!(taken < ALWAYS + (32 << 20), "{taken} for {}", file.bytes.len());
}
