//! The load of a variant: what all have, with what it has otherwise.
//!
//! Variants may have workloads of different kinds. A key that only another kind has is passed over where all variants share it, and
//! refused in a variant itself, and where no variant has such a workload.

use super::super::plan_error::PlanError;
use super::super::plan_file::{LoadText, VariantText};
use super::{PlanSource, ReadText};
use crate::options::{LoadOptions, WorkloadChoice};
use crate::run::program;
use scaleprof_workload::tpcc::{self, TpccOptions};
use scaleprof_workload::{Arrivals, LoopKind, OltpOptions, OltpWorkloadKind, Repetition, TransportChoice};
use std::str::FromStr;

/// What every connection runs where the plan does not say.
const WORKLOAD: &str = "oltp_read_write";

/// What decides which keys a workload has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// sysbench's.
    Oltp,
    /// TPC-C.
    Tpcc,
    /// A FILE.sql.
    Script,
}

impl Family {
    /// Of a workload by its name in the plan.
    pub(super) fn of(workload: Option<&str>) -> Family {
        match workload.unwrap_or(WORKLOAD) {
            tpcc::NAME => Family::Tpcc,
            name if name.ends_with(".sql") => Family::Script,
            _ => Family::Oltp,
        }
    }

    /// Whether a workload of this kind has a key.
    fn has(self, key: &str) -> bool {
        match key {
            "warehouses" | "mix" | "home_warehouse" | "think_times" => self == Family::Tpcc,
            "setup" => self == Family::Script,
            _ => self != Family::Tpcc,
        }
    }
}

/// The keys of a load that some kinds of workload have and others have not, of those that are given.
fn special(text: &LoadText) -> impl Iterator<Item = &'static str> {
    let given = [
        ("tables", text.tables.is_some()),
        ("rows", text.rows.is_some()),
        ("distribution", text.distribution.is_some()),
        ("protocol", text.protocol.is_some()),
        ("options", !text.options.is_empty()),
        ("setup", text.setup.is_some()),
        ("warehouses", text.warehouses.is_some()),
        ("mix", text.mix.is_some()),
        ("home_warehouse", text.home_warehouse.is_some()),
        ("think_times", text.think_times.is_some()),
    ];
    given.into_iter().filter(|(_, given)| *given).map(|(key, _)| key)
}

/// Refuses keys of `[load]` that no variant's workload has.
pub(super) fn every_key_is_of_use(load: &LoadText, families: &[Family]) -> Result<(), PlanError> {
    match special(load).find(|key| !families.iter().any(|family| family.has(key))) {
        None => Ok(()),
        Some(key) => Err(PlanError::key(
            format!("load.{key}"),
            no_such_key(load.workload.as_deref()),
            "leave it out",
        )),
    }
}

fn no_such_key(workload: Option<&str>) -> String {
    let workload = workload.unwrap_or(WORKLOAD);
    match Family::of(Some(workload)) {
        Family::Script => format!("it goes with another kind of workload, and {workload} is a file of statements"),
        Family::Tpcc => {
            "it does not go with tpcc, whose size is its warehouses and whose statements are always prepared".to_owned()
        }
        Family::Oltp => format!("it goes with another kind of workload than {workload}"),
    }
}

/// The load's text with what the variant has otherwise; `key` names a key of the variant in errors.
pub(super) fn merged(
    load: &LoadText,
    variant: &VariantText,
    key: &dyn Fn(&str) -> String,
) -> Result<LoadText, PlanError> {
    let own = LoadText {
        tables: variant.tables,
        rows: variant.rows,
        distribution: variant.distribution.clone(),
        protocol: variant.protocol.clone(),
        options: variant.options.clone(),
        setup: variant.setup.clone(),
        warehouses: variant.warehouses,
        mix: variant.mix.clone(),
        home_warehouse: variant.home_warehouse.clone(),
        think_times: variant.think_times,
        ..LoadText::default()
    };
    let workload = variant.workload.clone().or_else(|| load.workload.clone());
    let family = Family::of(workload.as_deref());
    if let Some(foreign) = special(&own).find(|name| !family.has(name)) {
        return Err(PlanError::key(
            key(foreign),
            no_such_key(workload.as_deref()),
            "leave it out",
        ));
    }
    let mut all = load.clone();
    all.options.extend(own.options);
    let mut all = LoadText {
        workload,
        tables: own.tables.or(all.tables),
        rows: own.rows.or(all.rows),
        distribution: own.distribution.or(all.distribution),
        protocol: own.protocol.or(all.protocol),
        setup: own.setup.or(all.setup),
        warehouses: own.warehouses.or(all.warehouses),
        mix: own.mix.or(all.mix),
        home_warehouse: own.home_warehouse.or(all.home_warehouse),
        think_times: own.think_times.or(all.think_times),
        isolation: variant.isolation.clone().or(all.isolation),
        read_tables: variant.read_tables.or(all.read_tables),
        rate: variant.rate.or(all.rate),
        idle_connections: variant.idle_connections.or(all.idle_connections),
        ..all
    };
    all.only_keys_of(family);
    Ok(all)
}

impl LoadText {
    /// Takes every key that is given. Where the workload is, keys of this text that only workloads of another kind have are dropped.
    pub fn replace_with(&mut self, given: LoadText) {
        if given.workload.is_some() {
            self.workload = given.workload;
            self.only_keys_of(Family::of(self.workload.as_deref()));
        }
        fn replace<T>(own: &mut Option<T>, given: Option<T>) {
            *own = given.or(own.take());
        }
        replace(&mut self.tables, given.tables);
        replace(&mut self.rows, given.rows);
        replace(&mut self.distribution, given.distribution);
        replace(&mut self.protocol, given.protocol);
        self.options.extend(given.options);
        replace(&mut self.setup, given.setup);
        replace(&mut self.warehouses, given.warehouses);
        replace(&mut self.mix, given.mix);
        replace(&mut self.home_warehouse, given.home_warehouse);
        replace(&mut self.think_times, given.think_times);
        replace(&mut self.read_tables, given.read_tables);
        replace(&mut self.isolation, given.isolation);
        replace(&mut self.rate, given.rate);
        replace(&mut self.arrivals, given.arrivals);
        replace(&mut self.idle_connections, given.idle_connections);
        replace(&mut self.seed, given.seed);
        replace(&mut self.client_threads, given.client_threads);
        replace(&mut self.transport, given.transport);
    }

    fn only_keys_of(&mut self, family: Family) {
        if family == Family::Tpcc {
            (self.tables, self.rows, self.distribution, self.protocol) = (None, None, None, None);
            self.options.clear();
        } else {
            (self.warehouses, self.mix, self.home_warehouse, self.think_times) = (None, None, None, None);
        }
        if family != Family::Script {
            self.setup = None;
        }
    }
}

/// The load as it is run.
pub(super) fn load_options(
    text: &LoadText,
    source: PlanSource<'_>,
    read: ReadText<'_>,
) -> Result<LoadOptions, PlanError> {
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
        loop_kind: loop_kind(text)?,
        isolation: text.isolation.as_deref().map(isolation).transpose()?,
        seed: text.seed.unwrap_or(1),
        threads: text.client_threads,
        transport: word("load.transport", &text.transport)?.unwrap_or(TransportChoice::Auto),
        reads_tables_first: text.read_tables.unwrap_or(true),
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
    let name = text.workload.as_deref().unwrap_or(WORKLOAD);
    match Family::of(Some(name)) {
        Family::Oltp => {
            let kind = word("load.workload", &Some(name.to_owned()))?;
            return Ok(WorkloadChoice::Oltp(kind.unwrap_or(OltpWorkloadKind::ReadWrite)));
        }
        Family::Tpcc => return Ok(WorkloadChoice::Tpcc(tpcc_options(text)?)),
        Family::Script => {}
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

fn tpcc_options(text: &LoadText) -> Result<TpccOptions, PlanError> {
    let defaults = TpccOptions::default();
    Ok(TpccOptions {
        warehouses: text.warehouses.unwrap_or(defaults.warehouses),
        mix: word("load.mix", &text.mix)?.unwrap_or(defaults.mix),
        home: word("load.home_warehouse", &text.home_warehouse)?.unwrap_or(defaults.home),
        pauses: text.think_times,
        data_seed: text.seed.unwrap_or(defaults.data_seed),
        history_key: defaults.history_key,
    })
}

fn loop_kind(text: &LoadText) -> Result<LoopKind, PlanError> {
    match text.rate {
        None => Ok(LoopKind::Closed),
        Some(_) if text.think_times.is_some() => Err(PlanError::key(
            "load.rate",
            "it and think_times contradict each other: both say when a transaction begins",
            "leave one of them out",
        )),
        Some(rate) if rate.is_finite() && (0.001..=1e8).contains(&rate) => Ok(LoopKind::Open {
            rate,
            arrivals: word("load.arrivals", &text.arrivals)?.unwrap_or(Arrivals::Poisson),
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
