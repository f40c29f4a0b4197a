//! Some of the call paths of a bundle.

use crate::call_paths::PathId;

/// A set of paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathSet {
    is_in: Vec<bool>,
}

impl PathSet {
    /// Puts a path in; false where it was in before.
    pub(crate) fn insert(&mut self, path: PathId) -> bool {
        if self.is_in.len() <= path.place() {
            self.is_in.resize(path.place() + 1, false);
        }
        !std::mem::replace(&mut self.is_in[path.place()], true)
    }

    /// Whether a path is in.
    pub(crate) fn contains(&self, path: &PathId) -> bool {
        self.is_in.get(path.place()).is_some_and(|is_in| *is_in)
    }
}

impl FromIterator<PathId> for PathSet {
    fn from_iter<I: IntoIterator<Item = PathId>>(paths: I) -> PathSet {
        let mut set = PathSet::default();
        for path in paths {
            set.insert(path);
        }
        set
    }
}
