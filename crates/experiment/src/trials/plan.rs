//! A plan that was checked: everything that can be wrong with it is said before anything is started.

use super::design::{Design, design};
use super::plan_error::PlanError;
use super::plan_file::{LoadText, PlanFile, ServerText, VariantText};
use crate::options::{LoadOptions, ServerChoice, WorkloadChoice};
use crate::privacy::names_something;
use crate::run::program;
use scaleprof_server::{CpuSet, ServerSettings, Settings, Surroundings, parse_size};
use scaleprof_workload::{Arrivals, LoopKind, OltpOptions, OltpWorkloadKind, Repetition, Transport};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Most variants: each is started in every round.
const MOST_VARIANTS: usize = 32;
/// Longest name, letters: --vary makes them of settings and values.
const LONGEST_NAME: usize = 100;

/// An experiment that can be begun.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub question: Option<String>,
    /// How it is measured.
    pub design: Design,
    /// What is compared; the others are held against the first.
    pub variants: Vec<Variant>,
}

/// One variant.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its server.
    pub server: ServerChoice,
    /// Its load.
    pub load: LoadOptions,
    /// What sets it apart, such as `innodb_sync_array_size=64`.
    pub differs_by: Vec<String>,
}

/// Where a plan comes from.
#[derive(Debug, Clone, Copy)]
pub struct PlanSource<'a> {
    /// What it is called in errors; none for the command line.
    pub file: Option<&'a str>,
    /// What its paths are relative to.
    pub folder: &'a Path,
    /// Where the servers' files go; the usual place where there is none.
    pub work_folder: Option<&'a Path>,
}

/// Reads a file of statements that a plan names.
pub type ReadText<'a> = &'a mut dyn FnMut(&Path) -> io::Result<String>;

impl Plan {
    /// Checks a plan. `read` is asked for the statements of a workload that is a FILE.sql.
    ///
    /// # Errors
    /// The first thing that is wrong: key, what, and what would do.
    pub fn new(file: &PlanFile, source: PlanSource<'_>, read: ReadText<'_>) -> Result<Plan, PlanError> {
        Plan::checked(file, source, read).map_err(|error| error.in_file(source.file))
    }

    fn checked(file: &PlanFile, source: PlanSource<'_>, read: ReadText<'_>) -> Result<Plan, PlanError> {
        let count = file.variants.len();
        if !(2..=MOST_VARIANTS).contains(&count) {
            return Err(PlanError::key(
                "variant",
                format!("there are {count} variants, and a comparison needs 2 to {MOST_VARIANTS}"),
                "write a [[variant]] for each, or give --vary NAME=VALUE,VALUE",
            ));
        }
        let design = design(&file.ladder, &file.design, file.load.seed.unwrap_or(1))?;
        let mut variants: Vec<Variant> = Vec::new();
        for (at, text) in file.variants.iter().enumerate() {
            let variant = variant(file, text, at, source, read)?;
            if variants.iter().any(|other| other.name == variant.name) {
                return Err(PlanError::key(
                    of_variant(at, "name"),
                    format!("two variants are called '{}'", variant.name),
                    "give each a name of its own",
                ));
            }
            variants.push(variant);
        }
        let name = match (&file.name, source.file) {
            (Some(name), _) => name.clone(),
            (None, Some(path)) => Path::new(path)
                .file_stem()
                .map_or_else(|| "experiment".to_owned(), |stem| stem.to_string_lossy().into_owned()),
            (None, None) => "experiment".to_owned(),
        };
        showable("name", &name)?;
        Ok(Plan {
            name,
            question: file.question.clone(),
            design,
            variants,
        })
    }
}

/// A key of a variant, which are counted from 1.
fn of_variant(at: usize, key: &str) -> String {
    format!("variant {}, {key}", at + 1)
}

/// A name stands in tables, in a page and in lines of progress.
fn showable(key: impl Into<String>, name: &str) -> Result<(), PlanError> {
    let shown = name.chars().all(|letter| !letter.is_control()) && name.trim() == name && !name.is_empty();
    match shown && name.chars().count() <= LONGEST_NAME {
        true => Ok(()),
        false => Err(PlanError::key(
            key,
            format!("'{}' cannot be shown in a table", name.escape_default()),
            format!("use 1 to {LONGEST_NAME} letters"),
        )),
    }
}

fn variant(
    file: &PlanFile,
    text: &VariantText,
    at: usize,
    source: PlanSource<'_>,
    read: ReadText<'_>,
) -> Result<Variant, PlanError> {
    let key = |name: &str| of_variant(at, name);
    let name = text.name.clone().unwrap_or_else(|| format!("variant {}", at + 1));
    showable(key("name"), &name)?;
    let load = LoadText {
        workload: text.workload.clone().or_else(|| file.load.workload.clone()),
        isolation: text.isolation.clone().or_else(|| file.load.isolation.clone()),
        distribution: text.distribution.clone().or_else(|| file.load.distribution.clone()),
        protocol: text.protocol.clone().or_else(|| file.load.protocol.clone()),
        ..file.load.clone()
    };
    let merged = merged(&file.server, text);
    Ok(Variant {
        name,
        server: server(&merged, &key, source)?,
        load: load_options(&load, source, read)?,
        differs_by: differs_by(text),
    })
}

/// The server's text with what the variant has otherwise.
fn merged(server: &ServerText, variant: &VariantText) -> ServerText {
    let mut all = server.clone();
    all.set.extend(variant.set.clone());
    all.environment.extend(variant.environment.clone());
    ServerText {
        path: variant.path.clone().or(all.path),
        wrapper: variant.wrapper.clone().or(all.wrapper),
        cpus: variant.cpus.clone().or(all.cpus),
        buffer_pool: variant.buffer_pool.clone().or(all.buffer_pool),
        performance_schema: variant.performance_schema.or(all.performance_schema),
        defaults_file: variant.defaults_file.clone().or(all.defaults_file),
        ..all
    }
}

fn server(text: &ServerText, key: &dyn Fn(&str) -> String, source: PlanSource<'_>) -> Result<ServerChoice, PlanError> {
    let cpus = |name: &str, list: &Option<String>| -> Result<Option<CpuSet>, PlanError> {
        let list = list.as_ref().map(|list| list.parse::<CpuSet>());
        list.transpose()
            .map_err(|error| PlanError::key(key(name), error.to_string(), "write CPUs such as 0-3,8"))
    };
    let buffer_pool = text.buffer_pool.as_ref().map(|size| {
        parse_size(size).ok_or_else(|| {
            PlanError::key(
                key("buffer_pool"),
                format!("'{size}' is no size"),
                "write bytes, or K, M or G behind the number",
            )
        })
    });
    if let Some(empty) = text
        .wrapper
        .as_ref()
        .filter(|words| words.first().is_none_or(String::is_empty))
    {
        return Err(PlanError::key(
            key("wrapper"),
            format!("{empty:?} names no command"),
            "write its words, such as [\"numactl\", \"--interleave=all\"]",
        ));
    }
    for name in text.environment.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(PlanError::key(
                key("environment"),
                format!("'{name}' cannot be a variable's name"),
                "write NAME = \"value\"",
            ));
        }
    }
    let settings = ServerSettings {
        buffer_pool: buffer_pool.transpose()?,
        performance_schema: text.performance_schema.unwrap_or(false),
        defaults_file: text.defaults_file.as_ref().map(|path| source.folder.join(path)),
        set: text.set.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        ..ServerSettings::default()
    };
    Settings::new(settings.clone()).map_err(|error| {
        PlanError::key(
            key("set or defaults_file"),
            error.to_string(),
            "correct it or leave it out",
        )
    })?;
    Ok(ServerChoice::Private {
        path: text.path.as_ref().map(|path| source.folder.join(path)),
        settings: Box::new(settings),
        surroundings: Surroundings {
            wrapper: text.wrapper.clone().unwrap_or_default(),
            environment: text.environment.clone(),
        },
        cpus_server: cpus("cpus", &text.cpus)?,
        cpus_client: cpus("cpus_client", &text.cpus_client)?,
        work_folder: source.work_folder.map(Path::to_path_buf),
        use_cache: true,
    })
}

fn load_options(text: &LoadText, source: PlanSource<'_>, read: ReadText<'_>) -> Result<LoadOptions, PlanError> {
    let workload = workload(text, source, read)?;
    let one_table = matches!(
        workload,
        WorkloadChoice::Oltp(OltpWorkloadKind::RandomPoints | OltpWorkloadKind::RandomRanges)
    );
    let mut oltp = OltpOptions {
        tables: text.tables.unwrap_or(if one_table { 1 } else { 4 }),
        table_size: text.rows.unwrap_or(50_000),
        distribution: word("load.distribution", &text.distribution)?.unwrap_or_default(),
        protocol: word("load.protocol", &text.protocol)?.unwrap_or_default(),
        ..OltpOptions::default()
    };
    for (name, value) in &text.options {
        oltp.set(name, &value.to_string().to_ascii_lowercase())
            .map_err(|error| PlanError::key(format!("load.options.{name}"), error.to_string(), "correct it"))?;
    }
    let load = LoadOptions {
        workload,
        oltp,
        idle_connections: text.idle_connections.unwrap_or(0),
        loop_kind: loop_kind(text.rate)?,
        isolation: text.isolation.as_deref().map(isolation).transpose()?,
        seed: text.seed.unwrap_or(1),
        threads: text.threads,
        transport: word("load.transport", &text.transport)?.unwrap_or(Transport::Auto),
    };
    program(&load).map_err(|error| PlanError::key("load", error.to_string(), "correct it"))?;
    Ok(load)
}

/// A word that names one of several choices.
fn word<T: FromStr>(key: &str, text: &Option<String>) -> Result<Option<T>, PlanError>
where
    T::Err: ToString,
{
    let parsed = text.as_ref().map(|text| text.parse::<T>());
    parsed
        .transpose()
        .map_err(|error| PlanError::key(key, error.to_string(), "see `scaleprof run --help`"))
}

fn workload(text: &LoadText, source: PlanSource<'_>, read: ReadText<'_>) -> Result<WorkloadChoice, PlanError> {
    let name = text.workload.as_deref().unwrap_or("oltp_read_write");
    if !name.ends_with(".sql") {
        if text.setup.is_some() {
            return Err(PlanError::key(
                "load.setup",
                format!("it goes with a FILE.sql, and {name} is none"),
                "leave it out",
            ));
        }
        let kind = word("load.workload", &Some(name.to_owned()))?;
        return Ok(WorkloadChoice::Oltp(kind.unwrap_or(OltpWorkloadKind::ReadWrite)));
    }
    let mut statements = |key: &str, file: &str| {
        read(&source.folder.join(file))
            .map_err(|error| PlanError::key(key, format!("cannot read {file}: {error}"), "correct the path"))
    };
    Ok(WorkloadChoice::Script {
        text: statements("load.workload", name)?,
        setup: match &text.setup {
            None => None,
            Some(setup) => Some(statements("load.setup", setup)?),
        },
        repetition: Repetition::Loop,
        with_tables: text.tables.is_some(),
    })
}

fn loop_kind(rate: Option<f64>) -> Result<LoopKind, PlanError> {
    match rate {
        None => Ok(LoopKind::Closed),
        Some(rate) if rate.is_finite() && (0.001..=1e8).contains(&rate) => Ok(LoopKind::Open {
            rate,
            arrivals: Arrivals::Poisson,
        }),
        Some(rate) => Err(PlanError::key(
            "load.rate",
            format!("{rate} is not possible"),
            "use transactions per second above 0.001",
        )),
    }
}

fn isolation(text: &str) -> Result<String, PlanError> {
    let level = text.to_ascii_uppercase().replace(['-', '_'], " ");
    match level.as_str() {
        "READ UNCOMMITTED" | "READ COMMITTED" | "REPEATABLE READ" | "SERIALIZABLE" => Ok(level),
        _ => Err(PlanError::key(
            "load.isolation",
            format!("'{text}' is no isolation level"),
            "use read-uncommitted, read-committed, repeatable-read or serializable",
        )),
    }
}

/// What sets a variant apart, as it may be shown to others: of paths the last part, of what may be a name three dots.
fn differs_by(text: &VariantText) -> Vec<String> {
    let last = |path: &str| {
        let name = Path::new(path).file_name();
        name.map_or_else(|| "...".to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let mut words = Vec::new();
    words.extend(text.path.as_ref().map(|path| format!("server {}", last(path))));
    words.extend(text.set.iter().map(|(name, value)| {
        let value = value.to_string();
        let public = !names_something(name) && !value.contains('/');
        format!("{name}={}", if public { value } else { "...".to_owned() })
    }));
    words.extend(text.environment.keys().map(|name| format!("environment {name}")));
    words.extend(
        text.wrapper
            .as_ref()
            .and_then(|words| words.first())
            .map(|first| format!("wrapper {}", last(first))),
    );
    words.extend(text.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")));
    words.extend(text.buffer_pool.as_ref().map(|size| format!("buffer pool {size}")));
    let on_off = |on: bool| if on { "on" } else { "off" };
    words.extend(
        text.performance_schema
            .map(|on| format!("Performance Schema {}", on_off(on))),
    );
    words.extend(
        text.defaults_file
            .as_ref()
            .map(|path| format!("option file {}", last(path))),
    );
    words.extend(text.workload.as_ref().map(|name| format!("workload {}", last(name))));
    words.extend(text.isolation.as_ref().map(|level| format!("isolation {level}")));
    words.extend(text.distribution.as_ref().map(|name| format!("distribution {name}")));
    words.extend(text.protocol.as_ref().map(|name| format!("protocol {name}")));
    words
}

/// Texts of statements by path, kept so that an experiment that goes on later runs the same.
pub type Texts = BTreeMap<PathBuf, String>;

#[cfg(test)]
mod tests;
