//! From a source to a build in its place, whole or not at all.

use crate::checksum;
use crate::error::Error;
use crate::making::Place;
use crate::maven;
use crate::progress::{Progress, Watcher};
use crate::provenance::Provenance;
use crate::shelf::{Shelf, Shelved};
use crate::source::{Source, checked_name};
use scaleprof_server::{Installation, ServerUser};
use std::fs;
use std::sync::atomic::AtomicBool;

/// What is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// From where.
    pub source: Source,
    /// What it shall be called; by the source where nothing is given.
    pub name: Option<String>,
    /// The SHA-256 of the archive, in hexadecimal, for sources that publish none.
    pub sha256: Option<String>,
    /// Whether to replace a build of this name.
    pub force: bool,
    /// The Maven repository; Maven Central where none is given.
    pub repository: Option<String>,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// It is there now.
    New(Shelved),
    /// It was there already, from the same source.
    WasThere(Shelved),
}

/// Fetches a build. One at a time fetches into a shelf.
///
/// # Errors
/// What the source has is not to be had, is not what was published, is hostile, holds no server or one that does not run here; the
/// name is taken; another one fetches; the user said stop. Nothing is then on the shelf that was not there before.
pub fn fetch(
    shelf: &Shelf,
    request: &Request,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Fetched, Error> {
    let mut watcher = Watcher { progress, stop };
    let name = match &request.name {
        Some(name) => name.clone(),
        None => request.source.default_name()?,
    };
    checked_name(&name)?;
    let wanted = request.sha256.as_deref().map(checksum::given).transpose()?;
    if wanted.is_some() && matches!(request.source, Source::Package(_)) {
        return Err(Error::Source {
            text: request.source.to_string(),
            reason: "--sha256 is not possible with packages: their signatures are verified".to_owned(),
        });
    }
    let source = resolved(&request.source)?;
    if let Some(there) = shelf.shelved(&name)
        && !request.force
    {
        return match &there.provenance.source {
            Some(other) if *other != source.to_string() => Err(Error::Taken {
                name,
                source_text: other.clone(),
            }),
            _ if wanted.is_some() => Err(Error::Source {
                text: request.source.to_string(),
                reason: format!(
                    "'{name}' exists already and was not compared with this checksum: --replace fetches it again"
                ),
            }),
            _ => {
                // A query may be a signature, new every day, or ask for another file: it is not kept, as it may be a secret.
                if matches!(&source, Source::Url(url) if url.contains('?')) {
                    watcher.progress.note(&format!(
                        "'{name}' exists already, perhaps from another query: --replace fetches it again, --name \
                         gives another name"
                    ));
                }
                Ok(Fetched::WasThere(there))
            }
        };
    }
    let lock = shelf.lock()?;
    if let Some(user) = ServerUser::for_this_process() {
        // Before anything is downloaded that could not be run from there.
        user.check_reach(shelf.path())
            .map_err(|error| Error::Unreachable(error.to_string()))?;
    }
    let stage = shelf.stage(&lock, &name)?;
    if fs::symlink_metadata(&stage.last).is_ok() && shelf.shelved(&name).is_none() {
        return Err(Error::NotOurs {
            path: stage.last.clone(),
        });
    }
    let place = Place {
        shelf,
        stage: &stage,
        name: &name,
        again: request.force,
    };
    let made = match &source {
        Source::Path(path) => place.of_path(path, wanted.as_ref(), &mut watcher),
        Source::Url(url) => place.of_url(url, wanted, &mut watcher),
        Source::Maven(coordinates) => {
            let url = coordinates.url(request.repository.as_deref().unwrap_or(maven::CENTRAL));
            place.of_artifact(&url, wanted, &mut watcher)
        }
        Source::Package(package) => place.of_packages(package, &mut watcher),
    }?;
    watcher.go_on()?;
    watcher.progress.stage("trying the server");
    Provenance::now(source.to_string(), made.checked, made.packages)
        .write(&made.tree)
        .map_err(Error::system("write into", &made.tree))?;
    stage.publish(&made.tree)?;
    if let Err(error) = Installation::at(&stage.last) {
        stage.withdraw(&made.tree)?;
        return Err(Error::DoesNotRun {
            archive: source.to_string(),
            reason: error.to_string(),
        });
    }
    for download in made.downloads {
        // What stays is forgotten in a week.
        let _ = match download.is_dir() {
            true => fs::remove_dir_all(&download),
            false => fs::remove_file(&download),
        };
    }
    shelf.find(&name).map(Fetched::New)
}

/// A path as it is from everywhere.
fn resolved(source: &Source) -> Result<Source, Error> {
    match source {
        Source::Path(path) => fs::canonicalize(path)
            .map(Source::Path)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Error::Source {
                    text: path.display().to_string(),
                    reason: "there is no such file or folder. A source is a path, a URL, debian:SUITE/PACKAGE, \
                             ubuntu:SUITE/PACKAGE or maven:GROUP:ARTIFACT:VERSION[:PACKAGING[:CLASSIFIER]]"
                        .to_owned(),
                },
                _ => Error::system("read", path)(error),
            }),
        other => Ok(other.clone()),
    }
}
