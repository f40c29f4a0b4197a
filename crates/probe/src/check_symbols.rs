//! Can the functions of the server be named? Looks for its symbols in all places where they may lie.

use scaleprof_guard::with_clean_environment;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object as _, ObjectSymbolTable as _};

use scaleprof_binary::symbols::SymbolFile;

use crate::check_item::{CheckItem, Status};
use crate::machine::MachineFacts;
use crate::watch::symbol_search;

/// What a server's binary and the folders of debug symbols hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolFacts {
    /// GNU build-id in hexadecimal.
    pub build_id: Option<String>,
    /// Name in `.gnu_debuglink`.
    pub debug_link: Option<String>,
    /// Symbols in `.symtab` (0 in a stripped file).
    pub symbols: usize,
    /// Symbols in `.dynsym`: only some of the functions.
    pub dynamic_symbols: usize,
    /// DWARF sections in the file itself.
    pub debug_info: bool,
    /// A separate file of debug symbols that is installed.
    pub separate: Option<PathBuf>,
    /// Debian's list of all symbols (`nm` text), `/usr/share/doc/*/NAME.sym.gz`.
    pub symbol_list: Option<PathBuf>,
}

/// Reads the facts about a binary; an error says in words why not.
pub fn symbol_facts(binary: &Path) -> Result<SymbolFacts, String> {
    let place = std::fs::canonicalize(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let file = std::fs::File::open(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let cache = object::ReadCache::new(file);
    let elf = object::File::parse(&cache).map_err(|error| format!("{}: not an ELF file: {error}", place.display()))?;
    let build_id = elf.build_id().ok().flatten().map(hexadecimal);
    let debug_link = elf
        .gnu_debuglink()
        .ok()
        .flatten()
        .map(|(name, _)| String::from_utf8_lossy(name).into_owned());
    let count = |table: Option<object::SymbolTable<'_, '_, _>>| table.map_or(0, |table| table.symbols().count());
    Ok(SymbolFacts {
        symbols: count(elf.symbol_table()),
        dynamic_symbols: count(elf.dynamic_symbol_table()),
        debug_info: elf.section_by_name(".debug_info").is_some(),
        separate: separate_file(&place, build_id.as_deref(), debug_link.as_deref()),
        symbol_list: symbol_list(&place),
        build_id,
        debug_link,
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The places where gdb looks (its manual, "Separate Debug Files").
fn separate_file(binary: &Path, build_id: Option<&str>, debug_link: Option<&str>) -> Option<PathBuf> {
    let global = Path::new("/usr/lib/debug");
    let by_id = build_id.and_then(|id| {
        Some(
            global
                .join(".build-id")
                .join(id.get(..2)?)
                .join(format!("{}.debug", id.get(2..)?)),
        )
    });
    let folder = binary.parent()?;
    let by_link = debug_link.map(|name| {
        let below_root = folder.strip_prefix("/").unwrap_or(folder);
        [
            folder.join(name),
            folder.join(".debug").join(name),
            global.join(below_root).join(name),
        ]
    });
    by_id
        .into_iter()
        .chain(by_link.into_iter().flatten())
        .find(|path| path.is_file() && path != binary)
}

fn symbol_list(binary: &Path) -> Option<PathBuf> {
    let name = format!("{}.sym.gz", binary.file_name()?.to_str()?);
    let folders = symbol_search().document_folders;
    folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path().join(&name))
        .find(|path| path.is_file())
}

/// How much of the server's code has names; below [`ENOUGH`] its call paths have holes.
pub(crate) fn coverage_item(binary: &Path, fix: Option<String>) -> CheckItem {
    const TOPIC: &str = "names of the server's code";
    let file = match SymbolFile::open(binary, &symbol_search()) {
        Ok(file) => file,
        Err(error) => return CheckItem::new(TOPIC, Status::Warn, error.to_string(), fix),
    };
    let coverage = file.coverage();
    let named = 1.0 - coverage.function_bounds;
    let what = format!(
        "{:.1} % of {:.1} MB of code: symbol table {:.1} %, symbol list {:.1} %, exported {:.1} %",
        named * 100.0,
        coverage.bytes as f64 / 1e6,
        coverage.symtab * 100.0,
        coverage.symbol_list * 100.0,
        coverage.dynsym * 100.0
    );
    match named >= ENOUGH {
        true => CheckItem::new(TOPIC, Status::Ok, what, None),
        false => CheckItem::new(TOPIC, Status::Warn, what, fix),
    }
}

const ENOUGH: f64 = 0.99;

/// The item of the check, from the facts, the distribution (`ID` of os-release) and the package that holds the binary.
pub(crate) fn symbol_items(
    binary: &Path,
    facts: &Result<SymbolFacts, String>,
    distribution: Option<&str>,
    package: Option<&str>,
) -> Vec<CheckItem> {
    let facts = match facts {
        Ok(facts) => facts,
        Err(why) => {
            let fix = format!("file -L {}", binary.display());
            return vec![CheckItem::new("symbols of the server", Status::Missing, why, Some(fix))];
        }
    };
    let shown = facts.build_id.as_deref();
    let identity = match shown {
        Some(id) => CheckItem::new("build-id of the server", Status::Ok, id, None),
        None => CheckItem::new(
            "build-id of the server",
            Status::Warn,
            "the binary has none, so runs of different builds cannot be distinguished",
            Some("link the server with -Wl,--build-id".to_owned()),
        ),
    };
    let named = if facts.debug_info {
        Some("the binary holds its debug information".to_owned())
    } else if facts.symbols > 0 {
        Some(format!("the binary holds its {} symbols", facts.symbols))
    } else {
        let found = facts.separate.as_ref().or(facts.symbol_list.as_ref());
        found.map(|path| format!("{} names its functions", path.display()))
    };
    let symbols = match named {
        Some(what) => CheckItem::new("symbols of the server", Status::Ok, what, None),
        None => CheckItem::new(
            "symbols of the server",
            Status::Missing,
            format!(
                "the binary is stripped: its {} dynamic symbols name only the functions it exports",
                facts.dynamic_symbols
            ),
            Some(install_command(binary, distribution, package, shown)),
        ),
    };
    let fix = install_command(binary, distribution, package, shown);
    vec![identity, symbols, coverage_item(binary, Some(fix))]
}

/// The command that brings the names of a file's functions on this machine.
#[must_use]
pub fn command_for_names(file: &Path) -> String {
    let distribution = MachineFacts::read().distribution_id;
    let build_id = symbol_facts(file).ok().and_then(|facts| facts.build_id);
    let package = package_of(file);
    install_command(file, distribution.as_deref(), package.as_deref(), build_id.as_deref())
}

/// The command that installs the symbols of a binary.
fn install_command(binary: &Path, distribution: Option<&str>, package: Option<&str>, build_id: Option<&str>) -> String {
    let shown = binary.display();
    match (distribution, package) {
        // Debian ships the list of all symbols in the documentation of the package that starts the service; taking it out
        // of the package starts nothing.
        (Some("debian" | "ubuntu"), Some(core)) if core.starts_with("mariadb-server-core") => {
            let server = core.replace("-core", "");
            format!(
                "cd \"$(mktemp -d)\" && apt-get download {server} && dpkg-deb -x {server}_*.deb . && \
                 install -D -m 644 -t /usr/share/doc/{server} usr/share/doc/{server}/*.sym.gz"
            )
        }
        (Some("debian"), Some(_)) => {
            format!("apt-get install debian-goodies && apt-get install $(find-dbgsym-packages {shown})")
        }
        (Some("ubuntu"), Some(package)) => {
            format!("apt-get install ubuntu-dbgsym-keyring && apt-get install {package}-dbgsym")
        }
        (Some("fedora" | "rhel" | "centos" | "rocky" | "almalinux" | "ol" | "amzn"), _) => {
            format!("dnf debuginfo-install \"$(rpm -qf {shown})\"")
        }
        (Some("opensuse-leap" | "opensuse-tumbleweed" | "sles"), _) => {
            format!("zypper install \"$(rpm -qf --qf '%{{NAME}}' {shown})-debuginfo\"")
        }
        _ => match build_id {
            Some(id) => format!("debuginfod-find debuginfo {id}"),
            None => format!("use a build of {shown} that is not stripped"),
        },
    }
}

/// The Debian package that holds a file.
pub(crate) fn package_of(binary: &Path) -> Option<String> {
    let place = std::fs::canonicalize(binary).ok()?;
    let output = with_clean_environment(&mut Command::new("dpkg-query"), &[])
        .arg("-S")
        .arg(place)
        .output()
        .ok()
        .filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split([':', ',']).next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols_item(facts: SymbolFacts) -> CheckItem {
        let items = symbol_items(
            Path::new("/usr/sbin/mysqld"),
            &Ok(facts),
            Some("debian"),
            Some("mariadb-server-core"),
        );
        items
            .into_iter()
            .find(|item| item.topic == "symbols of the server")
            .expect("an item")
    }

    #[test]
    fn a_stripped_server_lacks_names_and_the_command_brings_them() {
        let item = symbols_item(SymbolFacts {
            dynamic_symbols: 21_000,
            ..SymbolFacts::default()
        });
        assert_eq!(item.status, Status::Missing);
        assert!(item.message.contains("21000"), "{}", item.message);
        assert!(item.fix.is_some_and(|fix| fix.contains("apt-get")));
    }

    #[test]
    fn any_one_source_of_names_is_enough() {
        let list = SymbolFacts {
            symbol_list: Some("/list".into()),
            ..SymbolFacts::default()
        };
        let separate = SymbolFacts {
            separate: Some("/debug".into()),
            ..SymbolFacts::default()
        };
        let own = SymbolFacts {
            symbols: 1,
            ..SymbolFacts::default()
        };
        for facts in [list, separate, own] {
            assert_eq!(symbols_item(facts).status, Status::Ok);
        }
    }

    #[test]
    fn the_facts_of_this_test_itself_are_found() {
        let facts = symbol_facts(&std::env::current_exe().expect("a path")).expect("an ELF file");
        assert!(facts.symbols > 0);
    }

    #[test]
    fn a_file_that_is_no_program_is_said_to_be_none() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "#!/bin/sh\n").expect("written");
        let items = symbol_items(file.path(), &symbol_facts(file.path()), None, None);
        assert_eq!(items[0].status, Status::Missing);
        assert!(items[0].message.contains("not an ELF file"), "{}", items[0].message);
    }
}
