//! Which of a server's settings may stand in a bundle.

use scaleprof_bundle::SettingRow;
use scaleprof_server::VariableOrigin;
use std::collections::BTreeMap;

/// Settings whose value is a word or a list of words that the server itself defines.
const WORDED: [&str; 38] = [
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
    "version_compile_os",
    "version_malloc_library",
    "version_source_revision",
    "version_ssl_library",
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

/// How `version_comment` begins for those who give builds to everybody. A build of one's own may name whose it is.
const PUBLISHERS: [&str; 9] = [
    "MySQL Community Server",
    "MySQL Enterprise Server",
    "Percona Server",
    "mariadb.org binary distribution",
    "MariaDB Server",
    "Source distribution",
    "Debian",
    "Ubuntu",
    "(Debian)",
];

/// Last words of settings whose value names something of the user's, so that even a number may be a name, or say which machine
/// it is: server_id is often made from the address.
const NAMING: [&str; 23] = [
    "address",
    "basename",
    "bin",
    "connect",
    "dir",
    "directory",
    "error",
    "file",
    "filename",
    "group",
    "id",
    "index",
    "key",
    "label",
    "log",
    "name",
    "path",
    "port",
    "secret",
    "slave",
    "socket",
    "tag",
    "token",
];

/// The settings that hold neither names nor places, with who set them as far as that is known.
///
/// A number or a switch names nobody. A word is kept only of a setting that is known to hold none of the user's own;
/// so a setting that nobody thought of does not leak what it holds.
pub(crate) fn public_settings(
    variables: &BTreeMap<String, String>,
    origins: &BTreeMap<String, VariableOrigin>,
) -> Vec<SettingRow> {
    variables
        .iter()
        .filter(|(name, value)| is_public(name, value))
        .map(|(name, value)| {
            let origin = origins.get(name).cloned().unwrap_or_default();
            SettingRow {
                name: name.clone(),
                value: value.clone(),
                default_value: origin.default.filter(|default| is_public(name, default)),
                set_by: origin.set_by,
            }
        })
        .collect()
}

fn is_public(name: &str, value: &str) -> bool {
    is_number_or_switch(name, value)
        || (WORDED.contains(&name) && is_plain(value))
        || (name == "version_comment" && is_publisher(value))
}

fn is_publisher(value: &str) -> bool {
    let rest = PUBLISHERS.iter().find_map(|publisher| value.strip_prefix(publisher));
    rest.is_some_and(|rest| {
        rest.bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b' ' | b'-' | b'(' | b')'))
            || ["(GPL)", " (GPL)", " - GPL", " n/a"].contains(&rest)
            || (rest.starts_with(" (GPL), Release ") && rest.len() <= 60 && is_plain(&rest.replace(['(', ')'], "")))
    })
}

/// Whether even a number may be a name as this setting's value: a user, a database or a host can be called 2020.
pub fn names_something(setting: &str) -> bool {
    ["user", "host", "_db", "database", "schema", "role", "password"]
        .iter()
        .any(|part| setting.contains(part))
        || setting
            .rsplit(['_', '-'])
            .next()
            .is_some_and(|last| NAMING.contains(&last))
}

fn is_number_or_switch(name: &str, value: &str) -> bool {
    let is_number = !value.is_empty() && value.len() <= 30 && value.parse::<f64>().is_ok_and(f64::is_finite);
    SWITCHES.contains(&value.to_ascii_uppercase().as_str()) || (is_number && !names_something(name))
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
    use scaleprof_vocabulary::SettingSource;

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
            ("server_id", "167772161"),
            ("wsrep_cluster_name", "2020"),
            ("general_log_file", "2020"),
            ("version_comment", "built for Anna Inc."),
            ("open_files_limit", "1024"),
            ("sql_mode", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .into();
        let kept: Vec<String> = public_settings(&variables, &BTreeMap::new())
            .into_iter()
            .map(|s| s.name)
            .collect();
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
    #[test]
    fn who_set_it_is_kept_and_a_default_that_is_a_place_is_not() {
        let variables: BTreeMap<String, String> = [("innodb_io_capacity", "400"), ("innodb_flush_method", "O_DIRECT")]
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .into();
        let origin = |set_by, default: &str| VariableOrigin {
            set_by: Some(set_by),
            default: Some(default.to_owned()),
        };
        let origins: BTreeMap<String, VariableOrigin> = [
            (
                "innodb_io_capacity".to_owned(),
                origin(SettingSource::OptionFile, "200"),
            ),
            (
                "innodb_flush_method".to_owned(),
                origin(SettingSource::Default, "/home/anna"),
            ),
        ]
        .into();
        let rows = public_settings(&variables, &origins);
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.value.as_str(),
                    row.default_value.as_deref(),
                    row.set_by.map(SettingSource::name),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("O_DIRECT", None, Some("default")),
                ("400", Some("200"), Some("option_file"))
            ]
        );
    }

    #[test]
    fn well_known_publishers_are_named() {
        for comment in [
            "MySQL Community Server (GPL)",
            "MySQL Community Server - GPL",
            "Debian 12",
            "(Debian)",
            "mariadb.org binary distribution",
            "Percona Server (GPL), Release 28, Revision 47601f19",
            "Source distribution",
        ] {
            assert!(is_publisher(comment), "{comment}");
        }
        for comment in [
            "Debian of anna",
            "Percona Server for anna",
            "",
            "MySQL Community Server (anna)",
        ] {
            assert!(!is_publisher(comment), "{comment}");
        }
    }
}
