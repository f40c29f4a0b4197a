//! The sampling events of all threads of a process and the rings that they write into, one for each CPU.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::record::{Record, parse};
use super::ring::Ring;
use super::sampling_event::{self, EventOptions};

/// The memory that kernel.perf_event_mlock_kb gives to everybody for each CPU (516 KiB: this and one page).
const MOST_RING_BYTES: usize = 512 << 10;
/// Room for a few samples.
const LEAST_RING_BYTES: usize = 64 << 10;

/// All events and rings of one process.
#[derive(Debug)]
pub(super) struct Recorder {
    options: EventOptions,
    rings: Vec<CpuRing>,
    /// Kept because closing one ends it, and all that threads inherited from it.
    events: Vec<OwnedFd>,
    /// Threads that could not be followed, and the last reason.
    refused: Option<(usize, io::Error)>,
}

#[derive(Debug)]
struct CpuRing {
    cpu: u32,
    ring: Ring,
    /// An event that counts nothing and owns the ring, so that no thread that ends takes it away.
    owner: OwnedFd,
    /// Who is on the CPU, and since when.
    on_cpu: Option<(u32, u64)>,
}

/// What a drained ring says.
#[derive(Debug, PartialEq)]
pub(super) enum Told<'a> {
    /// A record of the kernel.
    Record(Record<'a>),
    /// A thread was on a CPU from one time to another.
    OnCpu { thread: u32, from_ns: u64, to_ns: u64 },
}

impl Recorder {
    /// Makes a ring for each CPU and asks whether the kernel's own time may be sampled.
    pub(super) fn start(cpus: &[u32], mut options: EventOptions, any_thread: u32) -> io::Result<Self> {
        let first = *cpus.first().ok_or(io::ErrorKind::NotFound)?;
        options.kernel = true;
        if sampling_event::open(any_thread, first, options).is_err() {
            options.kernel = false;
            sampling_event::open(any_thread, first, options)?;
        }
        let mut bytes = MOST_RING_BYTES;
        let rings = loop {
            options.wake_at = bytes as u32 / 2;
            let rings: io::Result<Vec<CpuRing>> = cpus.iter().map(|cpu| CpuRing::new(*cpu, bytes)).collect();
            match rings {
                Ok(rings) => break rings,
                // Another profiler of this user has taken of the memory that may be locked.
                Err(_) if bytes > LEAST_RING_BYTES => bytes /= 2,
                Err(error) => return Err(error),
            }
        };
        Ok(Self {
            options,
            rings,
            events: Vec::new(),
            refused: None,
        })
    }

    /// Whether samples of time in the kernel are taken too.
    pub(super) fn samples_kernel(&self) -> bool {
        self.options.kernel
    }

    /// Threads that could not be followed, with the last reason.
    pub(super) fn refused(&self) -> Option<&(usize, io::Error)> {
        self.refused.as_ref()
    }

    /// Follows a thread on all CPUs, and all threads that it will begin.
    pub(super) fn follow(&mut self, thread: u32) {
        let begun = self.events.len();
        for ring in &self.rings {
            let opened = sampling_event::open(thread, ring.cpu, self.options)
                .and_then(|event| sampling_event::share_ring(event.as_fd(), ring.owner.as_fd()).map(|()| event));
            match opened {
                Ok(event) => self.events.push(event),
                // It ended in the meantime.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return,
                Err(error) => {
                    // Half a thread would be a wrong thread.
                    self.events.truncate(begun);
                    let threads = self.refused.take().map_or(0, |(threads, _)| threads);
                    self.refused = Some((threads + 1, error));
                    return;
                }
            }
        }
    }

    /// What to wait for until records have come.
    pub(super) fn wake_ups(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.owner.as_fd())
    }

    /// Hands over all that has come since. The records of one CPU come in their order, the CPUs one after another.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Told<'_>)) {
        for CpuRing { ring, on_cpu, .. } in &mut self.rings {
            ring.drain(|bytes| match parse(bytes) {
                Some(Record::Switch { onto: true, at }) => *on_cpu = Some((at.thread, at.time_ns)),
                Some(Record::Switch { onto: false, at }) => {
                    if let Some((thread, from_ns)) = on_cpu.take()
                        && thread == at.thread
                    {
                        take(Told::OnCpu {
                            thread,
                            from_ns,
                            to_ns: at.time_ns,
                        });
                    }
                }
                Some(record) => take(Told::Record(record)),
                None => {}
            });
        }
    }
}

impl CpuRing {
    fn new(cpu: u32, bytes: usize) -> io::Result<Self> {
        let owner = sampling_event::open_ring_owner(cpu, bytes as u32 / 2)?;
        Ok(Self {
            cpu,
            ring: Ring::map(owner.as_fd(), bytes)?,
            owner,
            on_cpu: None,
        })
    }
}
