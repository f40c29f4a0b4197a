//! One connection of the load.

use crate::program::{Composer, Program, Step};
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
    packets: Vec<u8>,
    steps: Vec<Step>,
    step: usize,
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
    pub(crate) fn new(session: Session, composer: Composer) -> Self {
        Connection {
            socket: session.socket,
            encryption: session.encryption,
            id: session.connection_id,
            scanner: ReplyScanner::new(session.deprecate_eof),
            phase: Phase::Resting,
            composer,
            packets: Vec::new(),
            steps: Vec::new(),
            step: 0,
            sent: 0,
            began_ns: 0,
            due_ns: 0,
            statement_began_ns: 0,
        }
    }

    /// Makes the packets of the next transaction and stands before its first statement.
    #[inline]
    pub(crate) fn begin(&mut self, program: &Program) {
        program.compose(&mut self.composer, &mut self.packets, &mut self.steps);
        self.step = 0;
        self.sent = 0;
        self.phase = Phase::Working;
    }

    /// Goes to the next statement; false when the transaction is over.
    #[inline]
    pub(crate) fn advance(&mut self, program: &Program) -> bool {
        self.step += 1;
        self.sent = 0;
        self.step < self.steps(program).len()
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
