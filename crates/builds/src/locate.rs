//! Where in an unpacked archive the server is.

use crate::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Places of a server below its basedir, or below the top of a package tree.
const PLACES: [&str; 7] = [
    "bin",
    "sbin",
    "libexec",
    "usr/sbin",
    "usr/bin",
    "usr/libexec",
    "usr/local/bin",
];
const SERVERS: [&str; 2] = ["mariadbd", "mysqld"];
/// Folders above a server: Java's archives have the path of a package.
const DEEPEST: usize = 8;

/// The folder that is the server's, the least deep one, and the server in it.
pub(crate) fn server_tree(unpacked: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut level = vec![unpacked.to_owned()];
    for _ in 0..DEEPEST {
        let mut below = Vec::new();
        for folder in level {
            let candidates = PLACES
                .iter()
                .flat_map(|place| SERVERS.map(|server| folder.join(place).join(server)));
            if let Some(server) = candidates.into_iter().find(|server| server.is_file()) {
                return Some((folder, server));
            }
            let mut inside: Vec<PathBuf> = fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path())
                .collect();
            inside.sort();
            below.extend(inside);
        }
        level = below;
    }
    None
}

/// Makes programs executable: zips made on other systems do not say which are.
///
/// # Errors
/// A file cannot be read or changed.
pub(crate) fn mark_programs(tree: &Path) -> Result<(), Error> {
    for place in PLACES.iter().chain(&["scripts"]) {
        for entry in fs::read_dir(tree.join(place)).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            let mut start = Vec::new();
            let file = File::open(&path).map_err(Error::system("open", &path))?;
            file.take(4)
                .read_to_end(&mut start)
                .map_err(Error::system("read", &path))?;
            if start.starts_with(b"\x7fELF") || start.starts_with(b"#!") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                    .map_err(Error::system("make executable", &path))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_deep_server_is_found_and_what_is_a_program_is_made_one() {
        let root = tempfile::tempdir().expect("a folder");
        let make = |path: &str, text: &[u8]| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(&path, text).expect("written");
            path
        };
        assert_eq!(server_tree(root.path()), None);
        make("a/b/c/deeper/bin/mysqld", b"\x7fELF");
        let server = make("org/made/linux/bin/mysqld", b"\x7fELF..");
        let script = make("org/made/linux/scripts/mysql_install_db", b"#!/bin/sh");
        let text = make("org/made/linux/bin/README", b"text");
        let (tree, found) = server_tree(root.path()).expect("a server");
        assert_eq!(
            (tree.clone(), found),
            (root.path().join("org/made/linux"), server.clone())
        );
        mark_programs(&tree).expect("marked");
        let executable = |path: &Path| fs::metadata(path).expect("it").permissions().mode() & 0o111 != 0;
        assert!(executable(&server) && executable(&script) && !executable(&text));
    }
}
