//! The closed sets of words that scaleprof stores and shows.
//!
//! What belongs here: a closed set that a column of a bundle's tables, `manifest.json`, `summary.json` or a record of the kernel's
//! programs holds as a word. Each is an enum with the word that is [stored](Word::name) and the one that people are
//! [shown](Word::label) in full; elsewhere in the program there are only the enums. Nothing here knows how anything is measured.

mod code;
mod findings;
mod measurements;
mod per_state;
mod runs;
mod servers;
mod stacks;
mod threads;
mod word;
mod workloads;

pub use code::{AccessKind, BranchKind};
pub use findings::{FindingKind, GrowthShape, ShareOf};
pub use measurements::{LatencyKind, MeasurementOutcome, Operation};
pub use per_state::PerState;
pub use runs::{ExperimentVerdict, LadderVerdict, RunState};
pub use servers::SettingSource;
pub use stacks::{SymbolSource, UnwindStatus, WakerKind};
pub use threads::{Role, ThreadState};
pub use word::{UnknownWord, Word};
pub use workloads::{LoopWord, TpccTransaction, WorkloadName};
