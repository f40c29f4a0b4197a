//! What the program says, read from its sources: options that a message names exist, and an error is one sentence
//! with what to do on a line of its own.

use crate::command_lines::{files, known, options, wrong};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Words of a sentence, at most (GLOSSARY).
const MOST_WORDS: usize = 25;

/// Options of other programs that messages name: perf, numactl, numademo, systemd-run, ld, rpm, the server, sysbench,
/// jfrconv and the mysql client.
const OF_OTHERS: [&str; 21] = [
    "--build-id",
    "--bootstrap",
    "--collapsed",
    "--db-ps-mode",
    "--deltatime",
    "--hardware",
    "--host",
    "--interleave",
    "--itrace",
    "--no-defaults",
    "--off-cpu",
    "--per-",
    "--qf",
    "--rand-type",
    "--scope",
    "--table-size",
    "--tables",
    "--threads",
    "--time",
    "--version",
    "--call-graph",
];

/// A string literal of a source file.
struct Literal {
    /// Its text, as it is written but for continued lines.
    text: String,
    /// Length of the text before it in the file.
    before: usize,
}

/// The string literals of the program's part of a source file.
fn literals(source: &str) -> Vec<Literal> {
    let program = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let bytes = program.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &program[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            at += 3 + raw.find("\"#").map_or(raw.len(), |end| end + 2);
        } else if rest.starts_with("'\"'") {
            at += 3;
        } else if let Some(escaped) = rest.strip_prefix("'\\") {
            at += 2 + escaped.find('\'').map_or(1, |end| end + 1);
        } else if rest.starts_with('"') {
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            let raw = &program[at + 1..end.min(bytes.len())];
            let mut lines = raw.split("\\\n");
            let mut text = lines.next().unwrap_or_default().to_owned();
            lines.for_each(|line| text.push_str(line.trim_start()));
            found.push(Literal { text, before: at });
            at = end + 1;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

fn sources() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for one in fs::read_dir(crates).expect("the crates").flatten() {
        let source = one.path().join("src");
        if source.is_dir() {
            files(&source, ".rs", &mut found);
        }
    }
    found.retain(|path| {
        !path
            .components()
            .any(|part| part.as_os_str().to_string_lossy().starts_with("tests"))
    });
    found
}

/// What is wrong with the text of an error.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in text.split("\\n").enumerate() {
        let words = line.split_whitespace().count();
        if words > MOST_WORDS {
            faults.push(format!("{words} words"));
        }
        // The end of a server's log.
        let is_a_log = line == "{log}";
        if number > 0 && !line.starts_with("fix: ") && !is_a_log {
            faults.push("a second line that is no fix".to_owned());
        }
        let mut letters = line.chars().peekable();
        let mut before = ['.'; 2];
        while let Some(letter) = letters.next() {
            let is_end = before[0] != '.' && before[1] == '.' && letter == ' ';
            if is_end && letters.peek().is_some_and(char::is_ascii_uppercase) {
                faults.push("a second sentence".to_owned());
            }
            before = [before[1], letter];
        }
    }
    faults
}

/// What literals that are no messages hold: SQL, and programs for other interpreters.
const CODE: [&str; 7] = [
    "SELECT ",
    "CREATE TABLE",
    " INT ",
    "UPDATE ",
    "tracepoint:",
    "#!/bin/sh",
    "Dir::",
];

/// The sentences of a text: its lines, divided where a full stop is followed by a capital letter or a value.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.split("\\n").flat_map(str::lines) {
        let mut sentence = String::new();
        for part in line.split_inclusive(". ") {
            let begins = |part: &str| part.starts_with(|first: char| first.is_ascii_uppercase() || first == '{');
            if begins(part) && !sentence.is_empty() {
                found.push(std::mem::take(&mut sentence));
            }
            sentence.push_str(part);
        }
        found.push(sentence);
    }
    found
}

#[test]
fn no_sentence_of_a_message_is_longer_than_a_reader_can_hold() {
    assert_eq!(
        sentences("One. Two three. four\\nfive"),
        ["One. ", "Two three. four", "five"]
    );
    let (mut count, mut problems) = (0, Vec::new());
    for path in sources() {
        let source = fs::read_to_string(&path).expect("a source file");
        for Literal { text, .. } in literals(&source) {
            if CODE.iter().any(|code| text.contains(code)) {
                continue;
            }
            for sentence in sentences(&text) {
                let words = sentence.split_whitespace().count();
                count += usize::from(words > 3);
                if words > MOST_WORDS {
                    problems.push(format!("{}: {words} words: {sentence}", path.display()));
                }
            }
        }
    }
    assert!(count > 1000, "{count} sentences were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn an_error_is_one_sentence_with_the_fix_on_a_line_of_its_own() {
    assert_eq!(faults("cannot read {path}: {source}\\nfix: name another"), [""; 0]);
    assert_eq!(faults("cannot read {path}. Name another"), ["a second sentence"]);
    assert_eq!(faults("cannot read\\nname another").len(), 1);
    let (mut count, mut problems) = (0, Vec::new());
    for path in sources() {
        let source = fs::read_to_string(&path).expect("a source file");
        for literal in literals(&source) {
            if !source[..literal.before].trim_end().ends_with("#[error(") {
                continue;
            }
            count += 1;
            let found = faults(&literal.text).into_iter();
            problems.extend(found.map(|fault| format!("{}: {}: {fault}", path.display(), literal.text)));
        }
    }
    assert!(count > 150, "{count} errors were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_option_that_a_message_names_exists() {
    let known = known();
    let mut all: BTreeSet<String> = known.values().flat_map(|of| of.options.iter().cloned()).collect();
    all.extend(OF_OTHERS.map(str::to_owned));
    let (mut count, mut problems) = (0, Vec::new());
    for path in sources() {
        let source = fs::read_to_string(&path).expect("a source file");
        for Literal { text, .. } in literals(&source) {
            // One or two words are an argument of a program that is started.
            if text.split_whitespace().count() < 3 {
                continue;
            }
            for option in options(&text) {
                count += 1;
                if !all.contains(&option) {
                    problems.push(format!("{}: {option}: {text}", path.display()));
                }
            }
            for (at, _) in text.match_indices("scaleprof ") {
                let line = &text[at + "scaleprof ".len()..];
                let is_a_command = line.split(' ').nth(1).is_some_and(|word| word.starts_with('-'));
                let fault = is_a_command.then(|| wrong(line, &known)).flatten();
                problems.extend(fault.map(|fault| format!("{}: {fault}: {text}", path.display())));
            }
        }
    }
    assert!(count > 150, "{count} options were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
