//! What makes a transaction cost more CPU time.

use super::bystanders::charge_to_the_fight;
use super::cover::{Covered, cover};
use super::finding::Draft;
use super::kind::{Marks, kind_of_cpu_path};
use super::many_callers::many_callers;
use super::shared_line::shared_lines;
use super::uniform_slowdown::uniform_slowdown;
use super::{Context, LEAST, LEAST_GROWTH, Profiled, counted};
use crate::call_paths::PathId;
use crate::figure::{Figure as _, growth, heaviest};
use crate::numbers::percent;
use crate::path_costs::{PathCosts, StatePath};
use scaleprof_vocabulary::{FindingKind, ShareOf, ThreadState};
use std::collections::{BTreeMap, HashSet};

/// Callers that are told of what many places share.
const MOST_CALLERS: usize = 3;

impl Context<'_> {
    /// Compares what a transaction costs with the rung at which it was cheapest.
    pub(super) fn dearer(&self, base: &Profiled<'_>, last: &Profiled<'_>) -> Vec<Draft> {
        let Some((cost, base_cost)) = last.cpu().zip(base.cpu()) else {
            return Vec::new();
        };
        let law = format!(
            "CPU time per transaction: {:.3} ms at {} connections, {:.3} ms at the base rung of {} ({:.2} times)",
            cost * 1e3,
            last.summary.connections,
            base_cost * 1e3,
            base.summary.connections,
            cost / base_cost
        );
        let measured_uniform_slowdown = uniform_slowdown(base.costs, last.costs);
        let uniform_slowdown = measured_uniform_slowdown.unwrap_or(1.0);
        let mut drafts: Vec<Draft> = self.spinning(base, last, ShareOf::CpuTime).into_iter().collect();
        let lines = shared_lines(
            base.instructions,
            last.instructions,
            uniform_slowdown,
            LEAST * cost,
            self.surroundings.code,
        );
        let mut classes: BTreeMap<FindingKind, Vec<StatePath>> = BTreeMap::new();
        let mut rest = Vec::new();
        let names = self.call_paths.function_names();
        let marks: Vec<Marks> = names.iter().map(|name| Marks::of(name)).collect();
        for state_path in last
            .costs
            .state_paths(ThreadState::Cpu)
            .chain(base.costs.state_paths(ThreadState::Cpu))
        {
            // Their share may change with how deep a thread stands, and says nothing about it.
            if !self.call_paths.is_whole(state_path.path) {
                continue;
            }
            let functions = self.call_paths.outwards(state_path.path);
            match kind_of_cpu_path(functions.map(|function| marks[function])) {
                Some(kind) => classes.entry(kind).or_default().push(state_path),
                None => rest.push(state_path),
            }
        }
        for (kind, mut state_paths) in classes {
            once_each(&mut state_paths);
            let lost = growth(base.costs, last.costs, &state_paths, uniform_slowdown).over(cost);
            let Some(worst) = heaviest(last.costs, &state_paths) else {
                continue;
            };
            let path = self.call_paths.functions(worst.path);
            let mut draft = self.draft(kind, path, lost, base, last);
            self.tell_place_on_others(&mut draft, &state_paths, last);
            draft.evidence.push(self.change(base, last, &state_paths));
            draft.accounts.state_paths.clone_from(&state_paths);
            for (caller, share, _) in self.by_waiter(last.costs, &state_paths).iter().take(MOST_CALLERS) {
                draft
                    .evidence
                    .push(format!("{} of it in {}", percent(*share), self.said_of(caller)));
            }
            drafts.push(draft);
        }
        once_each(&mut rest);
        for line in &lines {
            let functions = |path: PathId| self.call_paths.outwards(path).map(|function| names[function].as_str());
            let is_there = |state_path: &StatePath| line.is_in_its_function(functions(state_path.path));
            let (state_paths, others): (Vec<StatePath>, Vec<StatePath>) =
                rest.iter().partition(|state_path| is_there(state_path));
            // Where its time belongs to another kind, as an allocator's does, it is told there.
            let Some(worst) = heaviest(last.costs, &state_paths) else {
                continue;
            };
            let path = self.call_paths.functions(worst.path);
            let mut draft = self.draft(FindingKind::CacheLineSharing, path, line.lost.over(cost), base, last);
            if !draft.is_worth_a_word() {
                continue;
            }
            rest = others;
            draft.accounts.state_paths = state_paths;
            draft
                .evidence
                .extend(line.evidence(base.summary.connections, last.summary.connections));
            drafts.push(draft);
        }
        let loss =
            |state_path: StatePath| last.costs.seconds(state_path) - uniform_slowdown * base.costs.seconds(state_path);
        for function in many_callers(&rest, loss, self.call_paths, LEAST * cost) {
            let lost = growth(base.costs, last.costs, &function.state_paths, uniform_slowdown);
            let path = vec![names[function.function].clone()];
            let mut draft = self.draft(FindingKind::CostGrowth, path, lost.over(cost), base, last);
            if !draft.is_worth_a_word() {
                continue;
            }
            draft.evidence.push(self.change(base, last, &function.state_paths));
            let (caller, part) = function.heaviest;
            draft.evidence.push(format!(
                "{} paths lead there, and none holds most of it; {} of it in {}",
                function.callers,
                percent(part),
                innermost_two(&self.call_paths.functions(caller))
            ));
            let told: HashSet<StatePath> = function.state_paths.iter().copied().collect();
            rest.retain(|state_path| !told.contains(state_path));
            draft.accounts.state_paths = function.state_paths;
            drafts.push(draft);
        }
        let costs = rest.iter().map(|state_path| {
            let cost = last.costs.seconds(*state_path);
            (
                state_path.path,
                cost - uniform_slowdown * base.costs.seconds(*state_path),
                cost,
            )
        });
        for Covered { path, within } in cover(costs, self.call_paths, LEAST * cost) {
            let below: Vec<StatePath> = rest
                .iter()
                .copied()
                .filter(|state_path| within.contains(&state_path.path))
                .collect();
            let lost = growth(base.costs, last.costs, &below, uniform_slowdown);
            let functions = self.call_paths.functions(path);
            let mut draft = self.draft(FindingKind::CostGrowth, functions, lost.over(cost), base, last);
            draft.evidence.push(self.change(base, last, &below));
            draft.accounts.state_paths = below;
            drafts.push(draft);
        }
        if measured_uniform_slowdown.is_none() {
            let all = |costs: &PathCosts, state_paths: &[StatePath]| -> f64 {
                state_paths.iter().map(|state_path| costs.seconds(*state_path)).sum()
            };
            charge_to_the_fight(&mut drafts, |state_paths| {
                all(last.costs, state_paths) / all(base.costs, state_paths)
            });
        }
        drafts.extend(slower_everywhere(base, last, uniform_slowdown, cost));
        for draft in &mut drafts {
            draft.rungs = (base.summary.connections, last.summary.connections);
            draft.evidence.insert(0, law.clone());
        }
        drafts.extend(self.row_lock_waits(base, last));
        drafts
    }
}

/// The last two functions of a path, outermost first.
fn innermost_two(path: &[String]) -> String {
    path[path.len().saturating_sub(2)..].join(" > ")
}

pub(super) fn once_each(state_paths: &mut Vec<StatePath>) {
    state_paths.sort_by_key(|state_path| state_path.path);
    state_paths.dedup();
}

/// What took longer in all functions alike, with what hardware counters say of the reason.
fn slower_everywhere(base: &Profiled<'_>, last: &Profiled<'_>, uniform_slowdown: f64, cost: f64) -> Option<Draft> {
    if uniform_slowdown <= 1.0 + LEAST_GROWTH {
        return None;
    }
    let worked = base.summary.ledger.as_ref()?.seconds_per_txn[ThreadState::Cpu]?;
    let longer = worked * (uniform_slowdown - 1.0);
    let mut draft = Draft::new(FindingKind::SlowerEverywhere, Vec::new(), counted(longer / cost));
    draft.accounts.besides = Some(counted(longer));
    draft.evidence.push(format!(
        "the hottest functions take {:.0} % longer for the same work (weighted median)",
        (uniform_slowdown - 1.0) * 100.0
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
