//! Makes programs of another distribution run here with their own C library.
//!
//! patchelf writes the dynamic loader and the folders of libraries into the programs: `/proc/PID/exe` is then the server itself,
//! its code stays at the same addresses, its build-id is kept, and children inherit no environment variable that would give them a
//! foreign C library. Started through the loader, the process would be `ld-linux-x86-64.so.2` for every profiler; in a chroot its
//! paths would not be ours (docs/adr/0018).

use crate::child;
use crate::error::Error;
use crate::progress::Watcher;
use object::Endianness;
use object::elf::PT_INTERP;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of libraries in a package tree, `TRIPLET` being such as `x86_64-linux-gnu`.
const LIBRARY_FOLDERS: [&str; 5] = [
    "usr/lib/TRIPLET",
    "lib/TRIPLET",
    "usr/lib64",
    "lib64",
    "usr/lib/mysql/private",
];
/// Folders of programs.
const PROGRAM_FOLDERS: [&str; 3] = ["usr/sbin", "usr/bin", "usr/libexec"];

/// A tree of packages, and where it is going to lie.
pub(crate) struct ForeignTree<'a> {
    /// Where it is now.
    pub(crate) tree: &'a Path,
    /// Where it will be.
    pub(crate) last: &'a Path,
}

impl ForeignTree<'_> {
    /// The tree's dynamic loader, of the name that the program asks for.
    ///
    /// # Errors
    /// The program is no dynamic one, or the tree has no such loader.
    pub(crate) fn loader(&self, program: &Path) -> Result<PathBuf, Error> {
        let asked = interpreter(program)?.ok_or_else(|| broken(program, "it asks for no dynamic loader"))?;
        let name = Path::new(&asked).file_name().unwrap_or_default().to_owned();
        let mut ahead = VecDeque::from([self.tree.to_owned()]);
        while let Some(folder) = ahead.pop_front() {
            let candidate = folder.join(&name);
            // Through a link too, but not into the machine's own.
            if candidate.canonicalize().is_ok_and(|file| self.is_inside(&file)) {
                return Ok(candidate);
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let inside = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            ahead.extend(inside.map(|entry| entry.path()));
        }
        Err(broken(program, &format!("the packages hold no {asked}")))
    }

    fn is_inside(&self, file: &Path) -> bool {
        self.tree.canonicalize().is_ok_and(|tree| file.starts_with(tree))
    }

    /// The tree's folders of libraries, below `top`.
    fn library_folders(&self, top: &Path) -> Vec<PathBuf> {
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        LIBRARY_FOLDERS
            .iter()
            .map(|folder| folder.replace("TRIPLET", &triplet))
            .filter(|folder| self.tree.join(folder).is_dir())
            .map(|folder| top.join(folder))
            .collect()
    }

    /// A program of the tree where it lies now, whoever its loader is.
    pub(crate) fn command(&self, loader: &Path, program: &Path) -> Command {
        let mut command = child::program(loader);
        command
            .arg("--library-path")
            .arg(joined(&self.library_folders(self.tree)))
            .arg(program);
        command
    }

    /// Writes loader and libraries into every program, as they are going to lie.
    ///
    /// # Errors
    /// patchelf fails.
    pub(crate) fn patch(&self, server: &Path, patchelf: &Path, watcher: &mut Watcher<'_>) -> Result<(), Error> {
        let loader = self.loader(server)?;
        let below = loader.strip_prefix(self.tree).unwrap_or(&loader);
        let folders = joined(&self.library_folders(self.last));
        for program in self.programs()? {
            let mut command = self.command(&loader, patchelf);
            command
                .arg("--set-interpreter")
                .arg(self.last.join(below))
                // DT_RPATH, not DT_RUNPATH: it serves the libraries' own needs and plugins too.
                .args(["--force-rpath", "--set-rpath", &folders])
                .arg(&program);
            let ended = child::run(&mut command, "patchelf", "patchelf", watcher, |_, _| {})?;
            if !ended.status.success() {
                return Err(broken(&program, &format!("patchelf: {}", ended.complaint())));
            }
        }
        Ok(())
    }

    fn programs(&self) -> Result<Vec<PathBuf>, Error> {
        let mut programs = Vec::new();
        for folder in PROGRAM_FOLDERS {
            for entry in fs::read_dir(self.tree.join(folder)).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_file()) && interpreter(&path).is_ok_and(|it| it.is_some())
                {
                    programs.push(path);
                }
            }
        }
        programs.sort();
        Ok(programs)
    }
}

fn joined(folders: &[PathBuf]) -> String {
    let texts: Vec<String> = folders
        .iter()
        .map(|folder| folder.to_string_lossy().into_owned())
        .collect();
    texts.join(":")
}

fn broken(program: &Path, reason: &str) -> Error {
    Error::DoesNotRun {
        archive: program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        reason: reason.to_owned(),
    }
}

/// The dynamic loader that a program asks for; none of what is no program, or needs none.
///
/// # Errors
/// The file cannot be read.
fn interpreter(program: &Path) -> Result<Option<String>, Error> {
    let bytes = fs::read(program).map_err(Error::system("read", program))?;
    let Ok(elf) = ElfFile64::<Endianness>::parse(bytes.as_slice()) else {
        return Ok(None);
    };
    let endian = elf.endian();
    let Ok(headers) = elf.elf_header().program_headers(endian, bytes.as_slice()) else {
        return Ok(None);
    };
    let asked = headers
        .iter()
        .find(|header| header.p_type(endian) == PT_INTERP)
        .and_then(|header| header.data(endian, bytes.as_slice()).ok());
    Ok(asked.map(|text| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_loader_and_what_is_none_has_none() {
        let own = std::env::current_exe().expect("this program");
        let loader = interpreter(&own).expect("readable").expect("a loader");
        assert!(loader.contains("ld-linux") || loader.contains("ld-musl"), "{loader}");
        assert_eq!(interpreter(Path::new("/etc/passwd")).expect("readable"), None);
    }

    #[test]
    fn a_loader_that_is_a_link_out_of_the_tree_is_not_taken() {
        let tree = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("this program");
        let asked = interpreter(&own).expect("readable").expect("a loader");
        let name = Path::new(&asked).file_name().expect("a name");
        fs::create_dir_all(tree.path().join("lib64")).expect("made");
        fs::create_dir_all(tree.path().join("usr/lib64")).expect("made");
        std::os::unix::fs::symlink(&asked, tree.path().join("lib64").join(name)).expect("a link");
        let foreign = ForeignTree {
            tree: tree.path(),
            last: Path::new("/last"),
        };
        let error = foreign.loader(&own).expect_err("the machine's own").to_string();
        assert!(error.contains("ld-"), "{error}");
        fs::write(tree.path().join("usr/lib64").join(name), "").expect("written");
        let found = foreign.loader(&own).expect("the tree's");
        assert_eq!(found, tree.path().join("usr/lib64").join(name));
        let last = ["/last/usr/lib64", "/last/lib64"].map(PathBuf::from);
        assert_eq!(foreign.library_folders(foreign.last), last);
    }
}
