//! Which of a server's settings may stand in a bundle.

use scaleprof_bundle::SettingRow;
use std::collections::BTreeMap;

/// Parts of names whose values name hosts, users, schemas or places.
const PRIVATE: [&str; 24] = [
    "host",
    "user",
    "password",
    "_key",
    "key_",
    "secret",
    "token",
    "uuid",
    "init_",
    "ssl_",
    "tls_",
    "_dir",
    "dir_",
    "datadir",
    "basedir",
    "tmpdir",
    "socket",
    "_file",
    "_path",
    "_address",
    "wsrep_",
    "replicate_",
    "_db",
    "proxy",
];

/// The settings that hold neither names nor places.
///
/// A value is kept only when it looks like a number, a switch, a keyword or a list of such; so a setting that nobody
/// thought of does not leak what it holds.
pub(crate) fn public_settings(variables: &BTreeMap<String, String>) -> Vec<SettingRow> {
    variables
        .iter()
        .filter(|(name, value)| !is_private(name) && is_plain(value))
        .map(|(name, value)| SettingRow {
            name: name.clone(),
            value: value.clone(),
        })
        .collect()
}

fn is_private(name: &str) -> bool {
    // innodb_log_file_size, open_files_limit and their like are sizes and switches.
    let is_measure = ["_size", "_limit", "_count", "_per_table", "_time", "_threads", "_group"]
        .iter()
        .any(|end| name.ends_with(end));
    !is_measure && PRIVATE.iter().any(|part| name.contains(part))
}

fn is_plain(value: &str) -> bool {
    value.len() <= 400
        && value.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b',' | b'=' | b':' | b'+' | b'%' | b' ')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_left_out() {
        let variables: BTreeMap<String, String> = [
            ("hostname", "db1.secret.example"),
            ("datadir", "/var/lib/x"),
            ("innodb_log_file_size", "1073741824"),
            ("innodb_file_per_table", "ON"),
            ("init_connect", "SET x"),
            ("some_plugin_place", "/opt/x"),
            ("report_user", "anna"),
            ("open_files_limit", "1024"),
            ("sql_mode", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .into();
        let kept: Vec<String> = public_settings(&variables).into_iter().map(|s| s.name).collect();
        assert_eq!(
            kept,
            [
                "innodb_file_per_table",
                "innodb_log_file_size",
                "open_files_limit",
                "sql_mode"
            ]
        );
    }
}
