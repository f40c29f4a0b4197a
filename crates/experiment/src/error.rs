//! What can end a run.

use scaleprof_bundle::BundleError;
use scaleprof_workload::schema::SchemaError;
use scaleprof_workload::tpcc::{TpccOptionsError, Violation};
use scaleprof_workload::{LoadError, OptionsError, ScriptError, UringUnusable};

/// Why a run ended before its time, or could not begin. What had been measured is in the bundle.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server under test.
    #[error(transparent)]
    Server(#[from] scaleprof_server::Error),
    /// The server died under the load.
    #[error("the server died with {}: {death}", in_words(*.connections))]
    ServerDied {
        /// Connections of the rung.
        connections: u32,
        /// How.
        death: String,
    },
    /// The server's disk is full: it stands still.
    #[error(
        "the server's disk is full ({free_mib} MiB free)\nfix: free space, or name a folder on another disk with \
         --work-dir"
    )]
    DiskFull {
        /// What is free.
        free_mib: u64,
    },
    /// The server answers nothing.
    #[error("with {} no statement was answered for {seconds} seconds\nfix: check SHOW PROCESSLIST, or use fewer connections", in_words(*.connections))]
    StoodStill {
        /// How long.
        seconds: u32,
        /// Connections of the rung.
        connections: u32,
    },
    /// An attached server has no room for the load beside its own users.
    #[error(
        "the load needs {wanted} of the server's {limit}: {allowed} allowed, {taken} in use, a tenth of the rest is \
         reserved\nfix: {advice}, or raise {limit}"
    )]
    NoRoom {
        /// The server's setting.
        limit: &'static str,
        /// Its value.
        allowed: u64,
        /// What is in use.
        taken: u64,
        /// What the load needs.
        wanted: u64,
        /// What else can be done.
        advice: &'static str,
    },
    /// Somebody else loads the same server.
    #[error("another scaleprof loads this server (it has the lock 'scaleprof_load')\nfix: wait until it ends")]
    AnotherLoad,
    /// The load's tables.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The load.
    #[error("with {}: {source}", in_words(*.connections))]
    Load {
        /// Connections of the rung.
        connections: u32,
        /// Why.
        source: LoadError,
    },
    /// The load of a server beside the one under test.
    #[error("with {}: neighbour {neighbour}: {source}", in_words(*.connections))]
    Neighbour {
        /// Its number, from 1.
        neighbour: usize,
        /// Connections of the rung.
        connections: u32,
        /// Why.
        source: LoadError,
    },
    /// The system calls that were asked for to carry the load.
    #[error(transparent)]
    Transport(UringUnusable),
    /// The options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The options of TPC-C.
    #[error(transparent)]
    Tpcc(#[from] TpccOptionsError),
    /// TPC-C's tables are not consistent.
    #[error(
        "{when} the TPC-C tables violate {} of the 12 consistency conditions ({}): commits were lost or doubled, or \
         another client changed schema scaleprof_load",
        .violations.len(),
        .violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Inconsistent {
        /// `after the load` or `after the run`.
        when: &'static str,
        /// The conditions that do not hold.
        violations: Vec<Violation>,
    },
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
        source: Box<scaleprof_wire::Error>,
    },
    /// Limit of open files.
    #[error("{wanted} connections need more open files than the limit of {limit}\nfix: raise it with `ulimit -n {}`", .wanted + 256)]
    OpenFiles {
        /// Connections wanted.
        wanted: u32,
        /// The limit.
        limit: u64,
    },
    /// The files that an experiment keeps.
    #[error("{0}")]
    Disk(String),
    /// All variants of an experiment but one were dropped.
    #[error("fewer than two variants are left: there is nothing to compare")]
    NothingToCompare,
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

/// `1 connection`, `2 connections`.
pub(crate) fn in_words(connections: u32) -> String {
    match connections {
        1 => "1 connection".to_owned(),
        _ => format!("{connections} connections"),
    }
}

/// Errors of statements that come again however often they are tried: syntax, unknown tables, columns, schemas,
/// routines, and rights.
const HOPELESS: [u16; 9] = [1064, 1146, 1054, 1049, 1305, 1142, 1044, 1143, 1136];

impl RunError {
    /// Whether the next measurement would meet it too.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            RunError::Load {
                source: LoadError::Statement { error, .. },
                ..
            } => HOPELESS.contains(&error.number),
            // A neighbour that is gone is gone from every measurement behind it.
            RunError::Neighbour { source, .. } => matches!(source, LoadError::Lost(_)),
            RunError::Load { .. } | RunError::StoodStill { .. } => false,
            _ => true,
        }
    }

    /// The same in words that may stand in a bundle: no text of the server's, which can quote values and names.
    pub fn for_bundle(&self) -> String {
        match self {
            RunError::Load { connections, source } => {
                let with = in_words(*connections);
                match source {
                    LoadError::Statement { statement, error } => {
                        let number = error.number;
                        format!("with {with}: a statement of the kind '{statement}' failed with error {number}")
                    }
                    LoadError::Open { open, wanted, source } => match source.number() {
                        Some(number) => format!("with {with}: only {open} of {wanted} could be opened: error {number}"),
                        None => format!("with {with}: only {open} of {wanted} could be opened"),
                    },
                    LoadError::Lost(_) => format!("with {with}: lost a connection to the server"),
                    _ => format!("with {with}: the load failed"),
                }
            }
            RunError::Transport(_) => "io_uring was asked for and does not work here".to_owned(),
            RunError::ServerDied { connections, .. } => format!("the server died with {}", in_words(*connections)),
            RunError::StoodStill { connections, .. } => {
                format!("with {} no statement was answered any more", in_words(*connections))
            }
            RunError::Neighbour {
                neighbour, connections, ..
            } => format!(
                "with {}: the load of neighbour {neighbour} failed",
                in_words(*connections)
            ),
            RunError::Server(scaleprof_server::Error::NotFollowing { method, replica, .. }) => {
                format!("replica {replica} stopped following ({method} replication)")
            }
            RunError::NoRoom { limit, .. } => format!("the server's {limit} is too low"),
            RunError::AnotherLoad => "another load runs on this server".into(),
            RunError::DiskFull { .. } => "the server's disk is full".into(),
            RunError::Stopped => "stopped by the user".into(),
            RunError::Disk(_) => "the experiment's files could not be written".into(),
            RunError::NothingToCompare => "there was nothing to compare".into(),
            RunError::Server(_) => "the server under test failed".into(),
            RunError::Schema(_) => "the load's tables could not be made".into(),
            RunError::Bundle(_) => "the bundle could not be written".into(),
            RunError::Wire { doing, .. } => format!("{doing} failed"),
            RunError::Inconsistent { when, violations } => {
                let numbers: Vec<String> = violations.iter().map(|v| v.condition.number.to_string()).collect();
                format!(
                    "{when} TPC-C's consistency conditions {} do not hold",
                    numbers.join(", ")
                )
            }
            RunError::Options(_) | RunError::Tpcc(_) | RunError::Script(_) | RunError::OpenFiles { .. } => {
                "the options cannot be run".into()
            }
        }
    }
}
