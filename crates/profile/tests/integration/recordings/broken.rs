//! Real recordings, and what may be wrong with such.

use super::recorded::{Recorded, compiled};
use proptest::prelude::*;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::OnceLock;

/// How many of them there are.
pub const RECORDINGS: usize = 5;

/// Real recordings, of some 10 KiB to 1 MiB: frame pointers, copied stacks, compressed, from a pipe, of several processes; and switches
/// of the whole machine with calls of futex. Where `./test` names a folder for all tests, the first that asks makes them.
pub fn recordings() -> &'static [Vec<u8>] {
    static MADE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    MADE.get_or_init(|| {
        let Some(folder) = std::env::var_os("SCALEPROF_TEST_FOLDER").map(PathBuf::from) else {
            return record();
        };
        // Until they are made the others wait.
        let lock = File::create(folder.join("recordings.lock")).expect("a file of all tests");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        let kept = |number: usize| folder.join(format!("recording-{number}"));
        let known: Vec<Vec<u8>> = (0..RECORDINGS)
            .map_while(|number| fs::read(kept(number)).ok())
            .collect();
        if known.len() == RECORDINGS {
            return known;
        }
        let made = record();
        for (number, bytes) in made.iter().enumerate() {
            fs::write(kept(number), bytes).expect("written");
        }
        made
    })
}

fn record() -> Vec<Vec<u8>> {
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
        Some(Recorded::of(&program, &["children", &other], &options)?.file().to_vec())
    });
    let mut recorded: Vec<Vec<u8>> = recorded.collect();
    let events = [
        "sched:sched_switch",
        "sched:sched_wakeup",
        "syscalls:sys_enter_futex",
        "syscalls:sys_exit_futex",
    ];
    let of_waits = compiled("convoy.c", &["-O1", "-g", "-pthread"]).and_then(|program| {
        let (recorded, _) = Recorded::of_whole_machine(&program, &events)?;
        Some(recorded.file().to_vec())
    });
    recorded.extend(of_waits);
    recorded
}

/// A change of some bytes: where, as a part of the file, and what to.
#[derive(Debug, Clone)]
pub enum Change {
    Byte(f64, u8),
    /// A number of 8 bytes, at the beginning of one.
    Word(f64, u64),
    Cut(f64),
    /// Some bytes are repeated, so that what follows is moved.
    Repeat(f64, usize),
}

/// A few of them.
pub fn changes() -> impl Strategy<Value = Vec<Change>> {
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

/// The bytes with these changes, one after the other.
pub fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
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

/// `FUZZ_CASES` of them: a few in every run of the tests, millions by hand.
pub fn cases() -> u32 {
    let asked = std::env::var("FUZZ_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(100)
}
