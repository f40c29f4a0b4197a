//! Which server is this: product, version, build, and where its parts lie.

use crate::confined::{OF_A_SERVER, Unheard, VERSION, hear};
use crate::error::Error;
use crate::product::{Product, Version};
use crate::user::ServerUser;
use object::read::elf::{ElfFile32, ElfFile64};
use object::{Endianness, Object, ReadCache};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server that can be run, and where its parts lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    /// Who makes it.
    pub product: Product,
    /// Its version, as numbers.
    pub version: Version,
    /// Its version in its own words, such as `10.11.6-MariaDB-0+deb12u1`.
    pub version_text: String,
    /// The server's executable, symbolic links resolved.
    pub binary: PathBuf,
    /// What the server calls basedir.
    pub basedir: PathBuf,
    /// The folder with the system tables' SQL scripts, for the products that need them.
    pub share: Option<PathBuf>,
    /// The folder whose `english/errmsg.sys` holds the messages.
    pub messages: Option<PathBuf>,
    /// The folder with `Index.xml` of the character sets.
    pub charsets: Option<PathBuf>,
    /// The folder with the server's plugins.
    pub plugins: Option<PathBuf>,
    /// The linker's build-id in hexadecimal digits, where the file has one.
    pub build_id: Option<String>,
}

/// The first script of a bootstrap under its names: MariaDB renamed its own in 11.
pub(crate) const SYSTEM_TABLE_SCRIPTS: [&str; 2] = ["mariadb_system_tables.sql", "mysql_system_tables.sql"];

const NAMES: [&str; 2] = ["mariadbd", "mysqld"];
const SYSTEM_FOLDERS: [&str; 6] = [
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/local/mysql/bin",
    "/usr/local/mariadb/bin",
];
const FOLDERS_IN_BASEDIR: [&str; 7] = ["bin", "sbin", "libexec", "usr/sbin", "usr/bin", "usr/libexec", "sql"];

impl Installation {
    /// The distribution's server: the first `mariadbd`, else `mysqld`, in PATH and the usual folders.
    pub fn distribution() -> Result<Self, Error> {
        match installed_binaries().first() {
            Some(binary) => Installation::of_binary(binary),
            None => Err(Error::NoServer {
                looked: format!("{} in PATH and {}", NAMES.join(" and "), SYSTEM_FOLDERS.join(", ")),
            }),
        }
    }

    /// All servers in PATH and the usual folders, each once, the one of [`Installation::distribution`] first. What does not run
    /// is left out.
    pub fn installed() -> Vec<Self> {
        let mut found: Vec<Installation> = Vec::new();
        for binary in installed_binaries() {
            // `mysqld` is a link to `mariadbd` on most machines.
            let resolved = fs::canonicalize(&binary).unwrap_or(binary);
            if found.iter().all(|known| known.binary != resolved) {
                found.extend(Installation::of_binary(&resolved));
            }
        }
        found
    }

    /// The server at a BASEDIR (the top of an unpacked archive or package tree) or of a BINARY.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let path = fs::canonicalize(path).map_err(|source| Error::NotAServer {
            path: path.to_owned(),
            reason: source.to_string(),
        })?;
        if path.is_file() {
            return Installation::of_binary(&path);
        }
        let found = FOLDERS_IN_BASEDIR
            .iter()
            .flat_map(|folder| NAMES.map(|name| path.join(folder).join(name)))
            .find(|binary| is_executable(binary));
        match found {
            Some(binary) => Installation::of_binary(&binary),
            None => Err(Error::NotAServer {
                reason: format!(
                    "it has no {} in {}\nfix: name the folder that an archive was unpacked to, or the executable itself",
                    NAMES.join(" or "),
                    FOLDERS_IN_BASEDIR.join("/, ") + "/"
                ),
                path,
            }),
        }
    }

    fn of_binary(binary: &Path) -> Result<Self, Error> {
        let not_a_server = |reason: String| Error::NotAServer {
            path: binary.to_owned(),
            reason,
        };
        let resolved = fs::canonicalize(binary).map_err(|source| not_a_server(source.to_string()))?;
        if let Some(user) = ServerUser::for_this_process() {
            user.check_reach(&resolved)?;
        }
        let mut command = Command::new(&resolved);
        command.args(VERSION);
        let said = hear(command, OF_A_SERVER).map_err(|unheard| {
            not_a_server(match &unheard {
                // The file is there: it is the dynamic loader that is not.
                Unheard::System(source) if source.raw_os_error() == Some(libc::ENOENT) => {
                    "its dynamic loader is missing: a package of another distribution\nfix: fetch it with scaleprof \
                     servers fetch"
                        .to_owned()
                }
                _ => unheard.to_string(),
            })
        })?;
        let (product, version, version_text) = parse_version(&said.output).ok_or_else(|| {
            let words = said.last_words();
            not_a_server(format!("its --version printed: {words}"))
        })?;

        let basedir = resolved
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new("/"))
            .to_owned();
        let shares = share_folders(&basedir, product);
        let folder_with = |file: &str| shares.iter().find(|share| share.join(file).is_file()).cloned();
        Ok(Installation {
            product,
            version,
            version_text,
            share: SYSTEM_TABLE_SCRIPTS.iter().find_map(|file| folder_with(file)),
            messages: folder_with("english/errmsg.sys"),
            charsets: folder_with("charsets/Index.xml").map(|share| share.join("charsets")),
            plugins: plugin_folder(&basedir),
            build_id: build_id(&resolved),
            binary: resolved,
            basedir,
        })
    }

    /// The executable's file name, such as `mariadbd`.
    pub fn file_name(&self) -> String {
        self.binary
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// What tells this build from every other: the build-id, or a hash of the file where there is none (as in
    /// MySQL 5.6.14, whose linker was too old).
    pub fn fingerprint(&self) -> Result<String, Error> {
        if let Some(id) = &self.build_id {
            return Ok(format!("build-id:{id}"));
        }
        content_hash(&self.binary)
    }
}

/// `sha256:` and the hash of a file's bytes.
///
/// # Errors
/// The file cannot be read.
pub fn content_hash(path: &Path) -> Result<String, Error> {
    let mut file = fs::File::open(path).map_err(Error::system("read", path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(Error::system("read", path))? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Ok(format!("sha256:{}", hexadecimal(&hash.finalize())))
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.product, self.version_text, self.binary.display())
    }
}

/// Every `mariadbd`, then every `mysqld`, in PATH and the usual folders.
fn installed_binaries() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .collect();
    NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .filter(|binary| is_executable(binary))
        .collect()
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Reads `mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28)`.
fn parse_version(said: &str) -> Option<(Product, Version, String)> {
    let (_, after) = said.split_once("Ver ")?;
    let text = after.split_whitespace().next()?;
    let version = text.parse().ok()?;
    let product = if text.contains("MariaDB") {
        Product::MariaDb
    } else if said.contains("Percona") {
        Product::Percona
    } else {
        Product::MySql
    };
    Some((product, version, text.to_owned()))
}

/// `share` and its subfolders. Distributions put the files into a subfolder of the product's or package's name
/// (`share/mysql`, `share/mariadb`, `share/mysql-8.0`), and a machine may hold those of two products side by side.
fn share_folders(basedir: &Path, product: Product) -> Vec<PathBuf> {
    let share = basedir.join("share");
    let mut names: Vec<String> = fs::read_dir(&share)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| ["mariadb", "mysql", "percona"].iter().any(|p| name.starts_with(p)))
        .collect();
    let own_name = match product {
        Product::MariaDb => "mariadb",
        Product::MySql => "mysql",
        Product::Percona => "percona",
    };
    names.sort_by_key(|name| (!name.starts_with(own_name), name.clone()));
    let mut folders: Vec<PathBuf> = names.iter().map(|name| share.join(name)).collect();
    folders.push(share);
    folders
}

fn plugin_folder(basedir: &Path) -> Option<PathBuf> {
    let fixed = [
        "lib/plugin",
        "lib/mysql/plugin",
        "lib64/mysql/plugin",
        "lib64/plugin",
        "lib/mariadb/plugin",
    ];
    let fixed = fixed.iter().map(|folder| basedir.join(folder));
    // Debian's multi-architecture layout: lib/x86_64-linux-gnu/mariadb19/plugin.
    let nested = fs::read_dir(basedir.join("lib"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with("-linux-gnu"))
        .flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten())
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("mariadb") || name.starts_with("mysql")
        })
        .map(|entry| entry.path().join("plugin"));
    fixed.chain(nested).find(|folder| folder.is_dir())
}

/// The GNU build-id note. Of 76 MB only some pages are read.
pub fn build_id(binary: &Path) -> Option<String> {
    let bytes = ReadCache::new(fs::File::open(binary).ok()?);
    match ElfFile64::<Endianness, _>::parse(&bytes) {
        Ok(elf) => elf.build_id().ok()?.map(hexadecimal),
        Err(_) => {
            let elf = ElfFile32::<Endianness, _>::parse(&bytes).ok()?;
            elf.build_id().ok()?.map(hexadecimal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_servers_say_of_their_version() {
        let cases = [
            (
                "mysqld  Ver 5.6.14 for linux-glibc2.5 on x86_64 (MySQL Community Server (GPL))",
                (Product::MySql, Version::new(5, 6, 14), "5.6.14"),
            ),
            (
                "/usr/sbin/mysqld  Ver 5.5.62-log for Linux on x86_64 (Source distribution)",
                (Product::MySql, Version::new(5, 5, 62), "5.5.62-log"),
            ),
            (
                "mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
                (Product::MariaDb, Version::new(10, 11, 6), "10.11.6-MariaDB-0+deb12u1"),
            ),
            (
                "/opt/ps/bin/mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28, Revision 4)",
                (Product::Percona, Version::new(8, 0, 36), "8.0.36-28"),
            ),
            (
                "/t/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
                (Product::MySql, Version::new(9, 7, 4), "9.7.4-2"),
            ),
        ];
        for (said, (product, version, text)) in cases {
            assert_eq!(parse_version(said), Some((product, version, text.to_owned())), "{said}");
        }
        assert_eq!(parse_version("ls (GNU coreutils) 9.1"), None);
    }

    #[test]
    fn versions_are_ordered_by_number() {
        let version = |text: &str| text.parse::<Version>().expect("a version");
        assert!(version("10.11.6") > version("10.2.44"));
        assert!(version("8.0.4-rc") < version("8.0.30"));
        assert!("8.0".parse::<Version>().is_err());
    }

    #[test]
    fn an_installed_server_is_listed_once_however_many_names_it_has() {
        let installed = Installation::installed();
        if installed.is_empty() {
            return testing::no_server("distribution", "none is installed");
        }
        for (index, server) in installed.iter().enumerate() {
            assert!(
                installed
                    .iter()
                    .skip(index + 1)
                    .all(|other| other.binary != server.binary),
                "{server} twice"
            );
        }
        let first = Installation::distribution().ok();
        assert_eq!(installed.first(), first.as_ref());
    }

    #[test]
    fn a_program_that_is_no_server_is_refused_with_its_own_words() {
        let error = Installation::at(Path::new("/bin/ls")).expect_err("ls is no server");
        assert!(error.to_string().contains("--version"), "{error}");
        let error = Installation::at(Path::new("/etc")).expect_err("/etc holds no server");
        assert!(error.to_string().contains("mariadbd or mysqld"), "{error}");
    }
}
