//! Writing the values of a row for LOAD DATA or for an INSERT.

use super::money::{Cents, Rate};
use crate::schema::{RowFormat, push_number};

/// A row that is being written. All texts are our own letters, digits and spaces: nothing needs to be escaped.
pub(super) struct RowWriter<'a> {
    out: &'a mut Vec<u8>,
    format: RowFormat,
    is_first: bool,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(format: RowFormat, out: &'a mut Vec<u8>) -> Self {
        if format == RowFormat::Values {
            out.push(b'(');
        }
        RowWriter {
            out,
            format,
            is_first: true,
        }
    }

    fn between(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(match self.format {
                RowFormat::Tabs => b'\t',
                RowFormat::Values => b',',
            });
        }
    }

    pub(super) fn number(mut self, value: u32) -> Self {
        self.between();
        push_number(value, self.out);
        self
    }

    pub(super) fn numbers<const N: usize>(self, values: [u32; N]) -> Self {
        values.into_iter().fold(self, RowWriter::number)
    }

    /// A number, or NULL.
    pub(super) fn number_or_null(mut self, value: Option<u32>) -> Self {
        match value {
            Some(value) => self.number(value),
            None => {
                self.null();
                self
            }
        }
    }

    fn null(&mut self) {
        self.between();
        self.out.extend_from_slice(match self.format {
            RowFormat::Tabs => b"\\N",
            RowFormat::Values => b"NULL",
        });
    }

    pub(super) fn cents(mut self, value: Cents) -> Self {
        self.between();
        value.push(self.out);
        self
    }

    pub(super) fn rate(mut self, value: Rate) -> Self {
        self.between();
        value.push(self.out);
        self
    }

    /// A text that `write` makes.
    pub(super) fn made(mut self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        self.between();
        let quote: &[u8] = match self.format {
            RowFormat::Tabs => b"",
            RowFormat::Values => b"'",
        };
        self.out.extend_from_slice(quote);
        write(self.out);
        self.out.extend_from_slice(quote);
        self
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.made(|out| out.extend_from_slice(text.as_bytes()))
    }

    /// A text, or NULL.
    pub(super) fn text_or_null(mut self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => {
                self.null();
                self
            }
        }
    }

    pub(super) fn end(self) {
        self.out.push(match self.format {
            RowFormat::Tabs => b'\n',
            RowFormat::Values => b')',
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_of_a_file_or_a_list_of_an_insert() {
        let written = |format| {
            let mut out = Vec::new();
            RowWriter::new(format, &mut out)
                .numbers([1, 20])
                .cents(Cents(-1000))
                .rate(Rate(25))
                .text("OE")
                .number_or_null(None)
                .text_or_null(Some("now"))
                .end();
            String::from_utf8(out).expect("ASCII")
        };
        assert_eq!(written(RowFormat::Tabs), "1\t20\t-10.00\t0.0025\tOE\t\\N\tnow\n");
        assert_eq!(written(RowFormat::Values), "(1,20,-10.00,0.0025,'OE',NULL,'now')");
    }
}
