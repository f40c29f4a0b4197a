//! How the user wants recordings to be read.

use crate::import_arguments::RecordingArguments;
use scaleprof_probe::symbol_search;
use scaleprof_profile::import::ReadOptions;
use std::path::PathBuf;

impl RecordingArguments {
    /// As the reader takes it.
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            event: self.event.clone(),
            process: self.process.clone(),
            symfs: self.symfs.clone(),
            build_id_caches: build_id_caches(),
            symbols: symbol_search(),
            inlines: !self.no_inline,
            ..ReadOptions::default()
        }
    }

    /// The options that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--event", self.event.is_some()),
            ("--process", self.process.is_some()),
            ("--symfs", self.symfs.is_some()),
            ("--no-inline", self.no_inline),
        ];
        let given = all.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(name, _)| name).collect()
    }
}

/// Where `perf buildid-cache` keeps files.
fn build_id_caches() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".debug"));
    home.into_iter().collect()
}
