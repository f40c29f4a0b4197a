//! Filling the tables: streamed LOAD DATA LOCAL INFILE, several at once, the index on `k` after the rows.
//!
//! One statement fills one table where there are enough tables for the threads: MariaDB then loads an empty table
//! in bulk, and every server gets the rows in the order of the primary key.

use super::bulk::{self, Bulk};
use super::rows::RowMaker;
use super::tables::{SCHEMA, SchemaError, doing, mark_filled};
use crate::oltp::{OltpOptions, OltpWorkloadKind};
use crate::random::ConnectionRng;
use scaleprof_wire::{Client, Credentials, Endpoint};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What to fill.
#[derive(Debug, Clone)]
pub struct FillPlan {
    /// The server.
    pub endpoint: Endpoint,
    /// The account.
    pub credentials: Credentials,
    /// The tables.
    pub options: OltpOptions,
    /// The workload that they are for.
    pub kind: OltpWorkloadKind,
    /// Seed of the rows.
    pub seed: u64,
    /// Statements at the same time.
    pub threads: u32,
    /// Whether the rows stay out of the binary log. Only for a server of our own: on one with replicas the load's
    /// updates would not find their rows there.
    pub skip_binary_log: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillProgress {
    /// Rows sent.
    pub rows: u64,
    /// Rows in all.
    pub of: u64,
    /// Indexes made.
    pub indexes: u32,
}

/// Rows of one table that one statement loads.
#[derive(Debug, Clone, Copy)]
struct Piece {
    table: u32,
    first: u32,
    last: u32,
}

struct Shared<'a> {
    plan: &'a FillPlan,
    bulk: Bulk<'a>,
    pieces: Mutex<VecDeque<Piece>>,
    /// Pieces of each table that are still to be loaded; who loads the last makes the index.
    left: Vec<AtomicU32>,
    indexes: AtomicU32,
    failed: AtomicBool,
}

/// Fills the tables that [`super::create`] made and marks the schema as complete.
///
/// # Errors
/// A statement fails or `stop` was set; the schema stays marked as half filled.
pub fn fill(plan: &FillPlan, stop: &AtomicBool, progress: &mut dyn FnMut(FillProgress)) -> Result<(), SchemaError> {
    // sysbench leaves the tables empty here: ids of its own would collide with those of the workload.
    let empty = plan.kind == OltpWorkloadKind::Insert && !plan.options.auto_inc;
    let rows = if empty { 0 } else { plan.options.table_size };
    let pieces = cut(plan.options.tables, rows, plan.threads.max(1));
    let mut left: Vec<AtomicU32> = Vec::new();
    left.resize_with(plan.options.tables as usize, Default::default);
    for piece in &pieces {
        left[piece.table as usize - 1].fetch_add(1, Ordering::Relaxed);
    }
    let shared = Shared {
        plan,
        bulk: Bulk::new(stop),
        pieces: Mutex::new(pieces),
        left,
        indexes: AtomicU32::new(0),
        failed: AtomicBool::new(false),
    };
    let of = u64::from(rows) * u64::from(plan.options.tables);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads.max(1))
            .map(|_| scope.spawn(|| shared.work()))
            .collect();
        while threads.iter().any(|t| !t.is_finished()) {
            progress(FillProgress {
                rows: shared.bulk.rows.load(Ordering::Relaxed),
                of,
                indexes: shared.indexes.load(Ordering::Relaxed),
            });
            std::thread::sleep(Duration::from_millis(20));
        }
        for thread in threads {
            // A panic is printed by the hook; what it left undone shows as a schema that is not marked.
            thread.join().unwrap_or(Err(SchemaError::Stopped))?;
        }
        Ok(())
    })?;
    let mut client = connect(plan)?;
    mark_filled(&mut client)?;
    client.quit();
    Ok(())
}

/// Cuts the tables into pieces: one a table where there are enough tables, else so many that all threads have one.
fn cut(tables: u32, rows: u32, threads: u32) -> VecDeque<Piece> {
    let cuts = threads.div_ceil(tables).min(rows.max(1));
    let mut pieces = VecDeque::new();
    for part in 0..cuts {
        for table in 1..=tables {
            let edge = |n: u32| (u64::from(rows) * u64::from(n) / u64::from(cuts)) as u32;
            pieces.push_back(Piece {
                table,
                first: edge(part) + 1,
                last: edge(part + 1),
            });
        }
    }
    pieces
}

fn connect(plan: &FillPlan) -> Result<Client, SchemaError> {
    connect_to_fill(&plan.endpoint, &plan.credentials, plan.skip_binary_log)
}

/// A connection for filling tables, in the load's schema.
pub(crate) fn connect_to_fill(
    endpoint: &Endpoint,
    credentials: &Credentials,
    skip_binary_log: bool,
) -> Result<Client, SchemaError> {
    let mut client =
        Client::connect(endpoint, &credentials.in_database(SCHEMA)).map_err(doing("connecting to fill the tables"))?;
    let binary_log = skip_binary_log.then_some("sql_log_bin = 0");
    // What a server sets for all its sessions is not made for this: rows would not be committed, and NULL not be read as such.
    let own = [
        "autocommit = 1",
        "TRANSACTION READ WRITE",
        "sql_mode = ''",
        "unique_checks = 0",
        "foreign_key_checks = 0",
    ];
    for setting in own.into_iter().chain(binary_log) {
        client
            .execute(&format!("SET SESSION {setting}"))
            .map_err(doing("preparing to fill the tables"))?;
    }
    // A table takes as long as it takes.
    client.set_patience(None);
    Ok(client)
}

impl Shared<'_> {
    fn work(&self) -> Result<(), SchemaError> {
        let result = self.work_until_done();
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn work_until_done(&self) -> Result<(), SchemaError> {
        let mut client = connect(self.plan)?;
        loop {
            if self.bulk.stop.load(Ordering::Relaxed) {
                return Err(SchemaError::Stopped);
            }
            let next = self.pieces.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(piece) = next.filter(|_| !self.failed.load(Ordering::Relaxed)) else {
                client.quit();
                return Ok(());
            };
            if piece.first <= piece.last {
                self.load(&mut client, piece)?;
            }
            if self.left[piece.table as usize - 1].fetch_sub(1, Ordering::AcqRel) == 1 {
                self.index(&mut client, piece.table)?;
            }
        }
    }

    fn load(&self, client: &mut Client, piece: Piece) -> Result<(), SchemaError> {
        let into = bulk::Into {
            table: &format!("sbtest{}", piece.table),
            columns: "id, k, c, pad",
        };
        self.bulk.load(client, into, || self.maker(piece))
    }

    fn index(&self, client: &mut Client, table: u32) -> Result<(), SchemaError> {
        if self.plan.options.create_secondary {
            client
                .execute(&format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))
                .map_err(doing(format!("making the index on table {table}")))?;
        }
        self.indexes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn maker(&self, piece: Piece) -> RowMaker {
        let stream = (u64::from(piece.table) << 32) | u64::from(piece.first);
        RowMaker {
            next_id: piece.first,
            last_id: piece.last,
            table_size: self.plan.options.table_size,
            distribution: self.plan.options.distribution,
            rng: ConnectionRng::new(self.plan.seed, stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_pieces_cover_every_row_once(tables in 1_u32..6, rows in 0_u32..200, threads in 1_u32..20) {
            let mut seen = vec![0; (tables * rows) as usize];
            for piece in cut(tables, rows, threads) {
                for id in piece.first..=piece.last {
                    seen[((piece.table - 1) * rows + id - 1) as usize] += 1;
                }
            }
            prop_assert!(seen.iter().all(|&n| n == 1));
        }
    }
}
