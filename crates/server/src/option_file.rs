//! The option file that a private server is started with.

use crate::capabilities::Capabilities;
use crate::identify::Installation;
use crate::setting::{Origin, Setting, base_name};
use crate::settings::{ADDS, Settings};
use std::fmt::Write as _;
use std::path::Path;

/// The places that a server's option file names.
#[derive(Debug, Clone)]
pub(crate) struct Places<'a> {
    pub installation: &'a Installation,
    pub data: &'a Path,
    pub temporary: &'a Path,
    pub socket: &'a Path,
    pub pid_file: &'a Path,
    pub error_log: &'a Path,
    /// The copy of the user's option file that the server's user can read.
    pub include: Option<&'a Path>,
    pub port: Option<u16>,
}

impl Settings {
    /// The option file of one server. It is the whole truth: the server reads no other, and anyone can start the
    /// same server by hand with it.
    pub(crate) fn option_file(&self, capabilities: &Capabilities, places: &Places<'_>) -> String {
        let mut file = String::from("# Written by scaleprof; later lines win.\n[mysqld]\n");
        let told = self.told(capabilities);
        let write = |file: &mut String, setting: &Setting| match &setting.value {
            Some(value) => writeln!(file, "{} = {}", setting.name, quote(value)),
            None => writeln!(file, "{}", setting.name),
        };
        for setting in told.iter().filter(|setting| setting.origin == Origin::Pinned) {
            let _ = write(&mut file, setting);
        }
        if let Some(include) = places.include {
            let _ = writeln!(file, "!include {}\n[mysqld]", include.display());
            for (name, value) in self.behind_include(&told, places) {
                let _ = match value {
                    Some(value) => writeln!(file, "{name} = {}", quote(&value)),
                    None => writeln!(file, "{name}"),
                };
            }
            // What its place among other servers asks of it stands before the include too, where `--set` takes its place.
            let of_place = told
                .iter()
                .filter(|setting| self.is_of_place(setting) && setting.name != ADDS);
            for setting in of_place {
                let _ = write(&mut file, setting);
            }
        }
        for origin in [Origin::User, Origin::Place] {
            for setting in told.iter().filter(|setting| setting.origin == origin) {
                let _ = write(&mut file, setting);
            }
        }
        for (name, path) in self.place_lines(places) {
            let _ = writeln!(file, "{name} = {}", quote(&path.to_string_lossy()));
        }
        let _ = match places.port {
            Some(port) => writeln!(file, "port = {port}\nbind_address = 127.0.0.1"),
            None => writeln!(file, "skip_networking"),
        };
        // The compiled-in default is a folder of the distribution's own instance, and 9.7 aborts when it is absent.
        file.push_str("secure_file_priv =\n");
        file
    }

    /// What an option file of the user's may not decide. It may be that of the system's own instance: neither its logs nor the files
    /// beside its data are to be touched, and nobody is to join its cluster. `--set` can still choose otherwise. A binary log that it asks
    /// for is written, beside our data.
    fn behind_include(&self, told: &[Setting], places: &Places<'_>) -> Vec<(&'static str, Option<String>)> {
        let data = |name: &str| Some(places.data.join(name).to_string_lossy().into_owned());
        let mut lines: Vec<(&'static str, Option<String>)> = KEPT_APART
            .iter()
            .map(|(name, place)| {
                let value = match place {
                    Apart::InData(file) => data(file),
                    Apart::Data => Some(places.data.to_string_lossy().into_owned()),
                    Apart::Temporary => Some(places.temporary.to_string_lossy().into_owned()),
                    Apart::Word(word) => Some((*word).to_owned()),
                };
                (*name, value)
            })
            .collect();
        let is = |setting: &Setting, name: &str| setting.name.strip_prefix("loose_").unwrap_or(&setting.name) == name;
        let users = |name: &str| {
            told.iter()
                .any(|setting| setting.origin == Origin::User && is(setting, name))
        };
        let of_place = told
            .iter()
            .any(|setting| self.is_of_place(setting) && is(setting, "log_bin"));
        let index = ("log_bin_index", data("binlog.index"));
        match (users("log_bin") || of_place, self.defaults_file_names("log_bin")) {
            (true, _) => lines.push(index),
            (false, true) if !users("skip_log_bin") => lines.extend([("log_bin", data("binlog")), index]),
            (false, _) => lines.push(("skip_log_bin", None)),
        }
        lines
    }

    fn place_lines<'a>(&self, places: &Places<'a>) -> Vec<(&'static str, &'a Path)> {
        let mut lines = vec![
            ("basedir", places.installation.basedir.as_path()),
            ("datadir", places.data),
            ("tmpdir", places.temporary),
            ("socket", places.socket),
            ("pid_file", places.pid_file),
            ("log_error", places.error_log),
        ];
        let parts = [
            ("lc_messages_dir", &places.installation.messages),
            ("character_sets_dir", &places.installation.charsets),
            ("plugin_dir", &places.installation.plugins),
        ];
        lines.extend(parts.iter().filter_map(|(name, path)| Some((*name, path.as_deref()?))));
        if places.include.is_some() {
            // The user's file may be that of the system's own instance. Its data is not to be touched.
            lines.extend([
                ("innodb_data_home_dir", places.data),
                ("innodb_log_group_home_dir", places.data),
                ("loose_innodb_undo_directory", places.data),
                ("loose_aria_log_dir_path", places.data),
            ]);
        }
        lines
    }
}

/// Where a file or folder is that another instance could have too.
enum Apart {
    InData(&'static str),
    Data,
    Temporary,
    Word(&'static str),
}

/// Settings of which an option file may hold those of another instance, and what they are here.
const KEPT_APART: [(&str, Apart); 21] = [
    ("general_log_file", Apart::InData("general.log")),
    ("slow_query_log_file", Apart::InData("slow.log")),
    ("relay_log", Apart::InData("relay")),
    ("relay_log_index", Apart::InData("relay.index")),
    ("loose_master_info_file", Apart::Word("master.info")),
    ("loose_relay_log_info_file", Apart::Word("relay-log.info")),
    ("loose_innodb_doublewrite_dir", Apart::Data),
    ("loose_innodb_temp_tablespaces_dir", Apart::Temporary),
    ("loose_innodb_buffer_pool_filename", Apart::Word("ib_buffer_pool")),
    ("loose_innodb_directories", Apart::Word("")),
    ("loose_rocksdb_datadir", Apart::InData(".rocksdb")),
    ("loose_rocksdb_wal_dir", Apart::Word("")),
    ("loose_server_audit_logging", Apart::Word("OFF")),
    ("loose_server_audit_file_path", Apart::InData("server_audit.log")),
    ("loose_audit_log_file", Apart::InData("audit.log")),
    ("loose_keyring_file_data", Apart::InData("keyring")),
    ("loose_wsrep_on", Apart::Word("OFF")),
    ("loose_wsrep_provider", Apart::Word("none")),
    ("loose_wsrep_cluster_address", Apart::Word("")),
    ("loose_group_replication_start_on_boot", Apart::Word("OFF")),
    ("loose_group_replication_bootstrap_group", Apart::Word("OFF")),
];

/// Whether a setting has a value of ours whatever an option file of the user's says.
pub(crate) fn is_kept_apart(name: &str) -> bool {
    KEPT_APART.iter().any(|(ours, _)| base_name(ours) == name)
}

fn quote(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::{Product, Version};
    use crate::settings::ServerSettings;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn no_value_breaks_out_of_its_line(value in "[^\\p{Cc}]*") {
            let line = quote(&value);
            prop_assert!(line.starts_with('"') && line.ends_with('"') && line.len() >= 2);
            let inner = line[1..line.len() - 1].replace("\\\\", "").replace("\\\"", "");
            prop_assert!(!inner.contains('"'));
        }
    }

    /// What a server with that option file of the user's reads behind it, by name; later lines win.
    fn behind(users_file: &str, set: &[&str], of_place: Vec<Setting>) -> BTreeMap<String, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), users_file).expect("written");
        let settings = Settings::new(ServerSettings {
            defaults_file: Some(file.path().to_owned()),
            set: set.iter().map(|set| (*set).to_owned()).collect(),
            ..ServerSettings::default()
        });
        let settings = settings.expect("settings").at_place(of_place);
        let installation = Installation {
            product: Product::MySql,
            version: Version::new(8, 0, 36),
            version_text: String::new(),
            binary: "/x/mysqld".into(),
            basedir: "/x".into(),
            share: None,
            messages: None,
            charsets: None,
            plugins: None,
            build_id: None,
        };
        let path = Path::new("/run/data");
        let text = settings.option_file(
            &Capabilities::of(installation.product, installation.version),
            &Places {
                installation: &installation,
                data: path,
                temporary: Path::new("/run/temporary"),
                socket: path,
                pid_file: path,
                error_log: path,
                include: Some(file.path()),
                port: None,
            },
        );
        let (_, behind) = text.split_once("!include ").expect("it is included");
        let lines = behind.lines().skip(2).map(|line| match line.split_once(" = ") {
            Some((name, value)) => (name.to_owned(), value.trim_matches('"').to_owned()),
            None => (line.to_owned(), String::new()),
        });
        lines.collect()
    }

    #[test]
    fn the_binary_log_of_a_users_file_is_never_the_one_that_it_names() {
        let theirs = "[mysqld]\nlog-bin=/var/log/mysql/bin\nlog_bin_index=/var/log/mysql/bin.index\n";
        let told = behind(theirs, &[], Vec::new());
        assert_eq!(
            (&*told["log_bin"], &*told["log_bin_index"]),
            ("/run/data/binlog", "/run/data/binlog.index")
        );
        let told = behind(theirs, &["log_bin=mine"], Vec::new());
        assert_eq!(
            (&*told["log_bin"], &*told["log_bin_index"]),
            ("mine", "/run/data/binlog.index")
        );
        for (file, set) in [("[mysqld]\n", &[][..]), (theirs, &["skip-log-bin"])] {
            let told = behind(file, set, Vec::new());
            assert!(
                told.contains_key("skip_log_bin") && !told.contains_key("log_bin"),
                "{told:?}"
            );
        }
    }

    #[test]
    fn what_a_place_among_others_asks_for_is_not_switched_off_behind_a_users_file() {
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            origin: Origin::Pinned,
        };
        let place = vec![
            setting("log_bin", "binlog"),
            setting("wsrep_on", "ON"),
            setting("wsrep_provider", "/galera.so"),
        ];
        let told = behind(
            "[mysqld]\nwsrep_on=ON\nwsrep_cluster_address=gcomm://192.0.2.1\n",
            &[],
            place,
        );
        assert!(!told.contains_key("skip_log_bin"), "{told:?}");
        assert_eq!(
            [&*told["log_bin"], &*told["wsrep_on"], &*told["wsrep_provider"]],
            ["binlog", "ON", "/galera.so"]
        );
        let alone = behind("[mysqld]\n", &[], Vec::new());
        assert_eq!(alone["loose_wsrep_on"], "OFF");
        assert_eq!(alone["loose_wsrep_cluster_address"], "");
    }
}
