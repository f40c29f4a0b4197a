//! The MySQL client/server protocol: connecting, authenticating, and one statement at a time.
//!
//! Two users share it. The server and experiment crates need a plain blocking client for a handful of statements
//! ([`Client`]). The load needs to send tens of thousands of prepared statements a second and to learn of each
//! only whether it worked: it takes over the socket of a [`Client`] that has connected and prepared
//! ([`Client::into_session`]), patches values into ready-made packets ([`ExecuteTemplate`]) and walks over the
//! replies without decoding them ([`ReplyScanner`]); a program that needs the values of rows reads them from the same
//! bytes ([`BinaryRows`]).
//!
//! Handshake and authentication come from `mysql_common`, encryption ([`Tls`]) from `rustls`.
//! Source: MySQL internals manual, "Client/Server Protocol"; MariaDB knowledge base, "Clients & Utilities,
//! Server-client protocol".

mod answer;
mod auth;
mod binary_rows;
mod certificates;
mod client;
mod connecting;
mod encryption;
mod endpoint;
mod error;
mod execute;
#[cfg(test)]
mod hostile;
mod packet;
mod reply;
mod scan;
mod tls;

pub use answer::{end_soon, was_stopped};
pub use binary_rows::{BinaryRow, BinaryRows, Value};
pub use client::{Client, Outcome, Prepared, ResultSet, Session};
pub use encryption::Encryption;
pub use endpoint::{Credentials, Endpoint, Password};
pub use error::{Error, ServerError};
pub use execute::{ExecuteTemplate, Parameter, query_packet};
pub use scan::{Reply, ReplyScanner};
pub use tls::{Tls, TlsError, TlsMode, TlsOptions};
