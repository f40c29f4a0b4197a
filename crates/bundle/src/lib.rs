//! How a run is kept: one folder with a manifest, Parquet tables and a summary.
//!
//! ```text
//! BUNDLE/manifest.json                what was run, on what, in what state it ended
//! BUNDLE/rungs/visit-00000.parquet    one part a visit: a killed run keeps what it had
//! BUNDLE/seconds/visit-00000.parquet
//! BUNDLE/counters/…  latency/…  errors/…
//! BUNDLE/settings/settings.parquet    the server's settings
//! BUNDLE/summary.json                 the stable face for scripts
//! BUNDLE/report.html
//! ```
//!
//! Nothing in a bundle holds query text, values or table names.

mod manifest;
mod summary;
mod tables;

pub use manifest::*;
pub use summary::*;
pub use tables::*;
