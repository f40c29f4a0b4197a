//! Functions that the compiler put into others, with files and lines, from DWARF.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use addr2line::Loader;

pub(super) use super::debug_sections::Frame;
use super::debug_sections::{DebugSections, frames};

/// A function at an address, as its programmer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFrame {
    /// Without parameter types and long template arguments.
    pub name: String,
    /// With all of it.
    pub full_name: String,
    /// As the linker knows it.
    pub linkage_name: String,
    /// The file of the source, where DWARF tells.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// Whether it was put into the function behind it in the list.
    pub inlined: bool,
}

/// The last folder and the file of a path in the debug information: the rest may hold the name of whoever built it. A folder so
/// near to the root as `/home/anna` may be one's own.
#[must_use]
pub fn end_of_path(path: &str) -> String {
    let is_near_root = path.starts_with('/') && path.matches('/').count() < 4;
    let mut parts = path.rsplit('/');
    match (parts.next(), parts.next().filter(|_| !is_near_root)) {
        (Some(file), Some(folder)) if !folder.is_empty() => format!("{folder}/{file}"),
        (file, _) => file.unwrap_or_default().to_owned(),
    }
}

/// The DWARF of a file, read when it is first asked for.
#[derive(Default)]
pub(super) struct Dwarf {
    path: Option<PathBuf>,
    supplementary: Option<PathBuf>,
    loaded: OnceLock<Option<Loaded>>,
}

/// What answers, and how often it was asked.
struct Loaded {
    sections: DebugSections,
    asked: AtomicU32,
    /// For what the file has split off into others (`.dwo`, `.dwp`), once it is needed. What was read is kept in it, so it is not to be
    /// shared.
    split: OnceLock<Option<Mutex<Loader>>>,
}

/// So often it is asked before it lets go: what a part of the file says is read on the first question and kept, and neighbours come together.
const ASKED_AT_ONCE: u32 = 128;

impl Dwarf {
    pub(super) fn of(path: &Path, supplementary: Option<PathBuf>) -> Self {
        Dwarf {
            path: Some(path.to_owned()),
            supplementary,
            loaded: OnceLock::new(),
        }
    }

    /// The file that it is in.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The frames at an address, innermost first; none where DWARF knows nothing.
    pub(super) fn frames(&self, svma: u64) -> Vec<Frame> {
        let load = || {
            let sections = DebugSections::of(self.path.as_ref()?, self.supplementary.as_deref())?;
            Some(Loaded {
                sections,
                asked: AtomicU32::new(0),
                split: OnceLock::new(),
            })
        };
        let Some(loaded) = self.loaded.get_or_init(load) else {
            return Vec::new();
        };
        if loaded.asked.fetch_add(1, Ordering::Relaxed) % ASKED_AT_ONCE == ASKED_AT_ONCE - 1 {
            loaded.sections.let_go();
        }
        if let Ok(found) = loaded.sections.frames(svma) {
            return found;
        }
        let load = || {
            let loader = Loader::new_with_sup(self.path.as_ref()?, self.supplementary.as_ref());
            Some(Mutex::new(loader.ok()?))
        };
        let Some(Ok(loader)) = loaded.split.get_or_init(load).as_ref().map(Mutex::lock) else {
            return Vec::new();
        };
        loader.find_frames(svma).map(frames).unwrap_or_default()
    }
}
