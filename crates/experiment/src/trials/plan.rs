//! A plan that was checked: everything that can be wrong with it is said before anything is started.

use super::design::{Design, design};
use super::plan_error::PlanError;
use super::plan_file::{PlanFile, VariantText};
use crate::company::Company;
use crate::options::{LoadOptions, ServerChoice};
use crate::turns::turn_seconds;
use scaleprof_server::memory::buffer_pool;
use scaleprof_server::{Product, Topology};
use scaleprof_workload::raise_open_file_limit;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

mod bases;
mod differs;
mod load;
mod server;
mod turns;

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
    /// What is compared.
    pub variants: Vec<Variant>,
    /// Why starts do not run side by side; none where they do.
    pub one_by_one: Option<String>,
    /// The fewest memory nodes of a machine on which the question can be asked.
    pub memory_nodes: u32,
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
    /// The place of the variant that it is held against; its own for one that others are held against.
    pub base: usize,
    /// The makers whose servers it is for; all where there is none.
    pub only_for: Vec<Product>,
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
        if let Some(words) = &file.requires.comparison {
            return Err(PlanError::key(
                "requires.comparison",
                "what shall be compared is not said yet",
                format!("give {words}"),
            ));
        }
        let count = file.variants.len();
        if !(2..=MOST_VARIANTS).contains(&count) {
            return Err(PlanError::key(
                "variant",
                format!("there are {count} variants, and a comparison needs 2 to {MOST_VARIANTS}"),
                "write a [[variant]] for each, or give --vary NAME=VALUE,VALUE",
            ));
        }
        let design = design(&file.ladder, &file.design, file.load.seed.unwrap_or(1))?;
        let names = names(&file.variants)?;
        let bases = bases::bases(&file.variants, &names)?;
        let families = file.variants.iter().map(|text| {
            let workload = text.workload.as_ref().or(file.load.workload.as_ref());
            load::Family::of(workload.map(String::as_str))
        });
        load::every_key_is_of_use(&file.load, &families.collect::<Vec<_>>())?;
        let mut variants: Vec<Variant> = Vec::new();
        for (at, text) in file.variants.iter().enumerate() {
            let key = |name: &str| of_variant(at, name);
            variants.push(Variant {
                name: names[at].clone(),
                server: server::server(&server::merged(&file.server, text), &key, source)?,
                load: load::load_options(&load::merged(&file.load, text, &key)?, source, &mut *read)?,
                base: bases[at],
                only_for: server::only_for(&text.products, &key)?,
                differs_by: differs::differs_by(text),
            });
        }
        for (at, (variant, text)) in variants.iter().zip(&file.variants).enumerate() {
            let company = variant.server.company();
            if let Some((problem, fix)) = variant.load.refuses(company) {
                return Err(PlanError::key(
                    of_variant(at, "replication or neighbours"),
                    problem,
                    fix,
                ));
            }
            let alone = *company == Company::Alone;
            for (key, given) in [
                ("replicas", text.replicas.is_some()),
                ("cpus_others", text.cpus_others.is_some()),
            ] {
                if alone && given {
                    let fix = "also give replication or neighbours, or omit it";
                    return Err(PlanError::key(
                        of_variant(at, key),
                        "the variant has only one server",
                        fix,
                    ));
                }
            }
        }
        // The same tables for all: a key that only some have would be part of what is compared.
        if variants.iter().any(|variant| variant.server.company().needs_keys()) {
            for variant in &mut variants {
                variant.load.put_keys_on_all_tables();
            }
        }
        let sides = design.side_by_side;
        if let (Some(true), Some(why)) = (file.design.interleave, turns::hindered_by_kind(&variants)) {
            return Err(PlanError::key("design.interleave", why, "leave it out"));
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
            one_by_one: (!sides).then(|| "as asked".to_owned()),
            memory_nodes: file.requires.memory_nodes.unwrap_or(1),
        })
    }

    /// Sizes every buffer pool that the plan leaves open by the memory that is free now, so that all starts of a variant have the same: by
    /// what is free at each of them they would differ, and with them what is compared.
    ///
    /// Where variants have other numbers of servers, each server has what it would have beside the most of them: a smaller pool is no
    /// part of what replicas cost.
    ///
    /// Decides by it, and by the files that may be open, whether starts run side by side.
    pub fn fit_to_memory(&mut self, available: u64) {
        let servers = self.variants.iter().map(|variant| variant.server.company().servers());
        let available = available / u64::from(servers.max().unwrap_or(1));
        if self.design.side_by_side {
            let ladder = &self.design.connections;
            let allowed = |connections| raise_open_file_limit(connections).is_ok();
            self.one_by_one = turns::hindered_by_kind(&self.variants)
                .or_else(|| turns::hindered_by_memory(&self.variants, ladder, available))
                .or_else(|| turns::hindered_by_files(&self.variants, ladder, allowed));
            self.design.side_by_side = self.one_by_one.is_none();
        }
        for variant in &mut self.variants {
            let dataset = Some(variant.load.data_bytes()).filter(|bytes| *bytes > 0);
            if let ServerChoice::Private { settings, .. } = &mut variant.server {
                settings
                    .buffer_pool
                    .get_or_insert_with(|| buffer_pool(available, dataset));
            }
        }
    }

    /// Holds to how an experiment was begun, whatever would be chosen now: starts of both kinds are not to be held against each other.
    pub(crate) fn go_on_as_begun(&mut self, side_by_side: bool) {
        if self.design.side_by_side != side_by_side {
            self.design.side_by_side = side_by_side;
            self.one_by_one = (!side_by_side).then(|| "as it was begun".to_owned());
        }
    }

    /// How long a turn of starts side by side is, seconds; none where they come one after the other.
    pub fn turn_seconds(&self) -> Option<f64> {
        let most = |variant: &Variant| variant.load.most_connections(&self.design.connections);
        let most = self.variants.iter().map(most).max();
        self.design.side_by_side.then(|| turn_seconds(most.unwrap_or(1)))
    }

    /// Why the question cannot be asked on this machine, where it cannot.
    pub fn needless_here(&self, machine: &Topology) -> Option<String> {
        let nodes = machine.nodes().len();
        (nodes < self.memory_nodes as usize).then(|| {
            format!(
                "This machine has {nodes} memory node{}, and {} compares {} or more. With one, all memory is equally \
                 near to every CPU, so the variants are identical. Use a machine with several sockets or memory \
                 nodes; `lscpu` and `numactl --hardware` show them.",
                if nodes == 1 { "" } else { "s" },
                self.name,
                self.memory_nodes
            )
        })
    }

    /// Whether two variants do the same work, so that one can be faster than the other.
    pub fn is_same_work(&self, one: usize, other: usize) -> bool {
        let of = |variant: usize| &self.variants[variant].load;
        of(one).work() == of(other).work()
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

/// The names of all variants.
fn names(texts: &[VariantText]) -> Result<Vec<String>, PlanError> {
    let mut names: Vec<String> = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let name = text.name.clone().unwrap_or_else(|| format!("variant {}", at + 1));
        showable(of_variant(at, "name"), &name)?;
        if names.contains(&name) {
            return Err(PlanError::key(
                of_variant(at, "name"),
                format!("two variants are called '{name}'"),
                "give each a name of its own",
            ));
        }
        names.push(name);
    }
    Ok(names)
}

/// Texts of statements by path, kept so that an experiment that goes on later runs the same.
pub type Texts = BTreeMap<PathBuf, String>;

#[cfg(test)]
mod tests;
