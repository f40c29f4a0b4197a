//! `--debuginfod`: names of a stripped program from elfutils' own server, on loopback, and only when asked for.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::stage::{bundle, fail, place, scaleprof, succeed};
use testing::{Killed, soon};

fn run(program: &str, arguments: &[&str], folder: &Path) {
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {arguments:?}");
}

const PROGRAM: &str = r#"
#include <stdio.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void only_debuginfod_knows_me(void) { for (int i = 0; i < 1000000; i++) sink += i; }
int main(void) { puts("ready"); fflush(stdout); for (;;) only_debuginfod_knows_me(); }
"#;

/// A stripped program that runs, and a folder with what was stripped off it.
fn stripped(folder: &Path) -> Killed {
    std::fs::write(folder.join("busy.c"), PROGRAM).expect("written");
    std::fs::create_dir(folder.join("debug")).expect("made");
    run("cc", &["-O1", "-g", "-Wl,--build-id", "-o", "busy", "busy.c"], folder);
    run("objcopy", &["--only-keep-debug", "busy", "debug/busy.debug"], folder);
    run("strip", &["busy"], folder);
    let mut child = Command::new(folder.join("busy"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("piped");
    let child = Killed(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("it speaks");
    assert_eq!(line, "ready\n");
    child
}

fn build_id(binary: &Path) -> String {
    let search = scaleprof_probe::symbols::SymbolSearch::nowhere();
    let file = scaleprof_probe::symbols::SymbolFile::open(binary, &search).expect("ELF");
    file.build_id().expect("the linker made one")
}

#[test]
fn debuginfod_names_a_stripped_program_when_asked_and_only_then() {
    if Command::new("debuginfod").arg("--version").output().is_err() {
        testing::skip!("debuginfod is not here (apt-get install debuginfod)");
        return;
    }
    let place = place();
    let folder = place.path();
    let program = stripped(folder);
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port();
    let _server = Killed::start(
        Command::new("debuginfod")
            .args(["-p", &port.to_string(), "-d", ":memory:", "-t", "1", "-F", "debug"])
            .current_dir(folder)
            .env("HOME", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    );
    let address = format!(
        "http://127.0.0.1:{port}/buildid/{}/debuginfo",
        build_id(&folder.join("busy"))
    );
    let scanned = || {
        let asked = Command::new("curl").args(["-sf", "-o", "/dev/null", &address]).status();
        asked.is_ok_and(|status| status.success())
    };
    soon("it has scanned the folder", scanned);
    let watched = |output: &str, more: &[&str]| {
        let mut command = scaleprof();
        command
            .args(["attach", "--quiet", "--any-process", "--seconds", "2", "--pid"])
            .arg(program.pid().to_string())
            .arg("--output")
            .arg(folder.join(output))
            .args(more)
            .env("DEBUGINFOD_URLS", format!("http://127.0.0.1:{port}"))
            .env("DEBUGINFOD_CACHE_PATH", folder.join("cache"));
        succeed(&mut command);
        let frames = bundle(&folder.join(output)).frames;
        frames
            .iter()
            .any(|frame| frame.function.as_deref() == Some("only_debuginfod_knows_me"))
    };
    assert!(!watched("without", &[]));
    assert!(!folder.join("cache").exists(), "nobody asked");
    assert!(watched("with", &["--debuginfod"]));
    // What was fetched once is there, without asking.
    assert!(watched("again", &[]));
}

#[test]
fn debuginfod_without_a_server_is_refused_with_what_to_do() {
    let mut command = scaleprof();
    command
        .args(["attach", "--any-process", "--debuginfod", "--pid"])
        .arg(std::process::id().to_string())
        .env_remove("DEBUGINFOD_URLS");
    let error = fail(&mut command, 1);
    assert!(error.contains("export DEBUGINFOD_URLS="), "{error}");
}
