//! One connection of the load.

use crate::program::{Composer, Program, Step};
use crate::tpcc::{Ending, Terminal, Unexpected};
use scaleprof_wire::{Encryption, ReplyScanner, Session};
use std::os::fd::OwnedFd;

/// What a connection is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for its next transaction to be due, or for nothing more.
    Resting,
    /// Waits for the reply to a statement.
    Working,
    /// Waits for the reply to ROLLBACK before it begins its transaction again.
    RollingBack,
}

/// One connection: a socket, the packets of its transaction, and how far it is.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    /// What its bytes are encrypted with, if they are.
    pub(crate) encryption: Option<Encryption>,
    /// The server's number of it.
    pub(crate) id: u32,
    pub(crate) scanner: ReplyScanner,
    pub(crate) phase: Phase,
    composer: Composer,
    /// Of a program whose statements depend on rows.
    terminal: Option<Box<Terminal>>,
    deprecate_eof: bool,
    packets: Vec<u8>,
    steps: Vec<Step>,
    step: usize,
    /// Of a script: the first statement whose work is not committed.
    committed: usize,
    /// Bytes of the current packet that the socket has taken.
    pub(crate) sent: usize,
    /// When the first statement of the transaction was sent.
    pub(crate) began_ns: u64,
    /// When it was due.
    pub(crate) due_ns: u64,
    /// When the current statement was sent.
    pub(crate) statement_began_ns: u64,
}

impl Connection {
    pub(crate) fn new(session: Session, mut composer: Composer, program: &Program) -> Self {
        let terminal = match program {
            Program::Tpcc(tpcc) => Some(Box::new(Terminal::new(tpcc, &mut composer))),
            Program::Oltp(_) | Program::Script(_) => None,
        };
        Connection {
            terminal,
            deprecate_eof: session.deprecate_eof,
            socket: session.socket,
            encryption: session.encryption,
            id: session.connection_id,
            scanner: ReplyScanner::new(session.deprecate_eof),
            phase: Phase::Resting,
            composer,
            packets: Vec::new(),
            steps: Vec::new(),
            step: 0,
            committed: 0,
            sent: 0,
            began_ns: 0,
            due_ns: 0,
            statement_began_ns: 0,
        }
    }

    /// Makes the packets of the next transaction and stands before its first statement.
    #[inline]
    pub(crate) fn begin(&mut self, program: &Program) {
        match (&mut self.terminal, program) {
            (Some(terminal), Program::Tpcc(tpcc)) => {
                terminal.begin(tpcc, &mut self.composer, &mut self.packets, &mut self.steps);
            }
            _ => program.compose(&mut self.composer, &mut self.packets, &mut self.steps),
        }
        self.stand_at_first();
    }

    /// Stands before the first statement of a transaction that the server rolled back: with new values, as sysbench does, but
    /// with the same where a transaction is one user's business. Of a script what is committed already is not done again.
    #[cold]
    pub(crate) fn begin_again(&mut self, program: &Program) {
        match (&mut self.terminal, program) {
            (Some(terminal), Program::Tpcc(tpcc)) => {
                terminal.begin_again(tpcc, &mut self.composer, &mut self.packets, &mut self.steps);
                self.stand_at_first();
            }
            (_, Program::Script(_)) => {
                // What a SET says of the next transaction is gone with that, and done again it does no harm.
                let is_set = |step: usize| {
                    let kind = self.steps(program).get(step).map_or(0, |step| step.kind);
                    let name = program.statement_names().get(usize::from(kind));
                    name.is_some_and(|name| name.ends_with("(SET)"))
                };
                let mut committed = self.committed;
                while committed > 0 && is_set(committed - 1) {
                    committed -= 1;
                }
                self.begin(program);
                (self.step, self.committed) = (committed, committed);
            }
            _ => self.begin(program),
        }
    }

    #[inline]
    fn stand_at_first(&mut self) {
        self.step = 0;
        self.committed = 0;
        self.sent = 0;
        self.phase = Phase::Working;
    }

    /// Goes to the next statement; false when the transaction is over.
    #[inline]
    pub(crate) fn advance(&mut self, program: &Program) -> bool {
        self.step += 1;
        self.sent = 0;
        if !self.scanner.in_transaction() {
            self.committed = self.step;
        }
        self.step < self.steps(program).len() || self.go_on(program)
    }

    /// Makes the statements that follow from what was read; false where there are none.
    #[inline]
    fn go_on(&mut self, program: &Program) -> bool {
        let (Some(terminal), Program::Tpcc(tpcc)) = (&mut self.terminal, program) else {
            return false;
        };
        terminal.go_on(tpcc, &mut self.composer, &mut self.packets, &mut self.steps);
        self.step = 0;
        !self.steps.is_empty()
    }

    /// Keeps a piece of a reply that is not complete, where its rows are wanted.
    #[inline]
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Result<(), Unexpected> {
        self.terminal.as_mut().map_or(Ok(()), |terminal| terminal.keep(bytes))
    }

    /// Takes the last piece of a reply with rows.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Unexpected> {
        match &mut self.terminal {
            Some(terminal) if self.phase == Phase::Working => {
                let kind = self.steps.get(self.step).map_or(u16::MAX, |step| step.kind);
                terminal.read(kind, bytes, self.deprecate_eof)
            }
            _ => Ok(()),
        }
    }

    /// The pieces that were kept are of a reply without rows.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.forget();
        }
    }

    /// How the transaction that is over ended, where there are several kinds.
    #[inline]
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.terminal.as_ref().map(|terminal| terminal.ending())
    }

    /// How long the connection rests before its next transaction, nanoseconds; none where it does not.
    #[inline]
    pub(crate) fn pause_ns(&mut self, program: &Program) -> Option<u64> {
        match (&self.terminal, program) {
            (Some(terminal), Program::Tpcc(tpcc)) => terminal.pause_ns(tpcc, &mut self.composer),
            _ => None,
        }
    }

    /// The packet to be sent, or its rest.
    #[inline]
    pub(crate) fn unsent<'a>(&'a self, program: &'a Program) -> &'a [u8] {
        if self.phase == Phase::RollingBack {
            return &ROLLBACK[self.sent..];
        }
        let (packets, steps) = program.shared_packets().unwrap_or((&self.packets, &self.steps));
        let start = match self.step {
            0 => 0,
            n => steps[n - 1].end as usize,
        };
        &packets[start + self.sent..steps[self.step].end as usize]
    }

    /// Kind of the current statement.
    pub(crate) fn statement(&self, program: &Program) -> u16 {
        self.steps(program).get(self.step).map_or(0, |step| step.kind)
    }

    fn steps<'a>(&'a self, program: &'a Program) -> &'a [Step] {
        program.shared_packets().map_or(&self.steps, |(_, steps)| steps)
    }

    /// Stands before a ROLLBACK.
    pub(crate) fn roll_back(&mut self) {
        // The statements behind the one that failed were made but never sent, perhaps with the types that go with a
        // first EXECUTE only. The server takes types at any time: send all of them again.
        self.composer.types_sent.fill(false);
        self.phase = Phase::RollingBack;
        self.sent = 0;
    }
}

/// COM_QUERY "ROLLBACK" as a packet.
const ROLLBACK: [u8; 13] = *b"\x09\x00\x00\x00\x03ROLLBACK";

#[cfg(test)]
mod tests {
    #[test]
    fn the_rollback_packet_is_what_the_protocol_asks() {
        assert_eq!(super::ROLLBACK[..], scaleprof_wire::query_packet(b"ROLLBACK"));
    }
}
