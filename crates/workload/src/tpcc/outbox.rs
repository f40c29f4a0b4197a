//! Writing the statements that a transaction wants to send next.

use super::money::Cents;
use super::statement::Statement;
use super::workload::Tpcc;
use crate::program::{Composer, Step};
use scaleprof_wire::{ExecuteTemplate, Parameter};

/// Where a transaction puts its next statements. They are sent one after the other, each when the one before has been
/// answered; an error sends none of those behind it.
pub(super) struct Outbox<'a> {
    pub(super) tpcc: &'a Tpcc,
    pub(super) composer: &'a mut Composer,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) steps: &'a mut Vec<Step>,
}

impl Outbox<'_> {
    /// Begins a prepared statement; its values follow in the order of its parameters.
    pub(super) fn execute(&mut self, statement: Statement) -> Values<'_> {
        self.execute_lines(statement, *statement.sizes().start())
    }

    /// Begins a prepared statement with so many rows of values.
    pub(super) fn execute_lines(&mut self, statement: Statement, lines: usize) -> Values<'_> {
        let (template, place) = self.tpcc.template(statement, lines);
        let id = self.composer.statement_ids.get(place).copied().unwrap_or(0);
        let with_types = !std::mem::replace(&mut self.composer.types_sent[place], true);
        let start = template.begin(id, with_types, self.out);
        Values {
            out: self.out,
            steps: self.steps,
            start,
            statement,
            wanted: template.parameters(),
        }
    }

    /// Writes COMMIT or ROLLBACK.
    pub(super) fn end(&mut self, statement: Statement) {
        self.out.extend_from_slice(self.tpcc.text_packet(statement));
        self.steps.push(Step {
            end: self.out.len() as u32,
            kind: statement as u16,
        });
    }
}

/// The values of one statement.
#[must_use = "a statement that is not closed with `send` is not sent"]
pub(super) struct Values<'a> {
    out: &'a mut Vec<u8>,
    steps: &'a mut Vec<Step>,
    start: usize,
    statement: Statement,
    /// Parameters that still want a value.
    wanted: &'a [Parameter],
}

impl Values<'_> {
    fn is_next(&mut self, parameter: Parameter) -> bool {
        let next = self.wanted.split_first();
        self.wanted = next.map_or(&[], |(_, rest)| rest);
        next.is_some_and(|(wanted, _)| *wanted == parameter)
    }

    /// Writes a number.
    pub(super) fn int(mut self, value: u32) -> Self {
        let fits = self.is_next(Parameter::Int);
        debug_assert!(fits, "{:?}: a number in a wrong place", self.statement);
        ExecuteTemplate::push_int(value as i32, self.out);
        self
    }

    /// Writes several numbers.
    pub(super) fn ints<const N: usize>(self, values: [u32; N]) -> Self {
        values.into_iter().fold(self, Values::int)
    }

    /// Writes a number that may be below 0.
    pub(super) fn signed(mut self, value: i32) -> Self {
        let fits = self.is_next(Parameter::Int);
        debug_assert!(fits, "{:?}: a number in a wrong place", self.statement);
        ExecuteTemplate::push_int(value, self.out);
        self
    }

    /// Writes a string of fewer than 251 bytes.
    pub(super) fn string(mut self, value: &[u8]) -> Self {
        let fits = self.is_next(Parameter::ShortString);
        debug_assert!(fits, "{:?}: a string in a wrong place", self.statement);
        ExecuteTemplate::push_string(value, self.out);
        self
    }

    /// Writes an amount.
    pub(super) fn cents(mut self, value: Cents) -> Self {
        let fits = self.is_next(Parameter::Decimal);
        debug_assert!(fits, "{:?}: an amount in a wrong place", self.statement);
        // Its length, which is known when it stands there.
        let at = self.out.len();
        self.out.push(0);
        value.push(self.out);
        self.out[at] = (self.out.len() - at - 1) as u8;
        self
    }

    /// Closes the statement.
    pub(super) fn send(self) {
        debug_assert!(self.wanted.is_empty(), "{:?}: values are missing", self.statement);
        ExecuteTemplate::finish(self.start, self.out);
        self.steps.push(Step {
            end: self.out.len() as u32,
            kind: self.statement as u16,
        });
    }
}
