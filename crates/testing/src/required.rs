//! What to do where something that a test needs is not there.

use std::path::PathBuf;

/// Whether nothing may be skipped: the environment has CI, and not as `false` or empty.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false")
}

/// Says aloud, as `format!` would write it, what is skipped and why. In CI it is a failure.
///
/// # Panics
/// In CI.
#[macro_export]
macro_rules! skip {
    ($($words:tt)*) => {{
        let words = format!($($words)*);
        assert!(!$crate::in_ci(), "CI may skip nothing: {words}");
        eprintln!("\n*** SKIPPED {words}\n");
    }};
}

/// A server that the tests take where it is there, and that CI does without: it has another MariaDB.
const OPTIONAL: &str = "mariadb-11.8";

/// Says that a server is not there.
///
/// # Panics
/// In CI, unless it does without this one.
pub fn no_server(name: &str, why: &str) {
    if name == OPTIONAL {
        eprintln!("\n*** {name} is not there, so nothing is tried on it: {why}\n");
    } else {
        skip!("{name}: {why}\n*** `scaleprof servers fetch` fetches servers, see ./test");
    }
}

/// The folder of `scaleprof servers`, by the same rule.
pub fn servers_cache() -> PathBuf {
    let var = |name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let home = || var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")));
    var("SCALEPROF_SERVERS").unwrap_or_else(|| match rustix::process::geteuid().is_root() {
        true => PathBuf::from("/var/cache/scaleprof/servers"),
        false => home().unwrap_or_default().join("scaleprof/servers"),
    })
}
