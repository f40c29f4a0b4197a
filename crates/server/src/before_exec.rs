//! What a server is given between fork and exec: limits, CPUs, memory nodes, user, and the signal at our death.

use crate::cpu_set::CpuSet;
use crate::user::ServerUser;
use std::io;

/// What is done in the child between fork and exec. Everything is laid out before: after a fork of a program with
/// threads, allocating may deadlock.
pub(crate) struct BeforeExec {
    parent: libc::pid_t,
    open_files: u64,
    cpus: Option<Box<[libc::c_ulong]>>,
    nodes: Option<Box<[libc::c_ulong]>>,
    nice: Option<i32>,
    user: Option<(libc::uid_t, libc::gid_t)>,
}

impl BeforeExec {
    /// Lays out what a server with these CPUs, memory nodes and user needs.
    pub(crate) fn new(
        open_files: u64,
        cpus: Option<&CpuSet>,
        memory_nodes: Option<&[u32]>,
        nice: Option<i32>,
        user: Option<&ServerUser>,
    ) -> Self {
        BeforeExec {
            parent: std::process::id() as libc::pid_t,
            open_files,
            cpus: cpus.map(|cpus| mask(cpus.iter())),
            nodes: memory_nodes.map(|nodes| mask(nodes.iter().copied())),
            nice,
            user: user.map(|user| (user.uid, user.gid)),
        }
    }

    pub(crate) fn apply(&mut self) -> io::Result<()> {
        let check = |result: libc::c_long| match result {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        };
        // SAFETY: plain system calls on memory owned by `self` or on this stack.
        unsafe {
            let files = libc::rlimit {
                rlim_cur: self.open_files,
                rlim_max: self.open_files,
            };
            check(libc::setrlimit(libc::RLIMIT_NOFILE, &files).into())?;
            // The core file of a large buffer pool would fill the disk, in a folder that is thrown away.
            let no_core = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            check(libc::setrlimit(libc::RLIMIT_CORE, &no_core).into())?;
            // When memory runs out the server is to die, not what watches it. Not vital, so not checked.
            let score = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if score >= 0 {
                libc::write(score, b"700".as_ptr().cast(), 3);
                libc::close(score);
            }
            if let Some(cpus) = &self.cpus {
                check(libc::syscall(
                    libc::SYS_sched_setaffinity,
                    0,
                    size_of_val(&**cpus),
                    cpus.as_ptr(),
                ))?;
            }
            if let Some(nodes) = &self.nodes {
                bind_memory(nodes)?;
            }
            if let Some(nice) = self.nice {
                // Not vital, so not checked: how many connections are at work is measured.
                libc::setpriority(libc::PRIO_PROCESS, 0, nice);
            }
            if let Some((uid, gid)) = self.user {
                check(libc::setgroups(0, std::ptr::null()).into())?;
                check(libc::setgid(gid).into())?;
                check(libc::setuid(uid).into())?;
            }
            // After the change of user, which clears it.
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into())?;
            if libc::getppid() != self.parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH)); // we died before it was set
            }
        }
        Ok(())
    }
}

/// Binds what this thread allocates from now on to NUMA nodes. Exec keeps it.
fn bind_memory(nodes: &[libc::c_ulong]) -> io::Result<()> {
    // The kernel reads one bit less than it is told.
    let bits = nodes.len() * libc::c_ulong::BITS as usize + 1;
    // SAFETY: the kernel reads `bits` bits from `nodes`, which has them.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, nodes.as_ptr(), bits) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether memory can be bound to these nodes here, tried on a thread that ends at once.
pub(crate) fn try_binding_memory(nodes: &[u32]) -> io::Result<()> {
    let nodes = mask(nodes.iter().copied());
    let tried = std::thread::spawn(move || bind_memory(&nodes)).join();
    tried.unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
}

/// The kernel's bit mask of some numbers.
pub(crate) fn mask(numbers: impl Iterator<Item = u32>) -> Box<[libc::c_ulong]> {
    let bits = libc::c_ulong::BITS;
    let mut words = vec![0; 1];
    for number in numbers {
        let word = (number / bits) as usize;
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (number % bits);
    }
    words.into_boxed_slice()
}
