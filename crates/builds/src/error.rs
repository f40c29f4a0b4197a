//! Why a build could not be fetched, listed or removed.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What to do about bytes that are not those that were meant.
fn what_became_of_it(was_removed: bool) -> &'static str {
    match was_removed {
        true => " It was removed: fetch again, and if that helps not, do not trust it",
        false => " Do not trust it",
    }
}

/// Why a build could not be fetched, listed or removed.
#[derive(Debug, Error)]
pub enum Error {
    /// The text names no source.
    #[error("'{text}' is no source of a server: {reason}")]
    Source {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A name that cannot be a folder of ours.
    #[error(
        "'{name}' cannot name a build: letters, digits and . _ + - are allowed, the first one a letter or digit, 100 at most"
    )]
    Name {
        /// The name.
        name: String,
    },

    /// No build has this name.
    #[error("there is no build '{name}' in {}{}", folder.display(), there(known))]
    Unknown {
        /// The name.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
        /// Names that there are.
        known: Vec<String>,
    },

    /// The name is taken by a build from elsewhere.
    #[error("'{name}' exists already, from {source_text}\nfix: give another --name, or --replace to fetch it again")]
    Taken {
        /// The name.
        name: String,
        /// Where the one that is there came from.
        source_text: String,
    },

    /// A folder that we did not make.
    #[error("{} was not created by scaleprof (no {}), so it is neither used nor removed\nfix: move it away", path.display(), crate::provenance::FILE)]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },

    /// The folder of the builds is one that others could change: they would choose what runs.
    #[error(
        "{} is not used for servers: {source}\nfix: own the folder and remove write permission of others (chown, chmod \
         go-w), or set SCALEPROF_SERVERS", path.display()
    )]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Who could.
        source: scaleprof_guard::Exposed,
    },

    /// The user that servers run as cannot reach the folder of the builds.
    #[error("{0}\nfix: name another folder with SCALEPROF_SERVERS")]
    Unreachable(String),

    /// Another scaleprof fetches or removes.
    #[error("another scaleprof fetches or removes builds in {}\nfix: wait until it ends", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },

    /// An archive that would write elsewhere, or without end.
    #[error("{archive} is refused, and nothing of it was kept: {reason}")]
    Hostile {
        /// The archive.
        archive: String,
        /// What is in it.
        reason: String,
    },

    /// An archive that cannot be read.
    #[error("{archive} cannot be unpacked: {reason}")]
    Archive {
        /// The archive.
        archive: String,
        /// Why not.
        reason: String,
    },

    /// No server in what was unpacked.
    #[error("{archive} holds no server: no bin/mysqld, sbin/mysqld, libexec/mysqld, nor mariadbd there")]
    NoServer {
        /// The archive.
        archive: String,
    },

    /// The server does not run here.
    #[error("the server of {archive} does not run here: {reason}")]
    DoesNotRun {
        /// The archive.
        archive: String,
        /// What it said.
        reason: String,
    },

    /// A download failed.
    #[error("cannot fetch {url}: {reason}")]
    Download {
        /// From where.
        url: String,
        /// Why not.
        reason: String,
    },

    /// The bytes are not those that were published.
    #[error(
        "{file} has the {algorithm} {found}, but {wanted_by} says {wanted}.{}", what_became_of_it(*.was_removed)
    )]
    Checksum {
        /// What was fetched.
        file: String,
        /// Whether it was a download of ours, which is gone now, or a file of the user's.
        was_removed: bool,
        /// Which checksum.
        algorithm: &'static str,
        /// What it is.
        found: String,
        /// What it ought to be.
        wanted: String,
        /// Who says so.
        wanted_by: String,
    },

    /// apt has not what was asked for, or cannot check it.
    #[error("{what}: {reason}")]
    Packages {
        /// What was asked of it.
        what: String,
        /// Why not.
        reason: String,
    },

    /// A program that is needed is not here.
    #[error("{program} is not here: apt-get install {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },

    /// The user said stop.
    #[error("stopped; what was downloaded is kept, so that the same command goes on from there")]
    Stopped,

    /// The system refused something.
    #[error("cannot {doing} {}: {source}{}", path.display(), hint(source))]
    System {
        /// What we tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: the system refused `doing` on `path`.
    pub(crate) fn system(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        let path = path.as_ref().to_owned();
        move |source| Error::System { doing, path, source }
    }
}

fn there(known: &[String]) -> String {
    match known {
        [] => ", which is empty: `scaleprof servers fetch --help` lists the sources".to_owned(),
        _ => format!("; there are: {}", known.join(", ")),
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => "\nfix: name a folder you may write to: SCALEPROF_SERVERS",
        Some(libc::ENOSPC) => ". Make room, or name a folder on another disk: SCALEPROF_SERVERS",
        _ => "",
    }
}
