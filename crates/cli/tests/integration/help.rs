//! What `--help` says, completions and manual pages.

use crate::stage::{place, scaleprof, succeed};
use std::path::Path;

const COMMANDS: [&str; 14] = [
    "run",
    "attach",
    "report",
    "diff",
    "experiment",
    "export",
    "import",
    "check",
    "annotate",
    "cachelines",
    "selfbench",
    "servers",
    "cache",
    "completions",
];

/// Compares with `expected/NAME.txt`; with UPDATE_EXPECTED set, writes it instead.
fn is_as_expected(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/integration/expected/{name}.txt"));
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        assert!(!testing::in_ci(), "what was just written is always as expected");
        std::fs::write(&path, text).expect("written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text, expected,
        "the help of {name} changed: set UPDATE_EXPECTED=1 to accept it"
    );
}

#[test]
fn every_command_explains_itself() {
    is_as_expected("scaleprof", &succeed(scaleprof().arg("--help")).0);
    for command in COMMANDS {
        is_as_expected(command, &succeed(scaleprof().args([command, "--help"])).0);
    }
    is_as_expected(
        "servers-fetch",
        &succeed(scaleprof().args(["servers", "fetch", "--help"])).0,
    );
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(scaleprof().args(["completions", shell])).0;
        for word in COMMANDS.into_iter().chain(["connections", "cpus-server"]) {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
        assert!(!script.contains("janitor"), "{shell} offers what is not for people");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let place = place();
    succeed(scaleprof().arg("man").arg(place.path()));
    for command in COMMANDS {
        let page = std::fs::read_to_string(place.path().join(format!("scaleprof-{command}.1"))).expect(command);
        assert!(page.contains(".TH") && page.contains(".SH"), "{page}");
    }
    assert!(place.path().join("scaleprof.1").exists());
    assert!(place.path().join("scaleprof-servers-fetch.1").exists());
}
