//! What can end a run.

use scaleprof_bundle::BundleError;
use scaleprof_workload::schema::SchemaError;
use scaleprof_workload::{LoadError, OptionsError, ScriptError};

/// Why a run ended before its time, or could not begin. What had been measured is in the bundle.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server under test.
    #[error(transparent)]
    Server(#[from] scaleprof_server::Error),
    /// The server died under the load.
    #[error("the server died with {connections} connections: {death}")]
    ServerDied {
        /// Connections of the rung.
        connections: u32,
        /// How.
        death: String,
    },
    /// The server's disk is full: it stands still.
    #[error("the server's disk is full ({free_mib} MiB free): free some, or use --work-folder on another disk")]
    DiskFull {
        /// What is free.
        free_mib: u64,
    },
    /// The server answers nothing.
    #[error("with {connections} connections no transaction has ended for {seconds} seconds: see what the statements wait for with SHOW PROCESSLIST, or use fewer connections")]
    StoodStill {
        /// How long.
        seconds: u32,
        /// Connections of the rung.
        connections: u32,
    },
    /// The load's tables.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The load.
    #[error("with {connections} connections: {source}")]
    Load {
        /// Connections of the rung.
        connections: u32,
        /// Why.
        source: LoadError,
    },
    /// The options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The script.
    #[error("the script: {0}")]
    Script(#[from] ScriptError),
    /// The bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The control connection.
    #[error("{doing}: {source}")]
    Wire {
        /// What we were about.
        doing: &'static str,
        /// Why.
        source: scaleprof_wire::Error,
    },
    /// Limit of open files.
    #[error("{wanted} connections need more open files than the limit of {limit}: raise it with `ulimit -n {}`", .wanted + 256)]
    OpenFiles {
        /// Connections wanted.
        wanted: u32,
        /// The limit.
        limit: u64,
    },
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

impl RunError {
    /// The same in words that may stand in a bundle: no text of the server's, which can quote values and names.
    pub fn for_bundle(&self) -> String {
        match self {
            RunError::Load {
                connections,
                source: LoadError::Statement { statement, error },
            } => format!("with {connections} connections: a statement of the kind '{statement}' failed with error {}", error.number),
            RunError::Load {
                connections,
                source: LoadError::Open { open, wanted, source },
            } => match source.number() {
                Some(number) => format!("with {connections} connections: only {open} of {wanted} could be opened: error {number}"),
                None => format!("with {connections} connections: only {open} of {wanted} could be opened"),
            },
            RunError::Load { connections, source: LoadError::Lost(_) } => {
                format!("with {connections} connections: lost a connection to the server")
            }
            RunError::Load { connections, .. } => format!("with {connections} connections: the load failed"),
            RunError::ServerDied { connections, .. } => format!("the server died with {connections} connections"),
            RunError::StoodStill { connections, .. } => {
                format!("with {connections} connections no transaction ended any more")
            }
            RunError::DiskFull { .. } => "the server's disk is full".into(),
            RunError::Stopped => "stopped by the user".into(),
            RunError::Server(_) => "the server under test failed".into(),
            RunError::Schema(_) => "the load's tables could not be made".into(),
            RunError::Bundle(_) => "the bundle could not be written".into(),
            RunError::Wire { doing, .. } => format!("{doing} failed"),
            RunError::Options(_) | RunError::Script(_) | RunError::OpenFiles { .. } => "the options cannot be run".into(),
        }
    }
}
