//! Who gave each of a server's variables its value, and what it would be if nobody had.
//!
//! A bug report is read by people who know the defaults by heart: they want to see what is different. MariaDB says it in
//! `information_schema.SYSTEM_VARIABLES` (from 10.1), MySQL who but not the default in `performance_schema.variables_info`
//! (from 8.0), older servers nothing. Of a server of our own we know it ourselves: its option file is the whole truth.

use crate::capabilities::Capabilities;
use crate::error::Error;
use crate::option_file::is_kept_apart;
use crate::option_text::option_names;
use crate::setting::{Origin, RESERVED, base_name};
use crate::settings::Settings;
use scaleprof_vocabulary::SettingSource;
use scaleprof_wire::Client;
use std::collections::{BTreeMap, BTreeSet};

/// The source that MariaDB or MySQL names so.
fn source_of(word: &str) -> Option<SettingSource> {
    Some(match word.to_ascii_uppercase().as_str() {
        "COMPILE-TIME" | "COMPILED" => SettingSource::Default,
        "AUTO" => SettingSource::Computed,
        "CONFIG" | "GLOBAL" | "SERVER" | "EXPLICIT" | "EXTRA" | "USER" | "LOGIN" => SettingSource::OptionFile,
        "COMMAND-LINE" | "COMMAND_LINE" | "ENVIRONMENT" => SettingSource::CommandLine,
        "SQL" | "DYNAMIC" | "PERSISTED" => SettingSource::Runtime,
        _ => return None,
    })
}

/// Where the value of one variable comes from, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariableOrigin {
    /// Who gave it; none where nobody says.
    pub set_by: Option<SettingSource>,
    /// The value that it has when nobody does; none where the server does not say.
    pub default: Option<String>,
}

/// What the server itself says, by the variables' names; empty where it says nothing or we may not ask.
///
/// # Errors
/// The connection broke.
pub fn origins(client: &mut Client) -> Result<BTreeMap<String, VariableOrigin>, Error> {
    const MARIADB: &str =
        "SELECT VARIABLE_NAME, GLOBAL_VALUE_ORIGIN, DEFAULT_VALUE FROM information_schema.SYSTEM_VARIABLES";
    const MYSQL: &str = "SELECT VARIABLE_NAME, VARIABLE_SOURCE, NULL FROM performance_schema.variables_info";
    let mut rows = Vec::new();
    for sql in [MARIADB, MYSQL] {
        match client.query(sql) {
            Ok(answer) => {
                rows = answer.rows;
                break;
            }
            // It has no such table, or does not show it to us.
            Err(error) if error.number().is_some() => {}
            Err(error) => return Err(Error::wire("ask where the server's settings come from")(error)),
        }
    }
    let origin = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        let name = cells.next()??.to_ascii_lowercase();
        let set_by = cells.next().flatten().and_then(|word| source_of(&word));
        let default = cells.next().flatten();
        Some((name, VariableOrigin { set_by, default }))
    };
    Ok(rows.into_iter().filter_map(origin).collect())
}

/// The same for a server of our own, which was told all by `settings`: it knows us only as an option file.
pub fn origins_of_our_own(
    said: &BTreeMap<String, VariableOrigin>,
    variables: &BTreeMap<String, String>,
    settings: &Settings,
    capabilities: &Capabilities,
) -> BTreeMap<String, VariableOrigin> {
    let named = |setting: &str| match setting {
        "transaction_isolation" => capabilities.isolation_variable().to_owned(),
        name if variables.contains_key(name) => name.to_owned(),
        name => base_name(name).to_owned(),
    };
    let told = settings.told(capabilities);
    let by = |origin: Origin| -> BTreeSet<String> {
        told.iter()
            .filter(|setting| setting.origin == origin)
            .map(|setting| named(&setting.name))
            .collect()
    };
    let (pinned, users) = (by(Origin::Pinned), by(Origin::User));
    let in_file: BTreeSet<String> = option_names(settings.defaults_file().unwrap_or_default())
        .map(|name| named(&name))
        .collect();
    variables
        .keys()
        .map(|name| {
            let known = said.get(name).cloned().unwrap_or_default();
            let set_by = match known.set_by {
                _ if users.contains(name) => SettingSource::User,
                _ if name == "version" => SettingSource::Default,
                _ if RESERVED.contains(&name.as_str()) => SettingSource::Pinned,
                _ if settings.defaults_file().is_some() && is_kept_apart(name) => SettingSource::Pinned,
                _ if in_file.contains(name) => SettingSource::OptionFile,
                _ if pinned.contains(name) => SettingSource::Pinned,
                // What we tell a server by a name that is no variable's, such as skip_networking.
                Some(SettingSource::OptionFile) => SettingSource::Pinned,
                Some(other) => other,
                None => SettingSource::Default,
            };
            let origin = VariableOrigin {
                set_by: Some(set_by),
                default: known.default,
            };
            (name.clone(), origin)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::{Product, Version};
    use crate::settings::ServerSettings;

    #[test]
    fn an_old_server_of_our_own_is_known_by_what_it_was_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = "# of the office\n[mysqld]\ninnodb-io-capacity = 400 # slow\nmax_connections=9\n";
        std::fs::write(file.path(), text).expect("written");
        let settings = Settings::new(ServerSettings {
            set: vec!["innodb_spin_wait_delay=7".to_owned(), "skip-log-bin".to_owned()],
            defaults_file: Some(file.path().to_owned()),
            ..ServerSettings::default()
        })
        .expect("settings");
        let variables: BTreeMap<String, String> = [
            "innodb_spin_wait_delay",
            "innodb_io_capacity",
            "innodb_flush_log_at_trx_commit",
            "max_connections",
            "tx_isolation",
            "log_bin",
            "port",
            "innodb_sync_array_size",
        ]
        .map(|name| (name.to_owned(), "1".to_owned()))
        .into();
        let capabilities = Capabilities::of(Product::MySql, Version::new(5, 6, 14));
        let found = origins_of_our_own(&BTreeMap::new(), &variables, &settings, &capabilities);
        let words: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, origin)| (name.as_str(), origin.set_by.map_or("?", SettingSource::name)))
            .collect();
        assert_eq!(
            words,
            [
                ("innodb_flush_log_at_trx_commit", "scaleprof"),
                ("innodb_io_capacity", "option_file"),
                ("innodb_spin_wait_delay", "user"),
                ("innodb_sync_array_size", "default"),
                ("log_bin", "user"),
                ("max_connections", "option_file"),
                ("port", "scaleprof"),
                ("tx_isolation", "scaleprof"),
            ]
        );
    }
}
