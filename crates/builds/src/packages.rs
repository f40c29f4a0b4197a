//! Which packages make a server, and what of them is unpacked.

use crate::archive;
use crate::child;
use crate::error::Error;
use crate::private_apt::{Package, PrivateApt};
use crate::progress::Watcher;
use crate::source::PackageSource;
use crate::tree::{AbsoluteLinks, Limits, Tree};
use crate::trim::{is_symbol_list, leaves_out};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What serves installing and nothing else, and what the packages share with the distribution.
const NOT_NEEDED: [&str; 9] = [
    "perl",
    "perl-base",
    "dpkg",
    "debconf",
    "tar",
    "mysql-common",
    "mariadb-common",
    "adduser",
    "init-system-helpers",
];
const NOT_NEEDED_BEGIN: [&str; 4] = ["perl-modules", "libperl", "libgdbm", "libdb5"];

/// Packages of a server, sorted by what is done with them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Unpacked whole.
    pub(crate) whole: Vec<Package>,
    /// Of these only the list of the stripped server's symbols.
    pub(crate) lists: Vec<Package>,
    /// Used to make the build, and no part of it.
    pub(crate) tools: Vec<Package>,
}

/// Makes programs run with their own C library; its own needs are among the server's.
const TOOL: &str = "patchelf";

/// The packages to begin with, of all that installing the wanted one would bring: server and client without the service, and the
/// library of Galera.
fn begin(all: &[Package], wanted: &str) -> Vec<String> {
    let is_core = |name: &str| name.contains("server-core") || name.contains("client-core");
    let mut names: Vec<String> = all
        .iter()
        .map(|package| package.name.clone())
        .filter(|name| is_core(name) || is_galera(name))
        .collect();
    if !names.iter().any(|name| name.contains("server-core")) {
        names.push(wanted.to_owned());
    }
    names
}

fn is_galera(name: &str) -> bool {
    name.strip_prefix("galera-")
        .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

impl Plan {
    fn of(all: &[Package], core: &[Package]) -> Plan {
        let is_needed = |package: &&Package| {
            let name = package.name.as_str();
            let compiler_base = name.starts_with("gcc-") && name.ends_with("-base");
            !NOT_NEEDED.contains(&name)
                && !NOT_NEEDED_BEGIN.iter().any(|begin| name.starts_with(begin))
                && !compiler_base
        };
        let is_service = |package: &&Package| {
            let name = package.name.as_str();
            ["mysql-server", "mariadb-server", "percona-server"]
                .iter()
                .any(|begin| name.starts_with(begin))
        };
        let (tools, whole): (Vec<Package>, Vec<Package>) = core
            .iter()
            .filter(is_needed)
            .cloned()
            .partition(|package| package.name == TOOL);
        Plan {
            whole,
            tools,
            lists: all
                .iter()
                .filter(|package| !core.contains(package))
                .filter(is_service)
                .cloned()
                .collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Package> {
        self.whole.iter().chain(&self.lists).chain(&self.tools)
    }

    /// With versions, as provenance keeps them.
    pub(crate) fn words(&self) -> Vec<String> {
        let all = self.whole.iter().chain(&self.lists);
        all.map(|package| format!("{}={}", package.name, package.version))
            .collect()
    }
}

/// Downloads a server's packages into `downloads` and unpacks them into `tree`; patchelf, with its own needs among theirs, goes
/// into `tools`.
///
/// # Errors
/// The suite has no such package; it cannot be fetched or checked; the user said stop.
pub(crate) fn fetch(
    from: &PackageSource,
    folders: &Folders,
    tree: &Path,
    watcher: &mut Watcher<'_>,
) -> Result<Plan, Error> {
    watcher.progress.stage(&format!(
        "reading the packages of {} {}",
        from.distribution.word(),
        from.suite
    ));
    let apt = PrivateApt::open(&folders.apt, from, watcher)?;
    let all = apt.needed_for(&[&from.package], watcher)?;
    let begin = begin(&all, &from.package);
    let names: Vec<&str> = begin.iter().map(String::as_str).chain([TOOL]).collect();
    let core = apt.needed_for(&names, watcher)?;
    let plan = Plan::of(&all, &core);

    let wanted: Vec<String> = plan.all().map(|package| package.name.clone()).collect();
    watcher
        .progress
        .stage(&format!("downloading {} packages", wanted.len()));
    forget_others(&folders.downloads, &plan);
    apt.download(&wanted, &folders.downloads, watcher)?;

    watcher.progress.stage("unpacking the packages");
    let files = debs(&folders.downloads)?;
    let shown = format!("the packages of {} {}", from.distribution.word(), from.suite);
    let limits = Limits::of_builds();
    let mut server = Tree::new(tree, &shown, limits, AbsoluteLinks::OfTheTree);
    let mut tools = Tree::new(&folders.tools, &shown, limits, AbsoluteLinks::OfTheTree);
    for file in &files {
        let name = package_of(file);
        if name == TOOL {
            unpack(file, &mut tools, &|_| true, watcher)?;
        } else if plan.lists.iter().any(|package| package.name == name) {
            unpack(file, &mut server, &is_symbol_list, watcher)?;
        } else {
            unpack(file, &mut server, &|place: &Path| !leaves_out(place), watcher)?;
        }
    }
    server.finish()?;
    tools.finish()?;
    Ok(plan)
}

/// Where a fetch of packages does its work.
pub(crate) struct Folders {
    /// apt's lists.
    pub(crate) apt: PathBuf,
    /// Packages, kept until the build is whole.
    pub(crate) downloads: PathBuf,
    /// patchelf.
    pub(crate) tools: PathBuf,
}

/// `mysql-server_9.7.4-2_amd64.deb`.
fn package_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split('_').next().unwrap_or_default().to_owned()
}

fn debs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::system("read", folder))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("deb")))
        .collect();
    files.sort();
    Ok(files)
}

/// Removes packages of an earlier try that are not wanted any more, as all that lie there are unpacked; other versions too.
fn forget_others(folder: &Path, plan: &Plan) {
    for file in debs(folder).unwrap_or_default() {
        let is_wanted = plan.all().any(|package| is_file_of(&file, package));
        if !is_wanted {
            // What stays is unpacked before what is newer.
            let _ = fs::remove_file(file);
        }
    }
}

/// apt writes the colon of an epoch as `%3a`.
fn is_file_of(file: &Path, package: &Package) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let begin = format!("{}_{}_", package.name, package.version.replace(':', "%3a"));
    name.to_ascii_lowercase().starts_with(&begin.to_ascii_lowercase())
}

/// Unpacks one package.
fn unpack(file: &Path, tree: &mut Tree, keep: archive::Keep<'_>, watcher: &mut Watcher<'_>) -> Result<(), Error> {
    let mut command = child::program("dpkg-deb");
    command
        .arg("--fsys-tarfile")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut dpkg = match child::tied(&mut command).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Missing {
                program: "dpkg-deb",
                package: "dpkg",
            });
        }
        Err(error) => return Err(Error::system("start", "dpkg-deb")(error)),
    };
    let unpacked = match dpkg.stdout.take() {
        Some(mut pipe) => archive::tar(&mut pipe, tree, keep, watcher, &mut |_| {}).map(|()| {
            // A tar is padded behind its end; dpkg-deb would complain of nobody reading that.
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }),
        None => tree.broken("dpkg-deb has no output"),
    };
    if unpacked.is_err() {
        // It may have ended already.
        let _ = dpkg.kill();
    }
    let status = dpkg.wait().map_err(Error::system("wait for", "dpkg-deb"))?;
    unpacked?;
    match status.success() {
        true => Ok(()),
        false => tree.broken(format!("dpkg-deb cannot read {}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(names: &[&str]) -> Vec<Package> {
        let package = |name: &&str| Package {
            name: (*name).to_owned(),
            version: "1".to_owned(),
        };
        names.iter().map(package).collect()
    }

    #[test]
    fn a_package_of_another_version_is_not_taken_for_the_wanted_one() {
        let package = Package {
            name: "mariadb-server".to_owned(),
            version: "1:11.8.6-0+deb13u1".to_owned(),
        };
        assert!(is_file_of(
            Path::new("/d/mariadb-server_1%3a11.8.6-0+deb13u1_amd64.deb"),
            &package
        ));
        assert!(!is_file_of(
            Path::new("/d/mariadb-server_1%3a11.8.5-1_amd64.deb"),
            &package
        ));
        assert!(!is_file_of(
            Path::new("/d/mariadb-server-core_1%3a11.8.6-0+deb13u1_amd64.deb"),
            &package
        ));
    }

    #[test]
    fn a_server_is_made_of_its_core_packages_and_their_libraries() {
        let all = packages(&[
            "libc6",
            "perl",
            "adduser",
            "galera-4",
            "mariadb-client-core",
            "mariadb-client",
            "mariadb-server-core",
            "mariadb-server",
        ]);
        assert_eq!(
            begin(&all, "mariadb-server"),
            ["galera-4", "mariadb-client-core", "mariadb-server-core"]
        );
        let core = packages(&[
            "gcc-14-base",
            "libc6",
            "libperl5.36",
            "galera-4",
            "mariadb-common",
            "mariadb-client-core",
            "mariadb-server-core",
            "patchelf",
        ]);
        let plan = Plan::of(&all, &core);
        let names = |packages: &[Package]| packages.iter().map(|package| package.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            names(&plan.whole),
            ["libc6", "galera-4", "mariadb-client-core", "mariadb-server-core"]
        );
        assert_eq!(names(&plan.lists), ["mariadb-server"]);
        assert_eq!(names(&plan.tools), ["patchelf"]);
        assert_eq!(
            begin(&packages(&["libc6", "odd-sql"]), "odd-sql"),
            ["odd-sql"],
            "it has no core package"
        );
    }
}
