//! Framing: every packet is a 3-byte length, a sequence number and a payload; one of 2^24-1 bytes is continued.

use crate::answer::Answer;
use crate::connecting::{block_for, open};
use crate::{Encryption, Endpoint, Error, Tls};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::os::fd::OwnedFd;
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

    fn send(&mut self, mut bytes: &[u8], answer: &Answer) -> io::Result<()> {
        let socket = match self {
            Carrier::Encrypted(socket, encryption) => {
                return encryption.send_while(socket, bytes, &mut || answer.still_wanted());
            }
            Carrier::Plain(socket) => socket,
        };
        while !bytes.is_empty() {
            match rustix::net::send(&*socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) if sent == bytes.len() => return Ok(()),
                // A server that takes a byte now and then does not block.
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    answer.still_wanted()?;
                }
                Err(Errno::INTR | Errno::AGAIN) => answer.still_wanted()?,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], answer: &Answer) -> io::Result<usize> {
        let socket = match self {
            Carrier::Encrypted(socket, encryption) => {
                return encryption.receive_while(socket, buffer, &mut || answer.still_wanted());
            }
            Carrier::Plain(socket) => socket,
        };
        loop {
            match rustix::net::recv(&*socket, &mut *buffer, RecvFlags::empty()) {
                Ok((_, count)) => return Ok(count),
                Err(Errno::INTR | Errno::AGAIN) => answer.still_wanted()?,
                Err(e) => return Err(e.into()),
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
    /// What bounds the answer that is waited for.
    answer: Answer,
}

impl PacketStream {
    /// Connects; `longest` is how long all that follows may take, until [`PacketStream::set_patience`].
    pub(crate) fn connect(endpoint: &Endpoint, longest: Duration) -> Result<Self, Error> {
        let socket = open(endpoint, longest).map_err(|source| Error::Connect {
            endpoint: endpoint.clone(),
            source,
        })?;
        Ok(PacketStream {
            carrier: Carrier::Plain(socket),
            received: Vec::with_capacity(16 * 1024),
            position: 0,
            sequence: 0,
            answer: Answer::within(Some(longest)),
        })
    }

    /// Bounds how long an answer may take, this one and those that follow; `None` waits for ever.
    pub(crate) fn set_patience(&mut self, longest: Option<Duration>) {
        self.answer = self.answer.longest(longest);
    }

    /// Encrypts what follows.
    pub(crate) fn encrypt(self, tls: &Tls, endpoint: &Endpoint) -> Result<Self, Error> {
        // What came in the clear must not pass for something that came encrypted.
        if self.position < self.received.len() {
            return Err(Error::Protocol("bytes before the encryption that it asked for"));
        }
        let carrier = match self.carrier {
            Carrier::Plain(socket) => {
                let encryption = Encryption::begin(tls, endpoint, &socket, &mut || self.answer.still_wanted())?;
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
        block_for(self.carrier.socket(), None).map_err(Error::lost("giving the connection to the load"))?;
        Ok(match self.carrier {
            Carrier::Plain(socket) => (socket, None),
            Carrier::Encrypted(socket, encryption) => (socket, Some(encryption)),
        })
    }

    /// Starts a new command: sequence numbers begin at 0 again, and so does the time of its answer.
    pub(crate) fn start_command(&mut self) {
        self.sequence = 0;
        self.answer = self.answer.next();
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
        self.carrier
            .send(bytes, &self.answer)
            .map_err(Error::lost("sending a statement"))
    }

    /// Reads one packet, joined from its parts where it was continued.
    pub(crate) fn read_packet(&mut self) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        loop {
            self.fill(4)?;
            let header = &self.received[self.position..self.position + 4];
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            self.sequence = header[3].wrapping_add(1);
            let to_come = (4 + length).saturating_sub(self.received.len() - self.position);
            self.answer.announces(to_come).map_err(Error::lost("reading a reply"))?;
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
            let received = self
                .carrier
                .receive(&mut chunk, &self.answer)
                .map_err(Error::lost("waiting for a reply"))?;
            if received == 0 {
                let closed = io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection");
                return Err(Error::lost("waiting for a reply")(closed));
            }
            self.answer.took(received).map_err(Error::lost("reading a reply"))?;
            self.received.extend_from_slice(&chunk[..received]);
        }
        Ok(())
    }
}
