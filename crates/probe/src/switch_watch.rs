//! Voluntary and involuntary context switches of the server, threads that ended included.
//!
//! The kernel keeps both per thread. A taskstats socket asks for the sum over the threads of the server. Older kernels sum
//! the living only, newer ones (and 6.18 with its updates) those that ended too; which of the two this kernel does is found
//! out with a thread of our own. Where the ended ones are left out, a second socket listens for every thread of the machine
//! that ends, and the counts of those that were the server's are added. Should that listener lose messages (its queue holds
//! some 8 MiB: thousands of threads), it says so and the figure is refused from then on.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::error::ProbeError;
use crate::taskstats::{self, Switches};
use crate::thread_walk;

/// Sockets that follow the context switches of one process.
#[derive(Debug)]
pub(crate) struct SwitchWatch {
    asking: OwnedFd,
    family: u16,
    listener: Option<Listener>,
    pid: u32,
    buffer: Vec<u8>,
}

/// Hears of every thread that ends.
#[derive(Debug)]
struct Listener {
    socket: OwnedFd,
    family: u16,
    cpus: String,
    ended: Switches,
    lost: bool,
}

const QUEUE_BYTES: libc::c_int = 8 << 20;
const ERROR_MESSAGE: u16 = libc::NLMSG_ERROR as u16;

impl SwitchWatch {
    /// Begins to follow `pid` on these CPUs ("0-3").
    pub(crate) fn start(pid: u32, cpus: &[u32]) -> Result<Self, ProbeError> {
        let asking = socket()?;
        let mut buffer = vec![0; 16 << 10];
        send(&asking, &taskstats::ask_for_family())?;
        let family = answer(&asking, &mut buffer, taskstats::family)?;
        let listener = if sum_holds_ended_threads(&asking, family, &mut buffer)? {
            None
        } else {
            Some(Listener::start(family, cpus, &mut buffer)?)
        };
        Ok(Self {
            asking,
            family,
            listener,
            pid,
            buffer,
        })
    }

    /// All switches of the process up to now: of threads that live, and of those that ended since the start.
    pub(crate) fn read(&mut self) -> Result<Switches, String> {
        // First the living, then the ended: a thread that ends in between is counted twice in this sample (and not in
        // the next), the other way round it would be missing.
        let mut all = ask(&self.asking, self.family, self.pid, &mut self.buffer).map_err(|error| error.to_string())?;
        if let Some(listener) = &mut self.listener {
            all.add(listener.ended_of(self.pid, &mut self.buffer)?);
        }
        Ok(all)
    }
}

fn ask(socket: &OwnedFd, family: u16, pid: u32, buffer: &mut [u8]) -> Result<Switches, ProbeError> {
    send(socket, &taskstats::ask_for_process(family, pid))?;
    answer(socket, buffer, taskstats::living_threads)
}

/// Lets a thread of this process sleep often and end, and looks whether the sum still holds its switches.
fn sum_holds_ended_threads(socket: &OwnedFd, family: u16, buffer: &mut [u8]) -> Result<bool, ProbeError> {
    const SLEEPS: u64 = 200;
    let sleeper = || (0..SLEEPS).for_each(|_| std::thread::sleep(Duration::from_micros(20)));
    let thread = std::thread::Builder::new().spawn(sleeper).map_err(failed)?;
    let _ = thread.join();
    let own = std::process::id();
    // The walk comes second: what other threads do in between makes the living more, never the ended.
    let sum = ask(socket, family, own, buffer)?;
    let living: u64 = thread_walk::walk(own)
        .map_err(ProbeError::Taskstats)?
        .values()
        .fold(0, |all, thread| all.saturating_add(thread.switches.total()));
    Ok(sum.total() > living.saturating_add(SLEEPS / 2))
}

impl Listener {
    fn start(family: u16, cpus: &[u32], buffer: &mut [u8]) -> Result<Self, ProbeError> {
        let socket = socket()?;
        grow_queue(&socket);
        let cpus = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        send(&socket, &taskstats::ask_to_listen(family, &cpus))?;
        // The acknowledgement; what may stand before it are threads that ended in between.
        answer(&socket, buffer, |_| None::<()>).or_else(|error| match error {
            ProbeError::Taskstats(text) if text == NO_ANSWER => Ok(()),
            other => Err(other),
        })?;
        Ok(Self {
            socket,
            family,
            cpus,
            ended: Switches::default(),
            lost: false,
        })
    }

    /// The switches of all threads of the process that ended since the start.
    fn ended_of(&mut self, process: u32, buffer: &mut [u8]) -> Result<Switches, String> {
        loop {
            match receive(&self.socket, buffer, libc::MSG_DONTWAIT) {
                Ok(length) => {
                    for message in taskstats::messages(&buffer[..length]) {
                        if let Some((pid, switches)) = taskstats::ended_thread(message.body)
                            && pid == process
                        {
                            self.ended.add(switches);
                        }
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.lost = true,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if self.lost {
            return Err("too many threads ended at once: the kernel dropped its messages about them".to_owned());
        }
        Ok(self.ended)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The kernel would notice the closed socket only when the next thread ends.
        let _ = send(&self.socket, &taskstats::ask_to_stop(self.family, &self.cpus));
    }
}

const NO_ANSWER: &str = "the kernel acknowledged and sent nothing";

/// Receives until one message gives an answer or the kernel reports the end of the request.
fn answer<T>(socket: &OwnedFd, buffer: &mut [u8], read: impl Fn(&[u8]) -> Option<T>) -> Result<T, ProbeError> {
    let mut found = None;
    loop {
        let length = match receive(socket, buffer, 0) {
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        for message in taskstats::messages(&buffer[..length]) {
            if message.kind == ERROR_MESSAGE {
                return match (taskstats::error_code(message.body), found) {
                    (0, Some(value)) => Ok(value),
                    (0, None) => Err(ProbeError::Taskstats(NO_ANSWER.to_owned())),
                    (code, _) => Err(failed(std::io::Error::from_raw_os_error(code))),
                };
            }
            found = read(message.body).or(found);
        }
    }
}

fn failed(error: std::io::Error) -> ProbeError {
    ProbeError::Taskstats(error.to_string())
}

fn socket() -> Result<OwnedFd, ProbeError> {
    // SAFETY: plain system call.
    let fd = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_GENERIC,
        )
    };
    if fd < 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    // SAFETY: the kernel just gave us this descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // A kernel that never answers must not hang a run.
    let patience = libc::timeval { tv_sec: 2, tv_usec: 0 };
    set_option(&socket, libc::SO_RCVTIMEO, &patience);
    Ok(socket)
}

fn grow_queue(socket: &OwnedFd) {
    // Beyond net.core.rmem_max where root may; a plain queue otherwise.
    set_option(socket, libc::SO_RCVBUF, &QUEUE_BYTES);
    set_option(socket, libc::SO_RCVBUFFORCE, &QUEUE_BYTES);
}

fn set_option<T>(socket: &OwnedFd, option: libc::c_int, value: &T) {
    // SAFETY: the pointer and the length describe `value`. A failure leaves the default, which is good enough.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        );
    }
}

fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<(), ProbeError> {
    // SAFETY: the pointer and the length describe `bytes`.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    if sent < 0 {
        Err(failed(std::io::Error::last_os_error()))
    } else {
        Ok(())
    }
}

fn receive(socket: &OwnedFd, buffer: &mut [u8], flags: libc::c_int) -> std::io::Result<usize> {
    // SAFETY: the pointer and the length describe `buffer`.
    let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
    usize::try_from(length).map_err(|_| std::io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_facts::kernel_version;
    use crate::machine::kernel_release;

    /// Both ways to learn of ended threads, on a kernel that lets us: each message comes once and holds the right counts.
    #[test]
    fn a_thread_that_ends_is_heard_of_once() {
        let cpus = crate::cpu_counters::online_cpus().expect("readable");
        let mut watch = match SwitchWatch::start(std::process::id(), &cpus) {
            Ok(watch) => watch,
            Err(why) => return testing::skip!("taskstats: {why}"),
        };
        let mut listener = match Listener::start(watch.family, &cpus, &mut watch.buffer) {
            Ok(listener) => listener,
            Err(why) => return testing::skip!("messages about threads that end: {why}"),
        };
        if kernel_version(&kernel_release()) < Some((5, 18)) {
            return testing::skip!("Linux before 5.18 does not say whose thread it was that ended");
        }
        let sleeper = || {
            (0..300).for_each(|_| std::thread::sleep(Duration::from_micros(20)));
            let own = std::fs::read_to_string("/proc/thread-self/status").expect("readable");
            thread_walk::parse_status(&own).expect("parses")
        };
        let seen = std::thread::spawn(sleeper).join().expect("ends");
        let heard = listener
            .ended_of(std::process::id(), &mut watch.buffer)
            .expect("one thread is not too many");
        // A sleep whose timer fires before the thread has left its CPU is none.
        assert!(seen.voluntary >= 250, "{seen:?}");
        // After it read its own status it gives a file back and ends. A second message would be as much once more.
        assert!(
            (seen.voluntary..seen.voluntary + 20).contains(&heard.voluntary),
            "{heard:?} against {seen:?}"
        );
    }
}
