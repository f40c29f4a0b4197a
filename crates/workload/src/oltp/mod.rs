//! sysbench 1.0's OLTP workloads, statement for statement.
//!
//! Source: the scripts that sysbench 1.0.20 installs (`oltp_common.lua` and the workloads that include it). The
//! tests compare the statements that reach a server's general log with those of the real sysbench.

mod compose;
mod options;
mod statement;
mod workload;

pub use options::{OltpOptions, OptionsError, Protocol};
pub use statement::StatementKind;
pub use workload::{OltpWorkload, OltpWorkloadKind};
