//! The sampling events of all threads of a process and the rings that they write into, one for each CPU.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::followed_late::FollowedLate;
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
    late: FollowedLate<OwnedFd>,
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
        options.kernel = allows_kernel(any_thread, first, options).or_else(|error| {
            if error.raw_os_error() != Some(libc::EINVAL) {
                return Err(error);
            }
            options.children = true;
            allows_kernel(any_thread, first, options)
        })?;
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
            late: FollowedLate::default(),
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
        if let Some(events) = self.open(thread) {
            self.events.extend(events);
        }
    }

    /// The same of a thread that has just been found. Of its beginning nobody told, but it may have inherited events all the same:
    /// some, if it began while its maker was about to be followed; or all, if the record of its beginning was lost.
    pub(super) fn follow_found(&mut self, thread: u32) {
        let Some(events) = self.open(thread) else { return };
        let numbers: io::Result<Vec<u64>> = events
            .iter()
            .map(|event| sampling_event::number(event.as_fd()))
            .collect();
        match numbers {
            Ok(numbers) => numbers
                .into_iter()
                .zip(events)
                .for_each(|(number, event)| self.late.add(number, event)),
            // Without their numbers it could not be known whether they see what others see.
            Err(error) => self.refuse(error),
        }
    }

    /// An event for each ring, switched on; nothing where the thread is gone, or cannot be followed.
    fn open(&mut self, thread: u32) -> Option<Vec<OwnedFd>> {
        let opened: io::Result<Vec<OwnedFd>> = self
            .rings
            .iter()
            .map(|ring| {
                let event = sampling_event::open(thread, ring.cpu, self.options)?;
                sampling_event::share_ring(event.as_fd(), ring.owner.as_fd())?;
                Ok(event)
            })
            .collect();
        // All are there before any is on: a thread of whose beginning one tells has inherited all of them.
        let switched_on = opened.and_then(|events| {
            for event in &events {
                sampling_event::switch(event.as_fd(), true)?;
            }
            Ok(events)
        });
        match switched_on {
            Ok(events) => Some(events),
            // It ended in the meantime.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
            // Half a thread would be a wrong thread.
            Err(error) => {
                self.refuse(error);
                None
            }
        }
    }

    fn refuse(&mut self, error: io::Error) {
        let threads = self.refused.take().map_or(0, |(threads, _)| threads);
        self.refused = Some((threads + 1, error));
    }

    /// Switches all events on or off. A thread that begins meanwhile does as the one that made it.
    pub(super) fn switch(&mut self, on: bool) {
        for event in self.events.iter().chain(self.late.events()) {
            // It cannot fail on an event that was opened; one whose thread has ended stays silent.
            let _ = sampling_event::switch(event.as_fd(), on);
        }
        if !on {
            // The switch that takes them off their CPU will not be told.
            self.rings.iter_mut().for_each(|ring| ring.on_cpu = None);
            self.late.forget_threads();
        }
    }

    /// What to wait for until records have come.
    pub(super) fn wake_ups(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.owner.as_fd())
    }

    /// Hands over all that has come since. The records of one CPU come in their order, the CPUs one after another.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Told<'_>)) {
        let late = &mut self.late;
        for CpuRing { ring, on_cpu, .. } in &mut self.rings {
            ring.drain(|bytes| {
                if late.tells_again(bytes) {
                    return;
                }
                let Some(record) = parse(bytes) else { return };
                if let Some(on_cpu) = on_cpu_until(on_cpu, &record) {
                    take(on_cpu);
                }
                if !matches!(record, Record::Switch { .. }) {
                    take(Told::Record(record));
                }
            });
        }
    }
}

/// Whether a thread's time in the kernel may be sampled; an error where nothing of it may.
fn allows_kernel(thread: u32, cpu: u32, options: EventOptions) -> io::Result<bool> {
    let open = |kernel| sampling_event::open(thread, cpu, EventOptions { kernel, ..options });
    open(true).map(|_| true).or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => open(false).map(|_| false),
        _ => Err(error),
    })
}

/// Follows who is on a CPU, from the records of that CPU; gives a stretch of time when it is over.
fn on_cpu_until(on_cpu: &mut Option<(u32, u64)>, record: &Record<'_>) -> Option<Told<'static>> {
    let (leaving, to_ns) = match record {
        Record::Switch { onto: true, at } => {
            *on_cpu = Some((at.thread, at.time_ns));
            return None;
        }
        Record::Switch { onto: false, at } => (at.thread, at.time_ns),
        // The last time that it leaves a CPU it has no events any more.
        Record::Exit { thread, time_ns, .. } => (*thread, *time_ns),
        _ => return None,
    };
    let (thread, from_ns) = on_cpu.take().filter(|(thread, _)| *thread == leaving)?;
    Some(Told::OnCpu { thread, from_ns, to_ns })
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

#[cfg(test)]
mod tests {
    use super::super::record::Moment;
    use super::*;

    fn switch(onto: bool, thread: u32, time_ns: u64) -> Record<'static> {
        let at = Moment {
            process: 1,
            thread,
            time_ns,
            event: 1,
            cpu: 0,
        };
        Record::Switch { onto, at }
    }

    fn exit(thread: u32, time_ns: u64) -> Record<'static> {
        Record::Exit {
            process: 1,
            thread,
            time_ns,
        }
    }

    fn stretches(records: &[Record<'_>]) -> Vec<Told<'static>> {
        let mut on_cpu = None;
        records
            .iter()
            .filter_map(|record| on_cpu_until(&mut on_cpu, record))
            .collect()
    }

    fn stretch(thread: u32, from_ns: u64, to_ns: u64) -> Told<'static> {
        Told::OnCpu { thread, from_ns, to_ns }
    }

    #[test]
    fn a_stretch_on_a_cpu_ends_with_the_switch_or_with_the_thread() {
        let records = [
            switch(true, 7, 10),
            switch(false, 7, 15),
            switch(true, 8, 15),
            exit(8, 18),
            switch(true, 7, 20),
        ];
        assert_eq!(stretches(&records), [stretch(7, 10, 15), stretch(8, 15, 18)]);
    }

    #[test]
    fn a_lost_record_makes_no_stretch_of_two_threads() {
        assert_eq!(
            stretches(&[switch(true, 7, 10), switch(false, 8, 15), switch(false, 7, 16)]),
            []
        );
        assert_eq!(stretches(&[switch(false, 8, 15), exit(9, 20)]), []);
    }
}
