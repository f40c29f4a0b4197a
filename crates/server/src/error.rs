//! What can go wrong with a server under test. Each message says what was tried, why it failed, and what mends it.

use crate::death::Death;
use crate::product::Product;
use std::io;
use std::path::{Path, PathBuf};

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server was named and the distribution's was not found.
    #[error(
        "no database server found: looked for {looked}\nfix: install one (apt-get install mariadb-server-core), or name \
         one with --server BASEDIR|BINARY"
    )]
    NoServer {
        /// The places that were searched.
        looked: String,
    },

    /// The path does not lead to a server that can be run.
    #[error("{} is not a server that can be run here: {reason}", path.display())]
    NotAServer {
        /// What was named.
        path: PathBuf,
        /// Why it will not do, and what would.
        reason: String,
    },

    /// The unprivileged user that the server runs as cannot reach a file.
    #[error(
        "the server's user '{user}' cannot read {}: {} is closed to it\nfix: use chmod a+x {}, another folder, or an \
         ordinary user for scaleprof",
        path.display(), closed.display(), closed.display()
    )]
    Unreachable {
        /// The server's user.
        user: String,
        /// What it must read.
        path: PathBuf,
        /// The folder or file in the way.
        closed: PathBuf,
    },

    /// A product of a version that the capability table does not know how to run.
    #[error("{product} {version} cannot be run as a server under test: {reason}")]
    Unsupported {
        /// The product.
        product: Product,
        /// Its version.
        version: String,
        /// What is missing.
        reason: String,
    },

    /// A setting that is wrong before any server has seen it.
    #[error("--set {name}: {reason}")]
    BadSetting {
        /// The setting as it was given.
        name: String,
        /// Why it cannot be used.
        reason: String,
    },

    /// Replication that this server cannot do.
    #[error("{product} {version} cannot do {method} replication here: {reason}")]
    ReplicationUnsupported {
        /// The way to replicate.
        method: String,
        /// The product.
        product: Product,
        /// Its version.
        version: String,
        /// What is missing.
        reason: String,
    },

    /// A replica that does not follow.
    #[error("replica {replica} does not follow ({method} replication): {reason}")]
    NotFollowing {
        /// The way to replicate.
        method: String,
        /// Its number, from 1.
        replica: usize,
        /// What the server says, or how long was waited.
        reason: String,
    },

    /// It was asked to stop.
    #[error("stopped")]
    Stopped,

    /// An answer of the server's that is not understood.
    #[error("{doing}: the server answered '{answer}', which is not understood")]
    Unreadable {
        /// What we tried.
        doing: &'static str,
        /// Its answer.
        answer: String,
    },

    /// The server itself refused a setting.
    #[error(
        "the server refused a setting: {line}\nfix: correct or remove that --set or defaults-file line; `{} --no-defaults \
         --verbose --help` lists the settings", binary.display()
    )]
    SettingRefused {
        /// The server's own words.
        line: String,
        /// The server.
        binary: PathBuf,
    },

    /// Making the system tables of an empty data folder failed.
    #[error("cannot make a data folder with {}: {death}", binary.display())]
    Initialise {
        /// The server.
        binary: PathBuf,
        /// How it ended.
        death: Death,
    },

    /// The server died before it answered.
    #[error("the server {} did not start: {death}", binary.display())]
    DiedAtStart {
        /// The server.
        binary: PathBuf,
        /// How it ended.
        death: Death,
    },

    /// A wrapper that started the server as a child.
    #[error(
        "the wrapper '{wrapper}' does not become the server (its process is {}), so CPU time would be wrong\nfix: \
         make exec \"$@\" its last step", exe.display()
    )]
    WrapperStays {
        /// Its first word.
        wrapper: String,
        /// What runs in its process.
        exe: PathBuf,
    },

    /// A statement that was to be run as soon as the server answers.
    #[error("statement {at} of those to be run after the start (sql) failed: {source}")]
    StatementAfterStart {
        /// Its number, from 1.
        at: usize,
        /// What the server said.
        source: scaleprof_wire::Error,
    },

    /// The server runs but answers nobody.
    #[error(
        "the server {} runs but did not answer within {seconds} s; the last connection said: {last}; its error log \
         ends:\n{log}", binary.display()
    )]
    NotReady {
        /// The server.
        binary: PathBuf,
        /// How long we waited.
        seconds: u64,
        /// What the last attempt to connect met.
        last: String,
        /// The end of the error log.
        log: String,
    },

    /// The server did not stop cleanly, so that its data folder cannot be kept.
    #[error("the server did not stop cleanly: {death}")]
    DidNotStop {
        /// How it ended.
        death: Death,
    },

    /// A folder that carries no marker of ours.
    #[error(
        "{} is neither used nor removed: {reason}\nfix: fix that, or name another folder with --work-dir", path.display()
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// What tells.
        reason: String,
    },

    /// The socket's path would not fit.
    #[error(
        "the path of the server's socket {} has {length} bytes, and the kernel allows 107\nfix: name a shorter folder \
         with --work-dir", path.display()
    )]
    SocketPathTooLong {
        /// The socket.
        path: PathBuf,
        /// Bytes of the path.
        length: usize,
    },

    /// Not enough room on the disk.
    #[error(
        "{} has {free_mib} MiB free, and {what} needs {needed_mib} MiB\nfix: free space, or name a folder on another disk \
         with --work-dir", path.display()
    )]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// What for.
        what: String,
        /// Free MiB.
        free_mib: u64,
        /// Needed MiB.
        needed_mib: u64,
    },

    /// Not enough memory.
    #[error(
        "{}{connections} connections and a warm buffer pool need about {needed_mib} MiB; {available_mib} MiB are \
         available\nfix: use fewer connections or a smaller --set innodb_buffer_pool_size",
        if *servers > 1 { format!("{servers} servers with each ") } else { String::new() }
    )]
    NoMemory {
        /// Servers at the same time.
        servers: u32,
        /// Connections asked for of each.
        connections: u32,
        /// Estimate of the need, MiB.
        needed_mib: u64,
        /// What the machine or control group has, MiB.
        available_mib: u64,
    },

    /// Another scaleprof holds the lock.
    #[error("another scaleprof uses {}\nfix: wait until it ends, or name another folder with --work-dir", path.display())]
    Locked {
        /// What is locked.
        path: PathBuf,
    },

    /// A CPU list that does not parse or does not fit the machine.
    #[error("CPU list '{list}': {reason}")]
    CpuList {
        /// The list.
        list: String,
        /// What is wrong.
        reason: String,
    },

    /// The system refused something.
    #[error("cannot {doing} {}: {source}{}", path.display(), hint(doing, source))]
    System {
        /// What we tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// The server's answer, or the connection to it.
    #[error("{doing}: {source}")]
    Wire {
        /// What we tried.
        doing: &'static str,
        /// Why not.
        source: Box<scaleprof_wire::Error>,
    },
}

impl Error {
    /// For `map_err`: the system refused `doing` on `path`.
    pub(crate) fn system(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        let path = path.as_ref().to_owned();
        move |source| Error::System { doing, path, source }
    }

    /// For `map_err`: the server, or the connection to it, failed at `doing`.
    pub(crate) fn wire(doing: &'static str) -> impl FnOnce(scaleprof_wire::Error) -> Error {
        move |source| Error::Wire {
            doing,
            source: Box::new(source),
        }
    }

    /// As [`Error::system`], for rustix's error type.
    pub(crate) fn errno(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(rustix::io::Errno) -> Error {
        let path = path.as_ref().to_owned();
        move |errno| Error::System {
            doing,
            path,
            source: errno.into(),
        }
    }
}

fn hint(doing: &str, source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if doing.starts_with("start") => {
            "\nfix: make it executable, and in a container give root CAP_SETUID"
        }
        Some(libc::ENOSPC) => "\nfix: free space, or name a folder on another disk with --work-dir",
        Some(libc::EACCES | libc::EPERM) => "\nfix: name a writable folder with --work-dir",
        Some(libc::EROFS) => "\nfix: name another folder with --work-dir; this file system is read-only",
        _ => "",
    }
}
