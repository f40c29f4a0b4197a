//! From an endpoint to a connected socket.

use crate::Endpoint;
use crate::answer::{Answer, TICK, was_stopped};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// Longest wait for one address.
const ADDRESS: Duration = Duration::from_secs(10);

/// Connects. The socket blocks for no longer than a tick at a time. A server on this machine whose queue is full may be slow for
/// `longest`.
pub(crate) fn open(endpoint: &Endpoint, longest: Duration) -> io::Result<OwnedFd> {
    let socket = match endpoint {
        Endpoint::Unix(path) => unix(path, longest)?,
        Endpoint::Tcp { host, port } => tcp(host, *port)?,
    };
    block_for(&socket, Some(TICK))?;
    Ok(socket)
}

/// How long a call on it may block; for ever with none.
pub(crate) fn block_for(socket: &OwnedFd, longest: Option<Duration>) -> io::Result<()> {
    set_socket_timeout(socket, Timeout::Recv, longest)?;
    Ok(set_socket_timeout(socket, Timeout::Send, longest)?)
}

fn unix(path: &Path, longest: Duration) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    block_for(&socket, Some(TICK))?;
    let address = SocketAddrUnix::new(path)?;
    let wait = Answer::within(Some(longest));
    loop {
        match connect(&socket, &address) {
            // Others wait to be accepted before us.
            Err(Errno::AGAIN | Errno::INTR) => wait.still_wanted()?,
            done => return Ok(done.map(|()| socket)?),
        }
    }
}

fn tcp(host: &str, port: u16) -> io::Result<OwnedFd> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match to_address(address) {
            Ok(socket) => return Ok(socket),
            Err(e) if was_stopped(&e) => return Err(e),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn to_address(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => wait_until_connected(&socket)?,
        Err(e) => return Err(e.into()),
    }
    rustix::io::ioctl_fionbio(&socket, false)?;
    set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

fn wait_until_connected(socket: &OwnedFd) -> io::Result<()> {
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: TICK.subsec_nanos().into(),
    };
    let wait = Answer::within(Some(ADDRESS));
    loop {
        match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&tick)) {
            Ok(0) | Err(Errno::INTR) => wait.still_wanted()?,
            Ok(_) => return Ok(socket_error(socket)??),
            Err(e) => return Err(e.into()),
        }
    }
}
