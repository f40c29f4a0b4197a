//! The load on real servers: what it sends, what it counts, and how it ends.
//!
//! With CI=true the distribution's server, MySQL 5.6.14 and sysbench must be there; elsewhere what needs a missing one
//! is skipped and says so.

mod encrypted;
mod errors;
mod general_log;
mod histograms;
mod pacing;
mod parity;
mod rows;
mod scripts;
mod settings;
pub(crate) mod stage;
mod sysbench;
mod tpcc;
mod transports;
