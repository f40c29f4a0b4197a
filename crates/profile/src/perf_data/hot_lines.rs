//! Which cache lines of a copied stack a walk will look at.
//!
//! A walk looks at some tens of words all over a copy, each where the one before said, and waits for memory each time. So the lines that the next
//! walk is likely to look at are asked for before: those behind the stack pointer, where the innermost frames are, and those at
//! such distances from the top of the stack as walks looked at lately. Threads that do the same have their outer frames at the same distances,
//! however deep they are.

use scaleprof_binary::mapped_file::prefetch;

const CACHE_LINE: usize = 64;
/// Lines behind the stack pointer.
const INNERMOST: usize = 12;
/// No record is longer, so no copy is.
const MOST_LINES: usize = (1 << 16) / CACHE_LINE;
/// After so many walks it is counted which lines are hot,
const COUNTED_AFTER: u32 = 64;
/// which are those that were looked at so often, lately.
const OFTEN: u16 = 6;

/// What walks looked at.
#[derive(Debug)]
pub(super) struct HotLines {
    /// How often, by the distance from the end of the copy in lines; what is long ago counts less.
    seen: Box<[u16; MOST_LINES]>,
    /// The distances that are hot.
    hot: Vec<usize>,
    walks: u32,
}

impl Default for HotLines {
    fn default() -> HotLines {
        HotLines {
            seen: Box::new([0; MOST_LINES]),
            hot: Vec::new(),
            walks: 0,
        }
    }
}

impl HotLines {
    /// A walk looks at this place of a copy that is so long.
    pub(super) fn note(&mut self, place: usize, length: usize) {
        let distance = length.saturating_sub(place) / CACHE_LINE;
        if let Some(seen) = self.seen.get_mut(distance) {
            *seen = seen.saturating_add(1);
        }
    }

    /// Asks for what a walk through this copy will look at, which is the next one.
    pub(super) fn expect(&mut self, copy: &[u8]) {
        self.walks += 1;
        if self.walks.is_multiple_of(COUNTED_AFTER) {
            self.count();
        }
        prefetch(copy.get(..INNERMOST * CACHE_LINE).unwrap_or(copy));
        for distance in &self.hot {
            // Its middle: lines are counted from the end of the copy, which may lie anywhere in one of the memory's.
            let line = copy.len().checked_sub(distance * CACHE_LINE + CACHE_LINE / 2);
            prefetch(line.and_then(|line| copy.get(line..=line)).unwrap_or_default());
        }
    }

    fn count(&mut self) {
        self.hot.clear();
        for (distance, seen) in self.seen.iter_mut().enumerate() {
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

    #[test]
    fn lines_are_hot_by_their_distance_from_the_top_of_the_stack_while_walks_look_at_them() {
        let mut lines = HotLines::default();
        let walks = |lines: &mut HotLines, distance: usize| {
            for deep in 0..COUNTED_AFTER as usize {
                let copy = vec![0; 4096 + 16 * deep];
                lines.expect(&copy);
                lines.note(copy.len() - distance, copy.len());
            }
        };
        walks(&mut lines, 1000);
        walks(&mut lines, 1000);
        assert_eq!(lines.hot, [1000 / CACHE_LINE]);
        walks(&mut lines, 2000);
        walks(&mut lines, 2000);
        assert!(lines.hot.contains(&(2000 / CACHE_LINE)));
        (0..6).for_each(|_| walks(&mut lines, 2000));
        assert_eq!(lines.hot, [2000 / CACHE_LINE], "what was seen long ago is forgotten");
    }

    #[test]
    fn copies_of_any_length_are_expected_without_harm() {
        let mut lines = HotLines {
            hot: (0..MOST_LINES).collect(),
            ..HotLines::default()
        };
        for length in [0, 1, 63, 64, 100, 1 << 16] {
            lines.expect(&vec![0; length]);
            lines.note(length, length);
            lines.note(length + 1, length);
        }
        lines.note(0, usize::MAX);
        assert_eq!(lines.seen.iter().map(|seen| u64::from(*seen)).sum::<u64>(), 12);
    }
}
