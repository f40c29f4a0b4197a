//! The server under test: find, install a data folder, start, watch, stop.
//!
//! A [`Sandbox`] is a MySQL or MariaDB server of any build, started as our child on a data folder of its own, told
//! everything by one option file, reachable through a Unix socket, and gone with all its files when we are, however
//! we end. Nothing of the machine's own database instance is read or touched.
//!
//! ```no_run
//! use scaleprof_server::*;
//! # fn main() -> Result<(), Error> {
//! let installation = Installation::distribution()?;
//! let settings = Settings::new(ServerSettings { connections: 512, ..ServerSettings::default() })?;
//! let work = WorkFolder::open(&WorkFolder::default_path())?;
//! let sandbox = SandboxBuilder::new(installation, settings, work)
//!     .placement(Placement::on_this_machine(None, None)?)
//!     .janitor(Janitor::spawn()?)
//!     .start_fresh()?;
//! sandbox.connect()?;
//! sandbox.stop()
//! # }
//! ```

mod before_exec;
pub mod capabilities;
mod confined;
pub mod cpu_set;
pub mod data_folder;
pub mod death;
mod error;
pub mod error_log;
pub mod file_copy;
mod file_lock;
mod free_port;
pub mod identify;
mod initialise;
pub mod janitor;
pub mod memory;
mod option_file;
mod option_text;
pub mod origins;
mod pause;
pub mod placement;
pub mod process;
pub mod product;
pub mod replication;
mod sandbox;
mod setting;
pub mod settings;
mod size;
mod surroundings;
pub mod thread_names;
pub mod user;
pub mod variables;
pub mod work_folder;

pub use capabilities::{Capabilities, Feature};
pub use confined::version_said_by;
pub use cpu_set::CpuSet;
pub use data_folder::{Cache, DataKey, PreparedData, cache_size};
pub use death::Death;
pub use error::Error;
pub use error_log::Reason;
pub use file_lock::FileLock;
pub use identify::Installation;
pub use janitor::Janitor;
pub use origins::VariableOrigin;
pub use pause::Pauser;
pub use placement::{Placement, Topology};
pub use product::{Product, Version};
pub use replication::{Position, Replicas, Replication, ReplicationMethod};
pub use sandbox::{Sandbox, SandboxBuilder};
pub use setting::{Origin, Setting, one_spelling, parse_size};
pub use settings::{ServerSettings, Settings};
pub use size::parse_bytes;
pub use surroundings::Surroundings;
pub use thread_names::thread_names;
pub use user::ServerUser;
pub use work_folder::WorkFolder;
