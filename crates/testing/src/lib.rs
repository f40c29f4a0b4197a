//! What the tests of several crates share: what to do where something is not there, how to wait, real servers, made-up data.
//!
//! Its modules of servers, bundles and archives are features, so that the tests of a crate below those build without them.

pub mod counted_memory;
mod deep;
pub mod hostile_server;
#[cfg(feature = "archives")]
pub mod made_up;
pub mod perf_recording;
#[cfg(feature = "bundles")]
pub mod planted;
mod program;
mod required;
#[cfg(feature = "servers")]
pub mod servers;
mod signals;
#[cfg(target_arch = "x86_64")]
pub mod stopped_thread;
mod waiting;

pub use deep::{is_deep, trials};
pub use program::{Killed, RunningProgram};
pub use required::{in_ci, no_server, servers_cache};
pub use signals::default_signals;
pub use waiting::{LIMIT, soon};
