//! What differs between two runs but for what was measured.

use super::{ConditionEffect, Difference, RungChange, SettingChange};
use crate::per::Per;
use scaleprof_bundle::{BUILT_IN, Bundle, CALL_PATHS, IMPORTED, Workload};
use scaleprof_profile::import::NO_CALLERS;
use scaleprof_vocabulary::{RunState, WorkloadName};
use std::collections::BTreeMap;

/// All that is not the same in server, machine and load, the gravest first.
pub(super) fn differences(a: &Bundle, b: &Bundle) -> Vec<Difference> {
    let (one, other) = (&a.manifest, &b.manifest);
    let mut found = Vec::new();
    let mut note = |what: &str, effect: ConditionEffect, a: Option<String>, b: Option<String>| {
        if a != b {
            found.push(Difference {
                what: what.to_owned(),
                a,
                b,
                effect,
            });
        }
    };
    use ConditionEffect::{Confounds, Incomparable, Intended};
    macro_rules! compare {
        ($($what:literal, $effect:ident, $part:ident . $field:ident;)*) => {
            $(note($what, $effect, Some(one.$part.$field.to_string()), Some(other.$part.$field.to_string()));)*
        };
        (? $($what:literal, $effect:ident, $part:ident . $field:ident;)*) => {
            $(note(
                $what,
                $effect,
                one.$part.$field.as_ref().map(ToString::to_string),
                other.$part.$field.as_ref().map(ToString::to_string),
            );)*
        };
    }
    let loads = [one, other].map(|manifest| &manifest.workload);
    let [title, other_title] = loads.map(|workload| Some(workload.title().to_owned()));
    note("workload", Incomparable, title, other_title);
    let [kind, other_kind] = loads.map(|workload| workload.loop_kind.map(|word| word.label().to_owned()));
    note("kind of loop", Incomparable, kind, other_kind);
    compare! {
        "distribution of the rows", Incomparable, workload.distribution;
        "protocol", Incomparable, workload.protocol;
        "idle connections", Confounds, ladder.idle_connections;
        "seed", Confounds, workload.seed;
        "product", Intended, server.product;
        "version", Intended, server.version;
        "CPU model", Confounds, machine.cpu_model;
        "kernel", Confounds, machine.kernel;
        "architecture", Confounds, machine.architecture;
    }
    compare! { ?
        "tables", Incomparable, workload.tables;
        "rows per table", Incomparable, workload.rows;
        "transactions offered per second", Incomparable, ladder.rate;
        "isolation level", Confounds, workload.isolation;
        "build-id", Intended, server.build_id;
        "CPUs of the server", Confounds, server.cpu_count;
        "whether server and client share CPUs", Confounds, server.shares_cpus_with_client;
        "CPUs online", Confounds, machine.cpus;
        "NUMA nodes", Confounds, machine.numa_nodes;
        "distribution", Confounds, machine.distribution;
        "hypervisor", Confounds, machine.hypervisor;
        "frequency governor", Confounds, machine.governor;
        "clock source", Confounds, machine.clock_source;
        "transparent huge pages", Confounds, machine.transparent_huge_pages;
    }
    // A watch and an import do not say.
    if let (Some(a), Some(b)) = (a.load_scheduling(), b.load_scheduling()) {
        let [a, b] = [a, b].map(|scheduling| Some(scheduling.to_owned()));
        note("how the threads of the load were scheduled", Confounds, a, b);
    }
    let options = |bundle: &Bundle| -> Vec<String> {
        let mut options: Vec<String> = bundle
            .manifest
            .workload
            .options
            .iter()
            // None of these is part of what a transaction does.
            .filter(|(name, _)| !["transport", IMPORTED, CALL_PATHS, BUILT_IN].contains(&name.as_str()))
            .filter(|(name, _)| !name.starts_with("fairness_of_recording"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        options.sort();
        options
    };
    let joined = |bundle: &Bundle| Some(options(bundle).join(" ")).filter(|text| !text.is_empty());
    note("options of the workload", Incomparable, joined(a), joined(b));
    let [of_a, of_b] = [one, other].map(|manifest| manifest.workload.imported().map(str::to_owned));
    if of_a.is_some() != of_b.is_some() {
        note("what was recorded by another tool", Confounds, of_a, of_b);
    }
    let recorded = [one, other].map(|manifest| recorded(&manifest.workload));
    if let [Some((of_a, event_a)), Some((of_b, event_b))] = recorded {
        note("format of the recordings", Confounds, Some(of_a), Some(of_b));
        // Of one that is not told nobody knows whether it is another one.
        if let (Some(a), Some(b)) = (event_a, event_b) {
            note("event that was recorded", Incomparable, Some(a), Some(b));
        }
    }
    if let Some(ways) = two_ways(a, b) {
        let [a, b] = ways.map(Some);
        note("how call paths were found", Confounds, a, b);
    }
    if let Some(ways) = with_and_without_built_in(a, b) {
        let [a, b] = ways.map(|way| Some(way.to_owned()));
        note("functions that were built into others", Confounds, a, b);
    }
    // A virtual machine does not get the same bytes twice.
    let gibibytes = |bytes: u64| (bytes as f64 / f64::from(1 << 30)).round().to_string();
    note(
        "memory, GiB",
        Confounds,
        one.machine.memory_bytes.map(gibibytes),
        other.machine.memory_bytes.map(gibibytes),
    );
    if let (Some(a), Some(b)) = (a.server_fingerprint(), b.server_fingerprint()) {
        note(
            "hash of the server's binary",
            Intended,
            Some(a.to_owned()),
            Some(b.to_owned()),
        );
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.effect));
    found
}

/// Formats and events of what was imported; no events where one is not known.
fn recorded(workload: &Workload) -> Option<(String, Option<String>)> {
    const NOT_KNOWN: &str = "event unknown";
    let recordings = workload.imported()?.split("; ");
    let (mut formats, mut events): (Vec<&str>, Vec<&str>) = recordings.filter_map(|one| one.split_once(", ")).unzip();
    for names in [&mut formats, &mut events] {
        names.sort_unstable();
        names.dedup();
    }
    let events = (!events.contains(&NOT_KNOWN)).then(|| events.join(", "));
    Some((formats.join(", "), events))
}

/// How the call paths of both were found, where that is known and not the same: then the same work has other callers in both.
fn two_ways(a: &Bundle, b: &Bundle) -> Option<[String; 2]> {
    let ways = [a, b].map(|bundle| {
        let mut ways: Vec<&str> = bundle.manifest.workload.call_paths()?.split("; ").collect();
        ways.sort_unstable();
        Some(ways.join("; "))
    });
    let [Some(of_a), Some(of_b)] = ways else { return None };
    (of_a != of_b).then_some([of_a, of_b])
}

/// How built-in functions were treated in each, where that is known and not the same.
fn with_and_without_built_in<'a>(a: &'a Bundle, b: &'a Bundle) -> Option<[&'a str; 2]> {
    let ways = [a.manifest.workload.built_in()?, b.manifest.workload.built_in()?];
    (ways[0] != ways[1]).then_some(ways)
}

/// Why call paths cannot be paired.
pub(super) struct Unpaired {
    /// As a sentence, but for its end.
    pub(super) cause: String,
    /// As a part of one.
    pub(super) words: &'static str,
    /// Whether kinds of code can be compared all the same: they are told by callers too.
    pub(super) kinds: bool,
}

/// None where they can be.
pub(super) fn unpaired(a: &Bundle, b: &Bundle) -> Option<Unpaired> {
    // Other products have other names for the same thing: paired by name, nearly all would be gone and new.
    if a.manifest.server.product != b.manifest.server.product {
        return Some(Unpaired {
            cause: "A and B are two products, which name their functions differently".to_owned(),
            words: "call paths of two products cannot be paired",
            kinds: true,
        });
    }
    if let Some([a, b]) = two_ways(a, b) {
        return Some(Unpaired {
            cause: format!("The unwinding methods find different callers (A: {a}, B: {b})"),
            words: "call paths of two unwinding methods cannot be paired",
            kinds: ![&a, &b].iter().any(|way| way.contains(NO_CALLERS)),
        });
    }
    with_and_without_built_in(a, b).map(|[a, b]| Unpaired {
        cause: format!("Inlined functions are {a} in A and {b} in B"),
        words: "call paths with and without inlined functions cannot be paired",
        kinds: true,
    })
}

/// The server's settings that do not have the same value.
pub(super) fn settings(a: &Bundle, b: &Bundle) -> Vec<SettingChange> {
    let of = |bundle: &'_ Bundle| -> BTreeMap<String, String> {
        let rows = bundle.settings.iter();
        rows.filter(|row| !row.name.starts_with("scaleprof.") && !row.name.starts_with("version"))
            .map(|row| (row.name.clone(), row.value.clone()))
            .collect()
    };
    let (mut one, mut other) = (of(a), of(b));
    // An attached server may not show them at all.
    if one.is_empty() || other.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = one.keys().chain(other.keys()).cloned().collect();
    let mut changes = BTreeMap::new();
    for name in names {
        let (a, b) = (one.remove(&name), other.remove(&name));
        let number = |value: &Option<String>| value.as_ref().and_then(|text| text.parse::<f64>().ok());
        let is_same_number = number(&a).zip(number(&b)).is_some_and(|(a, b)| a == b);
        if a != b && !is_same_number {
            changes.insert(name.clone(), SettingChange { name, a, b });
        }
    }
    changes.into_values().collect()
}

/// What the reader should know before believing the figures.
pub(super) fn warnings(a: &Bundle, b: &Bundle, differences: &[Difference], rungs: &[RungChange]) -> Vec<String> {
    let mut warnings = Vec::new();
    let of_weight = |effect: ConditionEffect| -> Vec<&str> {
        let found = differences.iter().filter(|one| one.effect == effect);
        found.map(|one| one.what.as_str()).collect()
    };
    let forbids = of_weight(ConditionEffect::Incomparable);
    if !forbids.is_empty() {
        let unit = match Per::of(a) {
            Per::Transaction => "figures per transaction cannot be compared: transactions differ ({})",
            Per::Second => "figures per second cannot be compared: the loads differ ({})",
        };
        warnings.push(unit.replace("{}", &forbids.join(", ")));
    }
    let disturbs = of_weight(ConditionEffect::Confounds);
    if !disturbs.is_empty() {
        warnings.push(format!(
            "the runs differ in {}, which may explain a part of the change",
            disturbs.join(", ")
        ));
    }
    if [a, b].iter().any(|bundle| bundle.manifest.workload.has_shares_only()) {
        warnings.push(
            "one run has no sample period: only shares are comparable, and 1 s stands for its whole recording"
                .to_owned(),
        );
    }
    if a.manifest.workload.name == WorkloadName::Script {
        warnings.push("the scripts of both runs may differ: a bundle holds no statements".to_owned());
    }
    for (side, bundle) in [("A", a), ("B", b)] {
        if bundle.manifest.state != RunState::Complete {
            warnings.push(format!("run {side} is incomplete: only what it measured is compared"));
        }
    }
    if a.manifest.server.product != b.manifest.server.product {
        warnings.push(
            "call paths cannot be paired: two products name their functions differently; states and kinds of code are compared instead"
                .to_owned(),
        );
    }
    if let Some([a, b]) = two_ways(a, b) {
        warnings.push(format!(
            "call paths cannot be paired: A used {a}, B used {b}; compare recordings with the same unwinding method"
        ));
    }
    if let Some([a, b]) = with_and_without_built_in(a, b) {
        warnings.push(format!(
            "call paths cannot be paired: inlined functions are {a} in A and {b} in B; import both in the same way"
        ));
    }
    if rungs.iter().any(|rung| rung.throughput_p.is_some()) {
        warnings.push(
            "each side is one run: a restart or another hour is part of the difference; scaleprof experiment interleaves A and B"
                .to_owned(),
        );
    }
    warnings
}
