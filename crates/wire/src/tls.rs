//! Whether a connection is encrypted, and how far the server at its end is trusted: the `--ssl-*` options of the
//! mysql client.

use crate::certificates::{Certificates, read_authorities, read_certificates, read_key};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// What is asked of the encryption of a connection, as `--ssl-mode` of the mysql client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// None.
    #[default]
    Disabled,
    /// Encrypted where the server offers it. Its certificate is not looked at.
    Preferred,
    /// Encrypted or not at all. Its certificate is not looked at.
    Required,
    /// As required, and the certificate must come from the CA.
    VerifyCa,
    /// As that, and the certificate must name the host that we connect to.
    VerifyIdentity,
}

impl fmt::Display for TlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsMode::Disabled => "disabled",
            TlsMode::Preferred => "preferred",
            TlsMode::Required => "required",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyIdentity => "verify-identity",
        })
    }
}

impl FromStr for TlsMode {
    type Err = String;

    /// Reads a mode as people and option files write it: `verify-ca`, `VERIFY_CA`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "disabled" => Ok(TlsMode::Disabled),
            "preferred" => Ok(TlsMode::Preferred),
            "required" => Ok(TlsMode::Required),
            "verify-ca" => Ok(TlsMode::VerifyCa),
            "verify-identity" => Ok(TlsMode::VerifyIdentity),
            _ => Err(format!(
                "there is no mode '{text}': use disabled, preferred, required, verify-ca or verify-identity"
            )),
        }
    }
}

/// What is asked of the encryption, with the files it takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// How far.
    pub mode: TlsMode,
    /// PEM file of the CA certificates that are trusted.
    pub authorities: Option<PathBuf>,
    /// PEM file of our own certificate, for accounts that REQUIRE X509.
    pub certificate: Option<PathBuf>,
    /// PEM file of its key.
    pub key: Option<PathBuf>,
}

/// Why the encryption cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is nothing to verify with.
    #[error(
        "--ssl-mode {0} requires the server's CA certificate\nfix: give --ssl-ca FILE (MySQL: ca.pem in the data folder), \
         or use --ssl-mode required without verification"
    )]
    NoAuthority(TlsMode),
    /// One without the other.
    #[error("--ssl-cert and --ssl-key require each other: a certificate and its key")]
    HalfAnIdentity,
    /// A file.
    #[error("cannot read {what} from {}: {reason}", .path.display())]
    File {
        /// What it should hold.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The certificate and the key do not fit, or cannot be used.
    #[error("the certificate of --ssl-cert and the key of --ssl-key cannot be used: {0}")]
    Identity(rustls::Error),
    /// The library refuses its own set-up.
    #[error("TLS cannot be set up: {0}")]
    Library(rustls::Error),
}

/// How connections are encrypted: read once, shared by all of them.
#[derive(Clone, Default)]
pub struct Tls {
    options: TlsOptions,
    config: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should, and options that contradict each other.
    pub fn new(options: TlsOptions) -> Result<Tls, TlsError> {
        let config = match options.mode {
            TlsMode::Disabled => None,
            _ => Some(Arc::new(config(&options)?)),
        };
        Ok(Tls { options, config })
    }

    /// What was asked for.
    pub fn mode(&self) -> TlsMode {
        self.options.mode
    }

    /// Whether the server must show who it is.
    pub(crate) fn verifies(&self) -> bool {
        matches!(self.options.mode, TlsMode::VerifyCa | TlsMode::VerifyIdentity)
    }

    pub(crate) fn config(&self) -> Option<&Arc<ClientConfig>> {
        self.config.as_ref()
    }
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
    }
}

impl Eq for Tls {}

/// Without the keys that the library keeps.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.options).finish()
    }
}

fn config(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let roots = match (&options.authorities, options.mode) {
        (Some(path), TlsMode::VerifyCa | TlsMode::VerifyIdentity) => read_authorities(path)?,
        (None, mode @ (TlsMode::VerifyCa | TlsMode::VerifyIdentity)) => return Err(TlsError::NoAuthority(mode)),
        _ => RootCertStore::empty(),
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Library)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Certificates::new(options.mode, roots, &provider)));
    let mut config = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => builder
            .with_client_auth_cert(read_certificates(certificate)?, read_key(key)?)
            .map_err(TlsError::Identity)?,
        (None, None) => builder.with_no_client_auth(),
        _ => return Err(TlsError::HalfAnIdentity),
    };
    // Every connection of the load shakes hands in the same way, whichever came first.
    config.resumption = Resumption::disabled();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_people_and_option_files_write_them() {
        assert_eq!("verify-ca".parse(), Ok(TlsMode::VerifyCa));
        assert_eq!("VERIFY_IDENTITY".parse(), Ok(TlsMode::VerifyIdentity));
        assert!("on".parse::<TlsMode>().is_err_and(|e| e.contains("preferred")));
    }

    #[test]
    fn verifying_takes_a_ca_and_a_certificate_takes_its_key() {
        let error = |options| Tls::new(options).expect_err("refused").to_string();
        let verify = TlsOptions {
            mode: TlsMode::VerifyCa,
            ..TlsOptions::default()
        };
        assert!(error(verify).contains("--ssl-ca FILE"));
        let half = TlsOptions {
            mode: TlsMode::Required,
            certificate: Some("/mine.pem".into()),
            ..TlsOptions::default()
        };
        assert!(error(half).contains("--ssl-key"));
    }
}
