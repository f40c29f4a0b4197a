//! Not keeping in memory what was read.
//!
//! A recording is mapped, and every page of it that was looked at counts as memory of ours until somebody else needs it. It is gone
//! through three times, mostly from its beginning to its end: what is behind is let go of, and read from the file's cache again
//! should it be needed.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Lets go of a part of a file's bytes: they stay readable.
pub(super) type LetGo<'a> = &'a (dyn Fn(&[u8]) + Sync);

/// So much is let go of at once: a call for each page would take longer than reading it.
const AT_ONCE: usize = 8 << 20;

/// So much is read in many places before all is let go of.
const READ_BEFORE_LETTING_GO: usize = 32 << 20;

/// How far a file was gone through.
pub(super) struct Behind<'a> {
    whole: &'a [u8],
    let_go: LetGo<'a>,
    done: AtomicUsize,
    /// Bytes that were read in many places since all was let go of.
    read: AtomicUsize,
}

impl<'a> Behind<'a> {
    pub(super) fn new(whole: &'a [u8], let_go: LetGo<'a>) -> Behind<'a> {
        Behind {
            whole,
            let_go,
            done: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
        }
    }

    /// A part of the file is read now; what is before it may be let go of. Bytes from elsewhere (of what was compressed) are none of it.
    pub(super) fn is_at(&self, part: &[u8]) {
        let Some(at) = place_in(self.whole, part) else { return };
        let done = self.done.load(Ordering::Relaxed);
        if at > done && at - done >= AT_ONCE {
            (self.let_go)(&self.whole[done..at]);
            self.done.store(at, Ordering::Relaxed);
        }
    }

    /// All of it was gone through; it may be once more.
    pub(super) fn is_over(&self) {
        (self.let_go)(self.whole);
        self.done.store(0, Ordering::Relaxed);
    }

    /// So many bytes were read, of several places at once: perf writes what one CPU recorded behind what another did in the same time, and
    /// several threads read. Now and then all is let go of; what is needed again comes back.
    pub(super) fn has_read(&self, bytes: usize) {
        let read = self.read.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if read >= READ_BEFORE_LETTING_GO
            && self
                .read
                .compare_exchange(read, 0, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            (self.let_go)(self.whole);
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

    #[test]
    fn what_is_behind_is_let_go_of_in_large_parts_and_nothing_else() {
        let whole = vec![0_u8; 3 * AT_ONCE];
        let parts = Mutex::new(Vec::new());
        let note = |part: &[u8]| {
            let at = place_in(&whole, part).expect("of the file");
            parts.lock().expect("free").push(at..at + part.len());
        };
        let behind = Behind::new(&whole, &note);
        let elsewhere = [0_u8; 4];
        for place in [0, 100, AT_ONCE + 5, 50, AT_ONCE + 10, 2 * AT_ONCE + 5] {
            behind.is_at(&whole[place..place + 4]);
            behind.is_at(&elsewhere);
        }
        behind.is_over();
        let end = 2 * AT_ONCE + 5;
        assert_eq!(
            *parts.lock().expect("free"),
            [0..AT_ONCE + 5, AT_ONCE + 5..end, 0..whole.len()]
        );
    }

    #[test]
    fn of_what_is_read_in_many_places_all_is_let_go_of_now_and_then() {
        let whole = vec![0_u8; 100];
        let count = AtomicUsize::new(0);
        let note = |part: &[u8]| {
            assert_eq!(part.len(), 100);
            count.fetch_add(1, Ordering::Relaxed);
        };
        let behind = Behind::new(&whole, &note);
        for _ in 0..9 {
            behind.has_read(READ_BEFORE_LETTING_GO / 4);
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
