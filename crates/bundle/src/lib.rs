//! How a run is kept: one folder with a manifest, Parquet tables and a summary.
//!
//! ```text
//! BUNDLE/manifest.json                           what was run, on what, in what state it ended
//! BUNDLE/measurements/measurement-00000.parquet  one part a measurement: a killed run keeps what it had
//! BUNDLE/seconds/measurement-00000.parquet
//! BUNDLE/counters/…  latency/…  errors/…  states/…  samples/…  locks/…
//! BUNDLE/stacks/measurement-00000.parquet        what earlier measurements did not know yet
//! BUNDLE/frames/…
//! BUNDLE/branches/measurement-00000.parquet      branches that the processor recorded
//! BUNDLE/settings/settings.parquet               the server's settings
//! BUNDLE/instructions/instructions.parquet       machine code of the hot functions
//! BUNDLE/data_accesses/data_accesses.parquet     which code accesses the cache lines of hot instructions
//! BUNDLE/summary.json                            the stable face for scripts
//! BUNDLE/report.html
//! ```
//!
//! Nothing in a bundle holds query text, values or table names.

mod branch_rows;
mod coded;
mod columns;
mod data_access_rows;
mod error;
mod hybrid;
mod instruction_rows;
mod interrupted;
mod ledger_summary;
mod long_run;
mod manifest;
mod measurement_rows;
mod number_map;
mod pages;
mod part;
mod profile_rows;
mod profile_tables;
mod public_text;
mod reader;
mod remedy;
mod samples;
mod scaling_summary;
mod summary;
mod tables;
mod watch_summary;
mod writer;

pub use branch_rows::BranchRow;
pub use coded::Coded;
pub use data_access_rows::DataAccessRow;
pub use error::BundleError;
pub use instruction_rows::InstructionRow;
pub use interrupted::{Halt, tell_interrupted};
pub use ledger_summary::*;
pub use long_run::{Level, LongRun};
pub use manifest::*;
pub use measurement_rows::{MeasurementRows, MeasurementTables};
pub use number_map::{NumberHasher, NumberMap};
pub use profile_rows::{MeasurementClock, sample_rows};
pub use profile_tables::*;
pub use public_text::without_folders;
pub use reader::Bundle;
pub use remedy::{Remedy, RemedyResult};
pub use samples::{SampleBlock, Samples};
pub use scaleprof_profile::{both, in_parallel};
pub use scaling_summary::{LostPath, LostThreads, SaturatedPath, ScalingProfile};
pub use summary::*;
pub use tables::*;
pub use watch_summary::*;
pub use writer::BundleWriter;

/// Version of the bundle's layout and of `summary.json` that this crate writes and reads.
pub const SCHEMA: u32 = 2;
