//! Certificates: reading them, and judging the server's as the mode asks.

use crate::tls::{TlsError, TlsMode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;

/// Judges the server's certificate as far as the mode goes.
#[derive(Debug)]
pub(crate) struct Certificates {
    mode: TlsMode,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Certificates {
    pub(crate) fn new(mode: TlsMode, roots: RootCertStore, provider: &CryptoProvider) -> Self {
        Certificates {
            mode,
            roots,
            algorithms: provider.signature_verification_algorithms,
        }
    }

    fn verifies(&self) -> bool {
        matches!(self.mode, TlsMode::VerifyCa | TlsMode::VerifyIdentity)
    }
}

impl ServerCertVerifier for Certificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.verifies() {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                &self.roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
            if self.mode == TlsMode::VerifyIdentity {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    // Where any certificate will do, a proof that the server has the key of the one it showed adds nothing; and the
    // certificates of version 1 that old recipes make could not even be parsed.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.verifies() {
            true => verify_tls12_signature(message, cert, dss, &self.algorithms),
            false => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.verifies() {
            true => verify_tls13_signature(message, cert, dss, &self.algorithms),
            false => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The CA certificates in a PEM file.
pub(crate) fn read_authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read("CA certificates", path)? {
        roots
            .add(certificate)
            .map_err(|e| fault("CA certificates", path, &e.to_string()))?;
    }
    Ok(roots)
}

/// A certificate and those that lead from it to its CA.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read("a certificate", path)
}

pub(crate) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|e| fault("a private key", path, &e.to_string()))
}

fn read(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| fault(what, path, &e.to_string()))?;
    match certificates.is_empty() {
        true => Err(fault(what, path, "the file holds no certificate in PEM")),
        false => Ok(certificates),
    }
}

fn fault(what: &'static str, path: &Path, reason: &str) -> TlsError {
    TlsError::File {
        what,
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
