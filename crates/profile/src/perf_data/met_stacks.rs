//! Stacks as samples have them, each kept once.
//!
//! Of millions of samples nearly all have a stack that was met before, and finding it is most of the work of a recording with frame pointers.
//! Stacks stand one behind the other in one piece of memory, so that comparing two of them takes one way to it.

use crate::RawStack;
use foldhash::HashMap;
use foldhash::fast::RandomState;
use scaleprof_vocabulary::UnwindStatus;
use std::hash::BuildHasher as _;

/// A stack, and whether its last address has still to tell how it ends: it is asked once for all equal ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) stack: RawStack,
    pub(super) is_chain: bool,
}

impl Met {
    pub(super) fn whole(stack: RawStack) -> Met {
        Met { stack, is_chain: false }
    }
}

/// Stacks by number, from 0 on.
#[derive(Debug, Default)]
pub(super) struct StackWords {
    /// For each stack how many addresses of which kind it has and how it ends, and then these.
    words: Vec<u64>,
    begins: Vec<usize>,
}

impl StackWords {
    pub(super) fn len(&self) -> usize {
        self.begins.len()
    }

    /// Makes room for so many further stacks, so that less is moved. Without the room it grows as needed.
    fn reserve(&mut self, stacks: usize) {
        /// A server's have some thirty frames, and a kernel's inside of them.
        const WORDS: usize = 40;
        let _ = self.begins.try_reserve(stacks);
        let _ = self.words.try_reserve(stacks.saturating_mul(WORDS));
    }

    /// Makes room for all of another.
    pub(super) fn reserve_for(&mut self, other: &StackWords) {
        let _ = self.begins.try_reserve(other.begins.len());
        let _ = self.words.try_reserve(other.words.len());
    }

    pub(super) fn push(&mut self, met: &Met) {
        let Met {
            stack:
                RawStack {
                    kernel,
                    user,
                    interrupted,
                    ending,
                },
            is_chain,
        } = met;
        self.begins.push(self.words.len());
        self.words.push(*ending as u64 | u64::from(*is_chain) << 8);
        let lengths = [kernel.len(), user.len(), interrupted.len()];
        self.words.extend(lengths.map(|length| length as u64));
        self.words.extend(kernel);
        self.words.extend(user);
        self.words
            .extend(interrupted.iter().map(|position| u64::from(*position)));
    }

    /// Takes back the last one.
    fn pop(&mut self) {
        if let Some(begin) = self.begins.pop() {
            self.words.truncate(begin);
        }
    }

    fn of(&self, number: usize) -> &[u64] {
        let Some(begin) = self.begins.get(number) else {
            return &[];
        };
        let end = self.begins.get(number + 1).copied().unwrap_or(self.words.len());
        &self.words[*begin..end]
    }

    /// Reads a stack into the memory of another.
    pub(super) fn read(&self, number: usize, into: &mut Met) {
        into.stack.forget();
        let [how, kernel, user, interrupted, addresses @ ..] = self.of(number) else {
            return;
        };
        let Met { stack, is_chain } = into;
        *is_chain = how >> 8 != 0;
        stack.ending = ending_of(how & 0xff);
        let (of_kernel, rest) = addresses.split_at(*kernel as usize);
        let (of_user, positions) = rest.split_at(*user as usize);
        stack.kernel.extend(of_kernel);
        stack.user.extend(of_user);
        let positions = positions.iter().take(*interrupted as usize);
        stack.interrupted.extend(positions.map(|position| *position as u16));
    }
}

fn ending_of(number: u64) -> UnwindStatus {
    let ending = UnwindStatus::ALL.get(number as usize);
    ending.copied().unwrap_or(UnwindStatus::Unknown)
}

/// Stacks that differ, numbered as they were met.
#[derive(Debug, Default)]
pub(super) struct MetStacks {
    stacks: StackWords,
    /// By its hash, or the next that was free, a stack's number.
    numbers: HashMap<u64, u32>,
    hasher: RandomState,
    /// Bits of the hash that are used; fewer only to make collisions in tests.
    unused_bits: u32,
}

impl MetStacks {
    /// With room for the words of so many stacks: memory that is not written to is none.
    pub(super) fn with_room(stacks: usize) -> MetStacks {
        let mut met = MetStacks::default();
        met.stacks.reserve(stacks);
        met
    }

    /// Makes room for all of these.
    pub(super) fn reserve_for(&mut self, others: &StackWords) {
        self.stacks.reserve_for(others);
        let _ = self.numbers.try_reserve(others.len());
    }

    /// The number of this stack, which is kept if it is new.
    pub(super) fn number_of(&mut self, met: &Met) -> u32 {
        self.stacks.push(met);
        self.number_of_last()
    }

    /// The same of one that stands elsewhere.
    pub(super) fn number_of_other(&mut self, others: &StackWords, number: usize) -> u32 {
        self.stacks.begins.push(self.stacks.words.len());
        self.stacks.words.extend(others.of(number));
        self.number_of_last()
    }

    fn number_of_last(&mut self) -> u32 {
        let last = self.stacks.len() - 1;
        let own = self.stacks.of(last);
        let mut hash = self.hasher.hash_one(own) >> self.unused_bits;
        while let Some(number) = self.numbers.get(&hash) {
            if self.stacks.of(*number as usize) == own {
                self.stacks.pop();
                return *number;
            }
            hash = hash.wrapping_add(1);
        }
        self.numbers.insert(hash, last as u32);
        last as u32
    }

    /// All of them; none is left, and their room goes with them.
    pub(super) fn take(&mut self) -> StackWords {
        if self.stacks.len() == 0 {
            return StackWords::default();
        }
        self.numbers.clear();
        std::mem::take(&mut self.stacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn any_met() -> impl Strategy<Value = Met> {
        let addresses = || vec(0_u64..3, 0..4);
        let endings = select(UnwindStatus::ALL.to_vec());
        (addresses(), addresses(), vec(0_u16..3, 0..3), endings, any::<bool>()).prop_map(
            |(kernel, user, interrupted, ending, is_chain)| Met {
                stack: RawStack {
                    kernel,
                    user,
                    interrupted,
                    ending,
                },
                is_chain,
            },
        )
    }

    proptest! {
        #[test]
        fn every_stack_comes_back_and_only_equal_ones_share_a_number(met in vec(any_met(), 1..80), unused_bits in 56_u32..64) {
            // Few bits: most hashes collide.
            let mut stacks = MetStacks { unused_bits, ..MetStacks::default() };
            let numbers: Vec<u32> = met.iter().map(|one| stacks.number_of(one)).collect();
            let mut distinct: Vec<&Met> = Vec::new();
            for one in &met {
                if !distinct.contains(&one) {
                    distinct.push(one);
                }
            }
            let mut read = Met::default();
            let words = stacks.take();
            prop_assert_eq!(words.len(), distinct.len());
            let mut again = MetStacks::default();
            for (one, number) in met.iter().zip(&numbers) {
                words.read(*number as usize, &mut read);
                prop_assert_eq!(&read, one);
                prop_assert_eq!(distinct[*number as usize], one);
                let of_other = again.number_of_other(&words, *number as usize);
                prop_assert_eq!(of_other, *number);
            }
        }
    }

    #[test]
    fn every_ending_has_its_number() {
        for ending in UnwindStatus::ALL {
            assert_eq!(ending_of(ending as u64), ending);
        }
    }
}
