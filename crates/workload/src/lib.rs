//! The load on the server: sysbench's OLTP workloads, TPC-C and SQL scripts, and the client that drives them.
//!
//! A [`Program`] says what a connection sends. [`drive`] opens the connections, runs the program on all of them
//! from a few threads and reports every second. [`schema`] makes and fills the tables that the OLTP programs need,
//! [`tpcc`] those of TPC-C.

mod client;
mod distribution;
mod oltp;
mod program;
mod random;
mod script;

pub mod schema;
pub mod tpcc;

pub use client::{
    Arrivals, ChosenTransport, LoadClock, LoadError, LoadObserver, LoadOutcome, LoadPlan, LoadScheduling, LoopKind,
    SecondRecord, Tally, ThreadTimes, Transport, TransportChoice, UringUnusable, drive, raise_open_file_limit,
};
pub use distribution::{Distribution, UnknownDistribution};
pub use oltp::{OltpOptions, OltpWorkload, OltpWorkloadKind, OptionsError, Protocol, StatementKind};
pub use program::{Program, Repetition};
pub use random::ConnectionRng;
pub use script::{Script, ScriptError};
