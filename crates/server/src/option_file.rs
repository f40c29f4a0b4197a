//! The option file that a private server is started with.

use crate::capabilities::Capabilities;
use crate::identify::Installation;
use crate::setting::{Origin, Setting, base_name};
use crate::settings::Settings;
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
    /// beside its data are to be touched, and nobody is to join its cluster. `--set` can still choose otherwise.
    fn behind_include(&self, told: &[Setting], places: &Places<'_>) -> Vec<(&'static str, Option<String>)> {
        let in_data = |name: &str| Some(places.data.join(name).to_string_lossy().into_owned());
        let word = |value: &str| Some(value.to_owned());
        let mut lines = vec![
            ("general_log_file", in_data("general.log")),
            ("slow_query_log_file", in_data("slow.log")),
            ("relay_log", in_data("relay")),
            ("relay_log_index", in_data("relay.index")),
            ("loose_innodb_doublewrite_dir", word(&places.data.to_string_lossy())),
            (
                "loose_innodb_temp_tablespaces_dir",
                word(&places.temporary.to_string_lossy()),
            ),
            ("loose_innodb_buffer_pool_filename", word("ib_buffer_pool")),
            ("loose_wsrep_on", word("OFF")),
            ("loose_wsrep_provider", word("none")),
            ("loose_wsrep_cluster_address", word("")),
            ("loose_group_replication_start_on_boot", word("OFF")),
        ];
        let logs = told
            .iter()
            .any(|setting| base_name(&setting.name) == "log_bin" && setting.origin != Origin::Pinned);
        lines.push(match logs {
            true => ("log_bin_index", in_data("binlog.index")),
            false => ("skip_log_bin", None),
        });
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

fn quote(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_value_breaks_out_of_its_line(value in "[^\\p{Cc}]*") {
            let line = quote(&value);
            prop_assert!(line.starts_with('"') && line.ends_with('"') && line.len() >= 2);
            let inner = line[1..line.len() - 1].replace("\\\\", "").replace("\\\"", "");
            prop_assert!(!inner.contains('"'));
        }
    }
}
