//! Makes a build of each kind of source in a folder aside: download, check, unpack, make fit, try.

use crate::archive;
use crate::checksum::{self, Checksum};
use crate::download;
use crate::error::Error;
use crate::foreign::ForeignTree;
use crate::locate::{mark_programs, server_tree};
use crate::packages::{self, Folders};
use crate::progress::Watcher;
use crate::published::published;
use crate::shelf::{Shelf, Stage};
use crate::source::{PackageSource, Source, without_account};
use crate::tree::{AbsoluteLinks, Limits, Tree};
use crate::trim::leaves_out;
use scaleprof_server::{Installation, version_said_by};
use std::fs;
use std::path::{Path, PathBuf};

/// A build that is ready to be put into its place.
pub(crate) struct Made {
    pub(crate) tree: PathBuf,
    pub(crate) checked: String,
    pub(crate) packages: Vec<String>,
    /// No longer needed once it is there.
    pub(crate) downloads: Vec<PathBuf>,
}

/// Where a build is being made.
pub(crate) struct Place<'a> {
    pub(crate) shelf: &'a Shelf,
    pub(crate) stage: &'a Stage,
    pub(crate) name: &'a str,
    /// Whether a whole download of an earlier try is done again.
    pub(crate) again: bool,
}

impl Place<'_> {
    pub(crate) fn of_path(
        &self,
        path: &Path,
        wanted: Option<&Checksum>,
        watcher: &mut Watcher<'_>,
    ) -> Result<Made, Error> {
        let shown = path.display().to_string();
        if path.is_dir() {
            if wanted.is_some() {
                return Err(Error::Source {
                    text: shown,
                    reason: "--sha256 is not possible with a folder".to_owned(),
                });
            }
            watcher.progress.stage("copying the folder");
            let limits = Limits {
                bytes: u64::MAX,
                entries: 1_000_000,
            };
            let mut tree = Tree::new(&self.stage.tree, &shown, limits, AbsoluteLinks::Refused);
            archive::copy(path, &mut tree, &|place| !leaves_out(place), watcher)?;
            tree.finish()?;
            return self.server_of(&shown, "copied from a folder of this machine".to_owned(), Vec::new());
        }
        let checked = match wanted {
            Some(wanted) => {
                checksum::check(path, &shown, wanted, watcher)?;
                format!("{} given by the user", wanted.algorithm.name())
            }
            None => "not checked: a file of this machine".to_owned(),
        };
        self.unpack(path, &shown, watcher)?;
        self.server_of(&shown, checked, Vec::new())
    }

    pub(crate) fn of_url(&self, url: &str, given: Option<Checksum>, watcher: &mut Watcher<'_>) -> Result<Made, Error> {
        let wanted = match given {
            Some(given) => Some(given),
            None => published(url, watcher)?,
        };
        if wanted.is_none() {
            watcher.progress.note(
                "no checksum is published with the file (.sha512, .sha256, .sha1, sha256sums.txt): give --sha256 to \
                 verify it",
            );
        }
        self.of_web(url, wanted, watcher)
    }

    pub(crate) fn of_artifact(
        &self,
        url: &str,
        given: Option<Checksum>,
        watcher: &mut Watcher<'_>,
    ) -> Result<Made, Error> {
        let published = match given {
            Some(given) => given,
            None => published(url, watcher)?.ok_or_else(|| Error::Download {
                url: without_account(url),
                reason: "the repository has no checksum of it, so most likely not the file either. Are the coordinates right?"
                    .to_owned(),
            })?,
        };
        self.of_web(url, Some(published), watcher)
    }

    fn of_web(&self, url: &str, wanted: Option<Checksum>, watcher: &mut Watcher<'_>) -> Result<Made, Error> {
        let shown = without_account(url);
        let file = shown.rsplit('/').next().unwrap_or_default().to_owned();
        watcher.progress.stage(&format!("downloading {file}"));
        // Two files of one name are told apart by where they come from.
        let place = checksum::short(url);
        let to = self
            .shelf
            .downloads()?
            .join(format!("{}-{place}-{}", self.name, file_name(&file)));
        if self.again && to.is_file() {
            fs::remove_file(&to).map_err(Error::system("remove", &to))?;
        }
        download::fetch(url, &to, watcher)?;
        let checked = match &wanted {
            Some(wanted) => {
                watcher
                    .progress
                    .stage(&format!("comparing the {}", wanted.algorithm.name()));
                if let Err(mut error) = checksum::check(&to, &shown, wanted, watcher) {
                    if let Error::Checksum { was_removed, .. } = &mut error {
                        fs::remove_file(&to).map_err(Error::system("remove", &to))?;
                        *was_removed = true;
                    }
                    return Err(error);
                }
                format!("{} by {}", wanted.algorithm.name(), wanted.by)
            }
            None => "not checked: none is published".to_owned(),
        };
        let made = self
            .unpack(&to, &shown, watcher)
            .and_then(|()| self.server_of(&shown, checked, vec![to.clone()]));
        // One that lacks a library of this machine may run the next time; these never will.
        if matches!(
            made,
            Err(Error::Hostile { .. } | Error::Archive { .. } | Error::NoServer { .. })
        ) {
            fs::remove_file(&to).map_err(Error::system("remove", &to))?;
        }
        made
    }

    fn unpack(&self, path: &Path, shown: &str, watcher: &mut Watcher<'_>) -> Result<(), Error> {
        watcher.progress.stage("unpacking");
        let mut tree = Tree::new(&self.stage.tree, shown, Limits::of_builds(), AbsoluteLinks::Refused);
        archive::unpack(path, &mut tree, &|place| !leaves_out(place), watcher)?;
        tree.finish()
    }

    /// The server's folder of what was unpacked.
    fn server_of(&self, shown: &str, checked: String, downloads: Vec<PathBuf>) -> Result<Made, Error> {
        let Some((tree, _)) = server_tree(&self.stage.tree) else {
            return Err(Error::NoServer {
                archive: shown.to_owned(),
            });
        };
        mark_programs(&tree)?;
        // Some archives bring a data folder; ours are made anew.
        let data = tree.join("data");
        if data.is_dir() {
            fs::remove_dir_all(&data).map_err(Error::system("remove", &data))?;
        }
        try_out(&tree, shown)?;
        Ok(Made {
            tree,
            checked,
            packages: Vec::new(),
            downloads,
        })
    }

    pub(crate) fn of_packages(&self, from: &PackageSource, watcher: &mut Watcher<'_>) -> Result<Made, Error> {
        let downloads = self.shelf.downloads()?.join(self.name);
        fs::create_dir_all(&downloads).map_err(Error::system("make", &downloads))?;
        let folders = Folders {
            apt: self.stage.aside("apt")?,
            downloads: downloads.clone(),
            tools: self.stage.aside("tools")?,
        };
        let tree = self.stage.tree.clone();
        let plan = packages::fetch(from, &folders, &tree, watcher)?;
        let shown = Source::Package(from.clone()).to_string();
        let Some((_, server)) = server_tree(&tree) else {
            return Err(Error::NoServer { archive: shown });
        };
        watcher
            .progress
            .stage("making the programs run with their own libraries");
        let foreign = ForeignTree {
            tree: &tree,
            last: &self.stage.last,
        };
        let loader = foreign.loader(&server)?;
        if let Err(reason) = version_said_by(foreign.command(&loader, &server)) {
            return Err(Error::DoesNotRun { archive: shown, reason });
        }
        foreign.patch(&server, &folders.tools.join("usr/bin/patchelf"), watcher)?;
        Ok(Made {
            tree,
            checked: "signatures, by apt".to_owned(),
            packages: plan.words(),
            downloads: vec![downloads],
        })
    }
}

/// Whether the server runs where it lies.
fn try_out(tree: &Path, shown: &str) -> Result<(), Error> {
    match Installation::at(tree) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::DoesNotRun {
            archive: shown.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// A name without what a file's name cannot have.
fn file_name(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-+".contains(c) {
            c
        } else {
            '_'
        }
    };
    text.chars()
        .rev()
        .take(120)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(plain)
        .collect()
}
