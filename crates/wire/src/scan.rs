//! Walking over a reply without decoding it.
//!
//! The load wants to know of a reply only that it ended and how. Rows are skipped by the lengths in their packet
//! headers; only the first packet, the last one and errors are looked at. Nothing is kept between two calls but a
//! few counters and, rarely, the beginning of a packet that was cut by the end of the buffer, so that thousands of
//! connections can share one receive buffer.

use crate::ServerError;
use crate::packet::MAX_PAYLOAD;
use crate::reply::{SERVER_MORE_RESULTS_EXISTS, SERVER_STATUS_IN_TRANS, length_encoded, parse_error, parse_ok};

/// Longest packet that is looked at as a whole: the head of a reply, its end, or an error. Rows may be longer.
const LONGEST_SEEN: usize = 64 << 10;

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// No result set; so many rows were changed.
    Done {
        /// Affected rows.
        affected_rows: u64,
    },
    /// One or more result sets; so many rows came.
    Rows {
        /// Rows in all of them.
        count: u64,
    },
    /// The server's error.
    Failed(Box<ServerError>),
    /// The server wants a local file, which the load never offers.
    LocalFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// The first packet of a result.
    Head,
    /// So many column definitions.
    Columns(u32),
    /// The EOF packet after them, of servers that still send it.
    ColumnsEnd,
    /// Rows, or their end.
    Row,
    /// The rest of a payload that was continued because it has 2^24-1 bytes.
    Continuation,
}

/// The scanner of one connection.
#[derive(Debug, Clone)]
pub struct ReplyScanner {
    expect: Expect,
    /// Bytes of the current packet that are still to be skipped.
    skip: usize,
    rows: u64,
    saw_rows: bool,
    deprecate_eof: bool,
    in_transaction: bool,
    /// Beginning of a packet that was cut off.
    carry: Vec<u8>,
}

enum Step {
    /// Took so many bytes and goes on.
    Took(usize),
    /// Took so many bytes and the reply is over.
    End(usize, Reply),
    /// Cannot go on without more bytes.
    More,
}

impl ReplyScanner {
    /// A scanner for a connection with or without CLIENT_DEPRECATE_EOF.
    pub fn new(deprecate_eof: bool) -> Self {
        ReplyScanner {
            expect: Expect::Head,
            skip: 0,
            rows: 0,
            saw_rows: false,
            deprecate_eof,
            in_transaction: false,
            carry: Vec::new(),
        }
    }

    /// Whether nothing of a reply has come yet.
    pub fn is_idle(&self) -> bool {
        self.expect == Expect::Head && self.skip == 0 && self.carry.is_empty() && !self.saw_rows
    }

    /// Whether the last reply that was no error left a transaction open.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Takes received bytes; gives how many it used and, when they complete a reply, how that ended. Bytes past
    /// the end of a reply are left to the caller. A reply that is not complete uses all bytes.
    ///
    /// # Errors
    /// A description of what the protocol does not allow.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Reply>), &'static str> {
        if self.carry.is_empty() {
            self.walk(bytes)
        } else {
            self.feed_carried(bytes)
        }
    }

    /// The rare way: the last buffer ended inside a packet that has to be seen whole.
    #[cold]
    fn feed_carried(&mut self, bytes: &[u8]) -> Result<(usize, Option<Reply>), &'static str> {
        let mut joined = std::mem::take(&mut self.carry);
        let carried = joined.len();
        joined.extend_from_slice(bytes);
        let (used, reply) = self.walk(&joined)?;
        Ok((used.saturating_sub(carried), reply))
    }

    fn walk(&mut self, bytes: &[u8]) -> Result<(usize, Option<Reply>), &'static str> {
        let mut at = 0;
        loop {
            if self.skip > 0 {
                let n = self.skip.min(bytes.len() - at);
                self.skip -= n;
                at += n;
                if self.skip > 0 {
                    return Ok((at, None));
                }
            }
            match self.step(&bytes[at..])? {
                Step::Took(n) => at += n,
                Step::End(n, reply) => {
                    self.expect = Expect::Head;
                    self.rows = 0;
                    self.saw_rows = false;
                    return Ok((at + n, Some(reply)));
                }
                Step::More => {
                    self.carry.extend_from_slice(&bytes[at..]);
                    return Ok((bytes.len(), None));
                }
            }
        }
    }

    /// Looks at one packet at the front of `bytes`.
    #[inline]
    fn step(&mut self, bytes: &[u8]) -> Result<Step, &'static str> {
        if bytes.len() < 4 {
            return Ok(Step::More);
        }
        let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize;
        if self.expect == Expect::Continuation {
            self.skip = length;
            if length < MAX_PAYLOAD {
                self.expect = Expect::Row;
            }
            return Ok(Step::Took(4));
        }
        if length == 0 {
            return Err("an empty packet");
        }
        if bytes.len() < 5 {
            return Ok(Step::More);
        }
        match self.expect {
            Expect::Row => self.step_row(bytes, length),
            Expect::Columns(left) => {
                self.skip = length;
                self.expect = match left - 1 {
                    0 if self.deprecate_eof => Expect::Row,
                    0 => Expect::ColumnsEnd,
                    n => Expect::Columns(n),
                };
                Ok(Step::Took(4))
            }
            Expect::ColumnsEnd => {
                self.skip = length;
                self.expect = Expect::Row;
                Ok(Step::Took(4))
            }
            Expect::Head => self.step_head(bytes, length),
            Expect::Continuation => unreachable_continuation(),
        }
    }

    #[inline]
    fn step_row(&mut self, bytes: &[u8], length: usize) -> Result<Step, &'static str> {
        // A text row may begin with 0xfe only when its first value has 16 MiB or more; 0xff never begins a row.
        let limit = if self.deprecate_eof { MAX_PAYLOAD } else { 9 };
        if bytes[4] == 0xff || (bytes[4] == 0xfe && length < limit) {
            if length > LONGEST_SEEN {
                return Err("an end of rows of more than 64 KiB");
            }
            let Some(packet) = bytes.get(4..4 + length) else {
                return Ok(Step::More);
            };
            if packet[0] == 0xff {
                return Ok(Step::End(4 + length, Reply::Failed(Box::new(parse_error(packet)))));
            }
            let status = if self.deprecate_eof {
                parse_ok(packet).ok_or("an end of rows that cannot be read")?.1
            } else {
                let status = packet.get(3..5).ok_or("an end of rows that is too short")?;
                u16::from_le_bytes([status[0], status[1]])
            };
            if status & SERVER_MORE_RESULTS_EXISTS != 0 {
                self.expect = Expect::Head;
                return Ok(Step::Took(4 + length));
            }
            self.in_transaction = status & SERVER_STATUS_IN_TRANS != 0;
            return Ok(Step::End(4 + length, Reply::Rows { count: self.rows }));
        }
        self.rows += 1;
        self.skip = length;
        if length == MAX_PAYLOAD {
            self.expect = Expect::Continuation;
        }
        Ok(Step::Took(4))
    }

    fn step_head(&mut self, bytes: &[u8], length: usize) -> Result<Step, &'static str> {
        if length > LONGEST_SEEN {
            return Err("a first packet of more than 64 KiB");
        }
        let Some(packet) = bytes.get(4..4 + length) else {
            return Ok(Step::More);
        };
        match packet[0] {
            0x00 => {
                let (affected_rows, status) = parse_ok(packet).ok_or("an OK that cannot be read")?;
                if status & SERVER_MORE_RESULTS_EXISTS != 0 {
                    return Ok(Step::Took(4 + length));
                }
                self.in_transaction = status & SERVER_STATUS_IN_TRANS != 0;
                let reply = if self.saw_rows {
                    Reply::Rows { count: self.rows }
                } else {
                    Reply::Done { affected_rows }
                };
                Ok(Step::End(4 + length, reply))
            }
            0xff => Ok(Step::End(4 + length, Reply::Failed(Box::new(parse_error(packet))))),
            0xfb => Ok(Step::End(4 + length, Reply::LocalFile)),
            _ => {
                let (columns, _) = length_encoded(packet).ok_or("a column count that cannot be read")?;
                self.saw_rows = true;
                self.expect = Expect::Columns(
                    u32::try_from(columns)
                        .ok()
                        .filter(|n| (1..=65_535).contains(n))
                        .ok_or("an impossible column count")?,
                );
                Ok(Step::Took(4 + length))
            }
        }
    }
}

#[cold]
fn unreachable_continuation() -> Result<Step, &'static str> {
    Err("a continued packet out of place")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        out.push(1);
        out.extend_from_slice(payload);
        out
    }

    const OK: [u8; 7] = [0, 3, 0, 2, 0, 0, 0];
    const OK_END: [u8; 7] = [0xfe, 0, 0, 2, 0, 0, 0];
    const OK_END_MORE: [u8; 7] = [0xfe, 0, 0, 10, 0, 0, 0];
    const EOF: [u8; 5] = [0xfe, 0, 0, 2, 0];

    fn rows(deprecate_eof: bool, columns: usize, rows: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
        let mut out = packet(&[columns as u8]);
        for _ in 0..columns {
            out.extend(packet(b"\x03def a column definition"));
        }
        if !deprecate_eof {
            out.extend(packet(&EOF));
        }
        for row in rows {
            out.extend(packet(row));
        }
        out.extend(packet(end));
        out
    }

    #[test]
    fn an_ok_gives_the_changed_rows() {
        let mut scanner = ReplyScanner::new(true);
        let reply = scanner.feed(&packet(&OK));
        assert_eq!(reply, Ok((11, Some(Reply::Done { affected_rows: 3 }))));
        assert!(scanner.is_idle());
    }

    #[test]
    fn rows_are_counted_with_and_without_eof_packets() {
        let data = vec![vec![0, 0, 1], vec![0; 300], vec![0, 0xfe]];
        for (deprecate, end) in [(true, &OK_END[..]), (false, &EOF[..])] {
            let bytes = rows(deprecate, 2, &data, end);
            let reply = ReplyScanner::new(deprecate).feed(&bytes);
            assert_eq!(reply, Ok((bytes.len(), Some(Reply::Rows { count: 3 }))));
        }
    }

    #[test]
    fn results_that_follow_one_another_are_one_reply() {
        let mut bytes = rows(true, 1, &[vec![1, b'x']], &OK_END_MORE);
        bytes.extend(rows(true, 1, &[vec![1, b'y']], &OK_END_MORE));
        bytes.extend(packet(&OK));
        let reply = ReplyScanner::new(true).feed(&bytes);
        assert_eq!(reply, Ok((bytes.len(), Some(Reply::Rows { count: 2 }))));
    }

    #[test]
    fn an_error_amid_rows_is_the_reply() {
        let bytes = rows(true, 1, &[vec![1, b'x']], b"\xff\xbd\x04#40001Deadlock found");
        let (_, reply) = ReplyScanner::new(true).feed(&bytes).unwrap();
        let Some(Reply::Failed(error)) = reply else {
            panic!("not an error")
        };
        assert_eq!((error.number, error.state.as_str()), (1213, "40001"));
    }

    #[test]
    fn a_row_longer_than_a_packet_is_one_row() {
        let mut bytes = packet(&[1]);
        bytes.extend(packet(b"def"));
        let mut long = vec![0xff, 0xff, 0xff, 3];
        long.resize(4 + MAX_PAYLOAD, 0);
        bytes.extend(long);
        bytes.extend(packet(&[7; 10]));
        bytes.extend(packet(&OK_END));
        let reply = ReplyScanner::new(true).feed(&bytes);
        assert_eq!(reply, Ok((bytes.len(), Some(Reply::Rows { count: 1 }))));
    }

    proptest! {
        #[test]
        fn cutting_a_reply_anywhere_changes_nothing(
            data in prop::collection::vec(prop::collection::vec(0_u8..0xfa, 1..40), 0..20),
            cuts in prop::collection::vec(1_usize..50, 1..40),
            deprecate in any::<bool>(),
        ) {
            let bytes = rows(deprecate, 3, &data, if deprecate { &OK_END } else { &EOF });
            let mut scanner = ReplyScanner::new(deprecate);
            let (mut at, mut end) = (0, None);
            for cut in cuts.iter().cycle() {
                let to = (at + cut).min(bytes.len());
                let (used, reply) = scanner.feed(&bytes[at..to]).unwrap();
                prop_assert_eq!(used, to - at);
                at = to;
                if reply.is_some() {
                    end = reply;
                    break;
                }
                prop_assert!(at < bytes.len(), "no end was seen");
            }
            prop_assert_eq!(at, bytes.len());
            prop_assert_eq!(end, Some(Reply::Rows { count: data.len() as u64 }));
        }

        #[test]
        fn any_bytes_are_survived(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            cut in 0_usize..400,
            deprecate in any::<bool>(),
        ) {
            let mut scanner = ReplyScanner::new(deprecate);
            let cut = cut.min(bytes.len());
            if let Ok((used, None)) = scanner.feed(&bytes[..cut]) {
                prop_assert_eq!(used, cut);
                let _ = scanner.feed(&bytes[cut..]);
            }
        }
    }
}
