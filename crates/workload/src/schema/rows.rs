//! The rows, made as they are read.

use crate::Distribution;
use crate::random::ConnectionRng;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// Tabs and newlines, for LOAD DATA.
    Tabs,
    /// A parenthesised list, for INSERT.
    Values,
}

/// Makes rows `next_id..=last_id` of a table.
#[derive(Debug)]
pub(super) struct RowMaker {
    pub(super) next_id: u32,
    pub(super) last_id: u32,
    pub(super) table_size: u32,
    pub(super) distribution: Distribution,
    pub(super) rng: ConnectionRng,
}

impl RowMaker {
    /// Appends the next row; false when there is none.
    pub(super) fn push(&mut self, format: RowFormat, out: &mut Vec<u8>) -> bool {
        if self.next_id > self.last_id {
            return false;
        }
        let k = self.distribution.draw(&mut self.rng, 1, self.table_size);
        let (open, between, quote, end): (&[u8], &[u8], &[u8], &[u8]) = match format {
            RowFormat::Tabs => (b"", b"\t", b"", b"\n"),
            RowFormat::Values => (b"(", b",", b"'", b")"),
        };
        out.extend_from_slice(open);
        push_number(self.next_id, out);
        out.extend_from_slice(between);
        push_number(k, out);
        for groups in [10, 5] {
            out.extend_from_slice(between);
            out.extend_from_slice(quote);
            self.rng.push_digit_groups(groups, out);
            out.extend_from_slice(quote);
        }
        out.extend_from_slice(end);
        self.next_id += 1;
        true
    }
}

fn push_number(mut number: u32, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The rows as a file for LOAD DATA; counts them as they go.
pub(super) struct RowReader<'a> {
    pub(super) maker: RowMaker,
    pub(super) pending: Vec<u8>,
    pub(super) position: usize,
    pub(super) made: &'a AtomicU64,
    pub(super) stop: &'a AtomicBool,
}

impl Read for RowReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped"));
        }
        if self.position == self.pending.len() {
            self.pending.clear();
            self.position = 0;
            let before = self.maker.next_id;
            while self.pending.len() < 256 * 1024 && self.maker.push(RowFormat::Tabs, &mut self.pending) {}
            self.made
                .fetch_add(u64::from(self.maker.next_id - before), Ordering::Relaxed);
        }
        let n = (self.pending.len() - self.position).min(out.len());
        out[..n].copy_from_slice(&self.pending[self.position..self.position + n]);
        self.position += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker() -> RowMaker {
        RowMaker {
            next_id: 9,
            last_id: 12,
            table_size: 50,
            distribution: Distribution::Uniform,
            rng: ConnectionRng::new(3, 0),
        }
    }

    #[test]
    fn a_file_has_a_line_for_every_id() {
        let (made, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut reader = RowReader {
            maker: maker(),
            pending: Vec::new(),
            position: 0,
            made: &made,
            stop: &stop,
        };
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let ids: Vec<&str> = text.lines().map(|l| l.split('\t').next().unwrap()).collect();
        assert_eq!(ids, ["9", "10", "11", "12"]);
        assert!(text.lines().all(|l| l.split('\t').count() == 4));
        assert_eq!(made.into_inner(), 4);
    }

    #[test]
    fn an_insert_has_the_same_values() {
        let (mut tabs, mut values) = (Vec::new(), Vec::new());
        maker().push(RowFormat::Tabs, &mut tabs);
        maker().push(RowFormat::Values, &mut values);
        let plain = |b: Vec<u8>, drop: &[char]| String::from_utf8(b).unwrap().replace(drop, " ");
        let tabs = plain(tabs, &['\t', '\n']);
        let values = plain(values, &['(', ')', ',', '\'']);
        assert_eq!(
            tabs.split_whitespace().collect::<Vec<_>>(),
            values.split_whitespace().collect::<Vec<_>>()
        );
    }
}
