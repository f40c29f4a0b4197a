//! What makes a transaction cost more CPU time.

use super::cover::{Covered, cover};
use super::dilation::dilation;
use super::finding::Draft;
use super::kind::{Kind, Marks};
use super::shared_line::{SharedLine, shared_lines};
use super::{Context, LEAST, LEAST_GROWTH, Profiled, counted};
use crate::call_paths::PathId;
use crate::figure::{Figure as _, growth, heaviest};
use crate::numbers::percent;
use crate::path_costs::{PathCosts, Pathway};
use std::collections::BTreeMap;

/// Callers that are told of what many places share.
const MOST_CALLERS: usize = 3;

impl Context<'_> {
    /// Compares what a transaction costs with the rung at which it was cheapest.
    pub(super) fn dearer(&self, base: &Profiled<'_>, last: &Profiled<'_>) -> Vec<Draft> {
        let Some((cost, base_cost)) = last.cpu().zip(base.cpu()) else {
            return Vec::new();
        };
        if cost / base_cost - 1.0 < LEAST_GROWTH {
            return Vec::new();
        }
        let law = format!(
            "a transaction costs the threads that serve the load {:.3} ms of CPU at {} connections and {:.3} ms at {}: {:.2} times",
            cost * 1e3,
            last.summary.connections,
            base_cost * 1e3,
            base.summary.connections,
            cost / base_cost
        );
        let dilation = dilation(base.costs, last.costs);
        let mut drafts: Vec<Draft> = self.spinning(base, last, cost).into_iter().collect();
        let lines = shared_lines(base.instructions, last.instructions, dilation, LEAST * cost);
        let mut classes: BTreeMap<Kind, Vec<Pathway>> = BTreeMap::new();
        let mut rest = Vec::new();
        let names = self.call_paths.function_names();
        let marks: Vec<Marks> = names.iter().map(|name| Marks::of(name)).collect();
        for pathway in last.costs.pathways("cpu").chain(base.costs.pathways("cpu")) {
            // Their share may change with how deep a thread stands, and says nothing about it.
            if !self.call_paths.is_whole(pathway.path) {
                continue;
            }
            let functions = self.call_paths.outwards(pathway.path);
            match Kind::of_cpu_path(functions.map(|function| marks[function])) {
                Some(kind) => classes.entry(kind).or_default().push(pathway),
                None => rest.push(pathway),
            }
        }
        for (kind, mut pathways) in classes {
            once_each(&mut pathways);
            let lost = growth(base.costs, last.costs, &pathways, dilation).over(cost);
            let Some(worst) = heaviest(last.costs, &pathways) else {
                continue;
            };
            let path = self.call_paths.functions(worst.path);
            let mut draft = self.draft(kind, path, lost, base, last);
            draft.evidence.push(self.change(base, last, &pathways));
            for (caller, share, _) in self.by_waiter(last.costs, &pathways).iter().take(MOST_CALLERS) {
                draft.evidence.push(format!("{} of it in {caller}", percent(*share)));
            }
            drafts.push(draft);
        }
        once_each(&mut rest);
        let mut at_lines = AtLines::default();
        for line in &lines {
            let functions = |path: PathId| self.call_paths.outwards(path).map(|function| names[function].as_str());
            let is_end = |pathway: &&Pathway| line.is_end_of(functions(pathway.path));
            let pathways: Vec<Pathway> = rest.iter().filter(is_end).copied().collect();
            // Where its time belongs to another kind, as an allocator's does, it is told there.
            let Some(worst) = heaviest(last.costs, &pathways) else {
                continue;
            };
            let path = self.call_paths.functions(worst.path);
            let mut draft = self.draft(Kind::CacheLineSharing, path, line.lost.over(cost), base, last);
            if !draft.is_worth_a_word() {
                continue;
            }
            at_lines.take(line, &pathways, base, last);
            draft
                .evidence
                .extend(line.evidence(base.summary.connections, last.summary.connections));
            drafts.push(draft);
        }
        let costs = rest.iter().map(|pathway| {
            let cost = last.costs.seconds(*pathway);
            let grown = cost - dilation * base.costs.seconds(*pathway);
            (pathway.path, grown - at_lines.of([pathway]).lost, cost)
        });
        for Covered { path, within } in cover(costs, self.call_paths, LEAST * cost) {
            let below: Vec<Pathway> = rest
                .iter()
                .copied()
                .filter(|pathway| within.contains(&pathway.path))
                .collect();
            let told = at_lines.of(&below);
            let lost = growth(base.costs, last.costs, &below, dilation).less_exactly(told.lost);
            let functions = self.call_paths.functions(path);
            let mut draft = self.draft(Kind::CostGrowth, functions, lost.over(cost), base, last);
            draft
                .evidence
                .push(self.change_without(base, last, &below, (told.took, told.takes)));
            drafts.push(draft);
        }
        drafts.extend(slower_everywhere(base, last, dilation, cost));
        for draft in &mut drafts {
            draft.rungs = (base.summary.connections, last.summary.connections);
            draft.evidence.insert(0, law.clone());
        }
        drafts
    }
}

/// What instructions that wait for a cache line count of the paths that end there: the rest of what these paths lost is told
/// with the others.
#[derive(Default)]
struct AtLines(BTreeMap<PathId, AtLine>);

/// Seconds a transaction: lost, taken at the last rung, taken at the other.
#[derive(Debug, Clone, Copy, Default)]
struct AtLine {
    lost: f64,
    takes: f64,
    took: f64,
}

impl AtLines {
    /// Which path's threads stood at an instruction is not known: each path has its part by what it costs.
    fn take(&mut self, line: &SharedLine, pathways: &[Pathway], base: &Profiled<'_>, last: &Profiled<'_>) {
        let shares = |costs: &PathCosts| -> Vec<f64> {
            let seconds: Vec<f64> = pathways.iter().map(|pathway| costs.seconds(*pathway)).collect();
            let all = seconds.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            seconds.into_iter().map(|seconds| seconds / all).collect()
        };
        let parts = shares(last.costs).into_iter().zip(shares(base.costs));
        for (pathway, (after, before)) in pathways.iter().zip(parts) {
            let known = self.0.entry(pathway.path).or_default();
            known.lost += line.lost.value * after;
            known.takes += line.takes * after;
            known.took += line.took * before;
        }
    }

    fn of<'a>(&self, pathways: impl IntoIterator<Item = &'a Pathway>) -> AtLine {
        let known = pathways.into_iter().filter_map(|pathway| self.0.get(&pathway.path));
        known.fold(AtLine::default(), |sum, one| AtLine {
            lost: sum.lost + one.lost,
            takes: sum.takes + one.takes,
            took: sum.took + one.took,
        })
    }
}

pub(super) fn once_each(pathways: &mut Vec<Pathway>) {
    pathways.sort_by_key(|pathway| pathway.path);
    pathways.dedup();
}

/// What took longer in all functions alike, with what hardware counters say of the reason.
fn slower_everywhere(base: &Profiled<'_>, last: &Profiled<'_>, dilation: f64, cost: f64) -> Option<Draft> {
    if dilation <= 1.0 + LEAST_GROWTH {
        return None;
    }
    let worked = base.summary.ledger.as_ref()?.seconds_per_txn.cpu?;
    let mut draft = Draft::new(
        Kind::SlowerEverywhere,
        Vec::new(),
        counted(worked * (dilation - 1.0) / cost),
    );
    draft.evidence.push(format!(
        "the functions that work hardest take {:.0} % longer for the same work, each about alike (weighted median)",
        (dilation - 1.0) * 100.0
    ));
    let laws = base.summary.iron_law.as_ref().zip(last.summary.iron_law.as_ref());
    if let Some((before, after)) = laws {
        let per_instruction = before.cycles_per_instruction.zip(after.cycles_per_instruction);
        if let Some((before, after)) = per_instruction {
            draft.evidence.push(format!(
                "an instruction takes {after:.2} cycles, {before:.2} before: caches, memory or SMT"
            ));
        }
        if let Some((before, after)) = before.clock_hz.zip(after.clock_hz) {
            draft.evidence.push(format!(
                "a busy CPU runs at {:.2} GHz, {:.2} before",
                after * 1e-9,
                before * 1e-9
            ));
        }
    }
    Some(draft)
}
