//! Framing: every packet is a 3-byte length, a sequence number and a payload; one of 2^24-1 bytes is continued.

use crate::{Encryption, Endpoint, Error, Tls};
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Payload length at which a packet is continued in the next.
pub(crate) const MAX_PAYLOAD: usize = 0xff_ffff;

/// What the packets travel in.
#[derive(Debug)]
enum Carrier {
    Plain(OwnedFd),
    Encrypted(OwnedFd, Encryption),
}

impl Carrier {
    fn socket(&self) -> &OwnedFd {
        let (Carrier::Plain(socket) | Carrier::Encrypted(socket, _)) = self;
        socket
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let socket = match self {
            Carrier::Encrypted(socket, encryption) => return encryption.send(socket, bytes),
            Carrier::Plain(socket) => socket,
        };
        while !bytes.is_empty() {
            match rustix::net::send(&*socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let socket = match self {
            Carrier::Encrypted(socket, encryption) => return encryption.receive(socket, buffer, true),
            Carrier::Plain(socket) => socket,
        };
        loop {
            match rustix::net::recv(&*socket, &mut *buffer, RecvFlags::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                done => return Ok(done?.1),
            }
        }
    }
}

/// A blocking socket that speaks in packets.
#[derive(Debug)]
pub(crate) struct PacketStream {
    carrier: Carrier,
    received: Vec<u8>,
    /// Start of what has not been read yet in `received`.
    position: usize,
    sequence: u8,
}

impl PacketStream {
    pub(crate) fn connect(endpoint: &Endpoint) -> Result<Self, Error> {
        let fail = |source| Error::Connect {
            endpoint: endpoint.clone(),
            source,
        };
        let socket: OwnedFd = match endpoint {
            Endpoint::Unix(path) => UnixStream::connect(path).map_err(fail)?.into(),
            Endpoint::Tcp { host, port } => {
                let stream = connect_tcp(host, *port).map_err(fail)?;
                stream.set_nodelay(true).map_err(fail)?;
                stream.into()
            }
        };
        Ok(PacketStream {
            carrier: Carrier::Plain(socket),
            received: Vec::with_capacity(16 * 1024),
            position: 0,
            sequence: 0,
        })
    }

    /// Bounds how long a reply may take; `None` waits for ever.
    pub(crate) fn set_patience(&self, longest: Option<Duration>) -> Result<(), Error> {
        use rustix::net::sockopt::{Timeout, set_socket_timeout};
        set_socket_timeout(self.carrier.socket(), Timeout::Recv, longest)
            .map_err(|e| Error::lost("setting a time limit for replies")(e.into()))
    }

    /// Encrypts what follows.
    pub(crate) fn encrypt(self, tls: &Tls, endpoint: &Endpoint) -> Result<Self, Error> {
        // What came in the clear must not pass for something that came encrypted.
        if self.position < self.received.len() {
            return Err(Error::Protocol("bytes before the encryption that it asked for"));
        }
        let carrier = match self.carrier {
            Carrier::Plain(socket) => {
                let encryption = Encryption::begin(tls, endpoint, &socket)?;
                Carrier::Encrypted(socket, encryption)
            }
            encrypted => encrypted,
        };
        Ok(PacketStream { carrier, ..self })
    }

    /// How it is encrypted.
    pub(crate) fn encryption(&self) -> Option<&Encryption> {
        match &self.carrier {
            Carrier::Plain(_) => None,
            Carrier::Encrypted(_, encryption) => Some(encryption),
        }
    }

    /// Gives the socket away. What was received and not read would be lost: there must be none.
    pub(crate) fn into_socket(self) -> Result<(OwnedFd, Option<Encryption>), Error> {
        if self.position < self.received.len() {
            return Err(Error::Protocol("bytes that belong to no reply"));
        }
        Ok(match self.carrier {
            Carrier::Plain(socket) => (socket, None),
            Carrier::Encrypted(socket, encryption) => (socket, Some(encryption)),
        })
    }

    /// Starts a new command: sequence numbers begin at 0 again.
    pub(crate) fn start_command(&mut self) {
        self.sequence = 0;
    }

    /// Sends a payload as one packet, or several where it is too long for one.
    pub(crate) fn write_packet(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut out = Vec::with_capacity(payload.len() + 4);
        let mut rest = payload;
        loop {
            let length = rest.len().min(MAX_PAYLOAD);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
            out.push(self.sequence);
            self.sequence = self.sequence.wrapping_add(1);
            out.extend_from_slice(&rest[..length]);
            rest = &rest[length..];
            if length < MAX_PAYLOAD {
                break;
            }
        }
        self.write_raw(&out)
    }

    /// Sends bytes that are packets already.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.carrier.send(bytes).map_err(Error::lost("sending a statement"))
    }

    /// Reads one packet, joined from its parts where it was continued.
    pub(crate) fn read_packet(&mut self) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        loop {
            self.fill(4)?;
            let header = &self.received[self.position..self.position + 4];
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            self.sequence = header[3].wrapping_add(1);
            self.fill(4 + length)?;
            let start = self.position + 4;
            whole.extend_from_slice(&self.received[start..start + length]);
            self.position = start + length;
            if length < MAX_PAYLOAD {
                return Ok(whole);
            }
        }
    }

    /// Sees to it that at least `wanted` bytes are there to read.
    fn fill(&mut self, wanted: usize) -> Result<(), Error> {
        if self.position == self.received.len() {
            self.received.clear();
            self.position = 0;
        } else if self.position > 64 * 1024 {
            self.received.drain(..self.position);
            self.position = 0;
        }
        while self.received.len() - self.position < wanted {
            let mut chunk = [0_u8; 16 * 1024];
            match self.carrier.receive(&mut chunk) {
                Ok(0) => {
                    let closed = io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection");
                    return Err(Error::lost("waiting for a reply")(closed));
                }
                Ok(n) => self.received.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let late = io::Error::new(io::ErrorKind::TimedOut, "the server said nothing for too long");
                    return Err(Error::lost("waiting for a reply")(late));
                }
                Err(e) => return Err(Error::lost("waiting for a reply")(e)),
            }
        }
        Ok(())
    }
}

fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    use std::net::ToSocketAddrs;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, Duration::from_secs(10)) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}
