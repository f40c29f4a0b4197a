//! The settings that are not the server's defaults.

use super::Section;
use super::words::block;
use crate::grid::grid;
use scaleprof_bundle::{Bundle, SettingRow};
use scaleprof_vocabulary::SettingSource;

/// Name, value, default and who set it; and what of that is not known.
pub(super) fn section(bundle: &Bundle) -> Section {
    let heading = "Settings that differ from the server's defaults";
    let servers: Vec<&SettingRow> = bundle
        .settings
        .iter()
        .filter(|row| !row.name.starts_with("scaleprof.") && !row.name.starts_with("version"))
        .collect();
    if servers.is_empty() {
        return (heading, "The server's settings were not recorded.\n".to_owned());
    }
    if servers.iter().all(|row| row.set_by.is_none()) {
        return (heading, told_on_the_command_line(&bundle.manifest.command));
    }
    let mut differ: Vec<&SettingRow> = servers.iter().copied().filter(|row| differs(row)).collect();
    differ.sort_by(|a, b| a.name.cmp(&b.name));
    if differ.is_empty() {
        return (heading, "None that can be shown.\n".to_owned());
    }
    let mut rows = vec![["setting", "value", "default", "set by"].map(str::to_owned).to_vec()];
    rows.extend(differ.iter().map(|row| {
        vec![
            row.name.clone(),
            row.value.clone(),
            row.default_value.clone().unwrap_or_else(|| "?".to_owned()),
            row.set_by.map_or("unknown", SettingSource::label).to_owned(),
        ]
    }));
    let note = match differ.iter().any(|row| row.default_value.is_none()) {
        true => "\nThe server does not say the defaults marked with ?. ",
        false => "\n",
    };
    let left_out = "Settings whose value names a place, a machine or a person are left out.";
    (
        heading,
        format!("{}{note}{left_out}\n", block(&grid(&rows, &[0, 1, 2, 3]))),
    )
}

/// Somebody set it, and not to what it was anyway.
fn differs(row: &SettingRow) -> bool {
    row.set_by.is_some_and(SettingSource::is_chosen)
        && row
            .default_value
            .as_deref()
            .is_none_or(|default| !same(default, &row.value))
}

/// `1` is `ON`, `1.0` is `1`.
fn same(one: &str, other: &str) -> bool {
    let plain = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" | "YES" => "1".to_owned(),
        "OFF" | "FALSE" | "NO" => "0".to_owned(),
        upper => upper.to_owned(),
    };
    let (one, other) = (plain(one), plain(other));
    one == other
        || one
            .parse::<f64>()
            .ok()
            .zip(other.parse::<f64>().ok())
            .is_some_and(|(a, b)| a == b)
}

/// What the command line shows where the server says nothing.
fn told_on_the_command_line(command: &[String]) -> String {
    let mut sets = Vec::new();
    let mut words = command.iter();
    while let Some(word) = words.next() {
        if word == "--set" {
            sets.extend(words.next().cloned());
        } else if let Some(value) = word.strip_prefix("--set=") {
            sets.push(value.to_owned());
        }
    }
    let (shown, hidden): (Vec<String>, Vec<String>) = sets.into_iter().partition(|set| set != "...");
    let mut out =
        "Which settings differ is not known: neither the server nor the bundle says who set them. ".to_owned();
    if shown.is_empty() && hidden.is_empty() {
        out.push_str("The command line of scaleprof set none.\n");
        return out;
    }
    out.push_str("On the command line of scaleprof:\n\n");
    let mut lines = shown.join("\n");
    if !hidden.is_empty() {
        lines.push_str(&format!("\nand {} whose value is not shown", hidden.len()));
    }
    out.push_str(&block(lines.trim_start()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_other_words_is_the_same() {
        assert!(same("ON", "1") && same("off", "0") && same("4.000000", "4") && same("crc32", "CRC32"));
        assert!(!same("ON", "OFF") && !same("4", "40") && !same("", "0"));
    }

    #[test]
    fn an_old_server_is_known_by_the_command_line() {
        let command = ["scaleprof", "run", "--set", "innodb_sync_spin_loops=5", "--set=..."].map(str::to_owned);
        let text = told_on_the_command_line(&command);
        assert!(
            text.contains("innodb_sync_spin_loops=5\nand 1 whose value is not shown"),
            "{text}"
        );
        assert!(told_on_the_command_line(&command[..2]).contains("set none"));
    }
}
