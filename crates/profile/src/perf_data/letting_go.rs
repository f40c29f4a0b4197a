//! Not keeping in memory what was read.
//!
//! A recording is mapped, and every page of it that was looked at counts as memory of ours until somebody else needs it. It is gone
//! through three times, mostly from its beginning to its end. Of a large one what is behind is let go of each time, and read from the
//! file's cache again. One that takes no more memory than perf does is kept until it is read for the last time, and its second half until samples are
//! made: letting go of it, and looking at it again, takes longer than all else that is done with a page. Of large ones with copied stacks hardly anything is
//! mapped at all (see `beginnings`).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lets go of a part of a file's bytes: they stay readable.
pub(super) type LetGo<'a> = &'a (dyn Fn(&[u8]) + Sync);

/// So much is let go of at once: a call for each page would take longer than reading it.
const AT_ONCE: usize = 8 << 20;

/// So much is read of what was let go of before all is let go of once more.
const READ_AGAIN: usize = 32 << 20;

/// How far a file was gone through.
pub(super) struct Behind<'a> {
    whole: &'a [u8],
    /// Whether it stays in memory as a whole.
    is_kept: bool,
    let_go: LetGo<'a>,
    /// What is before it was let go of.
    done: AtomicUsize,
    /// Bytes that were read since of what was let go of, and from where to where they lie.
    read_again: AtomicUsize,
    again_from: AtomicUsize,
    again_to: AtomicUsize,
}

impl<'a> Behind<'a> {
    /// `kept`: of a recording that is not longer all stays in memory.
    pub(super) fn new(whole: &'a [u8], kept: usize, let_go: LetGo<'a>) -> Behind<'a> {
        Behind {
            whole,
            is_kept: whole.len() <= kept,
            let_go,
            done: AtomicUsize::new(0),
            read_again: AtomicUsize::new(0),
            again_from: AtomicUsize::new(usize::MAX),
            again_to: AtomicUsize::new(0),
        }
    }

    /// Whether it stays in memory as a whole.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// A part of the file is read now, which will be gone through again; what is well before it may be let go of. Bytes from elsewhere
    /// (of what was compressed) are none of it.
    pub(super) fn is_at(&self, part: &[u8]) {
        if !self.is_kept()
            && let Some(at) = place_in(self.whole, part)
        {
            self.has_come_to(at..at + part.len(), part.len());
        }
    }

    /// All of it was gone through; it will be once more.
    pub(super) fn is_over(&self) {
        if !self.is_kept() {
            (self.let_go)(self.whole);
        }
        self.done.store(0, Ordering::Relaxed);
    }

    /// The next is the last time, in which debug information takes room too: of a recording that is kept the second half goes until it
    /// is read.
    pub(super) fn make_room(&self) {
        if self.is_kept() {
            (self.let_go)(&self.whole[self.whole.len() / 2..]);
        }
    }

    /// These parts were read for the last time, by one of several threads: nearly in the order of the file, as perf writes what one CPU
    /// recorded behind what another did in the same time. What is well before them is let go of. Who goes back, as for another
    /// process, reads what was let go of.
    pub(super) fn has_read<'p>(&self, parts: impl Iterator<Item = &'p [u8]>) {
        if self.is_kept() {
            return self.let_go_of_first_half(parts);
        }
        let (mut first, mut last, mut bytes) = (usize::MAX, 0, 0);
        for (at, length) in parts.filter_map(|part| Some((place_in(self.whole, part)?, part.len()))) {
            (first, last) = (first.min(at), last.max(at + length));
            bytes += length;
        }
        if first < last {
            self.has_come_to(first..last, bytes);
        }
    }

    /// So many bytes were read of a range: what is well before it may go. A record may stand far from those of its time, as what perf
    /// writes at its end does: all that is read from then on was let go of before, and now and then goes once more.
    fn has_come_to(&self, range: Range<usize>, bytes: usize) {
        if range.start >= self.done.load(Ordering::Relaxed) {
            return self.let_go_before(range.start.saturating_sub(AT_ONCE));
        }
        self.again_from.fetch_min(range.start, Ordering::Relaxed);
        self.again_to.fetch_max(range.end, Ordering::Relaxed);
        let read = self.read_again.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // One of the threads.
        if read >= READ_AGAIN
            && (self
                .read_again
                .compare_exchange(read, 0, Ordering::Relaxed, Ordering::Relaxed))
            .is_ok()
        {
            let from = self.again_from.swap(usize::MAX, Ordering::Relaxed);
            let to = self.again_to.swap(0, Ordering::Relaxed);
            if let Some(part) = self.whole.get(from..to.min(self.whole.len())) {
                (self.let_go)(part);
            }
        }
    }

    /// Of a recording that is kept the first half goes, once, as soon as somebody is well beyond it: names and call paths take the room.
    fn let_go_of_first_half<'p>(&self, mut parts: impl Iterator<Item = &'p [u8]>) {
        let half = self.whole.len() / 2;
        let first = parts.next().and_then(|part| place_in(self.whole, part));
        let is_beyond = first.is_some_and(|first| first > half + AT_ONCE);
        if is_beyond && self.done.swap(half, Ordering::Relaxed) < half {
            (self.let_go)(&self.whole[..half]);
        }
    }

    fn let_go_before(&self, at: usize) {
        let done = self.done.load(Ordering::Relaxed);
        if at > done
            && at - done >= AT_ONCE
            && (self
                .done
                .compare_exchange(done, at, Ordering::Relaxed, Ordering::Relaxed))
            .is_ok()
        {
            (self.let_go)(&self.whole[done..at]);
        }
    }
}

fn place_in(whole: &[u8], part: &[u8]) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (at < whole.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// So short a recording is kept in these tests.
    const KEPT: usize = 64 << 20;

    /// The parts that are let go of while `read` reads a file of that length.
    fn let_go_of(length: usize, read: impl FnOnce(&Behind<'_>, &[u8])) -> Vec<Range<usize>> {
        let whole = vec![0_u8; length];
        let parts = Mutex::new(Vec::new());
        let note = |part: &[u8]| {
            let at = place_in(&whole, part).expect("of the file");
            parts.lock().expect("free").push(at..at + part.len());
        };
        read(&Behind::new(&whole, KEPT, &note), &whole);
        parts.into_inner().expect("free")
    }

    #[test]
    fn of_a_large_file_what_is_behind_is_let_go_of_in_large_parts_and_nothing_else() {
        let length = KEPT + 3 * AT_ONCE;
        let parts = let_go_of(length, |behind, whole| {
            let elsewhere = [0_u8; 4];
            for place in [0, 100, 2 * AT_ONCE + 5, 50, 2 * AT_ONCE + 10, 3 * AT_ONCE + 5] {
                behind.is_at(&whole[place..place + 4]);
                behind.is_at(&elsewhere);
            }
            behind.is_over();
        });
        assert_eq!(parts, [0..AT_ONCE + 5, AT_ONCE + 5..2 * AT_ONCE + 5, 0..length]);
    }

    #[test]
    fn a_small_file_is_kept_until_its_second_half_is_read_for_the_last_time() {
        let parts = let_go_of(6 * AT_ONCE, |behind, whole| {
            behind.is_at(&whole[5 * AT_ONCE + 5..]);
            behind.is_over();
            behind.make_room();
            for place in [0, 3 * AT_ONCE, 4 * AT_ONCE, 4 * AT_ONCE + 9, 10, 5 * AT_ONCE] {
                behind.has_read([&whole[place..place + 4]].into_iter());
            }
        });
        assert_eq!(parts, [3 * AT_ONCE..6 * AT_ONCE, 0..3 * AT_ONCE]);
    }

    #[test]
    fn a_record_far_from_those_of_its_time_does_not_keep_all_others_in_memory() {
        let length = KEPT + 8 * AT_ONCE;
        let parts = let_go_of(length, |behind, whole| {
            behind.is_at(&whole[length - 8..]);
            for at in whole[..length - 8].chunks(READ_AGAIN / 4) {
                behind.is_at(at);
            }
        });
        let again = [0, 1, 2].map(|time| time * READ_AGAIN..(time + 1) * READ_AGAIN);
        assert_eq!(parts[0], 0..length - 8 - AT_ONCE);
        assert_eq!(parts[1..], again);
    }

    #[test]
    fn where_threads_go_back_all_is_let_go_of_now_and_then() {
        let length = KEPT + 8 * AT_ONCE;
        let parts = let_go_of(length, |behind, whole| {
            behind.has_read([&whole[7 * AT_ONCE..]].into_iter());
            for _ in 0..9 {
                behind.has_read([&whole[..READ_AGAIN / 4]].into_iter());
            }
        });
        let again = 0..READ_AGAIN / 4;
        assert_eq!(parts, [0..6 * AT_ONCE, again.clone(), again]);
    }
}
