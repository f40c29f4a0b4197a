//! The plugins that a server is to load when it starts.

use super::{ADDS, Settings};
use crate::Error;
use crate::option_text::option_values;
use std::path::Path;

impl Settings {
    /// The plugins that the user wants at the start, in `--set` and in the option file: what loads them as it is written, such as
    /// `name=file.so;other.so`.
    pub fn plugins(&self) -> Vec<String> {
        let is_it = |name: &str| ["plugin_load", ADDS].contains(&name.strip_prefix("loose_").unwrap_or(name));
        let of_user = self.user.iter().filter(|setting| is_it(&setting.name));
        let text = self.with_included.as_deref().unwrap_or_default();
        let of_file = ["plugin_load", ADDS]
            .into_iter()
            .flat_map(|name| option_values(text, name));
        of_file
            .chain(of_user.filter_map(|setting| setting.value.clone()))
            .collect()
    }

    /// Whether all plugins that are wanted at the start are in the server's folder: a server that cannot find one says so in its log, starts all
    /// the same, and would be measured as one that has it.
    pub(crate) fn check_plugins(&self, folder: Option<&Path>) -> Result<(), Error> {
        let Some(folder) = folder.filter(|_| self.value_of("plugin_dir").is_none()) else {
            return Ok(());
        };
        let wanted = self.plugins();
        let files = wanted.iter().flat_map(|value| value.split([';', ':']));
        let mut files = files.map(|one| one.rsplit('=').next().unwrap_or(one).trim());
        // MariaDB's may be named without their ending.
        let is_there = |file: &str| folder.join(file).is_file() || folder.join(format!("{file}.so")).is_file();
        match files.find(|file| !file.is_empty() && !is_there(file)) {
            None => Ok(()),
            Some(file) => Err(Error::BadSetting {
                name: "plugin_load_add".to_owned(),
                reason: format!(
                    "this server's plugin folder, {}, has no {file}: install the package that has it, or name another one",
                    folder.display()
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerSettings;

    #[test]
    fn a_plugin_that_is_not_there_is_named_before_a_server_would_start_without_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("thread_pool.so"), "").expect("written");
        let checked = |set: &[&str]| {
            let found = Settings::new(ServerSettings {
                connections: 1,
                buffer_pool: Some(1 << 26),
                set: set.iter().map(|text| (*text).to_owned()).collect(),
                ..ServerSettings::default()
            })
            .expect("settings")
            .check_plugins(Some(folder.path()));
            found.map_err(|error| error.to_string())
        };
        for fine in [
            "plugin_load_add=thread_pool.so",
            "plugin-load=tp=thread_pool.so;thread_pool",
            "loose_plugin_load_add=thread_pool.so",
            "max_connections=7",
        ] {
            assert_eq!(checked(&[fine]), Ok(()), "{fine}");
        }
        let lacking = checked(&["plugin_load_add=thread_pool.so", "plugin_load_add=x=audit.so"]).expect_err("lacking");
        assert!(
            lacking.contains("plugin_load_add") && lacking.contains("has no audit.so"),
            "{lacking}"
        );
        assert_eq!(checked(&["plugin_load_add=audit.so", "plugin_dir=/elsewhere"]), Ok(()));
    }
}
