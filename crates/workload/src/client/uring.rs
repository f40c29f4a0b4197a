//! The transport over io_uring: one system call hands over a batch of sends and brings a batch of replies.
//!
//! Every socket has one multishot receive that stays armed and takes its memory from a ring of buffers shared by
//! all connections. Successful sends report nothing back. So a statement costs no system call of its own: a batch
//! of them costs one.

use super::worker::{Failure, Next, SECOND_NS, Worker};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};

/// Size of one receive buffer: the server sends a result set in pieces of 16 KiB.
const BUFFER_BYTES: usize = 16 * 1024;
/// Buffers a worker has, a power of two.
const BUFFERS: u16 = 256;
/// Number of our group of buffers.
const GROUP: u16 = 0;
/// Submissions that fit into the ring before it has to be entered.
const ENTRIES: u32 = 1024;
/// Seconds after which a trial that nothing came of has failed.
const TRIAL_WAITS: usize = 10;
/// Marks the completion of a send; those of receives carry the connection's number alone.
const SEND: u64 = 1 << 32;

/// Why io_uring cannot carry the load here.
#[derive(Debug, thiserror::Error)]
#[error("io_uring is not possible here ({step}: {source})\nfix: use --transport epoll")]
pub struct UringUnusable {
    /// What was tried.
    pub step: &'static str,
    /// What the kernel answered.
    pub source: io::Error,
}

/// Does once, over a pair of sockets, all that a load asks of a ring. A kernel may set up a ring and refuse what it is for: Ubuntu's
/// 6.8.0-149 registers no receive buffers, whatever it is asked.
pub(crate) fn try_out() -> Result<(), UringUnusable> {
    let unusable = |step| move |source| UringUnusable { step, source };
    let mut ring = open_ring().map_err(unusable("setting up a ring"))?;
    let buffers = Buffers::new(&ring).map_err(unusable("registering receive buffers"))?;
    let exchanged = exchange(&mut ring, &buffers).map_err(unusable("sending and receiving"));
    take_down(&ring, buffers);
    exchanged
}

/// Sends a few bytes to ourselves.
fn exchange(ring: &mut IoUring, buffers: &Buffers) -> io::Result<()> {
    const BYTES: &[u8] = b"scaleprof";
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    ring.submitter().register_files(&[near.as_raw_fd(), far.as_raw_fd()])?;
    enqueue(ring, arm(0))?;
    enqueue(ring, send_bytes(1, BYTES))?;
    // Signals and busy CPUs end a wait early.
    let completion = (0..TRIAL_WAITS).find_map(|_| match wait(ring, SECOND_NS) {
        Ok(()) => ring.completion().next().map(Ok),
        Err(error) => Some(Err(error)),
    });
    let completion = completion.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?;
    match (completion.result(), cqueue::buffer_select(completion.flags())) {
        (error, _) if error < 0 => Err(io::Error::from_raw_os_error(-error)),
        (length, Some(buffer)) if buffers.received(buffer, length as usize) == BYTES => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn open_ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_cqsize(ENTRIES * 8)
        .build(ENTRIES)
}

/// The ring of receive buffers, shared with the kernel.
struct Buffers {
    entries: *mut types::BufRingEntry,
    memory: Box<[u8]>,
    tail: u16,
    layout: std::alloc::Layout,
}

impl Buffers {
    fn new(ring: &IoUring) -> io::Result<Self> {
        let bytes = usize::from(BUFFERS) * size_of::<types::BufRingEntry>();
        let layout = std::alloc::Layout::from_size_align(bytes, 4096)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        // SAFETY: the layout has a size above 0.
        let entries = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<types::BufRingEntry>();
        if entries.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut buffers = Buffers {
            entries,
            memory: vec![0; usize::from(BUFFERS) * BUFFER_BYTES].into_boxed_slice(),
            tail: 0,
            layout,
        };
        // SAFETY: the memory is page-aligned, of the size that BUFFERS entries take, and is not freed while anything is
        // armed (see `run`).
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(entries as u64, BUFFERS, GROUP, 0)?;
        }
        (0..BUFFERS).for_each(|id| buffers.put(id));
        buffers.publish();
        Ok(buffers)
    }

    /// Gives a buffer to the kernel, once [`Self::publish`] is called.
    fn put(&mut self, id: u16) {
        let slot = usize::from(self.tail & (BUFFERS - 1));
        let address = self.memory[usize::from(id) * BUFFER_BYTES..].as_ptr() as u64;
        // SAFETY: the slot is within the ring; the kernel reads it only after the tail has moved past it.
        unsafe {
            let entry = &mut *self.entries.add(slot);
            entry.set_addr(address);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail is a field of the first entry, aligned for u16 and only written by us.
        let tail = unsafe { types::BufRingEntry::tail(self.entries) }.cast::<AtomicU16>();
        // SAFETY: as above; AtomicU16 has the layout of u16.
        unsafe { &*tail }.store(self.tail, Ordering::Release);
    }

    fn received(&self, id: u16, length: usize) -> &[u8] {
        let start = usize::from(id) * BUFFER_BYTES;
        &self.memory[start..start + length]
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the ring is gone.
        unsafe { std::alloc::dealloc(self.entries.cast(), self.layout) }
    }
}

/// Runs a worker to its end.
pub(crate) fn run(worker: &mut Worker) -> Result<(), Failure> {
    let mut ring = open_ring().map_err(system("io_uring_setup"))?;
    let mut buffers = Buffers::new(&ring).map_err(system("registering receive buffers"))?;
    let result = serve(worker, &mut ring, &mut buffers);
    take_down(&ring, buffers);
    result
}

/// The kernel takes a closed ring down in its own time. Nothing may be armed any more when the buffers go; should that not be
/// certain, they stay: a few MiB once, instead of a write into somebody else's memory.
fn take_down(ring: &IoUring, buffers: Buffers) {
    let timeout = types::Timespec::new().sec(5);
    match ring
        .submitter()
        .register_sync_cancel(Some(timeout), types::CancelBuilder::any())
    {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => {}
        Err(_) => std::mem::forget(buffers),
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |e| Failure::System(what, e)
}

fn serve(worker: &mut Worker, ring: &mut IoUring, buffers: &mut Buffers) -> Result<(), Failure> {
    let sockets: Vec<_> = worker.connections.iter().map(|c| c.socket.as_raw_fd()).collect();
    ring.submitter()
        .register_files(&sockets)
        .map_err(system("registering the sockets"))?;
    for index in 0..sockets.len() as u32 {
        push(ring, arm(index))?;
    }

    let mut to_send = Vec::new();
    let mut now = worker.now_ns();
    let mut completions: Vec<(u64, i32, u32)> = Vec::with_capacity(ENTRIES as usize * 8);
    worker.start(now, &mut to_send);
    loop {
        worker.wait_for_its_turn();
        worker.tick(now, &mut to_send);
        for index in to_send.drain(..) {
            push(ring, send(worker, index))?;
        }
        if worker.is_done(now) || now > worker.gives_up_at_ns() {
            return Ok(());
        }
        wait(ring, worker.patience_ns(now)).map_err(system("io_uring_enter"))?;
        let ready = worker.now_ns();
        now = ready;
        completions.clear();
        completions.extend(ring.completion().map(|c| (c.user_data(), c.result(), c.flags())));
        for &(tag, result, flags) in &completions {
            let index = tag as u32;
            if tag & SEND != 0 {
                // Only a failed send reports.
                return Err(Failure::Lost(io::Error::from_raw_os_error(-result)));
            }
            if result == -libc::ENOBUFS {
                push(ring, arm(index))?;
                continue;
            }
            if result <= 0 {
                let error = match result {
                    0 => io::ErrorKind::UnexpectedEof.into(),
                    n => io::Error::from_raw_os_error(-n),
                };
                return Err(Failure::Lost(error));
            }
            let Some(buffer) = cqueue::buffer_select(flags) else {
                return Err(Failure::Protocol("a receive without a buffer"));
            };
            now = worker.now_ns();
            let next = worker.received(index, buffers.received(buffer, result as usize), now)?;
            buffers.put(buffer);
            if !cqueue::more(flags) {
                push(ring, arm(index))?;
            }
            if next != Next::Receive {
                worker.count_lag(now.saturating_sub(ready));
            }
            if next == Next::Send {
                push(ring, send(worker, index))?;
            }
        }
        buffers.publish();
    }
}

fn arm(index: u32) -> squeue::Entry {
    opcode::RecvMulti::new(types::Fixed(index), GROUP)
        .build()
        .user_data(u64::from(index))
}

/// The send of a connection's packet, whole: MSG_WAITALL makes the kernel send the rest of a short send too.
fn send(worker: &Worker, index: u32) -> squeue::Entry {
    send_bytes(index, worker.connections[index as usize].unsent(&worker.program))
}

fn send_bytes(index: u32, bytes: &[u8]) -> squeue::Entry {
    opcode::Send::new(types::Fixed(index), bytes.as_ptr(), bytes.len() as u32)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(u64::from(index) | SEND)
}

/// Queues an entry, entering the ring when it is full.
fn push(ring: &mut IoUring, entry: squeue::Entry) -> Result<(), Failure> {
    enqueue(ring, entry).map_err(system("io_uring_enter"))
}

fn enqueue(ring: &mut IoUring, entry: squeue::Entry) -> io::Result<()> {
    loop {
        // SAFETY: what the entry points to stays as it is until its completion: receive buffers belong to the ring,
        // and a connection's packet is not touched before the reply to it has come.
        if unsafe { ring.submission().push(&entry) }.is_ok() {
            return Ok(());
        }
        ring.submit()?;
    }
}

/// Hands over what is queued and waits for a completion, but not longer than `patience_ns`.
fn wait(ring: &mut IoUring, patience_ns: u64) -> io::Result<()> {
    let timeout = types::Timespec::new()
        .sec(patience_ns / SECOND_NS)
        .nsec((patience_ns % SECOND_NS) as u32);
    let arguments = types::SubmitArgs::new().timespec(&timeout);
    match ring.submitter().submit_with_args(1, &arguments) {
        Ok(_) => Ok(()),
        Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
        Err(e) => Err(e),
    }
}
