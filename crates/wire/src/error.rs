//! What can go wrong between us and a server.

use crate::Endpoint;
use std::fmt;
use std::io;

/// An error that the server answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The server's error number, such as 1213.
    pub number: u16,
    /// SQLSTATE, five characters; empty before the handshake is over.
    pub state: String,
    /// The server's message. It may quote values and names: it belongs on a terminal, never in a bundle.
    pub message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {} ({}): {}", self.number, self.state, self.message)
    }
}

/// Any failure of a connection or a statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection could be made.
    #[error("cannot connect to {endpoint}: {source}\nfix: check that the server runs and listens there")]
    Connect {
        /// Where to.
        endpoint: Endpoint,
        /// Why.
        source: io::Error,
    },
    /// The server refused the account or ended the handshake.
    #[error("{endpoint} refused user '{user}': {error}{}", advice(*.may_want_encryption))]
    Refused {
        /// Where.
        endpoint: Endpoint,
        /// Who.
        user: String,
        /// What it said.
        error: Box<ServerError>,
        /// Whether the server offers encryption, was spoken to in the clear, and may mean that.
        may_want_encryption: bool,
    },
    /// The connection could not be encrypted as was asked.
    #[error("no encrypted connection to {endpoint}: {reason}")]
    Tls {
        /// Where to.
        endpoint: Endpoint,
        /// Why, and what to do.
        reason: String,
    },
    /// Authentication could not be carried out on our side.
    #[error("cannot log in as '{user}': {reason}")]
    Authentication {
        /// Who.
        user: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A statement failed.
    #[error("{0}")]
    Server(ServerError),
    /// The connection broke.
    #[error("lost the connection to the server while {doing}: {source}")]
    Lost {
        /// What we were about.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The server sent what the protocol does not allow.
    #[error("the server sent {0}, which the protocol does not allow here")]
    Protocol(&'static str),
}

/// What may mend a refusal.
fn advice(may_want_encryption: bool) -> &'static str {
    match may_want_encryption {
        true => "\nfix: check the password; if the account requires encryption, use --ssl-mode required",
        false => "",
    }
}

impl Error {
    /// The server's error number, where it was the server that complained.
    pub fn number(&self) -> Option<u16> {
        match self {
            Error::Server(e) => Some(e.number),
            Error::Refused { error, .. } => Some(error.number),
            _ => None,
        }
    }

    pub(crate) fn lost(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Lost { doing, source }
    }
}
