//! `scaleprof check`.

use crate::arguments::CheckArguments;
use crate::output::say;
use scaleprof_probe::Status;
use scaleprof_server::Installation;
use std::io::IsTerminal;
use std::process::ExitCode;

pub(crate) fn execute(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let installation = match &arguments.server {
        Some(path) => Installation::at(path).map(Some)?,
        // A lack of a server is one of the things that check is there to say.
        None => Installation::distribution().ok(),
    };
    let binary = installation.as_ref().map(|found| found.binary.as_path());
    let items = scaleprof_probe::check(binary, arguments.connections);
    if arguments.json {
        let rows: Vec<_> = items
            .iter()
            .map(|item| {
                serde_json::json!({
                    "topic": item.topic, "status": word(item.status), "what": item.what, "mend": item.mend,
                })
            })
            .collect();
        say!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        match &installation {
            Some(found) => say!(
                "server: {} {} ({})\n",
                found.product,
                found.version_text,
                found.binary.display()
            ),
            None => say!("server: none found; apt-get install mariadb-server-core, or give --server\n"),
        }
        let width = items.iter().map(|item| item.topic.len()).max().unwrap_or(0);
        for item in &items {
            say!("{} {:width$}  {}", mark(item.status, colour), item.topic, item.what);
            if let Some(mend) = &item.mend {
                say!("     {:width$}  -> {mend}", "");
            }
        }
    }
    let lacks = items.iter().any(|item| item.status == Status::Lack);
    Ok(ExitCode::from(u8::from(lacks)))
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Warn => "warn",
        Status::Lack => "lack",
    }
}

fn mark(status: Status, colour: bool) -> String {
    let (word, code) = match status {
        Status::Ok => ("ok  ", 32),
        Status::Warn => ("warn", 33),
        Status::Lack => ("lack", 31),
    };
    match colour {
        true => format!("\x1b[{code}m{word}\x1b[0m"),
        false => word.to_owned(),
    }
}
