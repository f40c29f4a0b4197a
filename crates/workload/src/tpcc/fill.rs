//! Filling the tables: several warehouses at once, table by table, the further indexes after the rows.

use super::nurand::RunConstants;
use super::options::TpccOptions;
use super::population::{Population, Table};
use super::tables::create_indexes;
use crate::schema::{Bulk, FillProgress, Into, SchemaError, connect_to_fill, doing, mark_filled};
use scaleprof_wire::{Client, Credentials, Endpoint};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What to fill.
#[derive(Debug, Clone)]
pub struct TpccFillPlan {
    /// The server.
    pub endpoint: Endpoint,
    /// The account.
    pub credentials: Credentials,
    /// How many warehouses, and their seed.
    pub options: TpccOptions,
    /// Statements at the same time.
    pub threads: u32,
    /// Whether the rows stay out of the binary log. Only for a server of our own, as for the OLTP tables.
    pub skip_binary_log: bool,
}

/// Rows that one statement loads: a warehouse's of a table, or the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    table: Table,
    warehouse: u32,
}

/// The pieces: the items, then table by table those of all warehouses, so that threads meet in one table with rows that
/// follow one another.
fn pieces(warehouses: u32) -> VecDeque<Piece> {
    let items = Piece {
        table: Table::Item,
        warehouse: 0,
    };
    let of_warehouses = Table::OF_A_WAREHOUSE
        .into_iter()
        .flat_map(|table| (1..=warehouses).map(move |warehouse| Piece { table, warehouse }));
    std::iter::once(items).chain(of_warehouses).collect()
}

/// Fills the tables that [`super::create_tables`] made, makes the further indexes and marks the schema as complete.
///
/// # Errors
/// A statement fails or `stop` was set; the schema stays marked as half filled.
pub fn fill(plan: &TpccFillPlan, stop: &AtomicBool, progress: &mut dyn FnMut(FillProgress)) -> Result<(), SchemaError> {
    let mut client = connect(plan)?;
    let population = Population {
        seed: plan.options.data_seed,
        constants: RunConstants::of(plan.options.data_seed),
        now: client
            .query_value("SELECT NOW()")
            .map_err(doing("asking the server for the time"))?
            .unwrap_or_else(|| "2000-01-01 00:00:00".to_owned()),
    };
    let queue = pieces(plan.options.warehouses);
    let of = queue.iter().map(|piece| piece.table.rows()).sum();
    let shared = Shared {
        plan,
        population: &population,
        bulk: Bulk::new(stop),
        pieces: Mutex::new(queue),
        failed: AtomicBool::new(false),
    };
    let done = |indexes| FillProgress {
        // Order lines are known on average only.
        rows: shared.bulk.rows.load(Ordering::Relaxed).min(of),
        of,
        indexes,
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads.max(1))
            .map(|_| scope.spawn(|| shared.work()))
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            progress(done(0));
            std::thread::sleep(Duration::from_millis(20));
        }
        for thread in threads {
            // A panic is printed by the hook; what it left undone shows as a schema that is not marked.
            thread.join().unwrap_or(Err(SchemaError::Stopped))?;
        }
        Ok(())
    })?;
    create_indexes(&mut client)?;
    progress(done(2));
    mark_filled(&mut client)?;
    client.quit();
    Ok(())
}

fn connect(plan: &TpccFillPlan) -> Result<Client, SchemaError> {
    connect_to_fill(&plan.endpoint, &plan.credentials, plan.skip_binary_log)
}

struct Shared<'a> {
    plan: &'a TpccFillPlan,
    population: &'a Population,
    bulk: Bulk<'a>,
    pieces: Mutex<VecDeque<Piece>>,
    failed: AtomicBool,
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
            let Some(Piece { table, warehouse }) = next.filter(|_| !self.failed.load(Ordering::Relaxed)) else {
                client.quit();
                return Ok(());
            };
            let into = Into {
                table: table.name(),
                columns: table.columns(),
            };
            self.bulk
                .load(&mut client, into, || self.population.rows(table, warehouse))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_cover_every_warehouse_of_every_table_once() {
        let pieces = pieces(3);
        assert_eq!(pieces.len(), 1 + 8 * 3);
        assert!(
            pieces
                .iter()
                .enumerate()
                .all(|(i, piece)| !pieces.range(..i).any(|p| p == piece))
        );
    }
}
