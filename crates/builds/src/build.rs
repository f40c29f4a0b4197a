//! What is known of a build, or of an installed server: version, build-id, symbols, size, path.

use crate::shelf::Shelved;
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};
use scaleprof_server::{Installation, Product, file_copy::disk_usage};
use serde::Serialize;
use std::path::PathBuf;

/// What the server's functions get their names from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Symbols {
    /// Debug information: functions, inlined ones, source lines.
    Dwarf,
    /// A symbol table, in the file or its debug file: all functions.
    Symtab,
    /// The distribution's list of the stripped server's symbols: all functions.
    List,
    /// Only what the server exports to plugins: about half of the functions.
    Exported,
    /// Nothing.
    None,
}

impl Symbols {
    /// As a table shows it.
    pub fn words(self) -> &'static str {
        match self {
            Symbols::Dwarf => "debug information",
            Symbols::Symtab => "symbol table",
            Symbols::List => "list of symbols",
            Symbols::Exported => "exported only",
            Symbols::None => "none",
        }
    }
}

/// A build of the cache folder, or an installed server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Build {
    /// Its name in the cache folder; null for an installed server.
    pub name: Option<String>,
    /// What `--server` takes: the build's folder; the executable of an installed server.
    pub path: PathBuf,
    /// The server's executable; null where the build does not run here, and so what comes from it.
    pub binary: Option<PathBuf>,
    /// Who makes it, such as "MySQL".
    pub flavour: Option<String>,
    /// In the server's own words.
    pub version: Option<String>,
    /// The linker's build-id in hexadecimal; null where the file has none.
    pub build_id: Option<String>,
    /// What its functions get their names from.
    pub symbols: Option<Symbols>,
    /// The part of its machine code that has names, from 0 to 1.
    pub named_code: Option<f64>,
    /// Bytes on disk: of the build; of an installed server's executable alone.
    pub bytes: Option<u64>,
    /// Where it came from, as `servers fetch` takes it.
    pub source: Option<String>,
    /// When it was fetched, in UTC.
    pub fetched: Option<String>,
    /// How it was checked when it was fetched.
    pub checked: Option<String>,
    /// Why it cannot be run here; null where it can.
    pub problem: Option<String>,
}

impl Build {
    /// Looks at a build of the cache folder.
    pub fn of_shelf(shelved: &Shelved, search: &SymbolSearch) -> Build {
        let empty = Build {
            name: Some(shelved.name.clone()),
            bytes: disk_usage(&shelved.path).ok(),
            source: shelved.provenance.source.clone(),
            fetched: shelved.provenance.fetched.clone(),
            checked: shelved.provenance.checked.clone(),
            ..Build::unknown(shelved.path.clone())
        };
        match Installation::at(&shelved.path) {
            Ok(installation) => empty.with(&installation, search),
            Err(error) => Build {
                problem: Some(error.to_string().replace("\nfix: ", "; ")),
                ..empty
            },
        }
    }

    /// Looks at a server that is installed on this machine.
    pub fn installed(installation: &Installation, search: &SymbolSearch) -> Build {
        let facts = std::fs::metadata(&installation.binary).ok();
        let empty = Build {
            bytes: facts.map(|facts| facts.len()),
            ..Build::unknown(installation.binary.clone())
        };
        empty.with(installation, search)
    }

    /// Of which only the place is known.
    fn unknown(path: PathBuf) -> Build {
        Build {
            name: None,
            path,
            binary: None,
            flavour: None,
            version: None,
            build_id: None,
            symbols: None,
            named_code: None,
            bytes: None,
            source: None,
            fetched: None,
            checked: None,
            problem: None,
        }
    }

    fn with(self, installation: &Installation, search: &SymbolSearch) -> Build {
        let found = SymbolFile::open(&installation.binary, search).ok();
        Build {
            binary: Some(installation.binary.clone()),
            flavour: Some(flavour(installation.product)),
            version: Some(installation.version_text.clone()),
            build_id: installation.build_id.clone(),
            symbols: found.as_ref().map(symbols),
            named_code: found.as_ref().map(|file| 1.0 - file.coverage().function_bounds),
            ..self
        }
    }
}

fn flavour(product: Product) -> String {
    product.to_string()
}

fn symbols(file: &SymbolFile) -> Symbols {
    let coverage = file.coverage();
    if file.debug_file().is_some() {
        Symbols::Dwarf
    } else if coverage.symtab > 0.0 {
        Symbols::Symtab
    } else if coverage.symbol_list > 0.0 {
        Symbols::List
    } else if coverage.dynsym > 0.0 {
        Symbols::Exported
    } else {
        Symbols::None
    }
}
