//! `scaleprof experiment`.

use crate::experiment_arguments::{ExperimentArguments, ExperimentCommand};
use crate::experiment_progress::{TerminalExperiment, duration};
use crate::output::{put, say};
use crate::{show, stop};
use anyhow::{Context, bail};
use scaleprof_analysis::summarise;
use scaleprof_builds::server_path;
use scaleprof_bundle::Bundle;
use scaleprof_experiment::RunError;
use scaleprof_experiment::trials::{
    Design, Experiment, ExperimentResult, OUTCOME, Pace, Plan, PlanFile, PlanSource, Work,
};
use scaleprof_report::text::experiment::table;
use scaleprof_server::Topology;
use scaleprof_server::memory::available;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Each name with its plan.
macro_rules! ready {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*] };
}

/// Experiments that are ready to be carried out, by name.
const READY: [(&str, &str); 14] = ready![
    "sync-array-size",
    "spin-delay",
    "isolation-levels",
    "lock-sys",
    "long-run-stability",
    "mutex-or-event",
    "numa",
    "performance-schema-overhead",
    "pgo",
    "read-only-against-read-write",
    "replication",
    "thread-pool",
    "two-instances",
    "warm-up",
];

pub(crate) fn execute(arguments: &ExperimentArguments, quiet: bool) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => begin(arguments, quiet),
        Some(ExperimentCommand::List { json }) => list(*json),
        Some(ExperimentCommand::Resume {
            folder, dry_run: true, ..
        }) => {
            put!("{}", plan_in_words(Experiment::resume(folder)?.plan()));
            Ok(ExitCode::SUCCESS)
        }
        Some(ExperimentCommand::Resume { folder, json, .. }) => carry_out(&Experiment::resume(folder)?, quiet, *json),
    }
}

/// The ready experiments with what they ask.
fn list(json: bool) -> anyhow::Result<ExitCode> {
    let mut questions = Vec::new();
    for (name, text) in READY {
        questions.push((name, PlanFile::parse(text, &format!("{name}.toml"))?.question));
    }
    if json {
        let experiments = questions.iter();
        let experiments = experiments.map(|(name, question)| serde_json::json!({"name": name, "question": question}));
        let document = serde_json::json!({"schema": 1, "experiments": experiments.collect::<Vec<_>>()});
        say!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(ExitCode::SUCCESS);
    }
    let width = READY.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, question) in &questions {
        say!("{name:width$}  {}", question.as_deref().unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}

/// A new one.
fn begin(arguments: &ExperimentArguments, quiet: bool) -> anyhow::Result<ExitCode> {
    // Before hours of work that would end with it.
    scaleprof_server::cache_size().map_err(anyhow::Error::msg)?;
    let written = written(arguments)?;
    let work_folder = absolute(arguments.work_dir.as_deref())?;
    let source = PlanSource {
        file: written.file.as_deref(),
        folder: &written.folder,
        work_folder: work_folder.as_deref(),
    };
    let mut plan = Plan::new(&written.plan, source, &mut |path| std::fs::read_to_string(path))?;
    let needless = plan.needless_here(&Topology::of_this_machine()?);
    if arguments.dry_run {
        plan.fit_to_memory(available());
        put!("{}", plan_in_words(&plan));
        if let Some(why) = needless {
            say!("\n{why}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(why) = needless {
        say!("{why}\n\nNothing was started. docs/experiments tells what to look at on a machine that has them.");
        return Ok(ExitCode::SUCCESS);
    }
    let name = folder_name(written.plan.name.as_deref().unwrap_or("experiment"));
    let output = arguments
        .output
        .clone()
        .unwrap_or_else(|| Path::new("scaleprof-runs").join(format!("{name}-{}", show::compact_time())));
    let experiment = Experiment::begin(&written.plan, source, &output)?;
    carry_out(&experiment, quiet, arguments.json)
}

/// The name with nothing in it that a path could be made of.
fn folder_name(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    name.chars()
        .map(|letter| if plain(letter) { letter } else { '-' })
        .collect()
}

/// A plan with what the command line adds.
struct Written {
    plan: PlanFile,
    file: Option<String>,
    folder: PathBuf,
}

fn written(arguments: &ExperimentArguments) -> anyhow::Result<Written> {
    let mut written = match &arguments.plan {
        None => Written {
            plan: PlanFile::default(),
            file: None,
            folder: here()?,
        },
        Some(name) => from_file_or_ready(name)?,
    };
    let plan = &mut written.plan;
    plan.set_for_all(&arguments.set)?;
    let servers = arguments.server.iter().map(|path| absolute(Some(&server_path(path)?)));
    let servers: Vec<Option<PathBuf>> = servers.collect::<anyhow::Result<_>>()?;
    plan.compare(&arguments.vary, &servers.into_iter().flatten().collect::<Vec<_>>())?;
    if plan.name.is_none() && written.file.is_none() {
        let varied = arguments.vary.iter().filter_map(|text| Some(text.split_once('=')?.0));
        let varied = varied.collect::<Vec<_>>().join("-");
        plan.name = Some(if varied.is_empty() {
            "servers".to_owned()
        } else {
            varied
        });
    }
    fn replace<T: Clone>(own: &mut Option<T>, given: &Option<T>) {
        if given.is_some() {
            own.clone_from(given);
        }
    }
    replace(&mut plan.server.buffer_pool, &arguments.buffer_pool);
    plan.load.replace_with(arguments.load.text()?);
    replace(&mut plan.ladder.connections, &arguments.connections);
    replace(&mut plan.ladder.seconds, &arguments.seconds);
    replace(&mut plan.design.pairs, &arguments.pairs);
    replace(&mut plan.design.margin_percent, &arguments.margin);
    replace(&mut plan.design.precision_percent, &arguments.precision);
    replace(&mut plan.design.aa_pairs, &arguments.aa_pairs);
    replace(&mut plan.design.seed, &arguments.load.seed);
    if arguments.quick {
        plan.design.quick = Some(true);
    }
    if arguments.no_interleave {
        plan.design.interleave = Some(false);
    }
    if arguments.no_probe {
        plan.design.probe = Some(false);
    }
    Ok(written)
}

/// A file of that name, else the ready experiment that is called so.
fn from_file_or_ready(name: &str) -> anyhow::Result<Written> {
    let path = Path::new(name);
    if ["list", "resume"].contains(&name) && !path.is_file() {
        bail!("'{name}' must come first\nfix: scaleprof experiment {name}, then its options");
    }
    let ready = READY.iter().find(|(known, _)| *known == name);
    match ready {
        Some((_, text)) if !path.is_file() => {
            let file = format!("{name}.toml");
            Ok(Written {
                plan: PlanFile::parse(text, &file)?,
                file: Some(file),
                folder: here()?,
            })
        }
        _ => {
            let known = READY.map(|(known, _)| known).join(", ");
            let text = std::fs::read_to_string(path).with_context(|| {
                format!("cannot read the plan {name}\nfix: name a file, or a ready experiment: {known}")
            })?;
            let parent = std::path::absolute(path)?.parent().map(Path::to_path_buf);
            Ok(Written {
                plan: PlanFile::parse(&text, name)?,
                file: Some(name.to_owned()),
                folder: parent.map_or_else(here, Ok)?,
            })
        }
    }
}

fn here() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("cannot tell the current folder")
}

fn absolute(path: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let absolute = |path: &Path| std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()));
    path.map(absolute).transpose()
}

fn carry_out(experiment: &Experiment, quiet: bool, json: bool) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut progress = TerminalExperiment::new(quiet);
    let result = experiment.carry_out(&stop, &mut progress);
    progress.finish();
    let ExperimentResult {
        outcome,
        watched,
        problem,
    } = result?;
    match json {
        true => say!("{}", serde_json::to_string_pretty(&outcome)?),
        false => put!("{}", table(&outcome, show::style())),
    }
    let folder = experiment.path();
    let page = folder.join("report.html");
    show::write_whole(&page, scaleprof_report::experiment_page::render(&outcome))?;
    if let Some(problem) = problem {
        eprintln!("What was measured until then is in {}", folder.display());
        if matches!(problem, RunError::Stopped) {
            eprintln!("Continue with: scaleprof experiment resume {}", folder.display());
        }
        return Err(problem.into());
    }
    let pages = watched
        .iter()
        .map(|bundle| page_of(bundle))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if !json {
        say!("\nReport: {}", page.display());
        say!("Figures: {}", folder.join(OUTCOME).display());
        for page in pages {
            say!("Watched run: {}", page.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn page_of(bundle: &Path) -> anyhow::Result<PathBuf> {
    let read = Bundle::open(bundle)?;
    show::write_page(&read, &summarise(&read), bundle)
}

/// What a plan would do, and how long it would take.
fn plan_in_words(plan: &Plan) -> String {
    let design = &plan.design;
    let mut words = format!("{}\n", plan.name);
    if let Some(question) = &plan.question {
        words.push_str(&format!("  {question}\n"));
    }
    for (at, variant) in plan.variants.iter().enumerate() {
        let role = role(plan, at);
        let differs = match variant.differs_by.is_empty() {
            true => "as all".to_owned(),
            false => variant.differs_by.join(", "),
        };
        words.push_str(&format!("  {}{role}: {differs}\n", variant.name));
    }
    let rungs: Vec<String> = design.connections.iter().map(u32::to_string).collect();
    words.push_str(&format!(
        "ladder       {} connections, {} s each, in random order within a start\n",
        rungs.join(", "),
        design.seconds
    ));
    words.push_str(&format!("rounds       {}\n", rounds_in_words(design)));
    words.push_str(&match (plan.turn_seconds(), &plan.one_by_one) {
        (Some(seconds), _) => format!("starts       of a round side by side, in turns of {seconds:.2} s\n"),
        (None, why) => format!(
            "starts       one after the other: {}\n",
            why.as_deref().unwrap_or("as asked")
        ),
    });
    words.push_str(&format!(
        "A/A pairs    {} at each end, of {}\n",
        design.sentinels, plan.variants[0].name
    ));
    let work = Work::of(design, plan.variants.len());
    words.push_str(&format!("watched runs {}\n", work.watched));
    let few = if design.is_indicative() {
        "; indicative only, as six pairs are the fewest that count"
    } else {
        ""
    };
    words.push_str(&format!("margin       {} %{few}\n", design.margin * 100.0));
    let most = if design.target_half_width.is_some() {
        "at most "
    } else {
        ""
    };
    words.push_str(&format!(
        "It takes {most}about {}: {} server starts and {} watched runs, and making the data where they are not kept yet.\n",
        duration(work.seconds(&Pace::expected(design))),
        work.starts,
        work.watched
    ));
    words
}

/// What a variant is held against, or that others are held against it.
fn role(plan: &Plan, at: usize) -> String {
    let base = plan.variants[at].base;
    let is_one_family = plan.variants.iter().all(|variant| variant.base == 0);
    match (is_one_family, base == at) {
        (true, true) => " (the others are held against it)".to_owned(),
        (true, false) => String::new(),
        (false, true) => " (others are held against it)".to_owned(),
        (false, false) => format!(" (held against {})", plan.variants[base].name),
    }
}

fn rounds_in_words(design: &Design) -> String {
    match design.target_half_width {
        None => format!(
            "{} of every variant once, each second one in the opposite order",
            design.most_pairs
        ),
        Some(target) => format!(
            "6 to {}, until the interval over the ladder is within {} % to either side",
            design.most_pairs,
            target * 100.0
        ),
    }
}
