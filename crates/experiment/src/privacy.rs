//! Which of a server's settings may stand in a bundle.

use scaleprof_bundle::SettingRow;
use std::collections::BTreeMap;

/// Settings whose value is a word or a list of words that the server itself defines.
const WORDED: [&str; 34] = [
    "binlog_checksum",
    "binlog_format",
    "binlog_row_image",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_results",
    "character_set_server",
    "collation_connection",
    "collation_database",
    "collation_server",
    "completion_type",
    "concurrent_insert",
    "default_storage_engine",
    "have_symlink",
    "innodb_change_buffering",
    "innodb_checksum_algorithm",
    "innodb_data_file_buffering",
    "innodb_default_row_format",
    "innodb_doublewrite",
    "innodb_file_format",
    "innodb_flush_method",
    "innodb_instant_alter_column_allowed",
    "innodb_stats_method",
    "innodb_version",
    "optimizer_switch",
    "sql_mode",
    "thread_handling",
    "thread_pool_priority",
    "transaction_isolation",
    "tx_isolation",
    "use_stat_tables",
    "version",
    "version_compile_machine",
];

/// Words that switches have for values.
const SWITCHES: [&str; 16] = [
    "ON",
    "OFF",
    "YES",
    "NO",
    "AUTO",
    "DEFAULT",
    "NONE",
    "DISABLED",
    "FORCE",
    "DEMAND",
    "STRICT",
    "IGNORE",
    "MIXED",
    "ROW",
    "STATEMENT",
    "FULL",
];

/// The settings that hold neither names nor places.
///
/// A number or a switch names nobody. A word is kept only of a setting that is known to hold none of the user's own;
/// so a setting that nobody thought of does not leak what it holds.
pub(crate) fn public_settings(variables: &BTreeMap<String, String>) -> Vec<SettingRow> {
    variables
        .iter()
        .filter(|(name, value)| {
            is_number_or_switch(name, value) || (WORDED.contains(&name.as_str()) && is_plain(value))
        })
        .map(|(name, value)| SettingRow {
            name: name.clone(),
            value: value.clone(),
        })
        .collect()
}

fn is_number_or_switch(name: &str, value: &str) -> bool {
    // A number may be a name too: a user, a database or a host can be called 2020.
    let may_be_a_name = ["user", "host", "_db", "database", "schema", "role", "password"]
        .iter()
        .any(|part| name.contains(part));
    let is_number = !value.is_empty() && value.len() <= 30 && value.parse::<f64>().is_ok_and(f64::is_finite);
    SWITCHES.contains(&value.to_ascii_uppercase().as_str()) || (is_number && !may_be_a_name)
}

fn is_plain(value: &str) -> bool {
    value.len() <= 2000
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b',' | b'=' | b'+' | b' '))
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
            ("group_replication_group_seeds", "db1.corp:33061"),
            ("audit_log_include_databases", "customers,payroll"),
            ("mandatory_roles", "admin,hr"),
            ("gtid_executed", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"),
            ("init_replica_user", "2020"),
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
