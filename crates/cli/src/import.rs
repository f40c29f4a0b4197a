//! `scaleprof import`.

use crate::import_arguments::ImportArguments;
use crate::output;
use crate::public_command::{our_arguments, public_command};
use crate::show;
use crate::stop;
use crate::terminal::TerminalProgress;
use anyhow::bail;
use scaleprof_experiment::{ImportRequest, ImportResult, KnownLoad, Sampling, import, tell_import_stopped};
use std::fs::DirEntry;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn execute(arguments: &ImportArguments, quiet: bool) -> anyhow::Result<ExitCode> {
    let request = ImportRequest {
        cpus: arguments.cpus,
        files: arguments.files.clone(),
        loads: loads(arguments)?,
        stats: arguments.stat.clone(),
        flat: arguments.flat.clone(),
        sampling: Sampling {
            frequency_hz: arguments.frequency,
            seconds: arguments.seconds.clone(),
        },
        name: arguments.name.clone(),
        options: arguments.recording.options(),
        keep_code: !arguments.no_code,
        output: arguments
            .output
            .clone()
            .unwrap_or_else(|| Path::new("scaleprof-runs").join(format!("import-{}", show::compact_time()))),
        command: public_command(our_arguments()),
    };
    tell_if_stopped(request.output.clone())?;
    let mut progress = TerminalProgress::new(quiet);
    let result = import(&request, &mut progress);
    progress.finish();
    // The program ends behind this: what it holds goes with it, at once and not piece by piece.
    let result = ManuallyDrop::new(result?);
    let ImportResult { bundle, summary, .. } = &*result;
    match arguments.json {
        true => output::print(show::summary_json(summary)?)?,
        false => output::print(show::table(summary))?,
    }

    if !arguments.no_report {
        let page = show::write_page(bundle, summary, &bundle.path)?;
        if !arguments.json {
            output::print(format!("\nReport: {}\n", page.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whole recordings are kept by the time the next one is read; as long as there is none, nothing is left behind.
fn tell_if_stopped(output: PathBuf) -> anyhow::Result<()> {
    let is_new = !output.exists();
    stop::end_at_once(move || {
        // A recording is whole when its row of `measurements` is there; nothing is read of tables
        // that are just being written, and these are hidden.
        let is_whole = |entry: DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
        let rows = std::fs::read_dir(output.join("measurements"));
        let holds_a_recording = rows.is_ok_and(|rows| rows.flatten().any(is_whole));
        if is_new && !holds_a_recording {
            let _ = std::fs::remove_dir_all(&output);
        }
        if holds_a_recording {
            // Until the process ends nothing more is written. What it holds is readable without this too, as of an import that was killed.
            std::mem::forget(tell_import_stopped(&output));
        }
        let words = match holds_a_recording {
            true => format!("{} holds what was imported until then", output.display()),
            false => "nothing was imported".to_owned(),
        };
        // A terminal that is gone must not keep it from ending.
        let _ = writeln!(std::io::stderr(), "\nstopped: {words}");
    })
}

/// What is known of the recordings. There may be more of them than files: folded stacks with two columns are two.
fn loads(arguments: &ImportArguments) -> anyhow::Result<Vec<KnownLoad>> {
    let (connections, throughput) = (&arguments.connections, &arguments.throughput);
    if connections.len() != throughput.len() {
        bail!(
            "--connections has {} numbers and --throughput {}\nfix: give both for each recording, in the order of the \
             files",
            connections.len(),
            throughput.len()
        );
    }
    let loads = connections.iter().zip(throughput);
    Ok(loads
        .map(|(connections, throughput)| KnownLoad {
            connections: *connections,
            throughput: *throughput,
        })
        .collect())
}
