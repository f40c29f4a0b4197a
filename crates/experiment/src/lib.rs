//! What to run: ladders, repeats and order; drives the server, the load and the counters.
//!
//! [`run`] carries out a whole run: it starts a server (or takes the one that was named), fills the tables, climbs
//! the ladder and keeps everything in a bundle as it goes. Whoever shows it to a person implements [`Progress`].

mod beside_cpu;
mod boundary_watch;
mod code_source;
mod company;
mod data_accesses;
mod error;
mod guest;
mod hot_code;
mod import;
mod instructions;
mod ladder;
mod late;
mod manifest;
mod measurement;
mod neighbour_load;
mod observe;
mod options;
mod own_load;
mod prepare;
mod privacy;
mod probes;
mod processes;
mod progress;
mod replica_watch;
mod roles;
mod run;
mod sample_pieces;
mod sample_store;
mod shared_data;
mod side_by_side;
mod status;
mod status_watch;
mod stretch;
mod target;
mod thread_rows;
mod threads;
mod transport;
pub mod trials;
pub mod trying;
mod turns;
mod unfinished;
mod watch;
mod watching;

pub use company::{Company, MOST_NEIGHBOURS};
pub use error::RunError;
pub use hot_code::{CodeFiles, check_hot_code};
pub use import::{
    ImportFailure, ImportRequest, ImportResult, KnownLoad, Sampling, import, import_in_memory, tell_import_stopped,
};
pub use instructions::instruction_rows;
pub use ladder::{LadderError, parse_connections, shuffled_measurements};
pub use options::{LoadOptions, RunOptions, ServerChoice, WorkloadChoice};
pub use own_load::{OwnLoad, OwnMeasurement};
pub use privacy::names_something;
pub use processes::{RunningServer, running_servers};
pub use progress::{MeasurementDone, MeasurementStart, Progress};
pub use run::{RunResult, run};
pub use scaleprof_probe::{WatchOptions, debuginfod_can_be_asked};
pub use shared_data::{SharedData, SharedDataError};
pub use target::Attach;
pub use transport::check_transport;
pub use watch::{WatchError, WatchRequest, WatchResult, watch};
pub use watching::Watching;
