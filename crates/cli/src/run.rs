//! `scaleprof run`.

use crate::arguments::{PrivateServerArguments, RunArguments};
use crate::credentials;
use crate::load_arguments::ResultArguments;
use crate::output::{put, say};
use crate::show;
use crate::stop;
use crate::terminal::TerminalProgress;
use crate::topology_arguments::TopologyArguments;
use crate::trying;
use anyhow::bail;
use scaleprof_builds::server_path;
use scaleprof_vocabulary::RunState;
use scaleprof_experiment::{
    Attach, LoadOptions, RunOptions, RunResult, ServerChoice, WorkloadChoice, names_something, run,
};
use scaleprof_server::{ServerSettings, Surroundings};
use scaleprof_workload::schema::SCHEMA;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

pub(crate) fn execute(arguments: RunArguments) -> anyhow::Result<ExitCode> {
    let connections = arguments.ladder.rungs()?;
    // Before a password is asked for.
    let mut load = arguments.load.options()?;
    let running = credentials::of(&arguments.address, &arguments.account, &arguments.tls)?;
    let server = match running {
        Some((endpoint, who)) => {
            if !arguments.consent.yes {
                let most = connections.iter().max().copied().unwrap_or(1);
                ask(&format!(
                    "Load {endpoint} with up to {most} connections? {} [y/N] ",
                    match load.workload {
                        WorkloadChoice::Script { .. } => format!(
                            "Your statements are carried out as they are, wherever they write; their default schema is {SCHEMA}."
                        ),
                        _ => format!(
                            "Its tables are kept in the schema {SCHEMA}, and what an earlier load left there is replaced where it does not \
                             fit; no other schema is written to."
                        ),
                    }
                ))?;
            }
            ServerChoice::Attached(Attach {
                endpoint,
                credentials: who,
                drop_schema: arguments.consent.drop_schema,
            })
        }
        None => private(arguments.private, &arguments.topology, &mut load)?,
    };
    let options = RunOptions {
        load,
        connections,
        refine: !arguments.ladder.no_refine,
        repeats: arguments.ladder.repeats,
        order_seed: arguments.load.seed,
        seconds: arguments.ladder.seconds,
        watch: (!arguments.no_probe).then(|| arguments.probe.options()).transpose()?,
        output: arguments.result.output(&arguments.load.workload),
        command: public_command(our_arguments()),
        server,
    };
    if arguments.try_remedies {
        trying::check(&options)?;
    }
    carry_out(&options, &arguments.result, arguments.try_remedies)
}

/// A private server and those beside it.
fn private(
    arguments: PrivateServerArguments,
    topology: &TopologyArguments,
    load: &mut LoadOptions,
) -> anyhow::Result<ServerChoice> {
    let company = topology.choice()?;
    if let Some((problem, fix)) = load.refuses(&company) {
        bail!("{problem}: {fix}");
    }
    if company.needs_keys() {
        load.put_keys_on_all_tables();
    }
    Ok(ServerChoice::Private {
        path: arguments.server.map(|server| server_path(&server)).transpose()?,
        settings: Box::new(ServerSettings {
            buffer_pool: arguments.buffer_pool,
            performance_schema: arguments.performance_schema,
            defaults_file: arguments.server_defaults_file,
            set: arguments.set,
            ..ServerSettings::default()
        }),
        surroundings: Surroundings::default(),
        cpus_server: arguments.cpus_server,
        cpus_client: arguments.cpus_client,
        company,
        cpus_company: topology.cpus_others.clone(),
        work_folder: arguments.work_dir,
        cache_size: (!arguments.no_cache).then_some(arguments.cache_size),
        shut_down: arguments.clean_shutdown,
    })
}

/// Waits for a yes.
fn ask(question: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("the load needs your consent and there is no terminal to ask on: give --yes");
    }
    eprint!("{question}");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was done"),
    }
}

/// Runs and shows what came of it. `try_remedies`: see [`crate::trying`].
fn carry_out(options: &RunOptions, shown: &ResultArguments, try_remedies: bool) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut progress = TerminalProgress::new(shown.quiet);
    let result = run(options, &stop, &mut progress);
    progress.finish();
    let result = match try_remedies {
        true => trying::after(options, result?, &stop, shown.quiet)?,
        false => result?,
    };
    let RunResult {
        bundle,
        summary,
        problem,
    } = result;
    let page = show::write_page(&bundle, &summary, &options.output);
    match shown.json {
        true => put!("{}", show::summary_json(&summary)?),
        false => put!("{}", show::table(&summary)),
    }
    if let (Ok(page), false) = (&page, shown.json) {
        say!("\nReport: {}", page.display());
        trying::say_where(options, &summary)?;
    }
    match problem {
        // What ended the run comes first: a full disk also keeps the page from being written.
        Some(problem) => {
            // Only trying was stopped.
            let words = match bundle.manifest.state {
                RunState::Complete => "The run itself is whole, in",
                _ => "What was measured until then is in",
            };
            eprintln!("{words} {}", options.output.display());
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
const PRIVATE: [&str; 20] = [
    "--server",
    "--server-defaults-file",
    "--defaults-file",
    "--work-dir",
    "--output",
    "-o",
    "--dsn",
    "--socket",
    "-S",
    "--user",
    "-u",
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

/// The command line without what should not be given to others: three dots stand for every value but numbers, switches, plain
/// words that scaleprof itself knows, and settings that are such.
pub(crate) fn public_command(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut out = vec!["scaleprof".to_owned()];
    // The option whose value may come next.
    let mut option: Option<String> = None;
    for (place, argument) in arguments.enumerate() {
        let is_private = |name: &str| PRIVATE.contains(&name);
        if let Some(name) = option.take_if(|name| is_private(name) || !argument.starts_with('-')) {
            out.push(shown(&name, &argument));
            continue;
        }
        match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => out.push(format!("{name}={}", shown(name, value))),
            _ if argument.starts_with("--") => {
                option = Some(argument.clone());
                out.push(argument);
            }
            _ if argument.starts_with('-') => {
                let (name, value) = argument.split_at(argument.len().min(2));
                option = value.is_empty().then(|| name.to_owned());
                // Switches in one word: `-qS` is `-q -S`, and its value comes next.
                if let Some((switches, last)) = clustered(&argument) {
                    option = last;
                    out.push(switches);
                    continue;
                }
                let value = value.strip_prefix('=').unwrap_or(value);
                out.push(match value {
                    "" => name.to_owned(),
                    value => format!("{name}{}", shown(name, value)),
                });
            }
            // The command itself.
            _ if place == 0 => out.push(argument),
            _ => out.push(shown("", &argument)),
        }
    }
    out
}

/// Short options in one word, beginning with switches, as `-qS` or `-yu2020`: with dots for the
/// value that the word ends in, and the option whose value comes next where it ends in that.
fn clustered(word: &str) -> Option<(String, Option<String>)> {
    const SWITCHES: [char; 4] = ['q', 'v', 'y', 'h'];
    let letters: Vec<char> = word.strip_prefix('-')?.chars().collect();
    let switches = letters.iter().take_while(|letter| SWITCHES.contains(letter)).count();
    let rest = &letters[switches..];
    match (switches, rest) {
        (0, _) => None,
        (_, []) => Some((word.to_owned(), None)),
        (_, [option]) => Some((word.to_owned(), Some(format!("-{option}")))),
        _ => {
            let shown: String = letters[..=switches].iter().collect();
            Some((format!("-{shown}..."), None))
        }
    }
}

/// The value of an option as it may be shown.
fn shown(option: &str, value: &str) -> String {
    let is_oltp = value.parse::<scaleprof_workload::OltpWorkloadKind>().is_ok();
    let is_workload = option == "--workload" && (is_oltp || value == scaleprof_workload::tpcc::NAME);
    let is_setting = ["--set", "--workload-option"].contains(&option)
        && value.split_once('=').is_some_and(|(name, value)| {
            is_setting(name) && !names_something(name) && (is_number_or_switch(value) || is_numbers(value))
        });
    let is_plain = !PRIVATE.contains(&option) && (is_number_or_switch(value) || is_numbers(value) || is_word(value));
    match is_workload || is_setting || is_plain {
        true => value.to_owned(),
        false => "...".to_owned(),
    }
}

/// A ladder or a list of CPUs: `1,2,4..512`, `0-3,8`.
fn is_numbers(value: &str) -> bool {
    let is_list = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.' | '-');
    value.starts_with(|c: char| c.is_ascii_digit()) && value.chars().all(is_list)
}

/// A choice that scaleprof knows by that word.
fn is_word(value: &str) -> bool {
    let small = value.to_ascii_lowercase().replace('_', "-");
    let isolation = ["read-uncommitted", "read-committed", "repeatable-read", "serializable"];
    let others = ["poisson", "constant", "html", "text", "json", "bug"];
    value.parse::<scaleprof_workload::Distribution>().is_ok()
        || value.parse::<scaleprof_workload::Protocol>().is_ok()
        || value.parse::<scaleprof_workload::TransportChoice>().is_ok()
        || small.parse::<scaleprof_wire::TlsMode>().is_ok()
        || isolation.contains(&small.as_str())
        || others.contains(&small.as_str())
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
            public("run --user 2020 -S 3306 -o 7 --set server_id=3232235777 --setup=anna.sql -q"),
            "scaleprof run --user ... -S ... -o ... --set ... --setup=... -q"
        );
        assert_eq!(
            public(
                "run --new-option anna --connections 1,2,4..512 --cpus-server=0-3,8 --workload-option point_selects=1 -otables=anna"
            ),
            "scaleprof run --new-option ... --connections 1,2,4..512 --cpus-server=0-3,8 --workload-option point_selects=1 -o..."
        );
        assert_eq!(
            public("run --distribution zipfian --isolation read-committed --no-refine anna"),
            "scaleprof run --distribution zipfian --isolation read-committed --no-refine ..."
        );
        assert_eq!(
            public("run --dsn mysql://anna@db --workload oltp_insert"),
            "scaleprof run --dsn ... --workload oltp_insert"
        );
        assert_eq!(
            public("run -yu 2020 -qS 3306 -yu2020 -yq -o7 --label anna=5 --label oltp_insert"),
            "scaleprof run -yu ... -qS ... -yu... -yq -o... --label ... --label ..."
        );
    }
}
