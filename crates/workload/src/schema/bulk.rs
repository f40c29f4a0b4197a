//! Loading rows that are made as they are sent: streamed LOAD DATA LOCAL INFILE, or long INSERTs where the server
//! refuses that.

use super::tables::{SchemaError, doing};
use scaleprof_wire::{Client, Error};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// Tabs and newlines, for LOAD DATA.
    Tabs,
    /// A parenthesised list, for INSERT.
    Values,
}

/// Makes the rows of a piece of a table, one after the other.
pub(crate) trait RowSource {
    /// Appends the next row; false when there is none.
    fn push(&mut self, format: RowFormat, out: &mut Vec<u8>) -> bool;
}

/// Where rows go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Into<'a> {
    /// The table.
    pub(crate) table: &'a str,
    /// Its columns in the order of the rows' values.
    pub(crate) columns: &'a str,
}

/// Error numbers by which servers refuse LOCAL.
const LOCAL_REFUSED: [u16; 3] = [1148, 3948, 4166];
/// Deadlock and lock wait timeout: the statement, which is a transaction of its own, has been undone. MariaDB locks an
/// empty table as a whole to load it in bulk, and two statements that find it empty at once may deadlock over that.
const RETRIED: [u16; 2] = [1213, 1205];
/// Length of an INSERT, as sysbench's.
const INSERT_BYTES: usize = 512 * 1024;

fn is_one_of(error: &Error, numbers: &[u16]) -> bool {
    error.number().is_some_and(|number| numbers.contains(&number))
}

/// What all threads that load share.
#[derive(Debug)]
pub(crate) struct Bulk<'a> {
    pub(crate) stop: &'a AtomicBool,
    /// Rows sent, over all tables.
    pub(crate) rows: AtomicU64,
    local_refused: AtomicBool,
}

impl<'a> Bulk<'a> {
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Bulk {
            stop,
            rows: AtomicU64::new(0),
            local_refused: AtomicBool::new(false),
        }
    }

    /// Loads the rows of one piece; `source` makes them from its beginning as often as they are needed.
    ///
    /// # Errors
    /// A statement fails, or we were asked to stop.
    pub(crate) fn load<S: RowSource>(
        &self,
        client: &mut Client,
        into: Into<'_>,
        source: impl Fn() -> S,
    ) -> Result<(), SchemaError> {
        let Into { table, columns } = into;
        let sql = format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET latin1 ({columns})");
        let largest = self.packet(client)?;
        while !self.local_refused.load(Ordering::Relaxed) {
            let mut reader = RowReader::new(source(), self);
            match client.load_local(&sql, &mut reader, largest) {
                Ok(_) => return Ok(()),
                Err(_) if self.is_stopped() => return Err(SchemaError::Stopped),
                Err(e) if is_one_of(&e, &RETRIED) => {
                    self.rows.fetch_sub(reader.made, Ordering::Relaxed);
                }
                Err(e) if is_one_of(&e, &LOCAL_REFUSED) => {
                    self.local_refused.store(true, Ordering::Relaxed);
                }
                Err(e) => return Err(doing(format!("filling the table {table}"))(e)),
            }
        }
        self.insert(client, into, &mut source())
    }

    /// The way for servers that refuse LOCAL.
    fn insert(&self, client: &mut Client, into: Into<'_>, source: &mut dyn RowSource) -> Result<(), SchemaError> {
        let Into { table, columns } = into;
        let head = format!("INSERT INTO {table} ({columns}) VALUES ");
        // The last row may be as long as a packet's rest.
        let most = INSERT_BYTES.min(self.packet(client)?);
        loop {
            let mut sql = head.clone().into_bytes();
            let mut made = 0;
            while sql.len() < most && source.push(RowFormat::Values, &mut sql) {
                sql.push(b',');
                made += 1;
            }
            if made == 0 {
                return Ok(());
            }
            sql.pop();
            let sql = String::from_utf8_lossy(&sql);
            loop {
                if self.is_stopped() {
                    return Err(SchemaError::Stopped);
                }
                match client.execute(&sql) {
                    Ok(_) => break,
                    Err(e) if is_one_of(&e, &RETRIED) => {}
                    Err(e) => return Err(doing(format!("filling the table {table}"))(e)),
                }
            }
            self.rows.fetch_add(made, Ordering::Relaxed);
        }
    }

    /// Half of the longest packet that the server takes: one that is as long is refused.
    fn packet(&self, client: &mut Client) -> Result<usize, SchemaError> {
        let said = client
            .query_value("SELECT @@max_allowed_packet")
            .map_err(doing("asking for the longest packet"))?;
        Ok(said.and_then(|text| text.parse().ok()).unwrap_or(usize::MAX) / 2)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The rows as a file for LOAD DATA; counts them as they go.
struct RowReader<'a, S> {
    source: S,
    pending: Vec<u8>,
    position: usize,
    made: u64,
    bulk: &'a Bulk<'a>,
}

impl<'a, S: RowSource> RowReader<'a, S> {
    fn new(source: S, bulk: &'a Bulk<'a>) -> Self {
        RowReader {
            source,
            pending: Vec::new(),
            position: 0,
            made: 0,
            bulk,
        }
    }
}

impl<S: RowSource> Read for RowReader<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.bulk.is_stopped() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped"));
        }
        if self.position == self.pending.len() {
            self.pending.clear();
            self.position = 0;
            let mut made = 0;
            while self.pending.len() < 256 * 1024 && self.source.push(RowFormat::Tabs, &mut self.pending) {
                made += 1;
            }
            self.made += made;
            self.bulk.rows.fetch_add(made, Ordering::Relaxed);
        }
        let n = (self.pending.len() - self.position).min(out.len());
        out[..n].copy_from_slice(&self.pending[self.position..self.position + n]);
        self.position += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are numbers.
    struct Numbers(std::ops::RangeInclusive<u32>);

    impl RowSource for Numbers {
        fn push(&mut self, _: RowFormat, out: &mut Vec<u8>) -> bool {
            let Some(number) = self.0.next() else { return false };
            out.extend_from_slice(format!("{number}\n").as_bytes());
            true
        }
    }

    #[test]
    fn a_file_has_all_rows_and_they_are_counted() {
        let stop = AtomicBool::new(false);
        let bulk = Bulk::new(&stop);
        let mut text = String::new();
        let mut reader = RowReader::new(Numbers(1..=100_000), &bulk);
        reader.read_to_string(&mut text).expect("a file");
        assert!(text.lines().map(str::parse).eq((1..=100_000).map(Ok::<u32, _>)));
        assert_eq!((reader.made, bulk.rows.load(Ordering::Relaxed)), (100_000, 100_000));
    }

    #[test]
    fn a_file_ends_with_an_error_when_we_are_to_stop() {
        let stop = AtomicBool::new(true);
        let bulk = Bulk::new(&stop);
        let result = RowReader::new(Numbers(1..=1), &bulk).read(&mut [0; 9]);
        assert!(result.is_err());
    }
}
