//! What to say of the lines of a text that are not understood.

use crate::import::ImportError;

/// Lines that are not understood.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinesLeftOut {
    count: usize,
    first: Option<usize>,
}

impl LinesLeftOut {
    /// Adds one by its number, from 1.
    pub(crate) fn add(&mut self, number: usize) {
        self.first.get_or_insert(number);
        self.count += 1;
    }

    /// What was left out; none where all was understood.
    pub(crate) fn warning(&self) -> Option<String> {
        let first = self.first?;
        Some(match self.count {
            1 => format!("line {first} is not understood and was left out"),
            count => format!("{count} lines are not understood and were left out; the first is line {first}"),
        })
    }

    /// The error where nothing at all is understood.
    pub(crate) fn nothing_understood(&self, expected: &str) -> ImportError {
        ImportError::Broken {
            what: match self.first {
                Some(first) => format!("line {first} and those after it are not understood: expected is {expected}"),
                None => format!("there is nothing in it but empty lines and zeros: expected is {expected}"),
            },
        }
    }
}
