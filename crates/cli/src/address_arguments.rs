//! Options that name a running server, and the account to log in with.

use clap::Args;
use std::path::PathBuf;

/// A running server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running server (instead)")]
#[group(id = "address", multiple = false)]
pub(crate) struct AddressArguments {
    /// Load the server at this Unix socket; asks first
    #[arg(long, short = 'S', value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Load mysql://USER@HOST:PORT (no password in it); asks first
    #[arg(long, value_name = "DSN")]
    pub(crate) dsn: Option<String>,
}

/// The account on it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running server (instead)")]
#[group(id = "account", multiple = true, requires = "address")]
pub(crate) struct AccountArguments {
    /// Account to log in with [default: that of the DSN, the option file, your user name]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Ask for the password. Without it, SCALEPROF_PASSWORD and the option file are read
    #[arg(long)]
    pub(crate) ask_password: bool,
    /// Option file with user, password and ssl-* options under [client] or [scaleprof]
    #[arg(long, value_name = "FILE")]
    pub(crate) defaults_file: Option<PathBuf>,
}

/// What may be done on a server that scaleprof did not start.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running server (instead)")]
#[group(id = "consent", multiple = true, requires = "address")]
pub(crate) struct ConsentArguments {
    /// Do not ask before loading it
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Drop the load's schema at the end
    #[arg(long)]
    pub(crate) drop_schema: bool,
}
