//! The server's own log of what it was sent.

use super::stage::{client, execute};
use scaleprof_server::Sandbox;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A command that reached the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    pub connection: u64,
    /// `Query`, `Execute`, `Prepare` and so on.
    pub command: String,
    /// The statement with its values.
    pub text: String,
}

/// Runs something and gives what reached the server meanwhile.
pub fn while_logging(sandbox: &Sandbox, run: impl FnOnce()) -> Vec<Logged> {
    let path: PathBuf = sandbox.data().join("statements.log");
    let mut control = client(sandbox);
    execute(&mut control, "SET GLOBAL log_output = 'FILE'");
    execute(
        &mut control,
        &format!("SET GLOBAL general_log_file = '{}'", path.display()),
    );
    execute(&mut control, "SET GLOBAL general_log = ON");
    run();
    execute(&mut control, "SET GLOBAL general_log = OFF");
    let text = std::fs::read(&path).expect("the general log");
    std::fs::remove_file(&path).expect("the general log");
    // The server would go on writing to the removed file.
    execute(&mut control, "FLUSH GENERAL LOGS");
    let own = control.connection_id();
    control.quit();
    let mut log = parse(&String::from_utf8_lossy(&text));
    log.retain(|entry| entry.connection != u64::from(own));
    log
}

/// Reads the file. An entry is `[time]\t[\t]ID COMMAND\tTEXT`; lines that do not begin so belong to the text before.
fn parse(text: &str) -> Vec<Logged> {
    let mut log: Vec<Logged> = Vec::new();
    for line in text.lines() {
        match entry(line) {
            Some(entry) => log.push(entry),
            None => {
                if let Some(last) = log.last_mut() {
                    last.text.push('\n');
                    last.text.push_str(line);
                }
            }
        }
    }
    log
}

fn entry(line: &str) -> Option<Logged> {
    const COMMANDS: [&str; 10] = [
        "Connect",
        "Query",
        "Prepare",
        "Execute",
        "Close stmt",
        "Reset stmt",
        "Quit",
        "Init DB",
        "Statistics",
        "Field List",
    ];
    let (time, rest) = line.split_once('\t')?;
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit() || " :-".contains(c));
    if !digits(time) {
        return None;
    }
    let rest = rest.trim_start_matches(['\t', ' ']);
    let (id, rest) = rest.split_once(' ')?;
    let connection = id.parse().ok()?;
    let command = COMMANDS.into_iter().find(|command| {
        rest.strip_prefix(command)
            .is_some_and(|behind| behind.is_empty() || behind.starts_with('\t'))
    })?;
    Some(Logged {
        connection,
        command: command.to_owned(),
        text: rest[command.len()..].trim_start_matches('\t').to_owned(),
    })
}

/// The commands that carry statements, by connection.
pub fn statements(log: Vec<Logged>) -> BTreeMap<u64, Vec<Logged>> {
    let mut by_connection: BTreeMap<u64, Vec<Logged>> = BTreeMap::new();
    for entry in log {
        if ["Query", "Execute"].contains(&entry.command.as_str()) {
            by_connection.entry(entry.connection).or_default().push(entry);
        }
    }
    by_connection
}

/// A statement with `?` for its values, `sbtestN` for its table, and single spaces.
pub fn normalised(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim();
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
                .unwrap_or(rest.len()),
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let word = &rest[..length];
        let is_number = |w: &str| w.strip_prefix('-').unwrap_or(w).bytes().all(|b| b.is_ascii_digit());
        if c == '\'' || (c.is_ascii_digit() || c == '-') && is_number(word) {
            out.push('?');
        } else if word.strip_prefix("sbtest").is_some_and(is_number) {
            out.push_str("sbtestN");
        } else if c.is_whitespace() {
            out.push(' ');
        } else {
            out.push_str(word);
        }
        rest = &rest[length..];
    }
    out
}

/// The whole numbers among the values of a statement, in order.
pub fn numbers(text: &str) -> Vec<i64> {
    let mut outside_quotes = text.split('\'').step_by(2).collect::<Vec<_>>().join("?");
    outside_quotes.push(' ');
    outside_quotes
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[test]
fn entries_are_read_with_and_without_their_time() {
    let text = "mariadbd, Version: 10\nTime\t\t    Id Command\tArgument\n210101 01:02:03\t     7 Connect\troot@localhost on x\n\
                \t\t     7 Execute\tSELECT\n 1\n2016-11-21T05:12:58.1Z\t";
    let log = parse(text);
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[1].text.starts_with("SELECT\n 1"));
    assert_eq!(
        normalised("INSERT INTO sbtest12 (id, k)\n  VALUES (-7,'1-2', 5)"),
        "INSERT INTO sbtestN (id, k) VALUES (?,?, ?)"
    );
    assert_eq!(numbers("UPDATE sbtest1 SET c='12-34' WHERE id=77"), [77]);
}
