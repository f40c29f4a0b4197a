//! A blocking client for the statements around a measurement, and the way from it to the load's hot path.

use crate::answer::MOST_BYTES;
use crate::auth::{Greeting, log_in};
use crate::packet::PacketStream;
use crate::reply::{SERVER_MORE_RESULTS_EXISTS, length_encoded, length_encoded_string, parse_error, parse_ok};
use crate::{Credentials, Encryption, Endpoint, Error};
use mysql_common::constants::CapabilityFlags;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Longest handshake: a server that takes thousands of connections at once may be slow, one that hangs says nothing at all.
const HANDSHAKE: Duration = Duration::from_secs(60);
/// Longest answer where nothing else is said: an overloaded server, or one that stands still beside another's turn, takes minutes.
const LONGEST_ANSWER: Duration = Duration::from_secs(300);
/// Columns that a result may have at most (MySQL's and MariaDB's limit of a table).
const MOST_COLUMNS: u64 = 4096;
/// What a value takes in memory beside its bytes.
const BYTES_PER_VALUE: usize = 64;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;

/// A connection to a server that runs one statement at a time and waits for it.
#[derive(Debug)]
pub struct Client {
    stream: PacketStream,
    greeting: Greeting,
}

/// What a statement without rows did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rows changed.
    pub affected_rows: u64,
}

/// The rows of a statement, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResultSet {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; `None` is NULL. Bytes that are not UTF-8 are replaced.
    pub rows: Vec<Vec<Option<String>>>,
    /// Rows changed, for a statement that returns none.
    pub affected_rows: u64,
}

/// A prepared statement of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The server's number for it, on this connection.
    pub id: u32,
    /// How many parameters it has.
    pub parameters: u16,
}

/// A connection that has left the blocking client: its socket and what is needed to read its replies.
#[derive(Debug)]
pub struct Session {
    /// The connected socket, blocking.
    pub socket: OwnedFd,
    /// What its bytes are encrypted with, if they are.
    pub encryption: Option<Encryption>,
    /// Whether replies end without EOF packets (CLIENT_DEPRECATE_EOF).
    pub deprecate_eof: bool,
    /// The server's number of the connection, as in SHOW PROCESSLIST.
    pub connection_id: u32,
}

impl Client {
    /// Connects and logs in.
    pub fn connect(endpoint: &Endpoint, who: &Credentials) -> Result<Client, Error> {
        let stream = PacketStream::connect(endpoint, HANDSHAKE)?;
        let (mut stream, greeting) = log_in(stream, endpoint, who)?;
        stream.set_patience(Some(LONGEST_ANSWER));
        Ok(Client { stream, greeting })
    }

    /// The version that the server greeted with, such as `10.11.19-MariaDB-0+deb12u1`.
    pub fn server_version(&self) -> &str {
        // MariaDB 10 and 11 put this before their version for replicas that took 10 for an old protocol.
        self.greeting
            .server_version
            .strip_prefix("5.5.5-")
            .unwrap_or(&self.greeting.server_version)
    }

    /// The server's number of this connection.
    pub fn connection_id(&self) -> u32 {
        self.greeting.connection_id
    }

    /// Bounds how long each answer may take, from its statement on; `None` waits for ever, as for one that fills a table. Five minutes
    /// where nothing else is said. After an answer that came too late the client is of no use any more.
    pub fn set_patience(&mut self, longest: Option<Duration>) {
        self.stream.set_patience(longest);
    }

    /// Version of the encryption, such as `TLSv1.3`; none in the clear.
    pub fn encryption(&self) -> Option<&'static str> {
        self.stream.encryption().map(Encryption::version)
    }

    /// Runs a statement and returns its (last) result set.
    pub fn query(&mut self, sql: &str) -> Result<ResultSet, Error> {
        self.start(COM_QUERY, sql.as_bytes())?;
        self.read_results()
    }

    /// Runs a statement whose rows do not matter.
    pub fn execute(&mut self, sql: &str) -> Result<Outcome, Error> {
        let result = self.query(sql)?;
        Ok(Outcome {
            affected_rows: result.affected_rows,
        })
    }

    /// The first column of the first row.
    pub fn query_value(&mut self, sql: &str) -> Result<Option<String>, Error> {
        let result = self.query(sql)?;
        Ok(result
            .rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next().flatten()))
    }

    /// Runs `LOAD DATA LOCAL INFILE` and sends what `data` reads as the file, in packets of at most `largest` bytes.
    pub fn load_local(&mut self, sql: &str, data: &mut dyn Read, largest: usize) -> Result<Outcome, Error> {
        self.start(COM_QUERY, sql.as_bytes())?;
        let packet = self.stream.read_packet()?;
        match packet.first() {
            Some(0xfb) => {}
            Some(0xff) => return Err(Error::Server(parse_error(&packet))),
            _ => return Err(Error::Protocol("a reply without a request for the file")),
        }
        let mut chunk = vec![0_u8; largest.clamp(1, 256 * 1024)];
        loop {
            let n = data.read(&mut chunk).map_err(Error::lost("reading the rows to load"))?;
            // An empty packet says that the file is over.
            self.stream.write_packet(&chunk[..n])?;
            if n == 0 {
                break;
            }
        }
        let result = self.read_results()?;
        Ok(Outcome {
            affected_rows: result.affected_rows,
        })
    }

    /// Prepares statements, many of them in one round trip. An error of the server is given in its place and does
    /// not stop the others.
    pub fn prepare_all<'a>(
        &mut self,
        statements: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Result<Prepared, Error>>, Error> {
        // The server answers each statement before it reads the next. While it waits for us to read its answers it
        // takes no more statements: what is on the way must fit into the sockets' buffers, or both wait for ever.
        const AT_ONCE: usize = 64;
        let mut statements = statements.into_iter().peekable();
        let mut answers = Vec::new();
        while statements.peek().is_some() {
            let mut out = Vec::new();
            let mut count = 0;
            for sql in statements.by_ref().take(AT_ONCE) {
                out.extend_from_slice(&((sql.len() + 1) as u32).to_le_bytes()[..3]);
                out.push(0);
                out.push(COM_STMT_PREPARE);
                out.extend_from_slice(sql.as_bytes());
                count += 1;
            }
            self.stream.write_raw(&out)?;
            for _ in 0..count {
                answers.push(self.read_prepared()?);
            }
        }
        Ok(answers)
    }

    /// Leaves the blocking client and gives its socket to the load.
    pub fn into_session(self) -> Result<Session, Error> {
        let (deprecate_eof, connection_id) = (self.deprecate_eof(), self.greeting.connection_id);
        let (socket, encryption) = self.stream.into_socket()?;
        Ok(Session {
            socket,
            encryption,
            deprecate_eof,
            connection_id,
        })
    }

    /// Says good-bye. Dropping a client without it makes the server count an aborted connection.
    pub fn quit(mut self) {
        self.stream.start_command();
        // The server closes without an answer; nothing can be done about an error here.
        let _ = self.stream.write_packet(&[COM_QUIT]);
    }

    fn deprecate_eof(&self) -> bool {
        self.greeting
            .capabilities
            .contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }

    fn start(&mut self, command: u8, argument: &[u8]) -> Result<(), Error> {
        let mut payload = Vec::with_capacity(argument.len() + 1);
        payload.push(command);
        payload.extend_from_slice(argument);
        self.stream.start_command();
        self.stream.write_packet(&payload)
    }

    /// Reads all results of a statement and keeps the last one that has rows.
    fn read_results(&mut self) -> Result<ResultSet, Error> {
        let mut last = ResultSet::default();
        loop {
            let packet = self.stream.read_packet()?;
            let status = match packet.first() {
                Some(0x00) => {
                    let (affected, status) = parse_ok(&packet).ok_or(Error::Protocol("an OK that cannot be read"))?;
                    last.affected_rows = affected;
                    status
                }
                Some(0xff) => return Err(Error::Server(parse_error(&packet))),
                Some(0xfb) => {
                    // An empty file: the server must not make us send one that we were not asked for.
                    self.stream.write_packet(&[])?;
                    self.stream.read_packet()?;
                    return Err(Error::Protocol("a request for a local file"));
                }
                _ => {
                    let (set, status) = self.read_rows(&packet)?;
                    last = set;
                    status
                }
            };
            if status & SERVER_MORE_RESULTS_EXISTS == 0 {
                return Ok(last);
            }
        }
    }

    fn read_rows(&mut self, head: &[u8]) -> Result<(ResultSet, u16), Error> {
        let (count, _) = length_encoded(head).ok_or(Error::Protocol("a column count that cannot be read"))?;
        if count > MOST_COLUMNS {
            return Err(Error::Protocol("a column count that no result has"));
        }
        let mut kept = 0;
        let mut set = ResultSet::default();
        for _ in 0..count {
            let definition = self.stream.read_packet()?;
            set.columns
                .push(column_name(&definition).ok_or(Error::Protocol("a column definition that cannot be read"))?);
        }
        if !self.deprecate_eof() {
            self.stream.read_packet()?;
        }
        loop {
            let packet = self.stream.read_packet()?;
            match packet.first() {
                Some(0xff) => return Err(Error::Server(parse_error(&packet))),
                Some(0xfe) if self.deprecate_eof() && packet.len() < crate::packet::MAX_PAYLOAD => {
                    let (_, status) = parse_ok(&packet).ok_or(Error::Protocol("an end of rows that cannot be read"))?;
                    return Ok((set, status));
                }
                Some(0xfe) if !self.deprecate_eof() && packet.len() == 5 => {
                    return Ok((set, u16::from_le_bytes([packet[3], packet[4]])));
                }
                _ => {
                    kept += packet.len() + set.columns.len() * BYTES_PER_VALUE;
                    if kept > MOST_BYTES {
                        return Err(Error::Protocol("more rows than any answer to this has"));
                    }
                    let row =
                        text_row(&packet, set.columns.len()).ok_or(Error::Protocol("a row that cannot be read"))?;
                    set.rows.push(row);
                }
            }
        }
    }

    fn read_prepared(&mut self) -> Result<Result<Prepared, Error>, Error> {
        let packet = self.stream.read_packet()?;
        if packet.first() == Some(&0xff) {
            return Ok(Err(Error::Server(parse_error(&packet))));
        }
        if packet.first() != Some(&0) || packet.len() < 9 {
            return Err(Error::Protocol("an answer to PREPARE that cannot be read"));
        }
        let number = |at: usize| u16::from_le_bytes([packet[at], packet[at + 1]]);
        let prepared = Prepared {
            id: u32::from_le_bytes([packet[1], packet[2], packet[3], packet[4]]),
            parameters: number(7),
        };
        for definitions in [number(7), number(5)] {
            let eof = u16::from(definitions > 0 && !self.deprecate_eof());
            for _ in 0..definitions + eof {
                self.stream.read_packet()?;
            }
        }
        Ok(Ok(prepared))
    }
}

/// The name (not the original name) in a column definition: the fifth of its strings.
fn column_name(packet: &[u8]) -> Option<String> {
    let mut at = 0;
    for _ in 0..4 {
        at += length_encoded_string(packet.get(at..)?)?.1;
    }
    let (name, _) = length_encoded_string(packet.get(at..)?)?;
    Some(String::from_utf8_lossy(name?).into_owned())
}

fn text_row(packet: &[u8], columns: usize) -> Option<Vec<Option<String>>> {
    let mut at = 0;
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        let (value, used) = length_encoded_string(packet.get(at..)?)?;
        row.push(value.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
        at += used;
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), columns in 0_usize..10) {
            let _ = column_name(&bytes);
            let _ = text_row(&bytes, columns);
            let _ = parse_ok(&bytes);
            let _ = parse_error(&bytes);
        }
    }

    proptest! {
        #[test]
        fn a_row_is_read_as_it_was_written(row in prop::collection::vec(prop::option::of("[a-z ]{0,250}"), 0..9)) {
            let mut packet = Vec::new();
            for value in &row {
                match value {
                    Some(text) => {
                        packet.push(text.len() as u8);
                        packet.extend(text.as_bytes());
                    }
                    None => packet.push(0xfb),
                }
            }
            prop_assert_eq!(text_row(&packet, row.len()), Some(row.clone()));
            prop_assert_eq!(text_row(&packet, row.len() + 1), None);
        }
    }

    #[test]
    fn a_row_has_its_values_and_nulls() {
        assert_eq!(
            text_row(b"\x02ab\xfb\x00", 3),
            Some(vec![Some("ab".into()), None, Some(String::new())])
        );
        assert_eq!(text_row(b"\x05ab", 1), None, "cut off");
    }
}
