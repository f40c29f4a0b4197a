//! A program whose locks make a chain: who waits for whom must come out as it was planted.

use super::diseases::Disease;
use super::round::{Found, Size};
use super::undisturbed;
use scaleprof_analysis::wait_graph::{Holder, HolderSource, WaitGraph, WaitedLock};
use scaleprof_vocabulary::ThreadState;

const CHAIN: Disease = Disease {
    program: "chain",
    expected: None,
    dearer: None,
    mostly_waits: true,
    writes: false,
};

/// Runs it, and says what of the chain is not there.
pub fn judge() -> Result<(), String> {
    let found = undisturbed(&CHAIN, &Size::SMALL);
    let graph = found.waits.last().ok_or_else(|| format!("nobody waits: {found}"))?;
    let problem = |words: &str| format!("{words}: {graph:#?}");
    if graph.holders != HolderSource::PerWait {
        return Err(problem("holders are not told wait by wait"));
    }
    let outer = lock(graph, "planted_outer").ok_or_else(|| problem("the outer mutex is not told"))?;
    let inner = lock(graph, "planted_inner").ok_or_else(|| problem("the inner mutex is not told"))?;
    println!(
        "chain: the outer mutex keeps {:.2} waiting, the holder known of {:.2}; the inner one {:.2}, of {:.2}",
        outer.waiting.value, outer.attribution.holder, inner.waiting.value, inner.attribution.holder
    );
    // Six of the eight threads want the outer one, and one of them has it.
    if outer.waiting.value < 2.5 || outer.attribution.holder < 0.8 * outer.waiting.value {
        return Err(problem("the outer mutex is not waited for, or its holder is not known"));
    }
    let in_line = held(outer, |holder| {
        let next = holder.waits_for.first();
        let leads_on = next.is_some_and(|to| to.lock.name == inner.lock.name && to.share > 0.9);
        holder.state == Some(ThreadState::Lock) && leads_on && is_in(holder, "want_the_inner")
    });
    if in_line < 0.6 * outer.attribution.holder {
        return Err(problem("the holder of the outer mutex does not wait for the inner one"));
    }
    let asleep = held(inner, |holder| {
        holder.state == Some(ThreadState::Sleep) && is_in(holder, "keep_the_inner")
    });
    if asleep < 0.6 * inner.attribution.holder {
        return Err(problem("the holder of the inner mutex does not sleep"));
    }
    sums_up(&found, graph)
}

fn lock<'a>(graph: &'a WaitGraph, name: &str) -> Option<&'a WaitedLock> {
    graph.locks.iter().find(|lock| lock.lock.name.as_deref() == Some(name))
}

/// Threads that wait while the holder is like that.
fn held(lock: &WaitedLock, is_so: impl Fn(&Holder) -> bool) -> f64 {
    lock.holders
        .iter()
        .filter(|holder| is_so(holder))
        .map(|holder| holder.threads)
        .sum()
}

fn is_in(holder: &Holder, function: &str) -> bool {
    let place = holder.place.as_ref();
    place.is_some_and(|place| place.path.iter().any(|name| name == function))
}

/// All waiting is what the ledger has in that state.
fn sums_up(found: &Found, graph: &WaitGraph) -> Result<(), String> {
    let known = graph.attribution.holder + graph.attribution.waker + graph.attribution.neither;
    let in_ledger = found.threads_in_lock.ok_or("no ledger")?;
    match (graph.waiting.value / in_ledger - 1.0).abs() < 1e-6 && (known / in_ledger - 1.0).abs() < 1e-6 {
        true => Ok(()),
        false => Err(format!(
            "{in_ledger} threads wait by the ledger, {} here: {graph:#?}",
            graph.waiting.value
        )),
    }
}
