//! Where a server listens and who we are to it.

use crate::Tls;
use std::fmt;
use std::path::PathBuf;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix domain socket.
    Unix(PathBuf),
    /// TCP.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "socket {}", path.display()),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// A password. It is never printed: `Debug` shows stars, and there is no `Display` or serialisation.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Wraps a password.
    pub fn new(text: impl Into<String>) -> Self {
        Password(text.into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// Who we are to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The account's user name.
    pub user: String,
    /// Its password, if it has one.
    pub password: Option<Password>,
    /// The schema to start in.
    pub database: Option<String>,
    /// Whether we speak in the clear, and to whom.
    pub tls: Tls,
}

impl Credentials {
    /// A user without password, schema or encryption.
    pub fn user(name: impl Into<String>) -> Self {
        Credentials {
            user: name.into(),
            password: None,
            database: None,
            tls: Tls::default(),
        }
    }

    /// The same account, starting in another schema.
    pub fn in_database(&self, database: impl Into<String>) -> Self {
        Credentials {
            database: Some(database.into()),
            ..self.clone()
        }
    }
}
