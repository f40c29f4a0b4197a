//! TPC-C: five transactions of a wholesale supplier, by the TPC Benchmark C Standard Specification, revision 5.11.
//!
//! Comments name its clauses. docs/tpcc.md says where this and other kits leave it. The transactions are pure: they take
//! rows and make packets; the client of this crate carries both.

mod consistency;
mod customer;
mod deck;
mod delivery;
mod fill;
mod kind;
#[cfg(test)]
mod made_up_server;
mod money;
mod new_order;
mod nurand;
mod options;
mod order_status;
mod outbox;
mod pauses;
mod payment;
mod population;
mod row_writer;
mod statement;
mod stock_level;
mod tables;
mod terminal;
mod text;
mod workload;

/// The workload's name in options and summaries.
pub const NAME: &str = "tpcc";

pub use consistency::{Condition, Violation, check_consistency};
pub use deck::Mix;
pub use fill::{TpccFillPlan, fill};
pub(crate) use kind::Ending;
pub use kind::{ROLLED_BACK, TransactionKind};
pub use nurand::RunConstants;
pub use options::{HomeWarehouse, MOST_WAREHOUSES, TpccOptions, TpccOptionsError};
pub use tables::{create_indexes, create_tables, warm};
pub(crate) use terminal::{Terminal, Unexpected};
pub use workload::Tpcc;
