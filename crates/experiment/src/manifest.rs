//! What a bundle says of the run itself.

use crate::options::{LoadOptions, RunOptions, ServerChoice, WorkloadChoice};
use crate::target::Target;
use scaleprof_bundle::{Ladder, Machine, Manifest, Server, SettingRow, UNKNOWN, Workload};
use scaleprof_probe::{MachineFacts, relax_nanoseconds};
use scaleprof_server::{CpuSet, Placement};
use scaleprof_vocabulary::{LoopWord, RunState, WorkloadName};
use scaleprof_wire::Client;
use scaleprof_workload::tpcc::{HomeWarehouse, Mix, RunConstants, TpccOptions};
use scaleprof_workload::{LoadScheduling, LoopKind};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The manifest of a run that begins.
pub(crate) fn begin(
    options: &RunOptions,
    target: &Target,
    placement: &Placement,
    variables: &BTreeMap<String, String>,
) -> Manifest {
    Manifest {
        schema: scaleprof_bundle::SCHEMA,
        scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: timestamp(),
        ended_at: None,
        state: RunState::Running,
        problem: None,
        command: options.command.clone(),
        server: server(options, target, placement, variables),
        workload: workload(&options.load),
        machine: machine(&MachineFacts::read()),
        ladder: Ladder {
            connections: options.connections.clone(),
            refined: Vec::new(),
            seconds: options.seconds,
            repeats: options.repeats,
            idle_connections: options.load.idle_connections,
            rate: match options.load.loop_kind {
                LoopKind::Closed => None,
                LoopKind::Open { rate, .. } => Some(rate),
            },
            interleaving: None,
        },
        missing: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The time as RFC 3339 in UTC, to the second.
pub(crate) fn timestamp() -> String {
    let now = OffsetDateTime::now_utc();
    let whole = now.replace_nanosecond(0).unwrap_or(now);
    whole.format(&Rfc3339).unwrap_or_default()
}

fn server(
    options: &RunOptions,
    target: &Target,
    placement: &Placement,
    variables: &BTreeMap<String, String>,
) -> Server {
    let variable = |name: &str| variables.get(name).cloned().unwrap_or_default();
    let comment = variable("version_comment");
    let version = variable("version");
    match target {
        Target::Private(sandbox) => {
            let installation = sandbox.installation();
            let confined = matches!(
                options.server,
                ServerChoice::Private {
                    cpus_server: Some(_),
                    ..
                }
            ) || !placement.shared;
            Server {
                product: installation.product.to_string(),
                version,
                build_id: installation.build_id.clone(),
                binary: Some(installation.file_name()),
                cpus: confined.then(|| placement.server.to_string()),
                cpu_count: Some(placement.server.len() as u32),
                shares_cpus_with_client: Some(placement.shared),
            }
        }
        Target::Attached(_) => {
            let cpus = target.cpus();
            let confined = |cpus: &CpuSet| cpus.len() < MachineFacts::read().cpus.unwrap_or(0);
            Server {
                product: match () {
                    () if version.contains("MariaDB") => "MariaDB".to_owned(),
                    () if comment.contains("Percona") => "Percona Server".to_owned(),
                    () => "MySQL".to_owned(),
                },
                version,
                build_id: None,
                binary: None,
                cpus: cpus.as_ref().filter(|cpus| confined(cpus)).map(CpuSet::to_string),
                cpu_count: cpus.as_ref().map(|cpus| cpus.len() as u32),
                shares_cpus_with_client: cpus.map(|cpus| !cpus.within(&placement.client).is_empty()),
            }
        }
    }
}

/// Where server and client ran, as settings: what the server itself does not know.
pub(crate) fn placement_settings(
    server: &ServerChoice,
    target: &Target,
    placement: &Placement,
    scheduling: LoadScheduling,
) -> Vec<SettingRow> {
    let row = |name: &str, value: String| SettingRow::new(format!("scaleprof.{name}"), value);
    let mut rows = vec![
        row("client_cpu_list", placement.client.to_string()),
        row("load_scheduling", scheduling.name().to_owned()),
    ];
    rows.extend(placement.server_nice().map(|nice| row("server_nice", nice.to_string())));
    if let ServerChoice::Private {
        company, cpus_company, ..
    } = server
        && let Some(words) = company.words()
    {
        rows.push(row("topology", words));
        let cpus = cpus_company.as_ref().unwrap_or(&placement.server);
        rows.push(row("topology_cpu_list", cpus.to_string()));
    }
    if let Target::Private(sandbox) = target {
        rows.push(row("server_cpu_list", placement.server.to_string()));
        let nodes = placement.memory_nodes.as_ref().map(|nodes| {
            let words: Vec<String> = nodes.iter().map(u32::to_string).collect();
            words.join(",")
        });
        rows.push(row("server_memory_nodes", nodes.unwrap_or_else(|| "all".to_owned())));
        let surroundings = sandbox.surroundings();
        // Whose place it is, or what a variable holds, is nobody's business; that there is one explains a difference.
        if let Some(wrapper) = surroundings.wrapper.first() {
            let name = std::path::Path::new(wrapper).file_name().unwrap_or_default();
            rows.push(row("server_wrapper", name.to_string_lossy().into_owned()));
        }
        if !surroundings.environment.is_empty() {
            let names: Vec<&str> = surroundings.environment.keys().map(String::as_str).collect();
            rows.push(row("server_environment", names.join(",")));
        }
        if !surroundings.statements.is_empty() {
            rows.push(row("server_statements", surroundings.statements.len().to_string()));
        }
        let installation = sandbox.installation();
        if let (None, Ok(fingerprint)) = (&installation.build_id, installation.fingerprint()) {
            rows.push(row("server_fingerprint", fingerprint));
        }
    } else if let Some(cpus) = target.cpus() {
        rows.push(row("server_cpu_list", cpus.to_string()));
    }
    rows
}

/// How the connections to somebody's server are encrypted, as a setting.
pub(crate) fn encryption_setting(client: &Client) -> SettingRow {
    SettingRow::new("scaleprof.encryption", client.encryption().unwrap_or("none"))
}

fn workload(load: &LoadOptions) -> Workload {
    let o = &load.oltp;
    let mut options = Vec::new();
    let defaults = scaleprof_workload::OltpOptions::default();
    let mut note = |name: &str, value: String, default: String| {
        if value != default {
            options.push((name.to_owned(), value));
        }
    };
    macro_rules! note_changed {
        ($($field:ident),*) => { $(note(stringify!($field), o.$field.to_string(), defaults.$field.to_string());)* };
    }
    note_changed!(
        range_size,
        point_selects,
        simple_ranges,
        sum_ranges,
        order_ranges,
        distinct_ranges,
        index_updates,
        non_index_updates,
        delete_inserts,
        range_selects,
        auto_inc,
        skip_trx,
        secondary,
        create_secondary,
        random_points,
        number_of_ranges,
        delta
    );
    if let LoopKind::Open { arrivals, .. } = load.loop_kind {
        options.push(("arrivals".to_owned(), arrivals.to_string()));
    }
    if load.runs_once() {
        options.push(("repetition".to_owned(), "once".to_owned()));
    }
    if let WorkloadChoice::Tpcc(tpcc) = &load.workload {
        options.extend(tpcc_options(tpcc));
    }
    options.push(("transport".to_owned(), load.transport.to_string()));
    let name = match &load.workload {
        WorkloadChoice::Oltp(kind) => kind.word(),
        WorkloadChoice::Tpcc(_) => WorkloadName::Tpcc,
        WorkloadChoice::Script { .. } => WorkloadName::Script,
    };
    Workload {
        name,
        imported_as: None,
        tables: load.with_tables().then_some(o.tables),
        rows: load.with_tables().then_some(u64::from(o.table_size)),
        distribution: match load.workload {
            WorkloadChoice::Tpcc(_) => "nurand".to_owned(),
            _ => o.distribution.to_string(),
        },
        protocol: match load.workload {
            WorkloadChoice::Oltp(_) | WorkloadChoice::Tpcc(_) => o.protocol.to_string(),
            WorkloadChoice::Script { .. } => "text".to_owned(),
        },
        isolation: load.isolation.clone(),
        seed: load.seed,
        loop_kind: Some(match load.loop_kind {
            LoopKind::Closed => LoopWord::Closed,
            LoopKind::Open { .. } => LoopWord::Open,
        }),
        options,
    }
}

/// What was chosen of TPC-C, and the constants of its random numbers (clause 2.1.6.1), which go into every disclosure.
fn tpcc_options(tpcc: &TpccOptions) -> Vec<(String, String)> {
    let RunConstants {
        last_name_load,
        last_name_run,
        customer,
        item,
    } = RunConstants::of(tpcc.data_seed);
    let mut options = vec![("warehouses", tpcc.warehouses.to_string())];
    if tpcc.mix != Mix::default() {
        options.push(("mix", tpcc.mix.to_string()));
    }
    if tpcc.home != HomeWarehouse::default() {
        options.push(("home_warehouse", tpcc.home.to_string()));
    }
    if tpcc.history_key {
        options.push(("history_key", "on".to_owned()));
    }
    if let Some(factor) = tpcc.pauses {
        options.push(("think_times", factor.to_string()));
    }
    let constants = format!("last name {last_name_load} loaded {last_name_run} run, customer {customer}, item {item}");
    options.push(("nurand_constants", constants));
    let named = options.into_iter().map(|(name, value)| (name.to_owned(), value));
    named.collect()
}

pub(crate) fn machine(facts: &MachineFacts) -> Machine {
    let unknown = || UNKNOWN.to_owned();
    Machine {
        cpu_model: facts.cpu_model.clone().unwrap_or_else(unknown),
        cpus: facts.cpus.map(|cpus| cpus as u32),
        numa_nodes: facts.numa_nodes.map(|nodes| nodes as u32),
        memory_bytes: facts.memory_bytes,
        kernel: facts.kernel_release.clone().unwrap_or_else(unknown),
        architecture: facts.architecture.clone(),
        distribution: facts.distribution.clone(),
        hypervisor: facts.hypervisor.clone(),
        governor: facts.governor.clone(),
        clock_source: facts.clock_source.clone(),
        transparent_huge_pages: facts.transparent_huge_pages.clone(),
        pause_nanoseconds: Some(relax_nanoseconds()).filter(|cost| cost.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_workload::{OltpOptions, Repetition, TransportChoice};

    #[test]
    fn no_text_of_a_script_is_in_the_manifest() {
        let load = LoadOptions {
            workload: WorkloadChoice::Script {
                text: "SELECT secret_column FROM secret_table".to_owned(),
                setup: Some("DO 'secret_setup'".to_owned()),
                repetition: Repetition::Loop,
                with_tables: false,
            },
            oltp: OltpOptions::default(),
            idle_connections: 0,
            loop_kind: LoopKind::Closed,
            isolation: None,
            seed: 1,
            threads: None,
            transport: TransportChoice::Auto,
            reads_tables_first: true,
        };
        let written = serde_json::to_string(&workload(&load)).expect("JSON");
        assert!(
            written.contains("\"script\"") && !written.contains("secret"),
            "{written}"
        );
    }
}
