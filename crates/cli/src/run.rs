//! `scaleprof run`.

use crate::arguments::{PrivateServerArguments, RunArguments};
use crate::credentials;
use crate::exit::NoConsent;
use crate::output::{put, say};
use crate::public_command::{our_arguments, public_command};
use crate::show;
use crate::stop;
use crate::terminal::TerminalProgress;
use crate::topology_arguments::TopologyArguments;
use crate::trying;
use anyhow::bail;
use scaleprof_builds::server_path;
use scaleprof_experiment::{Attach, LoadOptions, RunOptions, RunResult, ServerChoice, WorkloadChoice, run};
use scaleprof_server::{ServerSettings, Surroundings, cache_size};
use scaleprof_vocabulary::RunState;
use scaleprof_workload::schema::SCHEMA;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

pub(crate) fn execute(arguments: RunArguments, quiet: bool) -> anyhow::Result<ExitCode> {
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
                            "Tables go into the schema {SCHEMA}; no other schema is written to. Unsuitable tables of \
                             an earlier load are replaced."
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
        order_seed: arguments.load.seed.unwrap_or(1),
        seconds: arguments.ladder.seconds,
        watch: (!arguments.no_probe).then(|| arguments.probe.options()).transpose()?,
        output: arguments.result.output(arguments.load.workload_name()),
        command: public_command(our_arguments()),
        server,
    };
    if arguments.try_remedies {
        trying::check(&options)?;
    }
    let shown = Shown {
        json: arguments.result.json,
        try_remedies: arguments.try_remedies,
        quiet,
    };
    carry_out(&options, &shown)
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
        cache_size: match (arguments.no_cache, arguments.cache_size) {
            (true, _) => None,
            (false, Some(size)) => Some(size),
            (false, None) => Some(cache_size().map_err(anyhow::Error::msg)?),
        },
        shut_down: arguments.clean_shutdown,
    })
}

/// Waits for a yes.
fn ask(question: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        let words = "consent is missing, and there is no terminal to ask on\nfix: give --yes";
        return Err(NoConsent(words.to_owned()).into());
    }
    eprint!("{question}");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(NoConsent("nothing was done".to_owned()).into()),
    }
}

/// What is made of a run and printed.
struct Shown {
    json: bool,
    try_remedies: bool,
    quiet: bool,
}

/// Runs and shows what came of it.
fn carry_out(options: &RunOptions, shown: &Shown) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut progress = TerminalProgress::new(shown.quiet);
    let result = run(options, &stop, &mut progress);
    progress.finish();
    let result = match shown.try_remedies {
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
