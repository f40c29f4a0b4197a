//! The server's own view of itself: variables and counters.

use crate::capabilities::Capabilities;
use crate::error::Error;
use scaleprof_wire::Client;
use std::collections::BTreeMap;

/// SHOW GLOBAL VARIABLES, by name.
pub fn global_variables(client: &mut Client) -> Result<BTreeMap<String, String>, Error> {
    pairs(client, "SHOW GLOBAL VARIABLES", "read the server's variables")
}

/// SHOW GLOBAL STATUS, by name. Counters are numbers in decimal digits; some entries are words.
pub fn global_status(client: &mut Client) -> Result<BTreeMap<String, String>, Error> {
    pairs(client, "SHOW GLOBAL STATUS", "read the server's status")
}

/// These entries of SHOW GLOBAL STATUS, by their names in small letters; those that the server lacks are not there.
pub(crate) fn status_of(client: &mut Client, names: &[&str]) -> Result<BTreeMap<String, String>, Error> {
    let sql = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ('{}')", names.join("', '"));
    pairs(client, &sql, "read the server's status")
}

fn pairs(client: &mut Client, sql: &str, doing: &'static str) -> Result<BTreeMap<String, String>, Error> {
    let set = client.query(sql).map_err(Error::wire(doing))?;
    let rows = set.rows.into_iter().filter_map(|row| {
        let mut cells = row.into_iter();
        Some((cells.next()??.to_ascii_lowercase(), cells.next()?.unwrap_or_default()))
    });
    Ok(rows.collect())
}

/// Names of what decides how a server scales and what its figures can be compared with; a `*` at the end stands for
/// all that begin so. None of them holds a path or a name.
const MATTER: [&str; 46] = [
    "autocommit",
    "back_log",
    "binlog_format",
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "innodb_adaptive_*",
    "innodb_autoinc_lock_mode",
    "innodb_buffer_pool_*",
    "innodb_change_buffering",
    "innodb_checksum*",
    "innodb_commit_concurrency",
    "innodb_concurrency_tickets",
    "innodb_deadlock_detect",
    "innodb_doublewrite",
    "innodb_file_per_table",
    "innodb_flush*",
    "innodb_io_capacity*",
    "innodb_lock_wait_timeout",
    "innodb_log_*",
    "innodb_lru_*",
    "innodb_max_dirty_*",
    "innodb_page_cleaners",
    "innodb_page_size",
    "innodb_purge_*",
    "innodb_read_*",
    "innodb_redo_*",
    "innodb_rollback_segments",
    "innodb_spin_*",
    "innodb_sync_*",
    "innodb_thread_*",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "large_pages",
    "log_bin",
    "max_connections",
    "max_prepared_stmt_count",
    "metadata_locks_*",
    "open_files_limit",
    "performance_schema",
    "query_cache_*",
    "sync_binlog",
    "table_*",
    "thread_*",
    "transaction_isolation",
    "version*",
];

/// Those of a server's variables that matter to how it scales. The isolation level stands under its new name.
pub fn settings_that_matter(
    variables: &BTreeMap<String, String>,
    capabilities: &Capabilities,
) -> BTreeMap<String, String> {
    let matters = |name: &str| {
        MATTER.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *pattern,
        })
    };
    let holds_a_path = |name: &str, value: &str| value.starts_with('/') || name.ends_with("_dir");
    let mut matter: BTreeMap<String, String> = variables
        .iter()
        .filter(|(name, value)| matters(name) && !holds_a_path(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(level) = variables.get(capabilities.isolation_variable()) {
        matter.insert("transaction_isolation".to_owned(), level.clone());
    }
    matter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::{Product, Version};

    #[test]
    fn keeps_what_matters_and_no_paths() {
        let variables = [
            ("tx_isolation", "REPEATABLE-READ"),
            ("innodb_log_group_home_dir", "./"),
            ("innodb_buffer_pool_filename", "/secret/place"),
            ("innodb_spin_wait_delay", "4"),
            ("hostname", "db1.example"),
        ];
        let variables = variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let matter = settings_that_matter(&variables, &Capabilities::of(Product::MySql, Version::new(5, 6, 14)));
        let names: Vec<&str> = matter.keys().map(String::as_str).collect();
        assert_eq!(names, ["innodb_spin_wait_delay", "transaction_isolation"]);
    }
}
