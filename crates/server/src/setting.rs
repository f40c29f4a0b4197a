//! One setting: its name, its value, who chose it, and whether a user may choose it at all.

use crate::error::Error;
use serde::{Deserialize, Serialize};

/// Who chose a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// We pin it.
    Pinned,
    /// The user gave it with `--set`.
    User,
    /// It is this server's own among several, such as its number and its address: nobody else can choose it.
    Place,
}

/// One setting as the server is told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The name with underscores, as in SHOW VARIABLES.
    pub name: String,
    /// The value; none for a bare flag such as `skip_log_bin`.
    pub value: Option<String>,
    /// Who chose it.
    pub origin: Origin,
}

/// What keeps the server private is ours alone.
pub(crate) const RESERVED: [&str; 27] = [
    "basedir",
    "bind_address",
    "bootstrap",
    "chroot",
    "console",
    "daemonize",
    "datadir",
    "defaults_extra_file",
    "defaults_file",
    "help",
    "init_file",
    "initialize",
    "initialize_insecure",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "log_error",
    "no_defaults",
    "pid_file",
    "port",
    "print_defaults",
    "skip_grant_tables",
    "skip_networking",
    "socket",
    "tmpdir",
    "user",
    "version",
];

/// The name without `loose_`, `skip_` and the like.
pub(crate) fn base_name(name: &str) -> &str {
    let mut name = name;
    for prefix in ["loose_", "skip_", "disable_", "enable_", "maximum_"] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    name
}

/// One spelling of a setting's name: servers take `-` for `_` in it, capitals and small letters alike, and `--` before it.
pub fn one_spelling(name: &str) -> String {
    name.trim()
        .trim_start_matches("--")
        .replace('-', "_")
        .to_ascii_lowercase()
}

/// Reads a `--set NAME[=VALUE]`.
pub(crate) fn parse_set(text: &str) -> Result<Setting, Error> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.trim().to_owned())),
        None => (text, None),
    };
    let name = one_spelling(name);
    let bad = |reason: String| {
        Err(Error::BadSetting {
            name: text.to_owned(),
            reason,
        })
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
        return bad("a setting is NAME=VALUE, or NAME for a bare flag".to_owned());
    }
    if RESERVED.contains(&name.as_str()) || RESERVED.contains(&base_name(&name)) {
        return bad(format!(
            "scaleprof sets {name} itself, to isolate this server from others"
        ));
    }
    if value
        .as_deref()
        .is_some_and(|value| value.contains(|c: char| c.is_control()))
    {
        return bad("the value holds a line break or control character".to_owned());
    }
    Ok(Setting {
        name,
        value,
        origin: Origin::User,
    })
}

/// Reads `128M`, `1G`, `1073741824` as the servers do.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    digits.parse::<u64>().ok()?.checked_shl(shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_keeps_the_server_private_cannot_be_set() {
        for text in [
            "datadir=/var/lib/mysql",
            "--socket=/run/mysqld.sock",
            "loose-user=mysql",
            "skip_networking",
        ] {
            let error = parse_set(text).expect_err(text);
            assert!(error.to_string().contains("scaleprof sets"), "{error}");
        }
        assert!(parse_set("a b=c").is_err());
        assert!(parse_set("=c").is_err());
        assert!(parse_set("x=1\ny=2").is_err());
    }

    proptest! {
        #[test]
        fn sizes_are_read_as_the_server_reads_them(number in 0u64..1 << 20, unit in 0usize..5) {
            let text = format!("{number}{}", ["", "K", "m", "G", "T"][unit]);
            prop_assert_eq!(parse_size(&text), Some(number << (10 * unit)));
        }
    }
}
