//! The files of `/proc` that tell of one thread, kept open: they stay bound to that thread, whoever gets its number next.

use scaleprof_vocabulary::ThreadState;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::account::{Scheduled, parse_schedstat};
use super::wait::{
    FileKind, SystemCallNow, WaitFacts, file_kind, parse_system_call, state_of_call, state_of_kernel_function,
};

/// The files of one thread.
#[derive(Debug)]
pub(super) struct ThreadFiles {
    process: u32,
    thread: u32,
    schedule: File,
    /// Nothing where it may not be read.
    system_call: Option<File>,
    /// What the file said last, and what it meant: a thread that waits on says the same again.
    last: Option<(Vec<u8>, ThreadState)>,
}

/// What a look at a thread found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// On a CPU, or it could be.
    Running,
    /// Blocked.
    Blocked(ThreadState),
}

impl ThreadFiles {
    pub(super) fn open(process: u32, thread: u32) -> std::io::Result<Self> {
        let folder = format!("/proc/{process}/task/{thread}");
        Ok(Self {
            process,
            thread,
            schedule: File::open(format!("{folder}/schedstat"))?,
            system_call: File::open(format!("{folder}/syscall")).ok(),
            last: None,
        })
    }

    /// Whether the thread's system call may be read. Only reading it shows (Yama refuses then and not before).
    pub(super) fn sees_system_calls(&self) -> bool {
        self.system_call.is_some()
    }

    /// The name that the thread gave itself.
    pub(super) fn name(&self) -> Option<String> {
        let text = std::fs::read(format!("/proc/{}/task/{}/comm", self.process, self.thread)).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// What the scheduler says; nothing if the thread has ended.
    pub(super) fn scheduled(&self) -> Option<Scheduled> {
        let mut buffer = [0; 96];
        let length = self.schedule.read_at(&mut buffer, 0).ok()?;
        parse_schedstat(std::str::from_utf8(&buffer[..length]).ok()?)
    }

    /// What the thread does; nothing if it has ended.
    pub(super) fn look(&mut self) -> Option<Look> {
        let Some(file) = &self.system_call else {
            return self.look_without_system_call();
        };
        let mut buffer = [0; 256];
        match file.read_at(&mut buffer, 0) {
            Ok(length) => self.understand(&buffer[..length]),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
            Err(_) => {
                self.system_call = None;
                self.look_without_system_call()
            }
        }
    }

    fn understand(&mut self, text: &[u8]) -> Option<Look> {
        if let Some((same, state)) = &self.last
            && same == text
        {
            return Some(Look::Blocked(*state));
        }
        match parse_system_call(std::str::from_utf8(text).ok()?)? {
            SystemCallNow::Running => Some(Look::Running),
            SystemCallNow::Blocked(call) => {
                let state = state_of_call(call, self);
                // Outside of a system call the same text may mean another wait.
                self.last = (call.number >= 0).then(|| (text.to_vec(), state));
                Some(Look::Blocked(state))
            }
        }
    }

    fn look_without_system_call(&mut self) -> Option<Look> {
        match state_letter(self.process, self.thread)? {
            b'R' => Some(Look::Running),
            b'Z' | b'X' => None,
            letter => Some(Look::Blocked(match state_of_kernel_function(&self.kernel_function()) {
                ThreadState::Other if letter == b'D' => ThreadState::Io,
                state => state,
            })),
        }
    }
}

impl WaitFacts for ThreadFiles {
    fn file(&mut self, number: u64) -> Option<FileKind> {
        let target = std::fs::read_link(format!("/proc/{}/fd/{number}", self.process)).ok()?;
        Some(file_kind(target.to_str()?))
    }

    fn polled(&mut self, address: u64, count: u64) -> Vec<u64> {
        const MOST: usize = 16;
        const ENTRY: usize = size_of::<libc::pollfd>();
        let mut entries = [0u8; MOST * ENTRY];
        let wanted = MOST.min(count as usize) * ENTRY;
        let local = libc::iovec {
            iov_base: entries.as_mut_ptr().cast(),
            iov_len: wanted,
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: wanted,
        };
        // SAFETY: the local piece lies in `entries`; the remote one is read by the kernel, which checks it.
        let length = unsafe { libc::process_vm_readv(self.process as libc::pid_t, &local, 1, &remote, 1, 0) };
        let read = usize::try_from(length).unwrap_or(0);
        let files = entries[..read].chunks_exact(ENTRY).filter_map(|entry| {
            let number = i32::from_ne_bytes(entry.get(..4)?.try_into().ok()?);
            u64::try_from(number).ok()
        });
        files.collect()
    }

    fn kernel_function(&mut self) -> String {
        kernel_function(self.process, self.thread)
    }
}

/// The letter that `/proc/PID/task/TID/stat` has for what a thread does; none where it has ended.
fn state_letter(process: u32, thread: u32) -> Option<u8> {
    let text = std::fs::read(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    // The name before it may hold anything, brackets too.
    let end_of_name = text.iter().rposition(|byte| *byte == b')')?;
    text.get(end_of_name + 2).copied()
}

/// The kernel function that blocks a thread; empty where it may not be seen.
fn kernel_function(process: u32, thread: u32) -> String {
    std::fs::read_to_string(format!("/proc/{process}/task/{thread}/wchan")).unwrap_or_default()
}

/// Which threads of a process somebody keeps from running, whatever they waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// None that the first thread tells of.
    None,
    /// All: SIGSTOP and a frozen cgroup stop them together.
    All,
    /// Some: a debugger holds the first one, and perhaps others.
    Some,
}

impl Stopped {
    /// As the first thread has it.
    pub(super) fn of(process: u32) -> Stopped {
        let function = kernel_function(process, process);
        let frozen = ["do_freezer_trap", "get_signal", "__refrigerator"];
        match state_letter(process, process) {
            Some(b't') => Stopped::Some,
            Some(b'T') => Stopped::All,
            _ if frozen.iter().any(|name| function.starts_with(name)) => Stopped::All,
            _ => Stopped::None,
        }
    }

    /// Whether one of its threads is.
    pub(super) fn holds(self, process: u32, thread: u32) -> bool {
        match self {
            Stopped::None => false,
            Stopped::All => true,
            Stopped::Some => matches!(state_letter(process, thread), Some(b't' | b'T')),
        }
    }
}
