//! The lines of a list of the kernel's symbols.
//!
//! A list has more than a hundred thousand lines, and only a few hundred of its names are ever shown: a line is read in steps of eight bytes,
//! and its name only passed over. Of nearly all lines not even the address is read: whether it is higher than the one before can be told from its
//! digits as they are written.

use std::ops::Range;

/// One in each of eight bytes.
const EACH: u64 = 0x0101_0101_0101_0101;

/// A line with an address, a letter and a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'text> {
    pub(super) address: u64,
    /// The letter that stands for what it is.
    pub(super) kind: u8,
    /// Where its name stands in the text; never empty.
    pub(super) name: Range<usize>,
    pub(super) module: Option<&'text [u8]>,
}

/// The lines of a text that are of that form.
pub(super) struct Lines<'text> {
    text: &'text [u8],
    place: usize,
}

impl<'text> Lines<'text> {
    /// Those from a place on, where one begins.
    pub(super) fn from(text: &'text [u8], place: usize) -> Lines<'text> {
        Lines { text, place }
    }

    /// Where the next one begins, or what is none.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// Passes over a line as the kernel writes it of its own symbols, of no module: sixteen small digits, a letter, and a name up to the end
    /// of the line. None where another one comes next, if any.
    pub(super) fn next_plain(&mut self) -> Option<WrittenAddress> {
        let (digits, rest) = self.text.get(self.place..)?.split_first_chunk::<16>()?;
        let [b' ', kind, b' ', named @ ..] = rest else {
            return None;
        };
        let end = memchr::memchr(b'\n', named)?;
        let (first, last) = (named.first()?, named.get(end.checked_sub(1)?)?);
        // That of a module ends with a bracket.
        let is_plain = *kind > b' ' && *first > b' ' && *last > b' ' && *last != b']';
        let written = u128::from_be_bytes(*digits);
        if !is_plain || letters((written >> 64) as u64).is_none() || letters(written as u64).is_none() {
            return None;
        }
        self.place += digits.len() + 3 + end + 1;
        Some(WrittenAddress(written))
    }
}

/// An address as it is written, in sixteen small digits: they are in the order of the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WrittenAddress(u128);

impl WrittenAddress {
    /// That of an address.
    pub(super) fn of(address: u64) -> WrittenAddress {
        let digits = (0..16).map(|place| address >> (60 - 4 * place) & 0xf);
        let written = digits.map(|digit| match digit {
            0..10 => b'0' + digit as u8,
            _ => b'a' + digit as u8 - 10,
        });
        WrittenAddress(written.fold(0, |all, digit| all << 8 | u128::from(digit)))
    }

    /// The address.
    pub(super) fn address(self) -> u64 {
        sixteen_digits(self.0.to_be_bytes()).unwrap_or_default()
    }
}

impl<'text> Iterator for Lines<'text> {
    type Item = Line<'text>;

    fn next(&mut self) -> Option<Line<'text>> {
        while let Some(rest) = self.text.get(self.place..).filter(|rest| !rest.is_empty()) {
            let start = self.place;
            let read = read(rest);
            // The name ends at the line's end mostly, so that nothing is left to look for.
            let from = read.as_ref().map_or(0, |read| read.name.end);
            let end = match rest.get(from) {
                Some(b'\n') => from,
                _ => memchr::memchr(b'\n', &rest[from..]).map_or(rest.len(), |at| from + at),
            };
            self.place = start + end + 1;
            if let Some(read) = read {
                let module = rest[read.name.end..end].trim_ascii();
                return Some(Line {
                    address: read.address,
                    kind: read.kind,
                    name: start + read.name.start..start + read.name.end,
                    module: module.strip_prefix(b"[").and_then(|module| module.strip_suffix(b"]")),
                });
            }
        }
        None
    }
}

/// A line up to the end of its name, which is counted from the line's begin.
struct Read {
    address: u64,
    kind: u8,
    name: Range<usize>,
}

/// Reads the line that a text begins with; none where it has another form.
fn read(text: &[u8]) -> Option<Read> {
    let (address, digits) = hexadecimal(text)?;
    let [b' ', kind, b' ', name @ ..] = &text[digits..] else {
        return None;
    };
    let length = length_of_name(name);
    let start = digits + 3;
    (length > 0 && *kind != b'\n').then_some(Read {
        address,
        kind: *kind,
        name: start..start + length,
    })
}

/// Where the name ends that a text begins with: at a space, at a tab or at the end of the line.
pub(super) fn length_of_name(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(eight) = text.get(length..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        // The lowest bit that is set is of the first byte below 0x21 (what is borrowed only reaches bytes behind it).
        let below = word.wrapping_sub(EACH * 0x21) & !word & (EACH * 0x80);
        if below != 0 {
            let at = length + below.trailing_zeros() as usize / 8;
            match is_end_of_name(text[at]) {
                true => return at,
                // Another control character, which is a part of it.
                false => length = at + 1,
            }
        } else {
            length += 8;
        }
    }
    let rest = text.get(length..).unwrap_or_default();
    let end = rest.iter().position(|byte| is_end_of_name(*byte));
    length + end.unwrap_or(rest.len())
}

fn is_end_of_name(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The number of at most 16 digits that a text begins with, and how many digits it has.
fn hexadecimal(text: &[u8]) -> Option<(u64, usize)> {
    const MOST_DIGITS: usize = 16;
    // Every address has as many digits as fit.
    if let Some(digits) = text.first_chunk::<MOST_DIGITS>()
        && !text.get(MOST_DIGITS).is_some_and(u8::is_ascii_hexdigit)
        && let Some(number) = sixteen_digits(*digits)
    {
        return Some((number, MOST_DIGITS));
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let number = text[..digits].iter().fold(0_u64, |number, byte| {
        number << 4 | u64::from((*byte as char).to_digit(16).unwrap_or_default())
    });
    (0 < digits && digits <= MOST_DIGITS).then_some((number, digits))
}

fn sixteen_digits(digits: [u8; 16]) -> Option<u64> {
    let [high, low] = [&digits[..8], &digits[8..]].map(|half| half.first_chunk::<8>().copied());
    Some(eight_digits(high?)? << 32 | eight_digits(low?)?)
}

/// Eight digits at once; none where one is neither 0 to 9 nor a to f.
fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    let word = u64::from_be_bytes(digits);
    let is_letter = letters(word)?;
    // '0' is 0x30 and 'a' is 0x61.
    let values = (word & (EACH * 0xf)) + (is_letter >> 7) * 9;
    // From eight digits in bytes to four bytes, two pairs of bytes and one of four.
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & 0xffff_ffff)
}

/// The highest bit of each of eight bytes that is a to f; none where one is neither that nor 0 to 9.
fn letters(word: u64) -> Option<u64> {
    let has_high_bit = EACH * 0x80;
    // Bytes from 0 to 0x7f: whether each is at least as large, told in its highest bit.
    let at_least = |limit: u8| word.wrapping_add(EACH * (0x80 - u64::from(limit))) & has_high_bit;
    let is_number = at_least(b'0') & !at_least(b'9' + 1);
    let is_letter = at_least(b'a') & !at_least(b'f' + 1);
    (word & has_high_bit == 0 && (is_number | is_letter) == has_high_bit).then_some(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same line by line and byte by byte.
    fn plainly(text: &[u8]) -> Vec<Line<'_>> {
        let mut start = 0;
        let mut found = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let address = u64::from_str_radix(&String::from_utf8_lossy(&line[..digits]), 16);
            if let (Ok(address), [b' ', kind, b' ', rest @ ..]) = (address, &line[digits..])
                && digits <= 16
            {
                let length = rest
                    .iter()
                    .position(|byte| b" \t\r".contains(byte))
                    .unwrap_or(rest.len());
                let module = rest[length..].trim_ascii();
                let name = start + digits + 3;
                if length > 0 {
                    found.push(Line {
                        address,
                        kind: *kind,
                        name: name..name + length,
                        module: module.strip_prefix(b"[").and_then(|module| module.strip_suffix(b"]")),
                    });
                }
            }
            start += line.len() + 1;
        }
        found
    }

    proptest! {
        #[test]
        fn lines_are_those_that_are_found_byte_by_byte(
            text in prop::collection::vec("([0-9a-f]{16}|[0-9a-fA-Fg:`/@]{0,18})[ \t]?[tTdx ]?[ \t]?[\x01-\x7f]{0,20}([ \t]\\[[a-z_]{0,9}\\]?)?[\r ]?", 0..12),
            ends in any::<bool>(),
        ) {
            let mut text = text.join("\n").into_bytes();
            text.extend(ends.then_some(b'\n'));
            let found: Vec<Line<'_>> = Lines::from(&text, 0).collect();
            prop_assert_eq!(found, plainly(&text));
        }

        #[test]
        fn plain_lines_are_lines_of_no_module(
            text in prop::collection::vec("([0-9a-f]{16}|[0-9a-g]{14,17}) [tT \n]?[ \t][\x01-\x7f]{0,9}([ \t]\\[[a-z_]{0,3}\\]?)?[\r ]?", 0..12),
        ) {
            let text = text.join("\n").into_bytes();
            let (mut lines, mut plain) = (Lines::from(&text, 0), Lines::from(&text, 0));
            while let Some(line) = lines.next() {
                if let Some(found) = plain.next_plain() {
                    prop_assert_eq!((plain.place(), found.address()), (lines.place(), line.address));
                    prop_assert_eq!(WrittenAddress::of(line.address), found);
                    prop_assert!(line.module.is_none());
                }
                plain = Lines::from(&text, lines.place());
            }
        }

        #[test]
        fn written_addresses_are_in_the_order_of_the_addresses(one: u64, shift in 0..64_u32, other: u64) {
            let one = one >> shift;
            prop_assert_eq!(WrittenAddress::of(one).address(), one);
            prop_assert_eq!(WrittenAddress::of(one).cmp(&WrittenAddress::of(other)), one.cmp(&other));
        }

        #[test]
        fn any_bytes_are_read_as_they_are_byte_by_byte(text: Vec<u8>) {
            let found: Vec<Line<'_>> = Lines::from(&text, 0).collect();
            prop_assert_eq!(found, plainly(&text));
            prop_assert_eq!(length_of_name(&text), text.iter().position(|byte| is_end_of_name(*byte)).unwrap_or(text.len()));
        }

        #[test]
        fn numbers_are_what_they_are_written_as(number: u64, upper: bool) {
            let text = match upper {
                true => format!("{number:016X}"),
                false => format!("{number:016x}"),
            };
            prop_assert_eq!(hexadecimal(text.as_bytes()), Some((number, 16)));
            prop_assert_eq!(hexadecimal(format!("{text}0").as_bytes()), None);
        }
    }
}
