//! The jumps that the processor remembered before each sample (`perf record -b`), each summed up once.
//!
//! A sample has some thirty of them. They are counted by their addresses in the process, and brought into the address space of the recording
//! once for each layout, as stacks are. Counting refuses none: every different jump that a thread keeps has an entry of its own in the recording,
//! which bounds them all. Where there are too many to tell, the rarest go at last, so that the recording alone decides which these are, and not
//! how many threads there were and which of them counted what.

use super::address_space::{self, UNKNOWN};
use super::cursor::Words;
use super::timeline::Layout;
use crate::import::BranchCounts;
use foldhash::HashMap;
use std::cmp::Reverse;

/// Different jumps that are told of any recording,
const ALWAYS: usize = 1 << 15;
/// and one more for so many of its bytes: five entries have as many.
const BYTES_FOR_ONE: usize = 128;
/// But no more than these of the longest: the names of both ends take many times the room of a jump.
const MOST: usize = 1 << 20;

/// From where to where.
type Jump = (u64, u64);

/// How many different jumps of a recording are told: one that has more was made to fill the memory.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Room {
    /// For a recording of so many bytes.
    pub(super) fn of(bytes: usize) -> Room {
        Room((ALWAYS + bytes / BYTES_FOR_ONE).min(MOST))
    }
}

/// What one thread counts.
#[derive(Debug)]
pub(super) struct Counting<'a> {
    room: &'a Room,
    /// Of this layout, by addresses in the process.
    met: HashMap<Jump, BranchCounts>,
    /// Of the layouts before.
    before: Jumps,
}

impl<'a> Counting<'a> {
    pub(super) fn new(room: &'a Room) -> Counting<'a> {
        Counting {
            room,
            met: HashMap::default(),
            before: Jumps::default(),
        }
    }

    /// Counts the jumps of a sample: three numbers each, from, to and flags.
    pub(super) fn count(&mut self, branches: &Words<'_>) {
        let mut words = branches.iter();
        while let (Some(from), Some(to), Some(flags)) = (words.next(), words.next(), words.next()) {
            let left_out = &mut self.before.left_out;
            match (from, to) {
                // An entry that the processor has not filled yet.
                (0, 0) => {}
                _ if is_on_wrong_path(flags) => left_out.wrong_path += 1,
                jump => self.met.entry(jump).or_default().add(&once(flags)),
            }
        }
    }

    /// Brings what was counted in a layout into the address space of the recording.
    pub(super) fn leave(&mut self, layout: &Layout) {
        // With its memory: going through one that was large once would take its time for each of the next layouts.
        for ((from, to), counts) in std::mem::take(&mut self.met) {
            let jump = (place(layout, from), place(layout, to));
            if jump.0 == UNKNOWN || jump.1 == UNKNOWN {
                self.before.left_out.in_no_file += counts.taken;
            } else {
                self.before.add(jump, &counts);
            }
        }
    }

    /// All that was counted before the last time that a layout was left.
    pub(super) fn into_jumps(self) -> Jumps {
        let Room(room) = *self.room;
        Jumps { room, ..self.before }
    }
}

/// Jumps in the address space of the recording; those of the kernel have its own addresses.
#[derive(Debug, Default)]
pub(super) struct Jumps {
    counts: HashMap<Jump, BranchCounts>,
    left_out: LeftOut,
    /// How many different ones are told.
    room: usize,
}

/// Jumps that are not told, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LeftOut {
    in_no_file: u64,
    wrong_path: u64,
    no_room: u64,
}

impl Jumps {
    fn add(&mut self, jump: Jump, counts: &BranchCounts) {
        self.counts.entry(jump).or_default().add(counts);
    }

    /// Adds what another thread counted.
    pub(super) fn add_all(&mut self, other: Jumps) {
        self.room = self.room.max(other.room);
        if self.counts.is_empty() {
            self.counts = other.counts;
        } else {
            for (jump, counts) in other.counts {
                self.add(jump, &counts);
            }
        }
        let LeftOut {
            in_no_file,
            wrong_path,
            no_room,
        } = other.left_out;
        self.left_out.in_no_file += in_no_file;
        self.left_out.wrong_path += wrong_path;
        self.left_out.no_room += no_room;
    }

    /// Leaves out the rarest where there are more than are told, and of those that are equally rare the ones with the higher addresses.
    pub(super) fn keep_most_taken(&mut self) {
        if self.counts.len() <= self.room {
            return;
        }
        let all = self.counts.iter();
        let mut by_count: Vec<(Reverse<u64>, Jump)> =
            all.map(|(jump, counts)| (Reverse(counts.taken), *jump)).collect();
        let (_, first_rare, rarer) = by_count.select_nth_unstable(self.room);
        for (Reverse(taken), jump) in rarer.iter().chain([&*first_rare]) {
            self.left_out.no_room += taken;
            self.counts.remove(jump);
        }
        self.counts.shrink_to_fit();
    }

    /// All jumps with what became of them, in no order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (Jump, &BranchCounts)> {
        self.counts.iter().map(|(jump, counts)| (*jump, counts))
    }

    /// The places that they lead from and to, each once and in order.
    pub(super) fn ends(&self) -> Vec<u64> {
        let mut ends: Vec<u64> = self.counts.keys().flat_map(|(from, to)| [*from, *to]).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Those of them that lie in the kernel.
    pub(super) fn ends_in_kernel(&self) -> Vec<u64> {
        let mut ends = self.ends();
        ends.retain(|end| is_of_kernel(*end));
        ends
    }

    /// What to say of those that are left out.
    pub(super) fn notes(&self) -> Vec<String> {
        let LeftOut {
            in_no_file,
            wrong_path,
            no_room,
        } = self.left_out;
        let kept: u64 = self.counts.values().map(|counts| counts.taken).sum();
        let all = kept + in_no_file + wrong_path + no_room;
        if all == 0 {
            let none = "none of its samples has branches (perf record -b): the processor has no branch records, or the hypervisor hides them";
            return vec![none.to_owned()];
        }
        let counts = [
            (
                in_no_file,
                "start or end outside of any file (code generated at run time), or in one that was not mapped then",
            ),
            (wrong_path, "were mispredicted and never taken"),
            (no_room, "are the rarest, beyond the number that is listed"),
        ];
        let told = counts.into_iter().filter(|(count, _)| *count > 0);
        told.map(|(count, words)| format!("{count} of its {all} branches (perf record -b) {words}: skipped"))
            .collect()
    }
}

/// Whether an address is the kernel's: no file of a recording lies so high in its address space.
pub(super) fn is_of_kernel(address: u64) -> bool {
    address >> 63 != 0
}

fn place(layout: &Layout, in_process: u64) -> u64 {
    match is_of_kernel(in_process) {
        true => in_process,
        false => address_space::of_process(layout, in_process, false),
    }
}

/// What the flags of a jump say (`struct perf_branch_entry`, include/uapi/linux/perf_event.h), as counts.
fn once(flags: u64) -> BranchCounts {
    const MISPREDICTED: u64 = 1 << 0;
    const PREDICTED: u64 = 1 << 1;
    // 0 where the processor does not count them.
    let cycles = flags >> 4 & 0xffff;
    BranchCounts {
        taken: 1,
        with_prediction: u64::from(flags & (MISPREDICTED | PREDICTED) != 0),
        mispredicted: flags & MISPREDICTED,
        with_cycles: u64::from(cycles > 0),
        cycles,
    }
}

/// Whether it was begun on a guess that was wrong: some processors remember these too.
fn is_on_wrong_path(flags: u64) -> bool {
    /// PERF_BR_SPEC_WRONG_PATH.
    const WRONG_PATH: u64 = 1;
    flags >> 24 & 3 == WRONG_PATH
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::super::files::FileId;
    use super::super::timeline::Place;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Bytes of the file that both processes have, mapped at different places.
    const LENGTH: u64 = 0x40;

    fn layout(start: u64) -> Layout {
        let place = Place {
            start,
            end: start + LENGTH,
            bias: start,
            file: FileId(0),
            of_own_making: false,
        };
        Layout { places: vec![place] }
    }

    /// Lets a thread count samples.
    fn count(counting: &mut Counting<'_>, entries: &[[u64; 3]]) {
        let bytes: Vec<u8> = entries
            .as_flattened()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let words = Cursor::new(&bytes).words(entries.len() as u64 * 3).expect("whole");
        counting.count(&words);
    }

    /// What an entry adds, by the kernel's description, told apart from the code.
    fn naive(flags: u64) -> [u64; 5] {
        let bit = |number: u32| flags / 2_u64.pow(number) % 2;
        let known = bit(0) + bit(1) > 0;
        let cycles = flags / 16 % 65536;
        [1, u64::from(known), bit(0), u64::from(cycles != 0), cycles]
    }

    proptest! {
        /// `samples`: which of two threads counts in which of two layouts, and the entries.
        #[test]
        fn sums_are_those_of_adding_one_by_one(
            samples in vec((0_usize..2, 0_usize..2, vec((0..LENGTH + 8, 0..LENGTH + 8, any::<u64>()), 0..6)), 0..60),
        ) {
            let starts = [0x5500_0000_0000, 0x7f00_0000_0000];
            let room = Room::of(0);
            let mut threads = [Counting::new(&room), Counting::new(&room)];
            let mut expected: BTreeMap<Jump, [u64; 5]> = BTreeMap::new();
            let (mut wrong_path, mut in_no_file) = (0, 0);
            for (thread, process, entries) in &samples {
                let moved: Vec<[u64; 3]> =
                    entries.iter().map(|(from, to, flags)| [starts[*process] + from, starts[*process] + to, *flags]).collect();
                count(&mut threads[*thread], &moved);
                threads[*thread].leave(&layout(starts[*process]));
                for (from, to, flags) in entries {
                    if flags / 2_u64.pow(24) % 4 == 1 {
                        wrong_path += 1;
                    } else if *from >= LENGTH || *to >= LENGTH {
                        in_no_file += 1;
                    } else {
                        let sums = expected.entry((*from, *to)).or_default();
                        for (sum, more) in sums.iter_mut().zip(naive(*flags)) {
                            *sum += more;
                        }
                    }
                }
            }
            let mut all = Jumps::default();
            for thread in threads {
                all.add_all(thread.into_jumps());
            }
            prop_assert_eq!(all.left_out, LeftOut { in_no_file, wrong_path, no_room: 0 });
            let svma = |address| address_space::place(address).map_or(u64::MAX, |(_, svma)| svma);
            let found: BTreeMap<Jump, [u64; 5]> = all
                .iter()
                .map(|((from, to), counts)| {
                    let BranchCounts { taken, with_prediction, mispredicted, with_cycles, cycles } = *counts;
                    ((svma(from), svma(to)), [taken, with_prediction, mispredicted, with_cycles, cycles])
                })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_the_processor_does_not_tell_is_not_known_and_no_0() {
        let silent = once(0);
        assert_eq!((silent.taken, silent.mispredicted(), silent.cycles()), (1, None, None));
        let right = once(0b10 | 7 << 4);
        assert_eq!((right.mispredicted(), right.cycles()), (Some(0), Some(7)));
        assert_eq!(once(0b01).mispredicted(), Some(1));
    }

    /// The same file, from its beginning on.
    fn wide(start: u64, length: u64) -> Layout {
        let place = Place {
            start,
            end: start + length,
            bias: start,
            file: FileId(0),
            of_own_making: false,
        };
        Layout { places: vec![place] }
    }

    #[test]
    fn of_more_different_jumps_than_are_told_the_rarest_are_left_out_and_counted() {
        let room = Room::of(0);
        let mut counting = Counting::new(&room);
        let many = ALWAYS as u64 + 1000;
        let (first, second) = (0x40_0000, 0x7f00_0000_0000);
        for at in 0..many {
            count(&mut counting, &[[first + at, first, 2], [first + at, first, 2]]);
        }
        counting.leave(&wide(first, 2 * many));
        // One that is known from the layout before, and one that is not.
        count(
            &mut counting,
            &[[second + many - 1, second, 2], [second + many, second, 2]],
        );
        counting.leave(&wide(second, 2 * many));
        let mut jumps = counting.into_jumps();
        jumps.keep_most_taken();
        let taken: Vec<u64> = jumps.iter().map(|(_, counts)| counts.taken).collect();
        assert_eq!((taken.len(), taken.iter().max()), (ALWAYS, Some(&3)));
        assert_eq!(jumps.left_out.no_room, 2001);
        let said = jumps.notes().join("; ");
        assert!(said.contains("2001 of its"), "{said}");
    }

    #[test]
    fn which_jumps_are_told_does_not_depend_on_how_many_threads_counted_them() {
        let (start, many) = (0x40_0000, ALWAYS as u64 + 500);
        let layout = wide(start, many);
        let told_by = |threads: u64| {
            let room = Room::of(0);
            let mut counting: Vec<Counting<'_>> = (0..threads).map(|_| Counting::new(&room)).collect();
            for (thread, own) in (0..threads).zip(&mut counting) {
                // Each has those of its own, from behind, and some that all of them have.
                for at in (0..many).rev().filter(|at| at % threads == thread || at % 64 == 0) {
                    let times = if at % 64 == 0 { 64 / threads } else { 1 + at % 3 };
                    for _ in 0..times {
                        count(own, &[[start + at, start, 0]]);
                    }
                }
                own.leave(&layout);
            }
            let mut all = Jumps::default();
            for own in counting {
                all.add_all(own.into_jumps());
            }
            all.keep_most_taken();
            let told: BTreeMap<Jump, u64> = all.iter().map(|(jump, counts)| (jump, counts.taken)).collect();
            (told, all.left_out)
        };
        let alone = told_by(1);
        assert_eq!((alone.0.len(), alone.1.no_room), (ALWAYS, 500));
        for threads in [2, 16, 64] {
            assert!(told_by(threads) == alone, "{threads} threads");
        }
    }

    #[test]
    fn however_long_a_recording_is_there_is_an_end_to_the_jumps_that_are_told() {
        let room = |bytes| Room::of(bytes).0;
        assert_eq!(room(128 * 1000), ALWAYS + 1000);
        assert_eq!(room(usize::MAX / 2), MOST);
    }

    #[test]
    fn the_kernel_s_own_jumps_need_no_mapping_and_empty_entries_are_none() {
        let room = Room::of(0);
        let mut counting = Counting::new(&room);
        let kernel = 0xffff_ffff_8100_0000;
        count(&mut counting, &[[0x10, kernel, 2], [kernel, kernel + 8, 2], [0, 0, 0]]);
        counting.leave(&layout(0));
        let jumps = counting.into_jumps();
        assert_eq!(jumps.ends().len(), 3);
        assert_eq!(jumps.ends_in_kernel(), [kernel, kernel + 8]);
        assert!(jumps.notes().is_empty());
    }

    #[test]
    fn where_the_processor_keeps_no_jumps_that_is_said() {
        let said = Jumps::default().notes().join("; ");
        assert!(said.contains("none of its samples has branches"), "{said}");
    }
}
