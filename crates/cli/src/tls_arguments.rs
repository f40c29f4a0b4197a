//! The options of encryption, by the names that they have in the mysql client, and what they default to.

use crate::choice::{TLS_MODES, one_of};
use anyhow::Context;
use clap::Args;
use scaleprof_wire::{Endpoint, Tls, TlsMode, TlsOptions};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Running server (instead)")]
#[group(id = "encryption", multiple = true, requires = "address")]
pub(crate) struct TlsArguments {
    /// Encryption of all connections [default: preferred over TCP, verify-ca with --ssl-ca, disabled over a socket]
    #[arg(long, value_name = "MODE", value_parser = one_of::<TlsMode>(TLS_MODES), ignore_case = true)]
    pub(crate) ssl_mode: Option<TlsMode>,
    /// CA certificates, in PEM, to verify the server's certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) ssl_ca: Option<PathBuf>,
    /// Client certificate, for accounts that REQUIRE X509
    #[arg(long, value_name = "FILE")]
    pub(crate) ssl_cert: Option<PathBuf>,
    /// Key of the client certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) ssl_key: Option<PathBuf>,
}

impl TlsArguments {
    /// What is given here, and from `other` what is not.
    pub(crate) fn or(self, other: TlsArguments) -> TlsArguments {
        TlsArguments {
            ssl_mode: self.ssl_mode.or(other.ssl_mode),
            ssl_ca: self.ssl_ca.or(other.ssl_ca),
            ssl_cert: self.ssl_cert.or(other.ssl_cert),
            ssl_key: self.ssl_key.or(other.ssl_key),
        }
    }

    /// Takes a line of an option file; false where it is about something else.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> anyhow::Result<bool> {
        let path = || Some(PathBuf::from(value));
        // Both spellings are the same to the server's own programs.
        match name.replace('_', "-").as_str() {
            "ssl-mode" => {
                let mode = value.parse().map_err(anyhow::Error::msg);
                self.ssl_mode = Some(mode.context("the option file's ssl-mode")?);
            }
            "ssl-ca" => self.ssl_ca = path(),
            "ssl-cert" => self.ssl_cert = path(),
            "ssl-key" => self.ssl_key = path(),
            "skip-ssl" => self.ssl_mode = Some(TlsMode::Disabled),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the files. What was left open is decided as the mysql client does.
    pub(crate) fn read(self, endpoint: &Endpoint) -> anyhow::Result<Tls> {
        let mode = self.ssl_mode.unwrap_or(match (&self.ssl_ca, endpoint) {
            (_, Endpoint::Unix(_)) => TlsMode::Disabled,
            (Some(_), Endpoint::Tcp { .. }) => TlsMode::VerifyCa,
            (None, Endpoint::Tcp { .. }) => TlsMode::Preferred,
        });
        Ok(Tls::new(TlsOptions {
            mode,
            authorities: self.ssl_ca,
            certificate: self.ssl_cert,
            key: self.ssl_key,
        })?)
    }
}
