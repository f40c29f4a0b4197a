//! Where the symbols of a stripped file may lie.

use std::path::{Path, PathBuf};

/// Folders above a binary in which its installation's lists are looked for: `BASEDIR/usr/sbin/mysqld` has three.
const LEVELS: usize = 4;

/// Where to look for symbols that are not in the file itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolSearch {
    /// Folders of debug files, as gdb's `debug-file-directory`.
    pub debug_folders: Vec<PathBuf>,
    /// Caches of debuginfod's clients: `FOLDER/BUILD-ID/debuginfo`.
    pub debuginfod_caches: Vec<PathBuf>,
    /// Folders that hold a folder for each package with lists of symbols.
    pub document_folders: Vec<PathBuf>,
    /// Lists of symbols that are looked at first, whatever they are called.
    pub lists: Vec<PathBuf>,
    /// Whether to look beside the file and in the folders above it as well.
    pub beside: bool,
}

impl Default for SymbolSearch {
    /// Where the distributions' packages put them, and beside the file.
    fn default() -> Self {
        SymbolSearch {
            debug_folders: vec!["/usr/lib/debug".into()],
            debuginfod_caches: Vec::new(),
            document_folders: vec!["/usr/share/doc".into()],
            lists: Vec::new(),
            beside: true,
        }
    }
}

impl SymbolSearch {
    /// Looks nowhere: only the file itself is read.
    #[must_use]
    pub fn nowhere() -> Self {
        SymbolSearch {
            debug_folders: Vec::new(),
            debuginfod_caches: Vec::new(),
            document_folders: Vec::new(),
            lists: Vec::new(),
            beside: false,
        }
    }

    /// The debug files that a build-id (in hexadecimal) leads to.
    pub(super) fn by_build_id(&self, build_id: &str) -> Vec<PathBuf> {
        let (Some(first), Some(rest)) = (build_id.get(..2), build_id.get(2..)) else {
            return Vec::new();
        };
        let place = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
        let installed = self.debug_folders.iter().map(|folder| folder.join(&place));
        let fetched = self
            .debuginfod_caches
            .iter()
            .map(|folder| folder.join(build_id).join("debuginfo"))
            // An empty file there says that no server has it.
            .filter(|path| std::fs::metadata(path).is_ok_and(|facts| facts.len() > 0));
        existing(installed.chain(fetched))
    }

    /// The debug files that a `.gnu_debuglink` leads to: gdb's manual, "Separate Debug Files".
    pub(super) fn by_link(&self, binary: &Path, link: &Path) -> Vec<PathBuf> {
        let Some(folder) = binary.parent() else {
            return Vec::new();
        };
        let beside = [folder.join(link), folder.join(".debug").join(link)];
        let below_root = folder.strip_prefix("/").unwrap_or(folder);
        let global = self.debug_folders.iter().map(|debug| debug.join(below_root).join(link));
        let mut found = existing(beside.into_iter().filter(|_| self.beside).chain(global));
        found.retain(|path| path != binary);
        found
    }

    /// The file of shared DWARF that `dwz` made (`.gnu_debugaltlink`).
    pub(super) fn supplementary(&self, debug_file: &Path, link: &Path, build_id: &str) -> Option<PathBuf> {
        let by_id = self.by_build_id(build_id);
        let beside = debug_file.parent().map(|folder| folder.join(link));
        by_id.into_iter().chain(existing(beside.into_iter())).next()
    }

    /// Lists of symbols for a binary.
    pub(super) fn symbol_lists(&self, binary: &Path) -> Vec<PathBuf> {
        let mut found = self.lists.clone();
        let Some(name) = binary.file_name().and_then(|name| name.to_str()) else {
            return found;
        };
        // They are made for programs; looking for those of a dozen libraries, or of the kernel's [vdso], takes longer than reading a
        // server's.
        if name.ends_with(".so") || name.contains(".so.") || name.starts_with('[') {
            return found;
        }
        let names = [format!("{name}.sym.gz"), format!("{name}.sym")];
        let mut folders = Vec::new();
        if self.beside {
            for above in binary
                .ancestors()
                .skip(1)
                .take(LEVELS)
                .filter(|above| above.parent().is_some())
            {
                folders.extend([above.to_owned(), above.join("sym")]);
                folders.extend(with_folders_in(&above.join("share/doc")));
            }
        }
        for folder in &self.document_folders {
            folders.extend(with_folders_in(folder));
        }
        for path in existing(
            folders
                .iter()
                .flat_map(|folder| names.iter().map(|name| folder.join(name))),
        ) {
            if !found.contains(&path) {
                found.push(path);
            }
        }
        found
    }
}

fn existing(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    paths.filter(|path| path.is_file()).collect()
}

/// A folder and the folders in it, by name.
fn with_folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    inside.sort();
    [folder.to_owned()].into_iter().chain(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path) -> PathBuf {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, "").expect("written");
        path.to_owned()
    }

    #[test]
    fn lists_are_found_beside_the_binary_up_its_tree_and_among_the_documents() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let binary = file(&root.join("base/usr/sbin/mysqld"));
        let package = file(&root.join("base/usr/share/doc/mysql-server/mysqld.sym.gz"));
        let kept = file(&root.join("base/sym/mysqld.sym"));
        let document = file(&root.join("doc/server/mysqld.sym.gz"));
        file(&root.join("doc/server/mysql.sym.gz"));
        let search = SymbolSearch {
            document_folders: vec![root.join("doc")],
            ..SymbolSearch::default()
        };
        assert_eq!(search.symbol_lists(&binary), [package, kept, document]);
        assert!(SymbolSearch::nowhere().symbol_lists(&binary).is_empty());
    }

    #[test]
    fn debug_files_are_found_by_build_id_and_by_link() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let debug = root.join("debug");
        let by_id = file(&debug.join(".build-id/ab/cdef.debug"));
        let binary = file(&root.join("bin/mysqld"));
        let beside = file(&root.join("bin/.debug/mysqld.debug"));
        let global = file(
            &debug
                .join(root.strip_prefix("/").expect("absolute"))
                .join("bin/mysqld.debug"),
        );
        let search = SymbolSearch {
            debug_folders: vec![debug],
            ..SymbolSearch::default()
        };
        assert_eq!(search.by_build_id("abcdef"), std::slice::from_ref(&by_id));
        let cache = root.join("cache");
        let fetched = file(&cache.join("abcdef/debuginfo"));
        let with_cache = SymbolSearch {
            debuginfod_caches: vec![cache],
            ..search.clone()
        };
        assert_eq!(
            with_cache.by_build_id("abcdef"),
            std::slice::from_ref(&by_id),
            "no server has it"
        );
        std::fs::write(&fetched, "x").expect("written");
        assert_eq!(with_cache.by_build_id("abcdef"), [by_id, fetched]);
        assert!(search.by_build_id("ab").is_empty() && search.by_build_id("").is_empty());
        assert_eq!(search.by_link(&binary, Path::new("mysqld.debug")), [beside, global]);
        assert!(
            search.by_link(&binary, Path::new("mysqld")).is_empty(),
            "a link to the file itself"
        );
    }
}
