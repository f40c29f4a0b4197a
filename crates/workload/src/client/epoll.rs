//! The transport over epoll: a recv and a send for every statement, a wait for every batch of them.

use super::connection::Connection;
use super::epoll_wait::EpollWait;
use super::worker::{Failure, Next, Worker};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use scaleprof_wire::Encryption;
use std::io;
use std::os::fd::OwnedFd;

/// Replies longer than this take more than one recv.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Sockets that one wait can report. A small batch keeps the first of them from waiting for the last.
const BATCH: usize = 64;

/// Runs a worker to its end.
pub(crate) fn run(worker: &mut Worker) -> Result<(), Failure> {
    let system = |what| move |e: Errno| Failure::System(what, e.into());
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll_create"))?;
    for (index, connection) in worker.connections.iter().enumerate() {
        // Edge-triggered: a reply is read to its end, so there is nothing to be told again.
        epoll::add(
            &poll,
            &connection.socket,
            epoll::EventData::new_u64(index as u64),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )
        .map_err(system("epoll_ctl"))?;
    }
    let mut wait = EpollWait::default();
    let mut events = Vec::with_capacity(BATCH);
    let mut buffer = vec![0_u8; RECEIVE_BYTES].into_boxed_slice();
    let mut to_send = Vec::new();
    let mut now = worker.now_ns();
    worker.start(now, &mut to_send);
    loop {
        worker.wait_for_its_turn();
        worker.tick(now, &mut to_send);
        for index in to_send.drain(..) {
            send(worker, index)?;
        }
        if worker.is_done(now) || now > worker.gives_up_at_ns() {
            return Ok(());
        }
        wait.wait(&poll, &mut events, worker.patience_ns(now))
            .map_err(system("epoll_wait"))?;
        let ready = worker.now_ns();
        now = ready;
        for event in &events {
            let index = event.data.u64() as u32;
            now = receive(worker, index, &mut buffer, ready)?;
        }
    }
}

/// Reads what has come for a connection and does what follows from it; gives the time.
fn receive(worker: &mut Worker, index: u32, buffer: &mut [u8], ready: u64) -> Result<u64, Failure> {
    loop {
        let Connection { socket, encryption, .. } = &mut worker.connections[index as usize];
        let received = match encryption {
            None => rustix::net::recv(&*socket, &mut *buffer, RecvFlags::DONTWAIT).map(|(_, count)| count),
            Some(encryption) => decrypt(encryption, socket, buffer)?,
        };
        let count = match received {
            Ok(0) => return Err(Failure::Lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => count,
            Err(Errno::AGAIN) => return Ok(worker.now_ns()),
            Err(Errno::INTR) => continue,
            Err(e) => return Err(Failure::Lost(e.into())),
        };
        let now = worker.now_ns();
        match worker.received(index, &buffer[..count], now)? {
            // A reply without end does not keep the load from its own.
            Next::Receive if worker.is_given_up() || now > worker.gives_up_at_ns() => return Ok(now),
            // The rest may be there already, or the end of the connection: one edge can stand for both.
            Next::Receive => {}
            next => {
                worker.count_lag(now.saturating_sub(ready));
                if next == Next::Send {
                    send(worker, index)?;
                }
                return Ok(now);
            }
        }
    }
}

/// Sends the current packet. It is short and the socket's buffer is empty, so waiting for room is rare; a script's
/// statement of megabytes may have to.
fn send(worker: &mut Worker, index: u32) -> Result<(), Failure> {
    loop {
        let connection = &worker.connections[index as usize];
        if connection.encryption.is_some() {
            return encrypt(worker, index);
        }
        let packet = connection.unsent(&worker.program);
        let length = packet.len();
        match rustix::net::send(&connection.socket, packet, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == length => return Ok(()),
            Ok(sent) => worker.connections[index as usize].sent += sent,
            Err(Errno::INTR) => {}
            Err(e) => return Err(Failure::Lost(e.into())),
        }
    }
}

/// A recv of what is encrypted. Errors that a socket does not have end the load.
fn decrypt(encryption: &mut Encryption, socket: &OwnedFd, buffer: &mut [u8]) -> Result<Result<usize, Errno>, Failure> {
    match encryption.receive(socket, buffer) {
        Ok(count) => Ok(Ok(count)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Err(Errno::AGAIN)),
        Err(e) => Err(Failure::Lost(e)),
    }
}

/// Encrypts and sends the current packet.
fn encrypt(worker: &mut Worker, index: u32) -> Result<(), Failure> {
    let connection = &mut worker.connections[index as usize];
    // Out of its place for a moment: the packet is borrowed from the same connection.
    let Some(mut encryption) = connection.encryption.take() else {
        return Ok(());
    };
    let result = encryption.send(&connection.socket, connection.unsent(&worker.program));
    connection.encryption = Some(encryption);
    result.map_err(Failure::Lost)
}
