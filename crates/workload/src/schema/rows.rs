//! The rows, made as they are read.

use super::bulk::{RowFormat, RowSource};
use crate::Distribution;
use crate::random::ConnectionRng;

/// Makes rows `next_id..=last_id` of a table.
#[derive(Debug)]
pub(super) struct RowMaker {
    pub(super) next_id: u32,
    pub(super) last_id: u32,
    pub(super) table_size: u32,
    pub(super) distribution: Distribution,
    pub(super) rng: ConnectionRng,
}

impl RowSource for RowMaker {
    fn push(&mut self, format: RowFormat, out: &mut Vec<u8>) -> bool {
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

/// Appends a number in digits.
pub(crate) fn push_number(mut number: u32, out: &mut Vec<u8>) {
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
    fn there_is_a_line_for_every_id() {
        let (mut maker, mut text) = (maker(), Vec::new());
        while maker.push(RowFormat::Tabs, &mut text) {}
        let text = String::from_utf8(text).unwrap();
        let ids: Vec<&str> = text.lines().map(|l| l.split('\t').next().unwrap()).collect();
        assert_eq!(ids, ["9", "10", "11", "12"]);
        assert!(text.lines().all(|l| l.split('\t').count() == 4));
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
