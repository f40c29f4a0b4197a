//! The lines that a list of the kernel's symbols begins with, as far as they are by address.
//!
//! They are nearly all, as the kernel sorts its own and only those of modules come as these were loaded. A few hundred of them are
//! ever asked for: of some it is known where they are, and the others are read when they are needed.
//!
//! The kernel finds its own symbols by halving (`get_symbol_pos` in kernel/kallsyms.c), so that they are by address or its own reports would
//! have wrong names; and it writes its own before those of modules. So a long list is not looked through line by line, which would take longer than
//! all that is asked of it: that both is so is only seen at every thousandth byte. In one that somebody else wrote, and that is so there and not in
//! between, a line may be missed: an address has the name of a neighbour then.

use super::list_line::{Line, Lines};
use crate::mapped_file::prefetch;

/// Lines from one that is known to the next,
const APART: usize = 16;

/// or bytes, in a long list.
const BYTES_APART: usize = 1 << 10;

/// A list that is not longer is looked through line by line.
const SHORT: usize = 1 << 17;

/// So many known ones may have one address.
const MOST_KNOWN_OF_ONE_ADDRESS: usize = 1 << 5;

/// So many bytes are read at most to find a line: some lines, none of which is longer than that by far.
const MOST_BYTES_APART: usize = 1 << 14;

/// So many lines of one address are looked at whenever somebody asks for it: a kernel has some hundred for what it was built without.
const MOST_OF_ONE_ADDRESS: usize = 1 << 10;

/// From here on addresses are the kernel's own and its modules'; below are offsets into the memory of each CPU.
pub(super) const UPPER_HALF: u64 = 1 << 63;

/// Where lines are.
#[derive(Debug, Clone, Default)]
pub(super) struct InOrder {
    marks: Vec<Mark>,
    /// Behind the last one.
    end: usize,
    /// The highest address.
    last: u64,
    /// How much further up than in the list all addresses of the upper half are.
    moved: i64,
}

/// A line of which it is known where it is.
#[derive(Debug, Clone, Copy)]
struct Mark {
    address: u64,
    place: u32,
}

impl InOrder {
    /// Looks through the lines of a text, without those of modules.
    pub(super) fn of(text: &[u8]) -> InOrder {
        let mut found = InOrder::default();
        if text.len() > SHORT {
            found.leap(text);
        }
        found.go_on(text);
        found
    }

    /// Goes through a text in leaps, as long as addresses rise. The rest is behind the last place that was found.
    fn leap(&mut self, text: &[u8]) {
        /// So many leaps ahead memory is asked for what will be looked at.
        const LOOKED_AHEAD: usize = 8;
        const LOOKED_AT: usize = 128;
        let (mut of_address, mut behind_last) = (0, 0);
        // Where a leap ends does not depend on those before: they wait for memory together.
        for begin in (0..text.len()).step_by(BYTES_APART) {
            let later = begin + LOOKED_AHEAD * BYTES_APART;
            prefetch(text.get(later..later + LOOKED_AT).unwrap_or_default());
            let within = &text[begin..text.len().min(begin + MOST_BYTES_APART)];
            let place = match begin {
                0 => Some(0),
                _ => memchr::memchr(b'\n', within).map(|end| begin + end + 1),
            };
            let mut lines = Lines::from(text, place.unwrap_or(text.len()).max(behind_last));
            let place = lines.place();
            let next = lines.next().zip(u32::try_from(place).ok());
            let Some((line, at)) = next.filter(|(line, _)| line.module.is_none()) else {
                return;
            };
            let before = self.marks.last().map(|mark| mark.address);
            of_address = match before == Some(line.address) {
                true => of_address + 1,
                false => 1,
            };
            let is_long = lines.place() - begin > MOST_BYTES_APART;
            if before > Some(line.address) || of_address > MOST_KNOWN_OF_ONE_ADDRESS || is_long {
                return;
            }
            behind_last = lines.place();
            let address = line.address;
            self.marks.push(Mark { address, place: at });
        }
    }

    /// Goes on line by line from the last place that was found.
    fn go_on(&mut self, text: &[u8]) {
        let known = self.marks.pop();
        let before = self.marks.last().map_or(0, |mark| mark.address);
        self.last = before;
        self.end = known.map_or(0, |mark| mark.place as usize);
        let mut lines = Lines::from(text, self.end);
        let (mut until_mark, mut of_address) = (0, 0);
        while let (Ok(place), Some(line)) = (u32::try_from(lines.place()), lines.next()) {
            of_address = match line.address == self.last {
                true => of_address + 1,
                false => 1,
            };
            if line.module.is_some() || line.address < self.last || of_address > MOST_OF_ONE_ADDRESS {
                break;
            }
            if until_mark == 0 {
                until_mark = APART;
                let address = line.address;
                self.marks.push(Mark { address, place });
            }
            let since_mark = self.marks.last().map_or(0, |mark| lines.place() - mark.place as usize);
            if since_mark > MOST_BYTES_APART {
                break;
            }
            until_mark -= 1;
            self.last = line.address;
            self.end = lines.place();
        }
    }

    /// Where the lines begin that are none of these.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// The highest address; none where there is no line.
    pub(super) fn last(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.now(self.last))
    }

    /// All addresses of the upper half are so much further up from now on.
    pub(super) fn move_up(&mut self, by: u64) {
        self.moved = self.moved.wrapping_add(by.cast_signed());
    }

    /// The lines of the highest address up to this one: one, or one for each name of it.
    pub(super) fn at<'text>(&self, text: &'text [u8], address: u64) -> Vec<Line<'text>> {
        let then = self.then(address);
        let behind = self.marks.partition_point(|mark| mark.address <= then);
        let Some(mark) = behind.checked_sub(1) else {
            return Vec::new();
        };
        let up_to = |line: &Line<'_>| line.address <= then;
        let Some(last) = self.lines(text, mark).take_while(up_to).last() else {
            return Vec::new();
        };
        // Further names of it may stand in front of the mark.
        let first = self.marks.partition_point(|mark| mark.address < last.address);
        let same = self
            .lines(text, first.saturating_sub(1))
            .skip_while(|line| line.address < last.address);
        let same = same.take_while(|line| line.address == last.address);
        same.map(|line| Line {
            address: self.now(line.address),
            ..line
        })
        .collect()
    }

    /// All of them.
    #[cfg(test)]
    pub(super) fn all<'text>(&self, text: &'text [u8]) -> impl Iterator<Item = Line<'text>> {
        self.lines(text, 0).map(|line| Line {
            address: self.now(line.address),
            ..line
        })
    }

    /// As the list has them, from a mark on.
    fn lines<'text>(&self, text: &'text [u8], mark: usize) -> Lines<'text> {
        let all = &text[..self.end.min(text.len())];
        let place = self.marks.get(mark).map_or(self.end, |mark| mark.place as usize);
        Lines::from(all, place)
    }

    fn now(&self, address: u64) -> u64 {
        match address >= UPPER_HALF {
            true => address.wrapping_add_signed(self.moved),
            false => address,
        }
    }

    /// Up to which address of the list lines lie up to this one now.
    fn then(&self, address: u64) -> u64 {
        if address < UPPER_HALF {
            return address;
        }
        let then = i128::from(address) - i128::from(self.moved);
        u64::try_from(then.clamp(i128::from(UPPER_HALF) - 1, i128::from(u64::MAX))).unwrap_or(u64::MAX)
    }
}
