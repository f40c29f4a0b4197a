//! Whether the starts of a round can run side by side.

use super::Variant;
use crate::company::Company;
use crate::options::ServerChoice;
use scaleprof_server::memory::{buffer_pool, wanted};
use scaleprof_server::{ServerSettings, Settings, one_spelling, parse_size};

/// More servers at once have too little of the machine's memory and of its caches.
const MOST_SIDE_BY_SIDE: usize = 4;
/// The part of the free memory that all buffer pools together may have.
const MOST_MEMORY: f64 = 0.7;

/// What about these variants keeps their starts from taking turns, in words; none where nothing does.
pub(super) fn hindered_by_kind(variants: &[Variant]) -> Option<String> {
    if variants.len() > MOST_SIDE_BY_SIDE {
        return Some(format!(
            "more than {MOST_SIDE_BY_SIDE} variants are not started at once"
        ));
    }
    let with = |what: &str, which: &dyn Fn(&Variant) -> bool| {
        let found = variants.iter().find(|variant| which(variant))?;
        Some(format!("{} {what}", found.name))
    };
    let has_company = with(
        "has servers beside it, which would miss one that is stopped at times",
        &|variant| *variant.server.company() != Company::Alone,
    );
    let runs_once = || {
        with("runs its script once, at its own pace", &|variant| {
            variant.load.runs_once()
        })
    };
    let keeps_no_data = || {
        with(
            "keeps no prepared data, and servers at the same time are started on the same",
            &|variant| matches!(variant.server, ServerChoice::Private { cache_size: None, .. }),
        )
    };
    let other_threads = |setting: &str, have_others: bool| {
        have_others.then(|| {
            format!(
                "they differ in {setting}, and stopping a server for its rests costs the more the more threads it has"
            )
        })
    };
    has_company
        .or_else(runs_once)
        .or_else(keeps_no_data)
        .or_else(|| other_threads("thread_handling", differ(variants, thread_handling)))
        .or_else(|| {
            let idle = |variant: &Variant| variant.load.idle_connections;
            other_threads("idle_connections", differ(variants, idle))
        })
}

fn differ<T: PartialEq>(variants: &[Variant], of: impl Fn(&Variant) -> T) -> bool {
    variants.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
}

/// How a variant's server serves connections, as far as its settings say, and whether it has MySQL's pool of threads: by that it has a thread
/// for each connection or a few for all.
fn thread_handling(variant: &Variant) -> (String, bool) {
    // What is wrong with a setting is told where the plan is read.
    let settings = match &variant.server {
        ServerChoice::Private { settings, .. } => Settings::new((**settings).clone()).ok(),
        ServerChoice::Attached(_) => None,
    };
    let told = |name: &str| Some(settings.as_ref()?.value_of(name)?.to_ascii_lowercase());
    let plugins = settings.as_ref().map(Settings::plugins).unwrap_or_default();
    (
        told("thread_handling").unwrap_or_else(|| "one-thread-per-connection".to_owned()),
        plugins.iter().any(|plugin| plugin.contains("thread_pool")),
    )
}

/// What a server is told of a setting, last, in small letters.
fn told(settings: &ServerSettings, name: &str) -> Option<String> {
    settings.set.iter().rev().find_map(|text| {
        let (known, value) = text.split_once('=')?;
        let known = one_spelling(known);
        let is_it = known.strip_prefix("loose_").unwrap_or(&known) == name;
        is_it.then(|| value.trim().to_ascii_lowercase())
    })
}

/// The same about the files that the client may have open: a socket for each connection of all servers. `allowed` tells whether it may
/// have so many connections.
pub(super) fn hindered_by_files(variants: &[Variant], ladder: &[u32], allowed: impl Fn(u32) -> bool) -> Option<String> {
    let all: u32 = variants
        .iter()
        .map(|variant| variant.load.most_connections(ladder))
        .sum();
    (!allowed(all)).then(|| format!("{all} connections at once are more files than may be open (ulimit -n)"))
}

/// The same about the memory that is free: with less of it each, they would be other servers than alone.
pub(super) fn hindered_by_memory(variants: &[Variant], ladder: &[u32], available: u64) -> Option<String> {
    let share = available / variants.len().max(1) as u64;
    let (mut pools, mut all) = (Vec::new(), Vec::new());
    for variant in variants {
        let ServerChoice::Private { settings, .. } = &variant.server else {
            return Some(format!("{} is a server that is not ours to stop", variant.name));
        };
        let dataset = Some(variant.load.data_bytes()).filter(|bytes| *bytes > 0);
        let asked = told(settings, "innodb_buffer_pool_size").and_then(|size| parse_size(&size));
        let pool = match (asked.or(settings.buffer_pool), dataset) {
            (Some(pool), _) => pool,
            (None, None) => {
                return Some(format!(
                    "how much memory the data of {} take is not known; with a size of the buffer pool it would do",
                    variant.name
                ));
            }
            (None, dataset) => match buffer_pool(share, dataset) {
                pool if pool == buffer_pool(available, dataset) => pool,
                _ => return Some("there is not memory enough for all their data at once".to_owned()),
            },
        };
        pools.push(pool);
        all.push(wanted(variant.load.most_connections(ladder), pool));
    }
    // An A/A pair is twice the same server.
    let at_once = |each: &[u64]| {
        let largest = each.iter().max().copied().unwrap_or(0);
        each.iter().sum::<u64>().max(2 * largest)
    };
    let (pools, all) = (at_once(&pools), at_once(&all));
    let (what, taken) = match pools > (available as f64 * MOST_MEMORY) as u64 {
        true => ("their buffer pools", pools),
        false if all > available => ("the servers with all their connections", all),
        false => return None,
    };
    Some(format!(
        "{what} would take {} MiB of the {} MiB of memory that are free",
        taken >> 20,
        available >> 20
    ))
}
