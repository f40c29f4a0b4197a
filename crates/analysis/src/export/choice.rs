//! Which rungs are exported.

use super::RungCosts;
use crate::base_rung::cheapest;
use scaleprof_bundle::Summary;
use scaleprof_vocabulary::ThreadState;

/// A rung, and one to hold it against.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The rung that is held against it; none where there is no other.
    pub base: Option<&'a RungCosts>,
    /// The rung that is exported.
    pub rung: &'a RungCosts,
}

/// Chooses the rungs: those with `rung` and `base` connections where they are named; else, as `annotate` does, the last one at
/// which the client was not the limit, and of the rungs before it the one at which a transaction took least CPU time.
///
/// Without a summary nothing of that is known of a rung, as of a server that was only watched.
///
/// # Errors
/// A rung that was named has no samples, or none has; in words that say which there are.
pub fn choose<'a>(
    rungs: &'a [RungCosts],
    summary: Option<&Summary>,
    base: Option<u32>,
    rung: Option<u32>,
) -> Result<Compared<'a>, String> {
    let Some(last) = rungs.last() else {
        return Err(
            "no samples match: the threads were not watched, or --states, --threads or --repeat exclude all".to_owned(),
        );
    };
    let of = |rung: &RungCosts| {
        let mut known = summary.into_iter().flat_map(|summary| &summary.rungs);
        known.find(|one| Some(one.connections) == rung.connections)
    };
    let counts = |rung: &&RungCosts| of(rung).is_none_or(|one| !one.client_limited);
    let cpu = |rung: &&RungCosts| {
        let states = &of(rung)?.ledger.as_ref()?.seconds_per_txn;
        Some(states[ThreadState::Cpu]? + states[ThreadState::Spin].unwrap_or(0.0))
    };
    let rung = match rung {
        Some(connections) => named(rungs, connections)?,
        None => rungs.iter().rfind(counts).unwrap_or(last),
    };
    let base = match base {
        Some(connections) => Some(named(rungs, connections)?),
        None => {
            let others = || rungs.iter().filter(counts);
            let before = cheapest(others().filter(|other| other.connections < rung.connections), cpu);
            before.or_else(|| cheapest(others().filter(|other| other.connections != rung.connections), cpu))
        }
    };
    Ok(Compared { base, rung })
}

fn named(rungs: &[RungCosts], connections: u32) -> Result<&RungCosts, String> {
    let found = rungs.iter().find(|rung| rung.connections == Some(connections));
    found.ok_or_else(|| {
        let known: Vec<String> = rungs
            .iter()
            .filter_map(|rung| Some(rung.connections?.to_string()))
            .collect();
        match known.is_empty() {
            true => "the server was only watched, under a load that is not ours: there are no rungs to choose from"
                .to_owned(),
            false => format!(
                "the bundle has no rung of {connections} connections with samples; it has {}",
                known.join(", ")
            ),
        }
    })
}
