//! A wait for sockets whose time limit is finer than a millisecond, on every kernel.
//!
//! epoll_pwait2 takes nanoseconds and came with Linux 5.11. Before it, ppoll waits as exactly for the epoll descriptor itself, which is
//! readable while there are events in it: one system call more for each wait.

use super::worker::SECOND_NS;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// Waits, and knows after the first time how this kernel does it.
#[derive(Default)]
pub(super) struct EpollWait {
    without_pwait2: bool,
    /// Room for events as epoll_wait writes them, kept from one wait to the next.
    ready: Vec<libc::epoll_event>,
}

impl EpollWait {
    /// Waits for events, at most as many as `events` has capacity for and no longer than `patience_ns`. A signal ends it too.
    pub(super) fn wait(&mut self, poll: &OwnedFd, events: &mut Vec<Event>, patience_ns: u64) -> Result<(), Errno> {
        let timeout = Timespec {
            tv_sec: (patience_ns / SECOND_NS) as i64,
            tv_nsec: (patience_ns % SECOND_NS) as _,
        };
        events.clear();
        if !self.without_pwait2 {
            match epoll::wait(poll, spare_capacity(events), Some(&timeout)) {
                // Older seccomp profiles answer so to calls that they do not know.
                Err(Errno::NOSYS | Errno::PERM) => self.without_pwait2 = true,
                Ok(_) | Err(Errno::INTR) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        match self.wait_by_ppoll(poll, events, &timeout) {
            Err(Errno::INTR) => Ok(()),
            result => result,
        }
    }

    fn wait_by_ppoll(&mut self, epoll: &OwnedFd, events: &mut Vec<Event>, timeout: &Timespec) -> Result<(), Errno> {
        if poll(&mut [PollFd::new(epoll, PollFlags::IN)], Some(timeout))? == 0 {
            return Ok(());
        }
        let room = events.capacity();
        self.ready.resize(room, libc::epoll_event { events: 0, u64: 0 });
        // SAFETY: the kernel writes at most `room` events there.
        let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), self.ready.as_mut_ptr(), room as libc::c_int, 0) };
        let count = usize::try_from(count)
            .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))?;
        events.extend(self.ready[..count].iter().map(|event| Event {
            flags: EventFlags::from_bits_retain(event.events),
            data: EventData::new_u64(event.u64),
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    fn watched_pipe() -> (OwnedFd, OwnedFd, OwnedFd) {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
        let (reader, writer) = pipe().expect("a pipe");
        epoll::add(&poll, &reader, EventData::new_u64(7), EventFlags::IN | EventFlags::ET).expect("added");
        (poll, reader, writer)
    }

    #[test]
    fn the_same_events_come_with_and_without_epoll_pwait2() {
        for without_pwait2 in [false, true] {
            let (poll, _reader, writer) = watched_pipe();
            let mut wait = EpollWait {
                without_pwait2,
                ..EpollWait::default()
            };
            let mut events = Vec::with_capacity(4);
            rustix::io::write(&writer, b"x").expect("written");
            wait.wait(&poll, &mut events, 60 * SECOND_NS).expect("waited");
            let got: Vec<(u64, EventFlags)> = events.iter().map(|event| (event.data.u64(), event.flags)).collect();
            assert_eq!(got, [(7, EventFlags::IN)], "without epoll_pwait2: {without_pwait2}");
            // Edge-triggered: it comes once.
            wait.wait(&poll, &mut events, 0).expect("waited");
            assert!(events.is_empty());
        }
    }

    #[test]
    fn without_events_it_waits_for_the_whole_time_limit() {
        for without_pwait2 in [false, true] {
            let (poll, _reader, _writer) = watched_pipe();
            let mut events = Vec::with_capacity(4);
            let began = std::time::Instant::now();
            let mut wait = EpollWait {
                without_pwait2,
                ..EpollWait::default()
            };
            wait.wait(&poll, &mut events, 1_300_000).expect("waited");
            let elapsed = began.elapsed().as_nanos();
            // Less than a second for a machine that is busy: a limit of other units would be a thousand times as long.
            assert!(
                events.is_empty() && (1_300_000..1_000_000_000).contains(&elapsed),
                "{elapsed}"
            );
        }
    }
}
