//! What programs that we start see of our environment.
//!
//! Whoever runs as the same user as a program can read its variables (proc_pid_environ(5)), and
//! servers run as another user than root, whose variables hold passwords and keys to clouds. So a
//! child gets those on a list, and no others.

use std::ffi::OsStr;
use std::process::Command;

/// What any program may need: where programs are, words and time, masks of new files, temporary
/// files.
const FOR_ALL: [&str; 10] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "UMASK",
    "UMASK_DIR",
    "GLIBC_TUNABLES",
    "OPENSSL_CONF",
];
/// The same by how they begin: words, libraries, memory (of glibc, jemalloc, tcmalloc and
/// mimalloc).
const BEGINNINGS_FOR_ALL: [&str; 6] = ["LC_", "LD_", "MALLOC_", "JEMALLOC_", "TCMALLOC_", "MIMALLOC_"];
/// And how they end: sanitizers.
const ENDING_FOR_ALL: &str = "SAN_OPTIONS";

/// What programs that download need besides, as curl, apt and debuginfod-find do: homes for their
/// caches, proxies and certificates. A proxy's address may hold a password: only for programs that
/// run as we do.
pub const FOR_DOWNLOADS: [&str; 23] = [
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "DEBUGINFOD_URLS",
    "DEBUGINFOD_CACHE_PATH",
    "DEBUGINFOD_HEADERS_FILE",
    "DEBUGINFOD_TIMEOUT",
    "DEBUGINFOD_MAXTIME",
    "DEBUGINFOD_MAXSIZE",
    "DEBUGINFOD_RETRY_LIMIT",
    "DEBUGINFOD_IMA_CERT_PATH",
    "APT_CONFIG",
];

fn is_for_all(name: &str) -> bool {
    let begins = BEGINNINGS_FOR_ALL.iter().any(|beginning| name.starts_with(beginning));
    begins || name.ends_with(ENDING_FOR_ALL) || FOR_ALL.contains(&name)
}

/// Gives a program of our environment what any program may need, and what is named.
pub fn with_clean_environment<'a>(command: &'a mut Command, named: &[&str]) -> &'a mut Command {
    let passed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        is_for_all(name) || named.contains(&name)
    };
    command.env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| passed(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run by itself as a child, as the variables of a test's own process are those of all its
    /// tests.
    #[test]
    fn a_child_gets_what_it_needs_and_no_secret() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "env"]);
        let out = with_clean_environment(&mut shell, &["HOME"]).output().expect("a shell");
        let out = String::from_utf8(out.stdout).expect("text");
        let names: Vec<&str> = out.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert!(names.contains(&"PATH"), "{names:?}");
        // PWD and _ are the shell's own, and cargo's variables are those of every test.
        assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO_")));
        let own = ["PWD", "OLDPWD", "SHLVL", "_", "HOME"];
        assert!(
            names.iter().all(|name| is_for_all(name) || own.contains(name)),
            "{names:?}"
        );
    }
}
