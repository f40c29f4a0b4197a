//! Can the code be named in which a server spends its CPU time, and what brings the names that are missing?

use scaleprof_analysis::named_code::{NamedCode, NamedFile};
use scaleprof_bundle::Bundle;
use scaleprof_probe::{CheckItem, Status, command_for_names, mapped_files, symbol_facts};
use std::fs;
use std::path::PathBuf;

const TOPIC: &str = "names of the hot code";
/// From this part of the CPU time on code without names is a hole in the answer.
const LEAST: f64 = 0.005;
/// Files that are told at most.
const MOST_FILES: usize = 6;
/// Below so many samples a share says little.
const FEW_SAMPLES: u64 = 50;

/// The files of a bundle on this machine.
#[derive(Debug, Clone, Default)]
pub struct CodeFiles {
    candidates: Vec<PathBuf>,
}

impl CodeFiles {
    /// What a process has mapped, by its `/proc/PID/maps`; empty where that cannot be read.
    pub fn of_process(pid: u32) -> CodeFiles {
        CodeFiles {
            candidates: mapped_files(pid),
        }
    }

    /// Where files of code usually lie: the folders of libraries, beside `server`.
    pub fn of_machine(server: Option<PathBuf>) -> CodeFiles {
        let mut candidates: Vec<PathBuf> = server.into_iter().collect();
        let mut folders = vec![PathBuf::from("/usr/lib64"), PathBuf::from("/usr/lib")];
        if let Ok(entries) = fs::read_dir("/usr/lib") {
            let paths = entries.flatten().map(|entry| entry.path());
            folders.extend(paths.filter(|path| path.to_string_lossy().ends_with("-linux-gnu")));
        }
        for folder in folders {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            candidates.extend(
                entries
                    .flatten()
                    .map(|entry| entry.path())
                    .filter(|path| path.is_file()),
            );
        }
        CodeFiles { candidates }
    }

    /// The file of that name and build-id.
    fn find(&self, file: &NamedFile) -> Option<PathBuf> {
        let has_name = |path: &&PathBuf| path.file_name().is_some_and(|name| name == file.module.as_str());
        let is_it = |path: &&PathBuf| match &file.build_id {
            Some(id) => symbol_facts(path).is_ok_and(|facts| facts.build_id.as_ref() == Some(id)),
            None => true,
        };
        self.candidates.iter().filter(has_name).find(is_it).cloned()
    }
}

/// What share of the sampled CPU time of a bundle is in functions with names, and for each file that lacks some the command that
/// brings them.
pub fn check_hot_code(bundle: &Bundle, files: &CodeFiles) -> Vec<CheckItem> {
    if bundle.samples.is_empty() {
        return vec![unseen(bundle)];
    }
    let code = NamedCode::of(bundle.samples.rows(), &bundle.stacks, &bundle.frames);
    items(&code, |file| {
        if file.module == "[kernel]" {
            return Some(
                "sudo sysctl -w kernel.kptr_restrict=0, or watch with CAP_SYSLOG: else the kernel hides its addresses"
                    .to_owned(),
            );
        }
        files.find(file).map(|path| command_for_names(&path))
    })
}

/// Nothing was seen of it: that is not to say that it did nothing.
fn unseen(bundle: &Bundle) -> CheckItem {
    let told = |figure: &str| bundle.manifest.missing.iter().find(|one| one.figure == figure);
    let why = told("ledger");
    let why = why.map_or_else(
        || "it was not watched, or for less than a second".to_owned(),
        |one| one.reason.clone(),
    );
    CheckItem::warn(
        TOPIC,
        format!("no stack was sampled, so nothing is known of its hot code: {why}"),
        "watch it under load: scaleprof check --pid PID, or scaleprof run with its probe",
    )
}

fn items(code: &NamedCode, fix: impl Fn(&NamedFile) -> Option<String>) -> Vec<CheckItem> {
    let item = |status, what, fix| CheckItem {
        topic: TOPIC,
        status,
        message: what,
        fix,
        log: Vec::new(),
    };
    let Some(named) = code.named_share() else {
        let what = "it used no CPU time while it was watched, so there is no hot code".to_owned();
        return vec![item(
            Status::Warn,
            what,
            Some("put a load on it, and ask again".to_owned()),
        )];
    };
    let few = match code.samples < FEW_SAMPLES {
        true => ", which are few",
        false => "",
    };
    let enough = named >= 1.0 - LEAST;
    let mut found = vec![item(
        if enough { Status::Ok } else { Status::Warn },
        format!(
            "{:.1} % of the CPU time has names ({:.1} s in {} samples{few}): {}",
            named * 100.0,
            code.seconds,
            code.samples,
            parts(code)
        ),
        None,
    )];
    let holes = code.files.iter().filter(|file| file.unnamed >= LEAST * code.seconds);
    for file in holes.take(MOST_FILES) {
        let what = format!(
            "{}: {:.1} % of the CPU time is in functions of it that only an address names",
            name_of(file),
            file.unnamed / code.seconds * 100.0
        );
        let nothing = || match is_a_file(file) {
            true => "no file of that build-id here; on the server's machine: scaleprof check --pid PID",
            false => "no file has names for it: it was made while the program ran, or its stack was not kept",
        };
        found.push(item(
            Status::Warn,
            what,
            Some(fix(file).unwrap_or_else(|| nothing().to_owned())),
        ));
    }
    found
}

/// Whether the code lies in a file; `[vdso]`, `//anon` and what has no name do not.
fn is_a_file(file: &NamedFile) -> bool {
    !file.module.is_empty() && !file.module.starts_with(['[', '/'])
}

fn name_of(file: &NamedFile) -> &str {
    match file.module.as_str() {
        "" => "(code whose stack was not kept)",
        module => module,
    }
}

/// The heaviest files, and where their names come from.
fn parts(code: &NamedCode) -> String {
    let told = code
        .files
        .iter()
        .take(MOST_FILES)
        .filter(|file| file.seconds() >= LEAST * code.seconds);
    let told: Vec<String> = told
        .map(|file| {
            let mut sources: Vec<(&str, f64)> = file
                .named
                .iter()
                .map(|(source, time)| (source.label(), *time))
                .collect();
            sources.sort_by(|a, b| b.1.total_cmp(&a.1));
            let sources: Vec<&str> = sources.into_iter().map(|(source, _)| source).collect();
            let sources = match sources.is_empty() {
                true => "no names".to_owned(),
                false => sources.join(", "),
            };
            format!(
                "{} {:.1} % ({sources})",
                name_of(file),
                file.seconds() / code.seconds * 100.0
            )
        })
        .collect();
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_vocabulary::SymbolSource;
    use std::collections::BTreeMap;

    fn file(module: &str, named: f64, unnamed: f64) -> NamedFile {
        NamedFile {
            module: module.to_owned(),
            build_id: None,
            named: BTreeMap::from([(SymbolSource::Symtab, named)]),
            unnamed,
        }
    }

    fn code(files: Vec<NamedFile>) -> NamedCode {
        NamedCode {
            samples: 1000,
            seconds: files.iter().map(NamedFile::seconds).sum(),
            files,
        }
    }

    #[test]
    fn code_that_has_names_lacks_nothing() {
        let found = items(
            &code(vec![file("mysqld", 9.0, 0.0), file("libc.so.6", 1.0, 0.01)]),
            |_| None,
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].status, Status::Ok);
        assert!(
            found[0].message.starts_with("99.9 % of the CPU time"),
            "{}",
            found[0].message
        );
        assert!(
            found[0].message.contains("mysqld 89.9 % (symbol table)"),
            "{}",
            found[0].message
        );
    }

    #[test]
    fn a_file_with_a_hole_is_told_with_the_command_that_fixes_it() {
        let found = items(
            &code(vec![file("mysqld", 8.0, 0.0), file("libc.so.6", 1.0, 1.0)]),
            |file| (file.module == "libc.so.6").then(|| "apt-get install libc6-dbg".to_owned()),
        );
        let [all, libc] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((all.status, libc.status), (Status::Warn, Status::Warn));
        assert!(libc.message.starts_with("libc.so.6: 10.0 %"), "{}", libc.message);
        assert_eq!(libc.fix.as_deref(), Some("apt-get install libc6-dbg"));
    }

    #[test]
    fn an_idle_server_has_no_hot_code() {
        let found = items(&code(Vec::new()), |_| None);
        assert_eq!((found.len(), found[0].status), (1, Status::Warn));
        assert!(found[0].fix.is_some());
    }
}
