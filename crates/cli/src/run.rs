//! `scaleprof run`.

use crate::arguments::RunArguments;
use crate::load_arguments::LadderArguments;
use crate::show;
use crate::stop;
use crate::terminal::TerminalProgress;
use scaleprof_experiment::{RunOptions, RunResult, ServerChoice, run};
use scaleprof_server::ServerSettings;
use std::process::ExitCode;

pub(crate) fn execute(arguments: RunArguments) -> anyhow::Result<ExitCode> {
    let options = RunOptions {
        load: arguments.load.options()?,
        connections: arguments.ladder.rungs()?,
        refine: !arguments.ladder.no_refine,
        repeats: arguments.ladder.repeats,
        seconds: arguments.ladder.seconds,
        watch: arguments.probe.options()?,
        output: arguments.ladder.output(&arguments.load.workload),
        command: public_command(our_arguments()),
        server: ServerChoice::Private {
            path: arguments.server,
            settings: Box::new(ServerSettings {
                buffer_pool: arguments.buffer_pool,
                performance_schema: arguments.performance_schema,
                defaults_file: arguments.defaults_file,
                set: arguments.set,
                ..ServerSettings::default()
            }),
            cpus_server: arguments.cpus_server,
            cpus_client: arguments.cpus_client,
            work_folder: arguments.work_folder,
            use_cache: !arguments.no_cache,
        },
    };
    carry_out(&options, &arguments.ladder)
}

/// Runs and shows what came of it; for `run` and `attach`.
pub(crate) fn carry_out(options: &RunOptions, ladder: &LadderArguments) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut progress = TerminalProgress::new(ladder.quiet);
    let result = run(options, &stop, &mut progress);
    progress.finish();
    let RunResult {
        bundle,
        summary,
        problem,
    } = result?;
    let page = show::write_page(&bundle, &summary, &options.output);
    match ladder.json {
        true => print!("{}", show::summary_json(&summary)?),
        false => print!("{}", show::table(&summary)),
    }
    if let (Ok(page), false) = (&page, ladder.json) {
        println!("\nReport: {}", page.display());
    }
    match problem {
        // What ended the run comes first: a full disk also keeps the page from being written.
        Some(problem) => {
            eprintln!("What was measured until then is in {}", options.output.display());
            Err(problem.into())
        }
        None => page.map(|_| ExitCode::SUCCESS),
    }
}

/// Our command line behind the program's name; a path that is not UTF-8 shows with replacement characters.
pub(crate) fn our_arguments() -> impl Iterator<Item = String> {
    std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
}

/// Options whose values name places, accounts or hosts.
const PRIVATE: [&str; 16] = [
    "--server",
    "--defaults-file",
    "--work-folder",
    "--output",
    "--dsn",
    "--socket",
    "--user",
    "--setup",
    "--set",
    "--host",
    "--workload",
    "--password",
    "--bundle",
    "--ssl-ca",
    "--ssl-cert",
    "--ssl-key",
];

/// The command line without what should not be given to others: values of private options are replaced by three
/// dots, but for settings and workloads that are plain words.
pub(crate) fn public_command(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut out = vec!["scaleprof".to_owned()];
    let mut hide_next = false;
    for argument in arguments {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (argument.as_str(), None),
        };
        if hide_next {
            out.push(shown(&argument));
            hide_next = false;
        } else if PRIVATE.contains(&name) {
            match value {
                Some(value) => out.push(format!("{name}={}", shown(value))),
                None => {
                    hide_next = true;
                    out.push(argument);
                }
            }
        } else {
            out.push(argument);
        }
    }
    out
}

/// A value as it may be shown: the names of workloads, and settings that are a number or a switch.
fn shown(value: &str) -> String {
    let workload = value.parse::<scaleprof_workload::OltpWorkloadKind>().is_ok();
    let setting = value
        .split_once('=')
        .is_some_and(|(name, value)| is_setting(name) && is_number_or_switch(value));
    match workload || setting {
        true => value.to_owned(),
        false => "...".to_owned(),
    }
}

fn is_setting(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// `4`, `0.5`, `128M`, `ON`, and the words of well-known settings. Any other word may be somebody's name.
fn is_number_or_switch(value: &str) -> bool {
    const WORDS: [&str; 14] = [
        "on",
        "off",
        "true",
        "false",
        "default",
        "none",
        "all",
        "o_direct",
        "o_direct_no_fsync",
        "o_dsync",
        "fsync",
        "pool-of-threads",
        "one-thread-per-connection",
        "crc32",
    ];
    let digits = value.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']).unwrap_or(value);
    digits.parse::<f64>().is_ok_and(f64::is_finite) || WORDS.contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::public_command;

    fn public(line: &str) -> String {
        public_command(line.split(' ').map(str::to_owned)).join(" ")
    }

    #[test]
    fn places_and_accounts_are_hidden() {
        assert_eq!(
            public("run --server /opt/secret/mysql --set innodb_spin_wait_delay=6 --seconds 5 --output=/home/anna/x"),
            "scaleprof run --server ... --set innodb_spin_wait_delay=6 --seconds 5 --output=..."
        );
        assert_eq!(
            public("run --workload customers.sql --set init_connect=x --set innodb_data_home_dir=anna"),
            "scaleprof run --workload ... --set ... --set ..."
        );
        assert_eq!(
            public("run --set sync_binlog=1 --set innodb_flush_method=O_DIRECT --workload oltp_anna.sql"),
            "scaleprof run --set sync_binlog=1 --set innodb_flush_method=O_DIRECT --workload ..."
        );
        assert_eq!(
            public("attach --dsn mysql://anna@db --workload oltp_insert"),
            "scaleprof attach --dsn ... --workload oltp_insert"
        );
    }
}
