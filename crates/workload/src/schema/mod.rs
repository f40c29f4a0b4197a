//! The tables of the OLTP workloads: making, filling, warming and removing them.
//!
//! Everything happens in one schema of our own, [`SCHEMA`]. It holds a marker table; a schema of that name without
//! the marker is somebody else's and is neither written to nor dropped.

mod fill;
mod rows;
mod tables;

pub use fill::{FillPlan, FillProgress, fill};
pub use tables::{SCHEMA, SchemaError, SchemaState, create, data_bytes, drop_ours, state, warm};
