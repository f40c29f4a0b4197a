//! `scaleprof attach`.

use crate::arguments::AttachArguments;
use crate::credentials;
use crate::run::{carry_out, public_command};
use crate::watch;
use anyhow::bail;
use scaleprof_experiment::{Attach, RunOptions, ServerChoice};
use scaleprof_workload::schema::SCHEMA;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

pub(crate) fn execute(arguments: AttachArguments) -> anyhow::Result<ExitCode> {
    if let Some(pid) = arguments.pid {
        return watch::execute(pid, &arguments);
    }
    let load = arguments.load.options()?;
    let connections = arguments.ladder.rungs()?;
    let (endpoint, who) = credentials::of(&arguments)?;
    if !arguments.yes {
        let most = connections.iter().max().copied().unwrap_or(1);
        ask(&format!(
            "This puts a load of up to {most} connections on {endpoint}, which scaleprof did not start, and makes \
             tables in the schema {SCHEMA} there; what an earlier run left in it is dropped. Go on? [y/N] "
        ))?;
    }
    let options = RunOptions {
        server: ServerChoice::Attached(Attach {
            endpoint,
            credentials: who,
            drop_schema: arguments.drop_schema,
        }),
        load,
        connections,
        refine: !arguments.ladder.no_refine,
        repeats: arguments.ladder.repeats,
        order_seed: arguments.load.seed,
        seconds: arguments.ladder.seconds,
        watch: arguments.probe.options()?,
        output: arguments.ladder.output(&arguments.load.workload),
        command: public_command(crate::run::our_arguments()),
    };
    carry_out(&options, &arguments.ladder, false)
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
