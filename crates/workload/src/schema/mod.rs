//! The tables of the workloads: making, filling, warming and removing them; those of TPC-C are in [`crate::tpcc`].
//!
//! Everything happens in one schema of our own, [`SCHEMA`]. It holds a marker table; a schema of that name without
//! the marker is somebody else's and is neither written to nor dropped.

mod bulk;
mod fill;
mod rows;
mod tables;

pub(crate) use bulk::{Bulk, Into, RowFormat, RowSource};
pub(crate) use fill::connect_to_fill;
pub use fill::{FillPlan, FillProgress, fill};
pub(crate) use rows::push_number;
pub use tables::{
    SCHEMA, SchemaError, SchemaState, Statistics, create, data_bytes, drop_ours, mark_used_up, state, warm,
};
pub(crate) use tables::{analyse, doing, mark_filled};
