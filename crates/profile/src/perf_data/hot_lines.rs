//! Which cache lines of a copied stack a walk will look at.
//!
//! A walk looks at some tens of words all over a copy, each where the one before said, and waits for memory each time. So the lines that the next
//! walk is likely to look at are asked for before: those behind the stack pointer, where the innermost frames are, and those at
//! such distances from the top of the thread's stack as walks looked at lately. Threads that do the same have their outer frames at the same
//! distances, however deep they are. Where the top is, copies tell that reach up to it; of a thread that is deeper than a copy is long others of its
//! copies do.

use foldhash::HashMap;
use scaleprof_binary::mapped_file::prefetch;

const CACHE_LINE: usize = 64;
/// Lines behind the stack pointer.
const INNERMOST: usize = 12;
/// Further from the top no line is kept in mind: no copy is longer than half of that.
const MOST_LINES: usize = (1 << 17) / CACHE_LINE;
/// After so many walks it is counted which lines are hot,
const COUNTED_AFTER: u32 = 64;
/// which are those that were looked at so often, lately.
const OFTEN: u16 = 6;

/// The copy of a part of a thread's stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackPart<'a> {
    pub(super) thread: u32,
    /// Where it began: the stack pointer.
    pub(super) start: u64,
    pub(super) bytes: &'a [u8],
    /// Whether the stack may go on behind it.
    pub(super) is_cut: bool,
}

/// What walks looked at.
#[derive(Debug)]
pub(super) struct HotLines {
    /// How often, by the distance from the top of the stack in lines; what is long ago counts less.
    seen: Box<[u16; MOST_LINES]>,
    /// The distances that are hot.
    hot: Vec<u64>,
    walks: u32,
    /// The tops of threads' stacks.
    tops: HashMap<u32, u64>,
    /// That of the stack that is being walked; none where nobody knows.
    top: Option<u64>,
}

impl Default for HotLines {
    fn default() -> HotLines {
        HotLines {
            seen: Box::new([0; MOST_LINES]),
            hot: Vec::new(),
            walks: 0,
            tops: HashMap::default(),
            top: None,
        }
    }
}

impl HotLines {
    /// A walk through this copy begins.
    pub(super) fn begin(&mut self, part: &StackPart<'_>) {
        self.top = self.top_of(part);
    }

    /// It looks at this address.
    pub(super) fn note(&mut self, address: u64) {
        let distance = self.top.map(|top| top.wrapping_sub(address) / CACHE_LINE as u64);
        let distance = distance.and_then(|distance| usize::try_from(distance).ok());
        if let Some(seen) = distance.and_then(|distance| self.seen.get_mut(distance)) {
            *seen = seen.saturating_add(1);
        }
    }

    /// Asks for what a walk through this copy will look at, which is the next one.
    pub(super) fn expect(&mut self, part: &StackPart<'_>) {
        self.walks += 1;
        if self.walks.is_multiple_of(COUNTED_AFTER) {
            self.count();
        }
        let bytes = part.bytes;
        prefetch(bytes.get(..INNERMOST * CACHE_LINE).unwrap_or(bytes));
        let Some(top) = self.top_of(part) else { return };
        let height = top.wrapping_sub(part.start);
        for distance in &self.hot {
            // Its middle: lines are counted from the top, which may lie anywhere in one of the memory's.
            let place = height.checked_sub(distance * CACHE_LINE as u64 + CACHE_LINE as u64 / 2);
            let place = place.and_then(|place| usize::try_from(place).ok());
            prefetch(place.and_then(|place| bytes.get(place..=place)).unwrap_or_default());
        }
    }

    /// The top of the stack that a copy is of: its own, or the one that its thread had last.
    fn top_of(&mut self, part: &StackPart<'_>) -> Option<u64> {
        if part.is_cut {
            return self.tops.get(&part.thread).copied();
        }
        let top = part.start.wrapping_add(part.bytes.len() as u64);
        self.tops.insert(part.thread, top);
        Some(top)
    }

    fn count(&mut self) {
        self.hot.clear();
        for (distance, seen) in (0..).zip(self.seen.iter_mut()) {
            if *seen >= OFTEN {
                self.hot.push(distance);
            }
            *seen /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: u64 = 0x7fff_0000_1230;

    /// A copy of the last so many bytes of a stack, or of those in front of the last so many.
    fn part(bytes: &[u8], missing: u64) -> StackPart<'_> {
        StackPart {
            thread: 7,
            start: TOP - missing - bytes.len() as u64,
            bytes,
            is_cut: missing > 0,
        }
    }

    fn walks(lines: &mut HotLines, distance: u64) {
        for deep in 0..COUNTED_AFTER as usize {
            let copy = vec![0; 4096 + 16 * deep];
            lines.expect(&part(&copy, 0));
            lines.begin(&part(&copy, 0));
            lines.note(TOP - distance);
        }
    }

    #[test]
    fn lines_are_hot_by_their_distance_from_the_top_of_the_stack_while_walks_look_at_them() {
        let mut lines = HotLines::default();
        let line = |distance: u64| distance / CACHE_LINE as u64;
        walks(&mut lines, 1000);
        walks(&mut lines, 1000);
        assert_eq!(lines.hot, [line(1000)]);
        walks(&mut lines, 2000);
        walks(&mut lines, 2000);
        assert!(lines.hot.contains(&line(2000)));
        (0..6).for_each(|_| walks(&mut lines, 2000));
        assert_eq!(lines.hot, [line(2000)], "what was seen long ago is forgotten");
    }

    #[test]
    fn where_the_top_of_a_cut_copy_is_another_copy_of_its_thread_tells() {
        let mut lines = HotLines::default();
        let deep = [0; 300];
        lines.begin(&part(&deep, 5000));
        lines.note(TOP - 5100);
        assert_eq!(
            lines.seen.iter().max(),
            Some(&0),
            "nobody knows how far that is from the top"
        );
        walks(&mut lines, 1000);
        lines.begin(&part(&deep, 5000));
        lines.note(TOP - 5100);
        assert_eq!(lines.seen[5100 / CACHE_LINE], 1);
        let of_another = StackPart {
            thread: 8,
            ..part(&deep, 5000)
        };
        lines.begin(&of_another);
        assert_eq!(lines.top, None);
    }

    #[test]
    fn copies_of_any_length_at_any_address_are_expected_without_harm() {
        let mut lines = HotLines {
            hot: (0..MOST_LINES as u64).collect(),
            ..HotLines::default()
        };
        for (length, is_cut) in [0, 1, 63, 64, 100, 1 << 16]
            .into_iter()
            .flat_map(|length| [(length, false), (length, true)])
        {
            for start in [0, TOP, u64::MAX - 64, u64::MAX] {
                let part = StackPart {
                    thread: 1,
                    start,
                    bytes: &vec![0; length],
                    is_cut,
                };
                lines.expect(&part);
                lines.begin(&part);
                for address in [0, start, start.wrapping_sub(1), u64::MAX] {
                    lines.note(address);
                }
            }
        }
    }
}
