//! Which server, on which machine, under which load.

use super::Section;
use super::words::item;
use crate::figures::whole;
use scaleprof_analysis::numbers::counted;
use scaleprof_bundle::{Bundle, Machine, Manifest, SettingRow, UNKNOWN};
use scaleprof_vocabulary::{LoopWord, WorkloadName};

/// Product, version and build.
pub(super) fn server(bundle: &Bundle) -> Section {
    let server = &bundle.manifest.server;
    let setting = |name: &str| value(&bundle.settings, name);
    let mut out = item(&match &server.binary {
        Some(binary) => format!("{}, binary `{binary}`", server.named()),
        None => server.named(),
    });
    let build = match (&server.build_id, bundle.server_fingerprint()) {
        (Some(id), _) => format!("build-id {id}"),
        (None, Some(fingerprint)) => match fingerprint.strip_prefix("sha256:") {
            Some(hash) => format!("no build-id; SHA-256 of the binary {hash}"),
            None => fingerprint.to_owned(),
        },
        (None, None) => "build-id not known".to_owned(),
    };
    out.push_str(&item(&build));
    let built: Vec<String> = [
        ("version_comment", ""),
        ("version_compile_os", "for "),
        ("version_compile_machine", "on "),
        ("version_source_revision", "source revision "),
        ("version_malloc_library", "malloc: "),
        ("version_ssl_library", "TLS: "),
    ]
    .into_iter()
    .filter_map(|(name, before)| Some(format!("{before}{}", setting(name).filter(|value| !value.is_empty())?)))
    .collect();
    out.push_str(&item(&match built.is_empty() {
        true => "how it was built is not known".to_owned(),
        false => format!("built: {}", built.join(", ")),
    }));
    let shared = match server.shares_cpus_with_client {
        Some(true) => ", shared with the client",
        Some(false) => ", none of them used by the client",
        None => "",
    };
    let list = server.cpus.as_ref().map_or(String::new(), |list| format!(" ({list})"));
    out.push_str(&item(&match server.cpu_count {
        Some(count) => format!("may use {}{list}{shared}", counted(count, "CPU")),
        None => "which CPUs it may use is not known".to_owned(),
    }));
    ("Server", out)
}

/// CPU, memory, kernel. Of a machine that is known from another tool's recording nobody looked for a hypervisor.
pub(super) fn machine(machine: &Machine, recorded: bool) -> Section {
    let cpus = match machine.cpus {
        Some(count) => format!("{} online", counted(count, "CPU")),
        None => "number of CPUs not known".to_owned(),
    };
    let nodes = match machine.numa_nodes {
        Some(count) => counted(count, "NUMA node"),
        None => "number of NUMA nodes not known".to_owned(),
    };
    let model = match machine.cpu_model.as_str() {
        UNKNOWN => "CPU model not known",
        model => model,
    };
    let mut lines = vec![
        format!("{model}, {cpus}, {nodes}"),
        match machine.memory_bytes {
            None => "memory not known".to_owned(),
            Some(bytes) => format!("{:.1} GiB of memory", bytes as f64 / f64::from(1 << 30)),
        },
        match &machine.hypervisor {
            Some(name) => format!("virtual machine ({name})"),
            None if recorded => "whether it is a virtual machine is not known".to_owned(),
            None => "no hypervisor seen".to_owned(),
        },
        system(machine),
    ];
    let more = [
        ("frequency governor", &machine.governor),
        ("clock source", &machine.clock_source),
        ("transparent huge pages", &machine.transparent_huge_pages),
    ];
    let more: Vec<String> = more
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)))
        .collect();
    if !more.is_empty() {
        lines.push(more.join(", "));
    }
    ("Machine", lines.iter().map(|line| item(line)).collect())
}

/// Kernel, architecture and distribution.
fn system(machine: &Machine) -> String {
    let known = |word: &str| word != UNKNOWN;
    let kernel = match known(&machine.kernel) {
        true => format!("Linux {}", machine.kernel),
        false => "kernel not known".to_owned(),
    };
    let architecture = match known(&machine.architecture) {
        true => format!(" on {}", machine.architecture),
        false => ", architecture not known".to_owned(),
    };
    let distribution = machine.distribution.as_ref();
    let distribution = distribution.map_or(String::new(), |name| format!(", {name}"));
    format!("{kernel}{architecture}{distribution}")
}

/// What was run, and by whom.
pub(super) fn workload(manifest: &Manifest, settings: &[SettingRow]) -> Section {
    let load = &manifest.workload;
    if let Some(from) = load.imported() {
        return ("Load", recorded(manifest, from));
    }
    let name = match load.name {
        WorkloadName::Script => "statements of the user (not shown)".to_owned(),
        WorkloadName::Tpcc => "TPC-C (docs/tpcc.md)".to_owned(),
        other => format!("sysbench's {}", other.name()),
    };
    let tables = load.tables.zip(load.rows).map(|(tables, rows)| {
        format!(
            ", {} of {} rows, {} distribution",
            counted(tables, "table"),
            whole(rows),
            load.distribution
        )
    });
    let isolation = load
        .isolation
        .as_ref()
        .map_or("the server's isolation level".to_owned(), |level| {
            format!("isolation level {level}")
        });
    let protocol = match load.protocol.as_str() {
        "binary" => "prepared statements",
        _ => "statements as text",
    };
    let options: Vec<String> = load
        .options
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let offered = match (load.loop_kind, manifest.ladder.rate) {
        (Some(LoopWord::Open), Some(rate)) => format!("open loop, {rate} transactions/s offered"),
        _ if load.options.iter().any(|(name, _)| name == "think_times") => {
            "closed loop with keying and think times".to_owned()
        }
        _ => "closed loop without think time".to_owned(),
    };
    let encryption = value(settings, "scaleprof.encryption")
        .filter(|how| *how != "none")
        .map_or(String::new(), |how| format!(", encrypted with {how}"));
    let lines = [
        format!("{name}{}", tables.unwrap_or_default()),
        format!("{protocol}, {isolation}, {offered}"),
        format!(
            "client: scaleprof {}, seed {}{}{encryption}",
            manifest.scaleprof,
            load.seed,
            if options.is_empty() {
                String::new()
            } else {
                format!(", {}", options.join(", "))
            }
        ),
        format!(
            "each rung measured {} for {} s, in shuffled order",
            match manifest.ladder.repeats {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            },
            manifest.ladder.seconds
        ),
    ];
    ("Load", lines.iter().map(|line| item(line)).collect())
}

/// What another tool recorded: of the load only what whoever imported it said.
fn recorded(manifest: &Manifest, from: &str) -> String {
    let name = match &manifest.workload.imported_as {
        None => "not named".to_owned(),
        Some(name) => format!("`{name}`, as given at import"),
    };
    let lines = [
        format!("load: {name}"),
        format!(
            "recorded by another tool ({from}), imported by scaleprof {}",
            manifest.scaleprof
        ),
        "throughput and connections are as given at import".to_owned(),
    ];
    lines.iter().map(|line| item(line)).collect()
}

/// The value of a setting.
pub(super) fn value<'a>(settings: &'a [SettingRow], name: &str) -> Option<&'a str> {
    settings
        .iter()
        .find(|row| row.name == name)
        .map(|row| row.value.as_str())
}
