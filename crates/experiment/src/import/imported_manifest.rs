//! What a bundle of recordings says of program and machine: what the recordings tell, and of the rest that nobody knows it.

use super::ImportRequest;
use crate::manifest::timestamp;
use scaleprof_bundle::{
    BUILT_IN, CALL_PATHS, IMPORTED, Ladder, Machine, Manifest, SHARES_ONLY, Server, UNKNOWN, Workload,
};
use scaleprof_profile::import::{Recording, RecordingFormat};
use scaleprof_vocabulary::{LoopWord, RunState, WorkloadName};
use std::collections::BTreeMap;

/// The manifest before anything is read. `with_load`: whether the user knows the load of the recordings; else they are of a watch.
pub(super) fn begin(request: &ImportRequest, with_load: bool) -> Manifest {
    let unknown = || UNKNOWN.to_owned();
    let mut connections: Vec<u32> = request.loads.iter().map(|load| load.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    let mut options = vec![(IMPORTED.to_owned(), String::new())];
    options.extend(request.name.iter().map(|name| ("name".to_owned(), name.clone())));
    Manifest {
        schema: scaleprof_bundle::SCHEMA,
        scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: timestamp(),
        ended_at: None,
        state: RunState::Running,
        problem: None,
        command: request.command.clone(),
        server: Server {
            product: unknown(),
            version: unknown(),
            build_id: None,
            binary: None,
            cpus: None,
            cpu_count: None,
            shares_cpus_with_client: None,
        },
        workload: Workload {
            name: match with_load {
                true => WorkloadName::Imported,
                false => WorkloadName::Watch,
            },
            imported_as: request.name.clone(),
            tables: None,
            rows: None,
            distribution: unknown(),
            protocol: unknown(),
            isolation: None,
            seed: 0,
            loop_kind: with_load.then_some(LoopWord::Closed),
            options,
        },
        machine: Machine {
            cpu_model: unknown(),
            cpus: request.cpus,
            numa_nodes: None,
            memory_bytes: None,
            kernel: unknown(),
            architecture: unknown(),
            distribution: None,
            hypervisor: None,
            governor: None,
            clock_source: None,
            transparent_huge_pages: None,
            pause_nanoseconds: None,
        },
        ladder: Ladder {
            connections,
            refined: Vec::new(),
            seconds: 0,
            repeats: 1,
            idle_connections: 0,
            rate: None,
            interleaving: None,
        },
        missing: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Where the number of CPUs comes from that a text of perf script tells.
const CPUS_BY_TEXT: &str = "cpus_by_text";

/// Says that the samples do not tell how much time they stand for.
pub(super) fn has_shares_only(manifest: &mut Manifest) {
    if !manifest.workload.has_shares_only() {
        let shares_only = (SHARES_ONLY.to_owned(), "yes".to_owned());
        manifest.workload.options.push(shares_only);
    }
}

/// Keeps what recordings tell of themselves under a name; each thing once.
fn tell(manifest: &mut Manifest, name: &str, words: &str) {
    let options = &mut manifest.workload.options;
    let place = options.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        options.push((name.to_owned(), String::new()));
        options.len() - 1
    });
    let Some((_, told)) = options.get_mut(place) else {
        return;
    };
    if told.is_empty() {
        words.clone_into(told);
    } else if !told.split("; ").any(|one| one == words) {
        *told = format!("{told}; {words}");
    }
}

/// Takes what a recording tells of program and machine; the first one that tells it counts. `inlines`: whether functions that were built into
/// others were told apart, where the names are ours.
pub(super) fn describe(
    manifest: &mut Manifest,
    recording: &Recording,
    inlines: bool,
    missing: &mut BTreeMap<String, String>,
) {
    if recording.format == RecordingFormat::PerfData {
        let words = if inlines { "resolved" } else { "not resolved" };
        tell(manifest, BUILT_IN, words);
    }
    let event = recording.event.as_deref().unwrap_or("event unknown");
    tell(manifest, IMPORTED, &format!("{}, {event}", recording.format.name()));
    if let Some(call_paths) = recording.call_paths {
        tell(manifest, CALL_PATHS, &call_paths.to_string());
    }
    let server = &mut manifest.server;
    if let Some(program) = &recording.program
        && server.binary.is_none()
    {
        server.binary = Some(program.name.clone());
        server.build_id.clone_from(&program.build_id);
    }
    let told = &recording.machine;
    let by_text = manifest.workload.options.iter().any(|(name, _)| name == CPUS_BY_TEXT);
    let machine = &mut manifest.machine;
    let fill = |place: &mut String, told: &Option<String>| {
        if let Some(told) = told.as_ref().filter(|_| place == UNKNOWN) {
            place.clone_from(told);
        }
    };
    fill(&mut machine.cpu_model, &told.cpu_model);
    fill(&mut machine.kernel, &told.kernel);
    fill(&mut machine.architecture, &told.architecture);
    let is_text = recording.format == RecordingFormat::PerfScript;
    // A text tells the CPUs that its threads were on: the recording with most of them counts.
    let counts_more = is_text && by_text && told.cpus > machine.cpus;
    let takes_cpus = machine.cpus.is_none() || counts_more;
    if takes_cpus {
        machine.cpus = told.cpus;
    }
    machine.memory_bytes = machine.memory_bytes.or(told.memory_bytes);
    if let (true, true, Some(cpus)) = (takes_cpus, is_text, told.cpus) {
        manifest.workload.options.retain(|(name, _)| name != CPUS_BY_TEXT);
        tell(
            manifest,
            CPUS_BY_TEXT,
            &format!("{cpus}, those that its threads were on"),
        );
    }
    let seconds = recording
        .span
        .as_ref()
        .map_or(0, |span| (span.end - span.start).div_ceil(1_000_000_000));
    manifest.ladder.seconds = manifest.ladder.seconds.max(u32::try_from(seconds).unwrap_or(u32::MAX));
    for figure in ["server.product", "server.version"] {
        let reason = "a recording does not tell it";
        missing.insert(figure.to_owned(), reason.to_owned());
    }
}

/// What no recording told of the machine.
pub(super) fn unknown_of_machine(machine: &Machine, missing: &mut BTreeMap<String, String>) {
    let known = |word: &str| word != UNKNOWN;
    let figures = [
        ("machine.cpu_model", known(&machine.cpu_model)),
        ("machine.kernel", known(&machine.kernel)),
        ("machine.architecture", known(&machine.architecture)),
        ("machine.cpus", machine.cpus.is_some()),
        ("machine.numa_nodes", machine.numa_nodes.is_some()),
        ("machine.memory_bytes", machine.memory_bytes.is_some()),
    ];
    for (figure, _) in figures.iter().filter(|(_, is_known)| !is_known) {
        let reason = "what was imported does not describe the machine that it was recorded on";
        missing.insert((*figure).to_owned(), reason.to_owned());
    }
}
