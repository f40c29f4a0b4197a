//! Where a server listens and who we are to it.

use crate::Tls;
use std::fmt;
use std::net::IpAddr;
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

impl Endpoint {
    /// Whether what is sent there never leaves this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Endpoint::Unix(_) => true,
            Endpoint::Tcp { host, .. } => {
                let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
                address.map_or_else(
                    |_| host.eq_ignore_ascii_case("localhost"),
                    |address| address.is_loopback(),
                )
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_on_this_machine_is_local() {
        let tcp = |host: &str| Endpoint::Tcp {
            host: host.to_owned(),
            port: 3306,
        };
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]"] {
            assert!(tcp(host).is_local(), "{host}");
        }
        for host in [
            "192.0.2.1",
            "db.example.org",
            "localhost.example.org",
            "::",
            "2001:db8::1",
        ] {
            assert!(!tcp(host).is_local(), "{host}");
        }
        assert!(Endpoint::Unix("/run/mysqld/mysqld.sock".into()).is_local());
    }
}
