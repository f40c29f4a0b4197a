//! What the server is told: settings pinned so that two runs can be compared, and the user's own.
//!
//! Pinned is what would otherwise differ between versions or with the machine and change the work
//! itself (character set, isolation, durability, redo log, buffer pool, binary log), and what many
//! connections need. All that scaling is about (spin waits, adaptive hash index, cache instances,
//! thread handling, I/O) stays at the server's default: a default that does not scale is a finding,
//! not something to be tuned away beforehand.
//!
//! Later wins: pinned, then the user's `--server-defaults-file`, then `--set`, then the places that
//! keep the server private.

mod plugins;

use crate::capabilities::{Capabilities, Feature};
use crate::error::Error;
use crate::identify::hexadecimal;
use crate::memory;
use crate::option_text::{option_names, option_value, with_included};
use crate::setting::{Origin, Setting, base_name, parse_set, parse_size};
use scaleprof_guard::read_option_file;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// What a run asks of the server. [`Settings::new`] checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The most connections of the load at one time.
    pub connections: u32,
    /// Bytes that the workload's tables and indexes will take, if known: the buffer pool is made to hold them.
    pub dataset: Option<u64>,
    /// Bytes of the buffer pool; chosen from the memory and the dataset if not given.
    pub buffer_pool: Option<u64>,
    /// Servers like it that run at the same time, it among them: they share the memory.
    pub servers: u32,
    /// Bytes of the redo log.
    pub redo_log: u64,
    /// The isolation level that connections start in.
    pub isolation: String,
    /// Whether to run with the Performance Schema. It costs some percent, and more the more connections.
    pub performance_schema: bool,
    /// Whether to listen on 127.0.0.1 too, on a port that is free.
    pub tcp: bool,
    /// An option file of the user's.
    pub defaults_file: Option<PathBuf>,
    /// The user's `--set NAME[=VALUE]`, in order.
    pub set: Vec<String>,
}

/// 1 GiB: large enough that checkpoints are not forced within a rung, and the same for every version.
pub const REDO_LOG: u64 = 1 << 30;

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            connections: 512,
            dataset: None,
            buffer_pool: None,
            servers: 1,
            redo_log: REDO_LOG,
            isolation: "REPEATABLE-READ".to_owned(),
            performance_schema: false,
            tcp: false,
            defaults_file: None,
            set: Vec::new(),
        }
    }
}

/// Prefixes of settings that decide what the data files are.
const SHAPES_FILES: [&str; 24] = [
    "aria_",
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "default_table_encryption",
    "early_plugin_load",
    "encrypt",
    // Whether a list of the pages in memory is kept with the data, and of how many.
    "innodb_buffer_pool_dump",
    "explicit_defaults",
    "innodb_checksum",
    "innodb_compression",
    "innodb_data_file",
    "innodb_default",
    "innodb_doublewrite",
    "innodb_encrypt",
    "innodb_file",
    "innodb_fill",
    "innodb_log_",
    "innodb_page_size",
    "innodb_redo",
    "innodb_temp",
    "innodb_undo",
    "lower_case_table_names",
    "plugin_load",
];

/// Settings that were checked, ready for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    asked: ServerSettings,
    buffer_pool: u64,
    defaults_file: Option<String>,
    /// The same with the files that it includes.
    with_included: Option<String>,
    user: Vec<Setting>,
    /// What its place among other servers asks of it.
    of_place: Vec<Setting>,
}

/// Beginnings of settings that are about the binary log.
const OF_BINARY_LOG: [&str; 8] = [
    "log_bin",
    "binlog_",
    "gtid_",
    "enforce_gtid",
    "log_slave_updates",
    "log_replica_updates",
    "relay_log",
    "encrypt_binlog",
];

/// Settings that add to each other instead of replacing.
pub(crate) const ADDS: &str = "plugin_load_add";

impl Settings {
    /// Checks what was asked, once, before anything is started.
    pub fn new(asked: ServerSettings) -> Result<Self, Error> {
        if asked.connections == 0 || asked.connections > 99_000 {
            return Err(Error::BadSetting {
                name: "max_connections".to_owned(),
                reason: format!("{} connections; a server takes 1 to 99000", asked.connections),
            });
        }
        let user = asked
            .set
            .iter()
            .map(|text| parse_set(text))
            .collect::<Result<Vec<_>, _>>()?;
        let defaults_file = match &asked.defaults_file {
            None => None,
            Some(path) => Some(read_option_file(path).map_err(Error::system("read the option file", path))?),
        };
        let buffer_pool = asked.buffer_pool.unwrap_or_else(|| {
            memory::buffer_pool(memory::available() / u64::from(asked.servers.max(1)), asked.dataset)
        });
        Ok(Settings {
            buffer_pool,
            with_included: defaults_file.as_deref().map(with_included),
            defaults_file,
            user,
            asked,
            of_place: Vec::new(),
        })
    }

    /// The same for a server that has a place among others, with which it speaks over TCP. The user's settings take the place of those
    /// that are pinned, not of those that are of the place ([`Origin::Place`]).
    pub(crate) fn at_place(mut self, of_place: Vec<Setting>) -> Self {
        self.asked.tcp = true;
        let is_own = |user: &Setting| {
            let same = |own: &Setting| own.origin == Origin::Place && own.name == user.name;
            of_place.iter().any(same)
        };
        self.user.retain(|setting| !is_own(setting));
        self.of_place = of_place;
        self
    }

    /// The same without what the user set of a binary log.
    pub(crate) fn without_binary_log(mut self) -> Self {
        let of_logs = |setting: &Setting| {
            let name = base_name(&setting.name);
            OF_BINARY_LOG.iter().any(|start| name.starts_with(start))
        };
        self.user.retain(|setting| !of_logs(setting));
        self
    }

    /// What the user set of that name, last.
    pub(crate) fn users(&self, name: &str) -> Option<&str> {
        let last = self.user.iter().rev().find(|setting| setting.name == name)?;
        last.value.as_deref()
    }

    /// What was asked for.
    pub fn asked(&self) -> &ServerSettings {
        &self.asked
    }

    /// Bytes of the buffer pool, as far as we choose it: `--set innodb_buffer_pool_size` is seen too.
    pub fn buffer_pool(&self) -> u64 {
        self.user
            .iter()
            .rev()
            .find(|setting| setting.name == "innodb_buffer_pool_size")
            .and_then(|setting| parse_size(setting.value.as_deref()?))
            .unwrap_or(self.buffer_pool)
    }

    /// Bytes of the redo log that a server of these capabilities makes of them.
    pub fn redo_log(&self, capabilities: &Capabilities) -> u64 {
        /// The larger of the two defaults: MariaDB's, 48 MiB in MySQL.
        const DEFAULT_FILE: u64 = 96 << 20;
        let settings = self.told(capabilities);
        let bytes = |name: &str| {
            let last = settings.iter().rfind(|setting| base_name(&setting.name) == name);
            last.and_then(|setting| parse_size(setting.value.as_deref()?))
        };
        if let Some(capacity) = bytes("innodb_redo_log_capacity") {
            return capacity;
        }
        let files = match capabilities.has(Feature::RedoLogCapacity) || capabilities.has(Feature::LogFilesInGroup) {
            true => bytes("innodb_log_files_in_group").unwrap_or(2),
            false => 1,
        };
        files.saturating_mul(bytes("innodb_log_file_size").unwrap_or(DEFAULT_FILE))
    }

    /// Whether the user wants a server to read the pages at its start that another one had in memory at its end.
    pub fn loads_hot_pages(&self) -> bool {
        let last = self
            .user
            .iter()
            .rev()
            .find(|setting| base_name(&setting.name) == "innodb_buffer_pool_load_at_startup");
        let on = |value: &str| ["on", "1", "true"].contains(&value.to_ascii_lowercase().as_str());
        last.is_some_and(|setting| setting.value.as_deref().is_none_or(on))
    }

    /// Everything the server of these capabilities is told but for places, the user's settings last.
    pub fn told(&self, capabilities: &Capabilities) -> Vec<Setting> {
        let mut told = self.pinned(capabilities);
        // A pinned setting that the user chose is not told twice. The names of the redo log's size count as one.
        let is_redo = |name: &str| {
            [
                "innodb_redo_log_capacity",
                "innodb_log_file_size",
                "innodb_log_files_in_group",
            ]
            .contains(&name)
        };
        let users_redo = self.user.iter().any(|setting| is_redo(base_name(&setting.name)));
        let is_in = |others: &[Setting], one: &Setting| {
            let same = |other: &Setting| base_name(&other.name) == base_name(&one.name);
            one.name != ADDS && one.origin != Origin::Place && others.iter().any(same)
        };
        told.retain(|pinned| !is_in(&self.of_place, pinned));
        told.extend(self.of_place.iter().cloned());
        told.retain(|ours| {
            let replaced = is_in(&self.user, ours) || (users_redo && is_redo(&ours.name));
            !replaced
        });
        told.extend(self.user.iter().cloned());
        told
    }

    fn pinned(&self, capabilities: &Capabilities) -> Vec<Setting> {
        let connections = u64::from(self.asked.connections) + 64; // 64: our own, and the user's mysql client
        // Each connection may have some tables open at once; beyond, all would fight for the cache.
        // The server reckons two files for each, and cuts the cache itself, with a warning, if they are not allowed.
        let most_files = crate::process::open_files_limit();
        let table_cache = (u64::from(self.asked.connections) * 16)
            .clamp(4096, 32768)
            .min(most_files.saturating_sub(connections + 1024) / 2)
            .max(400);
        let open_files = (connections + 2 * table_cache + 1024).min(most_files);
        let on_off = |on: bool| if on { "ON" } else { "OFF" }.to_owned();
        let mut pinned: Vec<(&str, String)> = vec![
            // The default of MySQL since 8.0 and MariaDB since 11.6, and of new schemas everywhere; general_ci is the
            // one collation of it that every version from 5.5 on has, so that all sort and compare alike.
            ("character_set_server", "utf8mb4".to_owned()),
            ("collation_server", "utf8mb4_general_ci".to_owned()),
            ("transaction_isolation", self.asked.isolation.clone()),
            // Each commit is written and none waits for the disk (it is flushed once a second): the whole commit path
            // of the server is measured, and what limits it is the server. With 1 the ladder measures the disk's
            // flushes wherever these are slow: MySQL 5.6.14, oltp_update_index, 2 CPUs and a virtual disk gave 8100/s
            // at 16 connections and 6900/s at 512 with 1, but 16400/s and 10000/s with 2. For a question of
            // durability in production: `--set innodb_flush_log_at_trx_commit=1`.
            ("innodb_flush_log_at_trx_commit", "2".to_owned()),
            ("sync_binlog", "0".to_owned()), // the binary log is off; says so to who turns it on
            ("innodb_buffer_pool_size", self.buffer_pool.to_string()),
            ("performance_schema", on_off(self.asked.performance_schema)),
            ("max_connections", connections.to_string()),
            ("back_log", connections.clamp(128, 65535).to_string()),
            ("open_files_limit", open_files.to_string()),
            ("table_open_cache", table_cache.to_string()),
            ("max_prepared_stmt_count", "1048576".to_owned()), // 16382 is 31 statements for each of 512 connections
            ("max_connect_errors", "1000000".to_owned()),
            ("skip_name_resolve", "ON".to_owned()),
            ("local_infile", "ON".to_owned()),
            ("server_id", "1".to_owned()),
        ];
        pinned.extend(capabilities.redo_log(self.asked.redo_log));
        let off = capabilities.switched_off();
        pinned.extend(off.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let mut pinned: Vec<Setting> = pinned
            .into_iter()
            .map(|(name, value)| Setting {
                name: name.to_owned(),
                value: Some(value),
                origin: Origin::Pinned,
            })
            .collect();
        let logs = |setting: &Setting| base_name(&setting.name) == "log_bin";
        let wanted = self.user.iter().any(logs) || self.of_place.iter().any(logs);
        if capabilities.has(Feature::BinlogByDefault) && !wanted {
            pinned.push(Setting {
                name: "skip_log_bin".to_owned(),
                value: None,
                origin: Origin::Pinned,
            });
        }
        pinned
    }

    /// The settings that decide what the data files are, for the key of a prepared data folder.
    pub fn shaping_files(&self, capabilities: &Capabilities) -> Vec<(String, String)> {
        let mut shaping: Vec<(String, String)> = self
            .told(capabilities)
            .into_iter()
            .filter(|setting| {
                SHAPES_FILES
                    .iter()
                    .any(|prefix| base_name(&setting.name).starts_with(prefix))
            })
            .map(|setting| (setting.name, setting.value.unwrap_or_default()))
            .collect();
        if let Some(text) = &self.with_included {
            // Whatever it holds, it may be such a setting.
            shaping.push((
                "defaults_file".to_owned(),
                hexadecimal(&Sha256::digest(text.as_bytes())),
            ));
        }
        shaping
    }

    /// Whether a setting is one that the server's place among others asks for.
    pub(crate) fn is_of_place(&self, setting: &Setting) -> bool {
        self.of_place.contains(setting)
    }

    /// Whether the user's option file, or one that it includes, names an option.
    pub(crate) fn defaults_file_names(&self, option: &str) -> bool {
        let text = self.with_included.as_deref().unwrap_or_default();
        option_names(text).any(|name| name.strip_prefix("loose_").unwrap_or(&name) == option)
    }

    /// What a server is told of an option: by the user's settings, last, or else by the option file or one that it includes. None where
    /// neither gives it a value.
    pub fn value_of(&self, option: &str) -> Option<String> {
        let of_settings = self
            .user
            .iter()
            .rev()
            .find(|setting| setting.name.strip_prefix("loose_").unwrap_or(&setting.name) == option);
        match of_settings {
            Some(setting) => setting.value.clone(),
            None => option_value(self.with_included.as_deref()?, option),
        }
    }

    /// The text of the user's option file.
    pub(crate) fn defaults_file(&self) -> Option<&str> {
        self.defaults_file.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::{Product, Version};

    fn settings(set: &[&str]) -> Result<Settings, Error> {
        Settings::new(ServerSettings {
            connections: 2000,
            buffer_pool: Some(1 << 30),
            set: set.iter().map(|text| (*text).to_owned()).collect(),
            ..ServerSettings::default()
        })
    }

    fn value(settings: &Settings, product: Product, version: Version, name: &str) -> Option<String> {
        let told = settings.told(&Capabilities::of(product, version));
        let named: Vec<_> = told.into_iter().filter(|setting| setting.name == name).collect();
        assert!(named.len() < 2, "{name} is told twice");
        named.into_iter().next().and_then(|setting| setting.value)
    }

    const MARIADB: (Product, Version) = (Product::MariaDb, Version::new(10, 11, 6));
    const NEWEST: (Product, Version) = (Product::MySql, Version::new(9, 7, 4));

    #[test]
    fn many_connections_are_made_room_for() {
        let settings = settings(&[]).expect("settings");
        let of = |name: &str| value(&settings, MARIADB.0, MARIADB.1, name);
        assert_eq!(of("max_connections").as_deref(), Some("2064"));
        assert_eq!(of("back_log").as_deref(), Some("2064"));
        let number = |name: &str| of(name).and_then(|text| text.parse::<u64>().ok()).expect("a number");
        assert!(number("open_files_limit") <= crate::process::open_files_limit());
        assert!(number("table_open_cache") >= 400);
    }

    #[test]
    fn what_the_user_sets_replaces_what_we_pin() {
        let settings = settings(&["innodb-buffer-pool-size=2G", "performance_schema=ON"]).expect("settings");
        let of = |name| value(&settings, MARIADB.0, MARIADB.1, name);
        assert_eq!(of("innodb_buffer_pool_size").as_deref(), Some("2G"));
        assert_eq!(of("performance_schema").as_deref(), Some("ON"));
        assert_eq!(settings.buffer_pool(), 2 << 30);
    }

    #[test]
    fn a_redo_log_of_the_user_replaces_ours_whatever_its_name() {
        let settings = settings(&["innodb_log_file_size=64M"]).expect("settings");
        assert_eq!(value(&settings, NEWEST.0, NEWEST.1, "innodb_redo_log_capacity"), None);
        assert_eq!(
            value(&settings, NEWEST.0, NEWEST.1, "innodb_log_file_size").as_deref(),
            Some("64M")
        );
    }

    #[test]
    fn the_redo_log_is_as_large_as_the_servers_rule_makes_it_of_what_the_user_sets() {
        const OLD: (Product, Version) = (Product::MySql, Version::new(5, 6, 14));
        let mebibytes = |(product, version), set: &[&str]| {
            let settings = settings(set).expect("settings");
            settings.redo_log(&Capabilities::of(product, version)) >> 20
        };
        for server in [MARIADB, OLD, NEWEST] {
            assert_eq!(mebibytes(server, &[]), 1024, "ours");
        }
        let size = ["innodb_log_file_size=96M"];
        assert_eq!(mebibytes(MARIADB, &size), 96);
        assert_eq!(mebibytes(OLD, &size), 192);
        assert_eq!(mebibytes(NEWEST, &size), 192);
        let both = ["innodb-log-file-size=2G", "innodb_log_files_in_group=4"];
        assert_eq!(
            mebibytes(MARIADB, &both),
            2 << 10,
            "the number of files means nothing since 10.5"
        );
        assert_eq!(mebibytes(OLD, &both), 8 << 10);
        assert_eq!(mebibytes(NEWEST, &["innodb_redo_log_capacity=3G"]), 3 << 10);
    }

    #[test]
    fn the_binary_log_is_off_unless_the_user_wants_it() {
        let told = |set: &[&str]| -> Vec<String> {
            let told = settings(set)
                .expect("settings")
                .told(&Capabilities::of(NEWEST.0, NEWEST.1));
            told.into_iter().map(|setting| setting.name).collect()
        };
        assert!(told(&[]).contains(&"skip_log_bin".to_owned()));
        assert!(!told(&["log-bin=binlog"]).contains(&"skip_log_bin".to_owned()));
    }

    #[test]
    fn a_place_among_others_replaces_what_we_pin_and_the_user_both() {
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            origin: Origin::Pinned,
        };
        let place = vec![
            Setting {
                origin: Origin::Place,
                ..setting("server_id", "2")
            },
            setting("log_bin", "binlog"),
            setting("plugin_load_add", "a.so"),
        ];
        let settings = settings(&["log-bin=mine", "plugin-load-add=b.so", "server-id=7"])
            .expect("settings")
            .at_place(place);
        let of = |name| value(&settings, NEWEST.0, NEWEST.1, name);
        assert_eq!(
            (of("server_id").as_deref(), of("log_bin").as_deref()),
            (Some("2"), Some("mine"))
        );
        let told = settings.told(&Capabilities::of(NEWEST.0, NEWEST.1));
        let plugins = told.iter().filter(|setting| setting.name == "plugin_load_add").count();
        assert_eq!(plugins, 2);
        assert!(settings.asked().tcp && !told.iter().any(|setting| setting.name == "skip_log_bin"));
    }

    #[test]
    fn hot_pages_are_wanted_by_the_users_last_word() {
        let wanted = |set: &[&str]| settings(set).expect("settings").loads_hot_pages();
        let (on, off) = (
            "innodb-buffer-pool-load-at-startup=ON",
            "innodb_buffer_pool_load_at_startup=0",
        );
        assert_eq!(
            [wanted(&[]), wanted(&[on]), wanted(&[on, off]), wanted(&[off, on])],
            [false, true, false, true]
        );
    }

    #[test]
    fn only_settings_that_shape_files_are_part_of_the_key() {
        let key = |set: &[&str]| {
            settings(set)
                .expect("settings")
                .shaping_files(&Capabilities::of(NEWEST.0, NEWEST.1))
        };
        assert_eq!(key(&[]), key(&["innodb_spin_wait_delay=20", "max_connections=7"]));
        assert_ne!(key(&[]), key(&["innodb_page_size=8K"]));
        assert_ne!(key(&[]), key(&["character-set-server=latin1"]));
    }
}
