//! The lines of a list of the kernel's symbols.
//!
//! A list has more than a hundred thousand lines, and only a few hundred of its names are ever shown: a line is read in steps of eight bytes,
//! and its name only passed over.

use std::ops::Range;

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
    const EACH: u64 = 0x0101_0101_0101_0101;
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
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_be_bytes(digits);
    let has_high_bit = EACH * 0x80;
    // Bytes from 0 to 0x7f: whether each is at least as large, told in its highest bit.
    let at_least = |limit: u8| word.wrapping_add(EACH * (0x80 - u64::from(limit))) & has_high_bit;
    let is_number = at_least(b'0') & !at_least(b'9' + 1);
    let is_letter = at_least(b'a') & !at_least(b'f' + 1);
    if word & has_high_bit != 0 || (is_number | is_letter) != has_high_bit {
        return None;
    }
    // '0' is 0x30 and 'a' is 0x61.
    let values = (word & (EACH * 0xf)) + (is_letter >> 7) * 9;
    // From eight digits in bytes to four bytes, two pairs of bytes and one of four.
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & 0xffff_ffff)
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
