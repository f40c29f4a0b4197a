//! Every command line of ours in the documentation, and in what the program says, names commands
//! and options that exist.

use crate::stage::{scaleprof, succeed};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The options of a command and of its subcommands, and the names of these.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) options: BTreeSet<String>,
    subcommands: Vec<String>,
}

/// The long options that a help text lists.
fn listed(help: &str) -> impl Iterator<Item = String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    lines.flat_map(|line| options(line).take(1).collect::<Vec<_>>())
}

/// The long options in a text.
pub(crate) fn options(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(str::to_owned)
}

/// The names under `Commands:` in a help text.
fn commands(help: &str) -> Vec<String> {
    let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| !line.is_empty());
    let named = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    named.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn help(of: &[&str]) -> String {
    succeed(scaleprof().args(of).arg("--help")).0
}

pub(crate) fn known() -> BTreeMap<String, Known> {
    let mut known = BTreeMap::new();
    for command in commands(&help(&[])).into_iter().filter(|name| name != "help") {
        let text = help(&[&command]);
        let mut own = Known {
            options: listed(&text).collect(),
            subcommands: commands(&text),
        };
        for subcommand in own.subcommands.clone().iter().filter(|name| *name != "help") {
            own.options.extend(listed(&help(&[&command, subcommand])));
        }
        known.insert(command, own);
    }
    known.insert("man".to_owned(), Known::default());
    known
}

/// The command lines in a text: indented ones, and those in backquotes; without what a shell or a
/// comment puts behind them.
fn lines(text: &str) -> Vec<String> {
    let indented = text
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.strip_prefix("scaleprof "));
    let quoted = text.split('`').skip(1).step_by(2);
    let quoted = quoted.filter_map(|quoted| quoted.strip_prefix("scaleprof "));
    let ends = |line: &str| {
        let end = ["  ", " |", " #", ";", " >", " &"]
            .iter()
            .filter_map(|end| line.find(end))
            .min();
        line[..end.unwrap_or(line.len())].to_owned()
    };
    indented.chain(quoted).map(ends).collect()
}

/// What is wrong with a command line behind the program's name.
pub(crate) fn wrong(line: &str, known: &BTreeMap<String, Known>) -> Option<String> {
    let mut words = line.split_whitespace();
    let command = words.next()?;
    if command.starts_with("--") || !command.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let Some(of) = known.get(command) else {
        return Some(format!("there is no command '{command}'"));
    };
    let given = words.flat_map(|word| options(word).collect::<Vec<_>>());
    given
        .into_iter()
        .find(|option| !of.options.contains(option))
        .map(|option| format!("{command} has no option {option}"))
}

pub(crate) fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files(&path, ending, found),
            false if path.to_string_lossy().ends_with(ending) => found.push(path),
            false => {}
        }
    }
}

#[test]
fn every_command_line_that_is_shown_names_what_exists() {
    let known = known();
    assert!(known.len() > 12, "{:?}", known.keys());
    assert_eq!(wrong("run --seconds 4 --workload-option a=b", &known), None);
    assert!(
        wrong("run --seconds 4 --option a=b", &known).is_some(),
        "an old name is found"
    );
    assert!(wrong("climb --seconds 4", &known).is_some());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut shown = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    files(&root.join("docs"), ".md", &mut shown);
    for name in fs::read_dir(root.join("crates")).expect("crates").flatten() {
        files(&name.path().join("src"), ".rs", &mut shown);
    }
    let mut count = 0;
    let mut problems = Vec::new();
    for path in shown {
        let text = fs::read_to_string(&path).expect("a text");
        for line in lines(&text) {
            count += 1;
            problems.extend(wrong(&line, &known).map(|problem| format!("{}: {line}: {problem}", path.display())));
        }
    }
    assert!(count > 80, "{count} command lines were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
