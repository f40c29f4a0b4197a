//! What is the same for all connections: the statements ready to be filled in, and the constants of the run.

use super::kind::Ending;
use super::nurand::RunConstants;
use super::options::{TpccOptions, TpccOptionsError};
use super::statement::Statement;
use scaleprof_wire::{ExecuteTemplate, query_packet};

/// The workload with its options, ready to make packets.
#[derive(Debug)]
pub struct Tpcc {
    options: TpccOptions,
    constants: RunConstants,
    /// The place of each statement's first form among the prepared ones.
    first: [usize; Statement::ALL.len()],
    templates: Vec<ExecuteTemplate>,
    prepared_sql: Vec<String>,
    commit: Vec<u8>,
    rollback: Vec<u8>,
    statement_names: Vec<String>,
    ending_names: Vec<String>,
    session: Vec<String>,
}

impl Tpcc {
    /// Puts the workload together.
    ///
    /// # Errors
    /// The options cannot be run.
    pub fn new(options: TpccOptions) -> Result<Self, TpccOptionsError> {
        options.validate()?;
        let mut first = [0; Statement::ALL.len()];
        let (mut templates, mut prepared_sql) = (Vec::new(), Vec::new());
        for statement in Statement::ALL.into_iter().filter(|statement| !statement.is_text()) {
            first[statement as usize] = templates.len();
            for lines in statement.sizes() {
                templates.push(ExecuteTemplate::new(&statement.parameters(lines)));
                prepared_sql.push(statement.sql(lines));
            }
        }
        Ok(Tpcc {
            constants: RunConstants::of(options.data_seed),
            options,
            first,
            templates,
            prepared_sql,
            commit: query_packet(b"COMMIT"),
            rollback: query_packet(b"ROLLBACK"),
            statement_names: Statement::ALL.map(|s| s.name().to_owned()).to_vec(),
            ending_names: Ending::names(),
            // A transaction begins with its first statement: no BEGIN, one round trip less.
            session: vec!["SET SESSION autocommit = 0".to_owned()],
        })
    }

    /// Its options.
    pub fn options(&self) -> &TpccOptions {
        &self.options
    }

    /// The constants of its random numbers.
    pub fn constants(&self) -> &RunConstants {
        &self.constants
    }

    /// How many statements every connection prepares.
    pub fn prepared_count(&self) -> u64 {
        self.prepared_sql.len() as u64
    }

    pub(crate) fn prepared_sql(&self) -> &[String] {
        &self.prepared_sql
    }

    pub(crate) fn statement_names(&self) -> &[String] {
        &self.statement_names
    }

    pub(crate) fn ending_names(&self) -> &[String] {
        &self.ending_names
    }

    pub(crate) fn session_statements(&self) -> &[String] {
        &self.session
    }

    /// The template of a statement with so many rows, and its place among the prepared ones.
    pub(super) fn template(&self, statement: Statement, lines: usize) -> (&ExecuteTemplate, usize) {
        let place = self.first[statement as usize] + lines - statement.sizes().start();
        (&self.templates[place], place)
    }

    /// The packet of a statement that goes as text.
    pub(super) fn text_packet(&self, statement: Statement) -> &[u8] {
        match statement {
            Statement::Rollback => &self.rollback,
            _ => &self.commit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_statement_is_prepared_once() {
        let tpcc = Tpcc::new(TpccOptions::default()).expect("options");
        for statement in Statement::ALL.into_iter().filter(|s| !s.is_text()) {
            for lines in statement.sizes() {
                let (template, place) = tpcc.template(statement, lines);
                assert_eq!(tpcc.prepared_sql()[place], statement.sql(lines));
                assert_eq!(template.parameters(), statement.parameters(lines));
            }
        }
        assert_eq!(tpcc.prepared_count(), 43);
    }
}
