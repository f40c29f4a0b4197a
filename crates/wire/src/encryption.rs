//! One encrypted connection: what goes between the packets and the socket.

use crate::tls::{Tls, TlsMode};
use crate::{Endpoint, Error};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, ProtocolVersion};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// The keys and buffers of one encrypted connection. The socket stays with its owner.
#[derive(Debug)]
pub struct Encryption(Box<ClientConnection>);

/// The socket, as the library wants to see it.
struct Wire<'a> {
    socket: &'a OwnedFd,
    flags: RecvFlags,
}

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.socket, buffer, self.flags)?.1)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.socket, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Encryption {
    /// Shakes hands on a connected, blocking socket; `wait` is asked when that has blocked for as long as it may.
    pub(crate) fn begin(
        tls: &Tls,
        endpoint: &Endpoint,
        socket: &OwnedFd,
        wait: &mut dyn FnMut() -> io::Result<()>,
    ) -> Result<Encryption, Error> {
        let fail = |reason: String| Error::Tls {
            endpoint: endpoint.clone(),
            reason,
        };
        let config = tls.config().ok_or(Error::Protocol("unrequested TLS"))?;
        let name = name_of(endpoint, tls.mode()).map_err(fail)?;
        let connection = ClientConnection::new(config.clone(), name).map_err(|e| fail(e.to_string()))?;
        let mut new = Encryption(Box::new(connection));
        let lost = |e: io::Error| {
            fail(format!(
                "the connection ended in the TLS handshake ({e})\nfix: if the server has no TLS 1.2, update it or use \
                 --ssl-mode disabled"
            ))
        };
        while new.0.is_handshaking() {
            new.flush_while(socket, wait).map_err(lost)?;
            if new.0.wants_read() {
                let received = while_it_blocks(wait, || new.0.read_tls(&mut blocking(socket))).map_err(lost)?;
                if received == 0 {
                    return Err(lost(io::ErrorKind::UnexpectedEof.into()));
                }
                // A byte now and then does not block.
                wait().map_err(lost)?;
                if let Err(e) = new.0.process_new_packets() {
                    // The server is told why, if it still listens.
                    let _ = new.flush(socket);
                    return Err(fail(in_words(&e)));
                }
            }
        }
        new.flush_while(socket, wait).map_err(lost)?;
        Ok(new)
    }

    /// Version of the protocol that was agreed on, such as `TLSv1.3`.
    pub fn version(&self) -> &'static str {
        match self.0.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLS",
        }
    }

    /// Encrypts and sends all of `bytes`; waits where the socket has no room.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
        self.send_while(socket, bytes, &mut || Ok(()))
    }

    /// The same on a socket that blocks for a while only; `wait` is asked whether to go on.
    pub(crate) fn send_while(
        &mut self,
        socket: &OwnedFd,
        mut bytes: &[u8],
        wait: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        // The library takes a bounded amount at a time.
        while !bytes.is_empty() {
            let taken = self.0.writer().write(bytes)?;
            bytes = &bytes[taken..];
            self.flush_while(socket, wait)?;
        }
        Ok(())
    }

    /// Receives and decrypts what is there, as recv does without waiting: 0 is the end of the connection.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is there; or the connection broke.
    pub fn receive(&mut self, socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        let flags = RecvFlags::DONTWAIT;
        loop {
            match self.0.reader().read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if uninterrupted(|| self.0.read_tls(&mut Wire { socket, flags }))? == 0 {
                return Ok(0);
            }
            self.0
                .process_new_packets()
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            // An answer to the server's wish for new keys.
            self.flush(socket)?;
        }
    }

    /// Waits for something to come, on a socket that blocks for a while only; `wait` is asked whether to go on.
    pub(crate) fn receive_while(
        &mut self,
        socket: &OwnedFd,
        buffer: &mut [u8],
        wait: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<usize> {
        loop {
            match self.0.reader().read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if while_it_blocks(wait, || self.0.read_tls(&mut blocking(socket)))? == 0 {
                return Ok(0);
            }
            self.0
                .process_new_packets()
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            self.flush_while(socket, wait)?;
            wait()?;
        }
    }

    /// Says that nothing more will come.
    ///
    /// # Errors
    /// The connection broke.
    pub fn close(&mut self, socket: &OwnedFd) -> io::Result<()> {
        self.0.send_close_notify();
        self.flush(socket)
    }

    fn flush(&mut self, socket: &OwnedFd) -> io::Result<()> {
        self.flush_while(socket, &mut || Ok(()))
    }

    fn flush_while(&mut self, socket: &OwnedFd, wait: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        while self.0.wants_write() {
            while_it_blocks(wait, || self.0.write_tls(&mut blocking(socket)))?;
            wait()?;
        }
        Ok(())
    }
}

fn blocking(socket: &OwnedFd) -> Wire<'_> {
    Wire {
        socket,
        flags: RecvFlags::empty(),
    }
}

/// Makes a call again that a signal interrupted, or that blocked for as long as the socket says while `wait` agrees.
fn while_it_blocks(
    wait: &mut dyn FnMut() -> io::Result<()>,
    mut call: impl FnMut() -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match uninterrupted(&mut call) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => wait()?,
            done => return done,
        }
    }
}

fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(e) if e.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
            done => return done,
        }
    }
}

/// The name that the server's certificate should have.
fn name_of(endpoint: &Endpoint, mode: TlsMode) -> Result<ServerName<'static>, String> {
    let host = match endpoint {
        Endpoint::Unix(_) => "localhost",
        Endpoint::Tcp { host, .. } => host,
    };
    match ServerName::try_from(host.to_owned()) {
        Ok(name) => Ok(name),
        Err(_) if mode == TlsMode::VerifyIdentity => Err(format!(
            "'{host}' cannot be the name in a certificate\nfix: use another name of the server, or --ssl-mode verify-ca"
        )),
        // Nobody will compare it.
        Err(_) => Ok(ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]))),
    }
}

/// A failed handshake, with what mends it.
fn in_words(error: &rustls::Error) -> String {
    let without = "or --ssl-mode required to encrypt without verification";
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => format!(
            "the server's certificate is not signed by the CA of --ssl-ca\nfix: give its CA certificate (MySQL: ca.pem in \
             the data folder), {without}"
        ),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!(
            "the server's certificate is for another name ({error})\nfix: connect with its name, or use --ssl-mode \
             verify-ca to trust every server of this CA"
        ),
        rustls::Error::InvalidCertificate(_) => {
            format!("the server's certificate cannot be accepted ({error}): renew it, {without}")
        }
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired,
        ) => {
            format!(
                "the server rejects the client certificate ({error})\nfix: give another with --ssl-cert and --ssl-key"
            )
        }
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => format!(
            "no common TLS version or cipher ({error}); TLS 1.2 is the minimum\nfix: update the server, or use --ssl-mode \
             disabled"
        ),
        _ => format!("{error}. With --ssl-mode disabled the connection is not encrypted"),
    }
}
