//! What a connection sends: packets of one transaction after another, ready-made.

use crate::oltp::OltpWorkload;
use crate::random::ConnectionRng;
use crate::script::Script;
use crate::tpcc::Tpcc;

/// One statement of a transaction: where its packet ends in the buffer, and what kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// End of its packet; it begins where the one before ends.
    pub(crate) end: u32,
    /// Number of the statement's kind in [`Program::statement_names`].
    pub(crate) kind: u16,
}

/// Whether a connection goes on when its program is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repetition {
    /// It begins again until the time is up.
    #[default]
    Loop,
    /// It runs its program once and is done.
    Once,
}

/// What a connection needs to make its packets.
#[derive(Debug)]
pub(crate) struct Composer {
    pub(crate) rng: ConnectionRng,
    /// Position among the connections of the rung, and how many there are.
    pub(crate) position: u32,
    pub(crate) of: u32,
    /// The server's ids of the prepared statements, in the order of [`Program::prepared_sql`]; 0 for one that
    /// cannot be prepared and goes as text.
    pub(crate) statement_ids: Box<[u32]>,
    /// For each of them, whether the types of its parameters have been sent.
    pub(crate) types_sent: Box<[bool]>,
}

/// What every connection of a rung runs.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one in a rung
pub enum Program {
    /// One of sysbench's OLTP workloads.
    Oltp(OltpWorkload),
    /// The user's own statements.
    Script(Script),
    /// TPC-C: its statements depend on what earlier ones returned.
    Tpcc(Tpcc),
}

impl Program {
    /// Statements that a connection prepares first.
    pub(crate) fn prepared_sql(&self) -> &[String] {
        match self {
            Program::Oltp(oltp) => oltp.prepared_sql(),
            Program::Script(_) => &[],
            Program::Tpcc(tpcc) => tpcc.prepared_sql(),
        }
    }

    /// Names of the kinds of statements, for counting errors; they hold no text of a statement.
    pub fn statement_names(&self) -> &[String] {
        match self {
            Program::Oltp(oltp) => oltp.statement_names(),
            Program::Script(script) => script.statement_names(),
            Program::Tpcc(tpcc) => tpcc.statement_names(),
        }
    }

    /// The verb of each statement of a script, as far as it is well known; empty for other
    /// workloads.
    pub fn statement_verbs(&self) -> &[Option<&'static str>] {
        match self {
            Program::Script(script) => script.statement_verbs(),
            Program::Oltp(_) | Program::Tpcc(_) => &[],
        }
    }

    /// Names of the kinds of transactions, where latency is kept for each; empty where there is only one kind.
    pub fn transaction_names(&self) -> &[String] {
        match self {
            Program::Oltp(_) | Program::Script(_) => &[],
            Program::Tpcc(tpcc) => tpcc.ending_names(),
        }
    }

    /// Statements that a connection runs before all others.
    pub(crate) fn session_statements(&self) -> Vec<&str> {
        match self {
            // sysbench's single statements are transactions; with a server's own autocommit = 0 none would ever end.
            Program::Oltp(_) => vec!["SET SESSION autocommit = 1"],
            Program::Script(_) => Vec::new(),
            Program::Tpcc(tpcc) => tpcc.session_statements().iter().map(String::as_str).collect(),
        }
    }

    /// Whether latency is kept per statement too.
    pub fn times_statements(&self) -> bool {
        matches!(self, Program::Script(_))
    }

    /// Whether connections go on when the program is over.
    pub fn repetition(&self) -> Repetition {
        match self {
            Program::Oltp(_) | Program::Tpcc(_) => Repetition::Loop,
            Program::Script(script) => script.repetition(),
        }
    }

    /// The packets, where they are the same for every connection and every time.
    pub(crate) fn shared_packets(&self) -> Option<(&[u8], &[Step])> {
        match self {
            Program::Oltp(_) | Program::Tpcc(_) => None,
            Program::Script(script) => Some(script.packets()),
        }
    }

    /// Makes the packets of the next transaction in `out` and their ends in `steps`; nothing where they are shared.
    #[inline]
    pub(crate) fn compose(&self, composer: &mut Composer, out: &mut Vec<u8>, steps: &mut Vec<Step>) {
        if let Program::Oltp(oltp) = self {
            out.clear();
            steps.clear();
            oltp.compose(composer, out, steps);
        }
    }
}
