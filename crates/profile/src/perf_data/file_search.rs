//! Where the file of a mapping is now: below `--symfs`, in perf's caches, or where it lay, if it is the very one.

use super::files::DELETED;
use super::record::Mapped;
use object::Object as _;
use scaleprof_binary::mapped_file::{MappedFile, mapped};
use scaleprof_binary::symbols::SymbolSearch;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where files are looked for.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) symfs: Option<PathBuf>,
    pub(super) build_id_caches: Vec<PathBuf>,
    pub(super) symbols: SymbolSearch,
    pub(super) nowhere: bool,
}

/// A file that is there.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: PathBuf,
    /// Where files that belong to it are looked for: a cache has it under a name that says nothing.
    pub(super) own: PathBuf,
    pub(super) bytes: Arc<MappedFile>,
    /// Whether its build-id is the recorded one; else nobody knows whether it was replaced.
    pub(super) certain: bool,
}

impl Search {
    /// The file that was recorded, or why it is not to be had.
    pub(super) fn find(&self, recorded_as: &Mapped, build_id: Option<&str>) -> Result<Found, String> {
        let (mut why, mut doubtful) = (None, None);
        for (place, own) in self.candidates(&recorded_as.path, build_id) {
            // A recording may name anything; opening a device or a pipe does something.
            if !std::fs::metadata(&place).is_ok_and(|facts| facts.is_file()) {
                continue;
            }
            let Ok(bytes) = mapped(&place).map(Arc::new) else {
                continue;
            };
            match (build_id, build_id_of(&bytes)) {
                (Some(recorded), Some(own)) if !same_build(recorded, &own) => {
                    why.get_or_insert_with(|| {
                        format!("the file that is there now is another build ({own}; recorded was {recorded})")
                    });
                }
                (recorded, its) => {
                    let certain = (recorded.is_some() && its.is_some()) || is_inode(&place, recorded_as.inode);
                    let found = Found {
                        own: match own == place {
                            true => std::fs::canonicalize(&own).unwrap_or(own),
                            // Where links of this machine lead says nothing of what a cache has.
                            false => own,
                        },
                        place,
                        bytes,
                        certain,
                    };
                    if certain || recorded.is_none() {
                        return Ok(found);
                    }
                    // It may be a later build, and a cache may have the very file.
                    doubtful.get_or_insert(found);
                }
            }
        }
        if let Some(found) = doubtful {
            return Ok(found);
        }
        Err(why.unwrap_or_else(|| "it is not on this machine".to_owned()))
    }

    /// The size of the largest file in any of the places where that one may be.
    pub(super) fn most_bytes(&self, path: &str, build_id: Option<&str>) -> u64 {
        let places = self.candidates(path, build_id).into_iter();
        let facts = places.filter_map(|(place, _)| std::fs::metadata(place).ok());
        let lengths = facts.filter(std::fs::Metadata::is_file).map(|facts| facts.len());
        lengths.max().unwrap_or(0)
    }

    /// Where perf's caches have what belongs to a build-id.
    pub(super) fn entries_of_caches(&self, build_id: &str) -> impl Iterator<Item = PathBuf> {
        let parts = build_id.split_at_checked(2);
        let caches = parts
            .into_iter()
            .flat_map(|parts| self.build_id_caches.iter().map(move |cache| (cache, parts)));
        caches.map(|(cache, (first, rest))| cache.join(".build-id").join(first).join(rest))
    }

    /// Places of a file, each with the path that is its own.
    fn candidates(&self, path: &str, build_id: Option<&str>) -> Vec<(PathBuf, PathBuf)> {
        let below_root = Path::new(path.trim_start_matches('/'));
        let mut places = Vec::new();
        let mut itself = |place: PathBuf| places.push((place.clone(), place));
        if let Some(symfs) = &self.symfs {
            itself(symfs.join(below_root));
            below_root
                .file_name()
                .into_iter()
                .for_each(|name| itself(symfs.join(name)));
        }
        if path.starts_with('/') && (self.symfs.is_none() || build_id.is_some()) {
            itself(PathBuf::from(path));
        }
        for entry in build_id.into_iter().flat_map(|id| self.entries_of_caches(id)) {
            // A link to a folder since perf 4.x, to the file itself before.
            let kept = [entry.join("elf"), entry.join("vdso"), entry];
            let own = path.strip_suffix(DELETED).unwrap_or(path);
            places.extend(kept.map(|place| (place, PathBuf::from(own))));
        }
        places
    }
}

/// Whether a file is the very one that was mapped. A machine that gives the same number to another file of that path has not been seen.
fn is_inode(place: &Path, recorded: Option<(u32, u32, u64)>) -> bool {
    let Ok(facts) = std::fs::metadata(place) else {
        return false;
    };
    let device = facts.dev();
    recorded == Some((rustix::fs::major(device), rustix::fs::minor(device), facts.ino()))
}

/// The recorded one may be padded with zeros to 20 bytes.
fn same_build(recorded: &str, own: &str) -> bool {
    recorded == own
        || (recorded.strip_prefix(own)).is_some_and(|rest| !own.is_empty() && rest.bytes().all(|b| b == b'0'))
}

pub(super) fn build_id_of(bytes: &[u8]) -> Option<String> {
    let elf = object::File::parse(bytes).ok()?;
    let id = elf.build_id().ok()??;
    Some(super::features::hexadecimal(id))
}
