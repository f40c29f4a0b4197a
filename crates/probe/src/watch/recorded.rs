//! Walks that were recorded on a live process, to be done again without it: the registers, the words of memory that were
//! read, an excerpt of the unwind tables, and the frames that came out.

use std::collections::BTreeMap;

use scaleprof_profile::RawStack;
use serde::{Deserialize, Serialize};

use super::code::ProcessCode;
use super::native::{self, StartRegisters};
use super::tables::CodeTables;

/// Walks through stacks of one process.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordedWalks {
    /// As `uname -m` says; rules of one architecture mean nothing on another.
    pub architecture: String,
    /// What was recorded, for people.
    pub what: String,
    tables: CodeTables,
    /// The walks.
    pub walks: Vec<RecordedWalk>,
}

/// One walk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedWalk {
    /// Where it began.
    pub start: StartRegisters,
    /// The words of memory that it read, by address.
    pub words: BTreeMap<u64, u64>,
    /// Addresses of the frames, innermost first.
    pub frames: Vec<u64>,
    /// Which of them are instruction pointers and no return addresses.
    pub interrupted: Vec<u16>,
    /// How it ended, by the name of the [`UnwindStatus`](scaleprof_vocabulary::UnwindStatus).
    pub ending: String,
    /// Functions of the frames, for people.
    pub functions: Vec<String>,
}

impl RecordedWalk {
    /// Walks a live stack and records it. `functions` is left empty.
    pub fn of(
        code: &ProcessCode,
        start: StartRegisters,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> (RawStack, RecordedWalk) {
        let mut words = BTreeMap::new();
        let stack = code.unwind(start, &mut |address| {
            let word = read(address)?;
            words.insert(address, word);
            Some(word)
        });
        let recorded = RecordedWalk {
            start,
            words,
            frames: stack.user.clone(),
            interrupted: stack.interrupted.clone(),
            ending: stack.ending.name().to_owned(),
            functions: Vec::new(),
        };
        (stack, recorded)
    }
}

impl RecordedWalks {
    /// Keeps walks of one process with what of its tables they need.
    pub fn of(code: &ProcessCode, what: String, walks: Vec<RecordedWalk>) -> RecordedWalks {
        let addresses: Vec<u64> = walks.iter().flat_map(|walk| walk.frames.iter().copied()).collect();
        RecordedWalks {
            architecture: std::env::consts::ARCH.to_owned(),
            what,
            tables: code.tables().excerpt(&addresses),
            walks,
        }
    }

    /// Walks again from registers on, in memory of which only these words can be read.
    pub fn walk(&self, start: StartRegisters, words: &BTreeMap<u64, u64>) -> RawStack {
        native::unwind(&self.tables, start, &mut |address| words.get(&address).copied())
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use scaleprof_vocabulary::UnwindStatus;

    /// Made by tests/fixtures/record-stacks.
    fn recorded() -> Vec<RecordedWalks> {
        [
            include_str!("../../tests/fixtures/stacks-mutex.json"),
            include_str!("../../tests/fixtures/stacks-signal.json"),
            include_str!("../../tests/fixtures/stacks-uneven.json"),
        ]
        .iter()
        .map(|text| serde_json::from_str(text).expect("as it was written"))
        .collect()
    }

    #[test]
    fn recorded_stacks_give_the_frames_that_they_gave_live() {
        let mut walks = 0;
        for recording in recorded() {
            assert_eq!(recording.architecture, "x86_64");
            for recorded in &recording.walks {
                let stack = recording.walk(recorded.start, &recorded.words);
                assert_eq!(stack.user, recorded.frames, "{:?}", recorded.functions);
                assert_eq!(stack.interrupted, recorded.interrupted, "{:?}", recorded.functions);
                assert_eq!(stack.ending.name(), recorded.ending, "{:?}", recorded.functions);
                walks += 1;
            }
        }
        assert!(walks >= 15, "only {walks}");
    }

    #[test]
    fn the_recordings_hold_signal_frames_and_calls_of_libc() {
        let all = recorded();
        let functions = |name: &str| {
            let walks = all.iter().flat_map(|recording| &recording.walks);
            walks
                .filter(|walk| walk.functions.iter().any(|function| function == name))
                .count()
        };
        assert!(functions("in_the_handler") > 0 && functions("interrupted_work") > 0);
        assert!(functions("hold_it") > 0 && functions("want_it") > 0 && functions("long_nap") > 0);
    }

    /// The registers of a thread that a signal interrupted stand in the signal's frame: without it nothing is known.
    #[test]
    fn a_word_that_cannot_be_read_ends_the_walk_there_and_says_so() {
        for recording in recorded() {
            for recorded in recording.walks.iter().filter(|walk| walk.ending == "complete") {
                let highest = recorded.words.keys().next_back().copied().expect("words were read");
                let mut words = recorded.words.clone();
                words.remove(&highest);
                let stack = recording.walk(recorded.start, &words);
                assert!(stack.user.len() <= recorded.frames.len());
                assert!(recorded.frames.starts_with(&stack.user));
                assert_eq!(stack.ending, UnwindStatus::UnreadableMemory, "{:?}", recorded.functions);
            }
        }
    }

    proptest! {
        #[test]
        fn any_memory_is_walked_to_an_end(
            which in 0..1000usize,
            place in 0..1000usize,
            word: u64,
            shift in -64..64i64,
        ) {
            let all = recorded();
            let walks: Vec<_> = all.iter().flat_map(|recording| recording.walks.iter().map(move |walk| (recording, walk))).collect();
            let (recording, recorded) = walks[which % walks.len()];
            let mut words = recorded.words.clone();
            if let Some(changed) = words.values_mut().nth(place % recorded.words.len().max(1)) {
                *changed = word;
            }
            let mut start = recorded.start;
            start.sp = start.sp.wrapping_add_signed(shift);
            let stack = recording.walk(start, &words);
            prop_assert!(!stack.user.is_empty() && stack.user.len() <= 128);
        }
    }
}
