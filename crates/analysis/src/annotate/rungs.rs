//! Which two rungs are laid side by side.

use crate::base_rung::cheapest;
use crate::rung_instructions::RungInstructions;

/// Two rungs.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The rung that is compared with; none where there is no other.
    pub base: Option<&'a RungInstructions>,
    /// The rung that is looked at.
    pub rung: &'a RungInstructions,
}

/// Chooses the rungs: those with `base` and `rung` connections where they are named; else the last one at which the client was
/// not the limit, and of the rungs before it the one at which a transaction took least CPU time, as the findings do.
///
/// # Errors
/// A rung that was named was not measured, or nothing was; in words that say which there are.
pub fn choose(rungs: &[RungInstructions], base: Option<u32>, rung: Option<u32>) -> Result<Compared<'_>, String> {
    let cost = |rung: &RungInstructions| rung.costs.all();
    let measured: Vec<&RungInstructions> = rungs.iter().filter(|rung| cost(rung).is_some()).collect();
    let counted = || measured.iter().copied().filter(|rung| !rung.client_limited);
    let named = |connections: u32| {
        let found = measured
            .iter()
            .copied()
            .find(|rung| rung.connections == Some(connections));
        found.ok_or_else(|| {
            let known: Vec<String> = measured
                .iter()
                .filter_map(|rung| Some(rung.connections?.to_string()))
                .collect();
            if known.is_empty() {
                return "the server was only watched, under a load that is not ours: there are no rungs to choose from"
                    .to_owned();
            }
            format!(
                "the bundle has no rung of {connections} connections with samples; it has {}",
                known.join(", ")
            )
        })
    };
    let last = counted().next_back().or(measured.last().copied());
    let Some(last) = last else {
        return Err("the bundle has no rung with samples of threads that ran".to_owned());
    };
    let looked_at = rung.map_or(Ok(last), named)?;
    let cheapest_of = |wanted: &dyn Fn(&RungInstructions) -> bool| {
        let others = counted().filter(|rung| wanted(rung));
        cheapest(others, |rung| cost(rung))
    };
    let base = match base {
        Some(connections) => Some(named(connections)?),
        None => cheapest_of(&|other| other.connections < looked_at.connections)
            .or_else(|| cheapest_of(&|other| other.connections != looked_at.connections)),
    };
    Ok(Compared { base, rung: looked_at })
}
