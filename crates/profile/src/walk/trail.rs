//! The frames that a walk came through, for the next walk through the stack of the same thread.
//!
//! What a thread does changes at the inner end of its stack; its outer frames stay for thousands of samples. Where a walk comes to a frame that the
//! last one came through with the same registers, the rule there is the same, too. So the rule need not be looked for, and the step is only
//! taken anew to see whether memory still holds the same. The processor reads memory for many such steps at once: the next one begins where the
//! last walk came, and not where this one will have.

use super::Registers;
use super::plain_step::PlainStep;
use foldhash::HashMap;
use framehop::FrameAddress;

/// Threads whose trails are kept, which take some kilobytes each. When more have come all are forgotten.
const MOST_TRAILS: usize = 1 << 10;

/// A frame that a walk came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) frame: FrameAddress,
    pub(super) registers: Registers,
    /// The step by which the walk went on, where it was a plain one.
    pub(super) plain: Option<PlainStep>,
}

/// The frames of a walk, the innermost first.
#[derive(Debug, Default)]
pub(super) struct Trail(Vec<Passed>);

impl Trail {
    pub(super) fn frames(&self) -> &[Passed] {
        &self.0
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, passed: Passed) {
        self.0.push(passed);
    }

    /// From the last frame the walk went on by this step.
    pub(super) fn last_went_on_by(&mut self, plain: Option<PlainStep>) {
        if let Some(last) = self.0.last_mut() {
            last.plain = plain;
        }
    }

    /// What is ahead of a walk that begins.
    pub(super) fn ahead(&self) -> Ahead<'_> {
        Ahead(&self.0)
    }
}

/// What is ahead of a walk of what the last one came through.
pub(super) struct Ahead<'a>(&'a [Passed]);

impl Ahead<'_> {
    /// The step from a frame and its caller, if the last walk came through both and memory still says so.
    pub(super) fn caller(
        &mut self,
        at: &Passed,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<(PlainStep, Passed)> {
        // Stacks grow downwards: frames further out have higher stack pointers.
        while let [passed, rest @ ..] = self.0
            && passed.registers.sp < at.registers.sp
        {
            self.0 = rest;
        }
        let [here, caller, ..] = self.0 else { return None };
        if (here.frame, here.registers) != (at.frame, at.registers) {
            return None;
        }
        let plain = here.plain?;
        let found = plain.caller(&here.registers, !here.frame.is_return_address(), read);
        if found != Ok(caller.registers) {
            return None;
        }
        Some((plain, Passed { plain: None, ..*caller }))
    }
}

/// The trails of threads.
#[derive(Debug, Default)]
pub(super) struct Trails(HashMap<u32, Trail>);

impl Trails {
    /// That of a thread, empty where there is none.
    pub(super) fn take(&mut self, thread: u32) -> Trail {
        self.0.get_mut(&thread).map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn keep(&mut self, thread: u32, trail: Trail) {
        if self.0.len() >= MOST_TRAILS && !self.0.contains_key(&thread) {
            self.clear();
        }
        self.0.insert(thread, trail);
    }

    /// Code lies elsewhere from now on.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::{MappedCode, OtherRegisters, Processor, StackWalker, UnwindRules};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::sync::{Arc, LazyLock};

    /// Where a made-up stack begins, and words of it.
    const STACK: u64 = 0x7fff_0000_0000;
    const WORDS: u64 = 96;

    /// The rules of this program, and some addresses of its code.
    static PROGRAM: LazyLock<(Arc<UnwindRules>, Vec<u64>)> = LazyLock::new(|| {
        let own = std::env::current_exe().expect("a path");
        let mapped = scaleprof_binary::mapped_file::mapped(&own).expect("mapped");
        let rules = Arc::new(UnwindRules::of_mapped(&Arc::new(mapped)).expect("rules"));
        let text = rules.text();
        let some = (text.start..text.end).step_by(((text.end - text.start) / 64) as usize);
        (rules, some.collect())
    });

    fn code() -> Vec<MappedCode> {
        vec![MappedCode {
            name: "program".to_owned(),
            addresses: PROGRAM.0.text(),
            rules: Some((Arc::clone(&PROGRAM.0), 0)),
        }]
    }

    fn walker() -> StackWalker {
        let mut walker = StackWalker::new(Processor::HERE);
        walker.set_code(code());
        walker
    }

    /// A word that may be a return address, or a frame pointer.
    fn any_word() -> impl Strategy<Value = u64> {
        prop_oneof![
            8 => (0..64_usize).prop_map(|code| PROGRAM.1[code % PROGRAM.1.len()]),
            2 => (0..WORDS).prop_map(|place| STACK + 8 * place),
            1 => Just(0),
        ]
    }

    fn any_stack() -> impl Strategy<Value = (Registers, Vec<u64>)> {
        let start = (any_word(), 0..8_u64, any_word());
        (start, vec(any_word(), WORDS as usize)).prop_map(|((pc, sp, fp), words)| {
            let sp = STACK + 8 * sp;
            (Registers { pc, sp, fp, lr: 0 }, words)
        })
    }

    fn read(words: &[u64], address: u64) -> Option<u64> {
        let place = address.checked_sub(STACK).filter(|offset| offset % 8 == 0)? / 8;
        words.get(usize::try_from(place).ok()?).copied()
    }

    /// What changes in a stack from one walk to the next.
    #[derive(Debug, Clone)]
    enum Change {
        Word(usize, u64),
        Start(Registers),
        Code,
    }

    fn any_change() -> impl Strategy<Value = Change> {
        prop_oneof![
            6 => (0..WORDS as usize, any_word()).prop_map(|(place, word)| Change::Word(place, word)),
            3 => any_stack().prop_map(|(start, _)| Change::Start(start)),
            1 => Just(Change::Code),
        ]
    }

    proptest! {
        #[test]
        fn a_walk_along_the_trail_of_the_last_one_comes_where_any_walk_would(
            stacks in vec(any_stack(), 2),
            changes in vec((0..2_usize, vec(any_change(), 0..3)), 1..16),
        ) {
            let mut again = walker();
            let mut stacks = stacks;
            for (thread, changes) in changes {
                for change in changes {
                    match change {
                        Change::Word(place, word) => stacks[thread].1[place] = word,
                        Change::Start(start) => stacks[thread].0 = start,
                        Change::Code => again.set_code(code()),
                    }
                }
                let (start, words) = &stacks[thread];
                let spare = crate::RawStack::default();
                let mut read = |address| read(words, address);
                let along = again.walk_again(thread as u32, spare, *start, &OtherRegisters::default, &mut read);
                let anew = walker().walk(*start, &OtherRegisters::default, &mut read);
                prop_assert_eq!(along, anew);
            }
        }
    }

    #[test]
    fn trails_of_so_many_threads_are_kept_and_then_those_of_others() {
        let mut trails = Trails::default();
        let passed = Passed {
            frame: FrameAddress::from_instruction_pointer(1),
            registers: Registers::default(),
            plain: None,
        };
        let most = MOST_TRAILS as u32;
        for thread in 0..most {
            trails.keep(thread, Trail(vec![passed]));
        }
        trails.keep(0, Trail(vec![passed; 2]));
        assert_eq!(trails.0.len(), MOST_TRAILS);
        assert_eq!(trails.take(0).frames().len(), 2);
        assert!(trails.take(most).frames().is_empty());
        trails.keep(most, Trail(vec![passed]));
        assert_eq!(trails.take(most).frames().len(), 1);
        assert!(trails.take(1).frames().is_empty());
        trails.keep(most, Trail(vec![passed]));
        trails.clear();
        assert!(trails.take(most).frames().is_empty());
    }
}
