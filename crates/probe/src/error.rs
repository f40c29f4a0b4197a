//! What can go wrong while a probe is set up: what was tried, why it failed and the command that mends it.

use std::path::{Path, PathBuf};

use crate::machine::{self, MOUNT_SYS};
use crate::privileges::remedy;
use crate::watch::BpfRefusal;

/// What helps where a process cannot be looked at.
fn why_not(pid: u32, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => remedy(error),
        _ => format!("; is it running? see: ps -p {pid}"),
    }
}

/// What helps where a file of the kernel cannot be read.
fn why_unread(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound if path.starts_with("/sys") && !machine::has_sys() => {
            format!("; /sys is not mounted here; {MOUNT_SYS}")
        }
        _ => remedy(error),
    }
}

/// A failure to set up or to read a source of figures.
///
/// Only [`Sampler::start`](crate::Sampler::start) returns it to the caller; a source that fails later only takes
/// its own figures with it, and the text of the error becomes the reason in
/// [`missing`](crate::missing).
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The process whose figures are wanted does not exist.
    #[error("process {pid} cannot be watched: {source}{}", why_not(*pid, source))]
    NoProcess {
        /// Process id that was given.
        pid: u32,
        /// What the kernel answered.
        source: std::io::Error,
    },
    /// A file of the kernel could not be read.
    #[error("{path} cannot be read: {source}{}", why_unread(path, source), path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel answered.
        source: std::io::Error,
    },
    /// A file of the kernel has a form that this program does not know.
    #[error("{what} has an unknown format\nfix: please report it with: uname -r")]
    Form {
        /// Which file.
        what: String,
    },
    /// A performance event could not be opened or read.
    #[error("{0}")]
    Event(String),
    /// No cgroup could be made for the server.
    #[error("no cgroup for the server: {why}; {fix}")]
    Cgroup {
        /// Why not.
        why: String,
        /// What helps.
        fix: String,
    },
    /// The taskstats interface of the kernel does not answer.
    #[error("taskstats (netlink) does not answer: {0}; it needs CAP_NET_ADMIN and a kernel with CONFIG_TASKSTATS")]
    Taskstats(String),
    /// The kernel did not take the BPF programs.
    #[error("{0}")]
    BpfRefused(Box<BpfRefusal>),
    /// Something around the BPF programs failed.
    #[error("{doing} failed: {why}")]
    Bpf {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        why: String,
    },
}
