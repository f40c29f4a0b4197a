//! Whether the starts of a round can run side by side.

use super::Variant;
use crate::company::Company;
use crate::options::ServerChoice;
use scaleprof_server::memory::buffer_pool;

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
    has_company.or_else(|| {
        with("runs its script once, at its own pace", &|variant| {
            variant.load.runs_once()
        })
    })
}

/// The same about the memory that is free: with less of it each, they would be other servers than alone.
pub(super) fn hindered_by_memory(variants: &[Variant], available: u64) -> Option<String> {
    let share = available / variants.len().max(1) as u64;
    let mut all = 0;
    for variant in variants {
        let ServerChoice::Private { settings, .. } = &variant.server else {
            return Some(format!("{} is a server that is not ours to stop", variant.name));
        };
        let dataset = Some(variant.load.data_bytes()).filter(|bytes| *bytes > 0);
        all += match (settings.buffer_pool, dataset) {
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
    }
    let most = (available as f64 * MOST_MEMORY) as u64;
    (all > most).then(|| {
        format!(
            "their buffer pools would take {} MiB of the {} MiB of memory that are free",
            all >> 20,
            available >> 20
        )
    })
}
