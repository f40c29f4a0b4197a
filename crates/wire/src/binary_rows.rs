//! Reading the rows that an EXECUTE returned, for the few programs of the load that need their values.
//!
//! Source: MySQL internals manual, "Binary Protocol Resultset Row"; MariaDB knowledge base, "Resultset row".

use crate::reply::{length_encoded, length_encoded_string};

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A whole number of any width; unsigned ones of 64 bits wrap.
    Int(i64),
    /// FLOAT or DOUBLE.
    Double(f64),
    /// A string, or a DECIMAL as its digits.
    Text(&'a [u8]),
    /// A date or time, as the protocol has it.
    Time(&'a [u8]),
}

/// How the values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// So many bytes, and whether they are signed.
    Int(u8, bool),
    Float,
    Double,
    Time,
    Text,
}

/// Columns that a result may have: those that the load asks for have fewer.
const MOST_COLUMNS: usize = 24;

/// The rows of one complete reply to an EXECUTE.
#[derive(Debug, Clone)]
pub struct BinaryRows<'a> {
    rest: &'a [u8],
    kinds: [Kind; MOST_COLUMNS],
    columns: usize,
}

impl<'a> BinaryRows<'a> {
    /// Reads the definitions of the columns. `reply` are all bytes of a reply that [`crate::ReplyScanner`] found to be
    /// one with rows; none where they cannot be read.
    pub fn new(reply: &'a [u8], deprecate_eof: bool) -> Option<Self> {
        let (head, mut rest) = packet(reply)?;
        let columns = usize::try_from(length_encoded(head)?.0).ok()?;
        let mut kinds = [Kind::Text; MOST_COLUMNS];
        for kind in kinds.get_mut(..columns)? {
            let (definition, behind) = packet(rest)?;
            *kind = column_kind(definition)?;
            rest = behind;
        }
        if !deprecate_eof {
            rest = packet(rest)?.1;
        }
        Some(BinaryRows { rest, kinds, columns })
    }

    /// The next row; none behind the last one.
    pub fn next_row(&mut self) -> Option<BinaryRow<'a, '_>> {
        let (row, rest) = packet(self.rest)?;
        // A row begins with 0; what ends the rows with 0xfe, an error amid them with 0xff.
        if *row.first()? != 0 {
            return None;
        }
        self.rest = rest;
        let nulls_end = 1 + (self.columns + 9) / 8;
        Some(BinaryRow {
            nulls: row.get(1..nulls_end)?,
            rest: row.get(nulls_end..)?,
            kinds: &self.kinds[..self.columns],
            column: 0,
        })
    }
}

/// One row: its values in the order of the columns.
#[derive(Debug)]
pub struct BinaryRow<'a, 'k> {
    nulls: &'a [u8],
    rest: &'a [u8],
    kinds: &'k [Kind],
    column: usize,
}

impl<'a> BinaryRow<'a, '_> {
    /// The next value; none behind the last one, and where it cannot be read.
    pub fn value(&mut self) -> Option<Value<'a>> {
        let kind = *self.kinds.get(self.column)?;
        // The first two bits of the bitmap stand for nothing.
        let bit = self.column + 2;
        self.column += 1;
        if self.nulls.get(bit / 8)? & (1 << (bit % 8)) != 0 {
            return Some(Value::Null);
        }
        Some(match kind {
            Kind::Int(bytes, signed) => Value::Int(int(self.take(usize::from(bytes))?, signed)),
            Kind::Float => Value::Double(f64::from(f32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            Kind::Double => Value::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            Kind::Time => {
                let length = usize::from(*self.take(1)?.first()?);
                Value::Time(self.take(length)?)
            }
            Kind::Text => {
                let (text, used) = length_encoded_string(self.rest)?;
                self.rest = self.rest.get(used..)?;
                Value::Text(text?)
            }
        })
    }

    /// The next value, where it is a whole number that is not NULL.
    pub fn int(&mut self) -> Option<i64> {
        match self.value()? {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The next value, where it is a string or DECIMAL that is not NULL.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        match self.value()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

fn int(bytes: &[u8], signed: bool) -> i64 {
    let negative = signed && bytes.last().is_some_and(|&high| high >= 0x80);
    let mut wide = if negative { [0xff; 8] } else { [0; 8] };
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

/// The payload at the front and what is behind it. Packets of 16 MiB, which continue, are none of the load's.
fn packet(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_le_bytes([*bytes.first()?, *bytes.get(1)?, *bytes.get(2)?, 0]) as usize;
    bytes.get(4..)?.split_at_checked(length)
}

/// Type and flags behind the six strings of a column definition: a length, character set (2), longest value (4), type,
/// flags (2).
fn column_kind(definition: &[u8]) -> Option<Kind> {
    let mut at = 0;
    for _ in 0..6 {
        at += length_encoded_string(definition.get(at..)?)?.1;
    }
    let fixed = definition.get(at + 1..)?;
    let flags = u16::from_le_bytes([*fixed.get(7)?, *fixed.get(8)?]);
    const UNSIGNED: u16 = 0x20;
    let signed = flags & UNSIGNED == 0;
    Some(match *fixed.get(6)? {
        0x01 => Kind::Int(1, signed),
        0x02 | 0x0d => Kind::Int(2, signed),
        0x03 | 0x09 => Kind::Int(4, signed),
        0x08 => Kind::Int(8, signed),
        0x04 => Kind::Float,
        0x05 => Kind::Double,
        0x07 | 0x0a..=0x0c => Kind::Time,
        _ => Kind::Text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(payload: &[u8]) -> Vec<u8> {
        let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        out.push(1);
        out.extend_from_slice(payload);
        out
    }

    fn column(kind: u8, flags: u16) -> Vec<u8> {
        let mut payload = b"\x03def\x00\x01t\x01t\x01c\x01c\x0c\x3f\x00\x0a\x00\x00\x00".to_vec();
        payload.push(kind);
        payload.extend_from_slice(&flags.to_le_bytes());
        payload.extend_from_slice(&[0, 0, 0]);
        framed(&payload)
    }

    fn reply(deprecate_eof: bool, columns: &[(u8, u16)], rows: &[&[u8]]) -> Vec<u8> {
        let mut out = framed(&[columns.len() as u8]);
        columns
            .iter()
            .for_each(|&(kind, flags)| out.extend(column(kind, flags)));
        if !deprecate_eof {
            out.extend(framed(&[0xfe, 0, 0, 2, 0]));
        }
        rows.iter().for_each(|row| out.extend(framed(row)));
        out.extend(framed(&[0xfe, 0, 0, 2, 0]));
        out
    }

    #[test]
    fn values_of_all_kinds_are_read_with_and_without_eof_packets() {
        let columns = [(3, 0), (2, 0x20), (0xf6, 0), (8, 0), (0x0c, 0), (0xfd, 0), (5, 0)];
        let row = [
            &[0, 0b0010_0000, 0][..],
            &(-7_i32).to_le_bytes(),
            &0xffff_u16.to_le_bytes(),
            b"\x0512.34",
            b"\x04\xea\x07\x0b\x16",
            b"\x02ab",
            &1.5_f64.to_le_bytes(),
        ]
        .concat();
        for deprecate_eof in [true, false] {
            let bytes = reply(deprecate_eof, &columns, &[&row]);
            let mut rows = BinaryRows::new(&bytes, deprecate_eof).expect("columns");
            let mut row = rows.next_row().expect("a row");
            assert_eq!(row.int(), Some(-7));
            assert_eq!(row.int(), Some(65_535));
            assert_eq!(row.text(), Some(&b"12.34"[..]));
            assert_eq!(row.value(), Some(Value::Null));
            assert_eq!(row.value(), Some(Value::Time(b"\xea\x07\x0b\x16")));
            assert_eq!(row.text(), Some(&b"ab"[..]));
            assert_eq!(row.value(), Some(Value::Double(1.5)));
            assert_eq!(row.value(), None);
            assert!(rows.next_row().is_none());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), deprecate: bool) {
            if let Some(mut rows) = BinaryRows::new(&bytes, deprecate) {
                while let Some(mut row) = rows.next_row() {
                    while row.value().is_some() {}
                }
            }
        }

        #[test]
        fn a_reply_that_is_cut_is_never_read_past_its_end(cut in 0_usize..200) {
            let row = [&[0, 0][..], &5_i32.to_le_bytes(), b"\x03abc"].concat();
            let bytes = reply(true, &[(3, 0), (0xfd, 0)], &[&row, &row]);
            let mut count = 0;
            if let Some(mut rows) = BinaryRows::new(&bytes[..cut.min(bytes.len())], true) {
                while let Some(mut row) = rows.next_row() {
                    prop_assert_eq!(row.int(), Some(5));
                    prop_assert_eq!(row.text(), Some(&b"abc"[..]));
                    count += 1;
                }
            }
            // What ends the rows are nine bytes, and a row has a head of four.
            let end = bytes.len() - 9;
            let whole = if cut >= end { 2 } else { usize::from(cut >= end - (4 + row.len())) };
            prop_assert_eq!(count, whole, "{} of {} bytes", cut, bytes.len());
        }
    }
}
