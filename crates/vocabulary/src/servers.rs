//! What a bundle says of a server.

use crate::word::words;

words! {
    /// Where the value of a server's setting comes from.
    SettingSource {
        /// The value that was compiled in.
        Default: "default",
        /// The server derived it from other variables or the machine.
        Computed: "computed",
        /// scaleprof, so that runs can be compared or to isolate the server.
        Pinned: "scaleprof" ("scaleprof, for every run"),
        /// The user, with `--set`.
        User: "user" ("the user"),
        /// An option file.
        OptionFile: "option_file" ("an option file"),
        /// The server's command line.
        CommandLine: "command_line" ("the command line"),
        /// A statement while the server ran, or one whose effect it keeps over restarts.
        Runtime: "runtime" ("a statement"),
    }
}

impl SettingSource {
    /// Whether somebody chose the value.
    #[must_use]
    pub const fn is_chosen(self) -> bool {
        !matches!(self, SettingSource::Default | SettingSource::Computed)
    }
}
