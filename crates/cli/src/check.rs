//! `scaleprof check`.

use crate::arguments::CheckArguments;
use crate::exit::Exit;
use crate::global_arguments::has_colours;
use crate::output::say;
use crate::stop;
use crate::terminal::TerminalProgress;
use anyhow::Context;
use scaleprof_builds::server_path;
use scaleprof_bundle::Bundle;
use scaleprof_experiment::{CodeFiles, WatchOptions, WatchRequest, check_hot_code, check_transport, watch};
use scaleprof_probe::{CheckItem, Status};
use scaleprof_server::Installation;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn execute(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let hot = hot_code(arguments)?;
    let installation = match (&arguments.server, arguments.pid) {
        (Some(path), _) => Installation::at(&server_path(path)?).map(Some)?,
        // To ask a program for its version is to run it, which is not for us to do with what somebody runs.
        (None, Some(_)) => None,
        // A lack of a server is one of the things that check is there to say.
        (None, None) => Installation::distribution().ok(),
    };
    let running = arguments
        .pid
        .filter(|_| installation.is_none())
        .map(|pid| (pid, program_of(pid)));
    let binary = match (&installation, &running) {
        (Some(found), _) => Some(found.binary.as_path()),
        (None, Some((_, Ok(program)))) => Some(program.as_path()),
        _ => None,
    };
    let mut items = scaleprof_probe::check(binary, arguments.connections);
    if installation.is_none() && arguments.pid.is_none() && arguments.bundle.is_none() {
        let fix = "apt-get install mariadb-server-core, or give --server";
        items.insert(0, CheckItem::required("server", "none found", fix));
    }
    items.push(check_transport());
    items.extend(hot.map_or_else(Vec::new, |hot| hot(binary)));
    if arguments.json {
        let rows: Vec<_> = items
            .iter()
            .map(|item| {
                serde_json::json!({
                    "topic": item.topic, "status": word(item.status), "found": item.message, "fix": item.fix,
                    "log": item.log,
                })
            })
            .collect();
        let document = serde_json::json!({"schema": 1, "items": rows});
        say!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        let colour = has_colours();
        match &installation {
            Some(found) => say!(
                "server: {} {} ({})\n",
                found.product,
                found.version_text,
                found.binary.display()
            ),
            None => match &running {
                Some((pid, Ok(program))) => say!("server: process {pid} ({})\n", program.display()),
                Some((pid, Err(why))) => say!("server: process {pid}; its program cannot be read: {why}\n"),
                None => {}
            },
        }
        let width = items.iter().map(|item| item.topic.len()).max().unwrap_or(0);
        for item in &items {
            say!("{} {:width$}  {}", mark(item.status, colour), item.topic, item.message);
            if let Some(fix) = &item.fix {
                say!("         {:width$}  -> {fix}", "");
            }
            for line in item.log.iter().filter(|_| arguments.verbose) {
                say!("         {:width$}  | {line}", "");
            }
        }
    }
    let cannot_work = items.iter().any(|item| item.status == Status::Required);
    Ok(match cannot_work {
        true => Exit::RequiredMissing,
        false => Exit::Done,
    }
    .into())
}

/// What the code has of names that a running server or a bundle spends its time in; none where neither was named. It still wants the
/// server's file, where there is one.
fn hot_code(arguments: &CheckArguments) -> anyhow::Result<Option<impl FnOnce(Option<&Path>) -> Vec<CheckItem>>> {
    let (bundle, of_process) = match (&arguments.bundle, arguments.pid) {
        (Some(folder), _) => (Bundle::open(folder)?, None),
        (None, Some(pid)) => {
            // First, as a process may end meanwhile.
            let files = CodeFiles::of_process(pid);
            (watched(pid, arguments.seconds)?, Some(files))
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(move |server: Option<&Path>| {
        let files = of_process.unwrap_or_else(|| CodeFiles::of_machine(server.map(Path::to_owned)));
        check_hot_code(&bundle, &files)
    }))
}

/// What is seen of a process in a few seconds.
fn watched(pid: u32, seconds: u32) -> anyhow::Result<Bundle> {
    let folder = tempfile::tempdir().context("a folder for what is seen cannot be made")?;
    let request = WatchRequest {
        pid,
        force: true,
        seconds,
        options: WatchOptions::default(),
        output: folder.path().join("bundle"),
        command: Vec::new(),
    };
    let stop = stop::flag_beside(folder.path())?;
    let mut progress = TerminalProgress::new(!std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let result = watch(&request, &stop, &mut progress);
    progress.finish();
    Ok(result?.bundle)
}

/// The file that a process runs: by its own name where that is still the same file and lies in our own tree of files, else as the
/// kernel holds it.
fn program_of(pid: u32) -> std::io::Result<PathBuf> {
    let held = PathBuf::from(format!("/proc/{pid}/exe"));
    let named = std::fs::read_link(&held)?;
    let number = |path: &Path| std::fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    let is_same = number(&named).is_some_and(|named| number(&held) == Some(named));
    Ok(if is_same { named } else { held })
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Warn => "warning",
        Status::Missing => "missing",
        Status::Required => "required",
    }
}

fn mark(status: Status, colour: bool) -> String {
    let code = match status {
        Status::Ok => 32,
        Status::Warn => 33,
        Status::Missing => 33,
        Status::Required => 31,
    };
    let word = format!("{:8}", word(status));
    match colour {
        true => format!("\x1b[{code}m{word}\x1b[0m"),
        false => word,
    }
}
