//! `scaleprof attach`: watching a server under a load that is not ours.

use crate::arguments::AttachArguments;
use crate::exit::Exit;
use crate::output::{put, say};
use crate::public_command::{our_arguments, public_command};
use crate::show;
use crate::stop;
use crate::terminal::TerminalProgress;
use anyhow::bail;
use scaleprof_experiment::{RunningServer, WatchRequest, WatchResult, running_servers, watch};
use std::process::ExitCode;

pub(crate) fn execute(arguments: &AttachArguments, quiet: bool) -> anyhow::Result<ExitCode> {
    if arguments.socket.is_some() || arguments.dsn.is_some() {
        bail!(
            "attach only watches\nfix: to load the server: scaleprof run {}; to watch it: scaleprof attach --pid PID",
            match &arguments.socket {
                Some(path) => format!("-S {}", path.display()),
                None => "--dsn DSN".to_owned(),
            }
        );
    }
    let pid = match arguments.pid {
        Some(pid) => pid,
        None => match running_servers().as_slice() {
            [only] => only.pid,
            [] => bail!("no mysqld or mariadbd is visible to this user\nfix: name the process with --pid PID"),
            several => {
                eprintln!("error: several servers run here:");
                for RunningServer { pid, name } in several {
                    eprintln!("{pid:>9}  {name}");
                }
                eprintln!("  fix: name one with --pid PID");
                return Ok(Exit::Usage.into());
            }
        },
    };
    let request = WatchRequest {
        pid,
        force: arguments.any_process,
        seconds: arguments.seconds,
        options: arguments.probe.options()?,
        output: arguments.result.output("attach"),
        command: public_command(our_arguments()),
    };
    let stop = stop::flag()?;
    let mut progress = TerminalProgress::new(quiet);
    let result = watch(&request, &stop, &mut progress);
    progress.finish();
    let WatchResult {
        bundle,
        summary,
        problem,
    } = result?;
    match arguments.result.json {
        true => put!("{}", show::summary_json(&summary)?),
        false => {
            put!("{}", show::table(&summary));
            let page = show::write_page(&bundle, &summary, &bundle.path)?;
            say!("\nReport: {}", page.display());
        }
    }
    match problem {
        None => Ok(ExitCode::SUCCESS),
        Some(problem) => bail!("{problem}; what was seen until then is in {}", bundle.path.display()),
    }
}
