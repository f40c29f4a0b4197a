//! Why throughput is lost: the ranked findings of a run.
//!
//! Two rungs are compared, the last one and the one before it at which a transaction was cheapest. Which account decides
//! depends on the CPUs (DESIGN section 2):
//!
//! - They are busy: waiting loses nothing, since somebody else runs meanwhile. A transaction is dearer because it costs more
//!   CPU time, and the paths whose CPU time per transaction grew are to blame. Loops that wait for another thread are waste
//!   wherever they are. What got dearer everywhere alike (caches, SMT, the clock) is taken out and said once.
//! - They idle: then a wait idles them, and the waits whose time per transaction grew are to blame.
//!
//! A finding is listed when its share is beyond chance (the lower limit of its interval) and worth a word.

pub(crate) mod cover;
mod finding;
mod kind;
mod knowledge;

use crate::call_paths::CallPaths;
use crate::numbers::percent;
use crate::path_costs::{PathCosts, Pathway};
use cover::cover;
use finding::Draft;
use kind::Kind;
use knowledge::Knowledge;
use scaleprof_bundle::{Estimate, Finding, LockSummary, RungSummary, SettingRow};
use std::collections::BTreeMap;

/// Findings that are listed.
const MOST: usize = 8;
/// Least share of the loss, by the lower limit, that is worth a word.
const LEAST: f64 = 0.02;
/// Growth of the cost of a transaction from which on it is looked at.
const LEAST_GROWTH: f64 = 0.1;
/// From this part of the CPUs on they count as busy.
const BUSY: f64 = 0.9;

/// A rung with what its paths cost.
pub(crate) struct Profiled<'a> {
    pub summary: &'a RungSummary,
    pub costs: &'a PathCosts,
    /// Transactions of its whole visits, as its errors are.
    pub transactions: f64,
}

impl Profiled<'_> {
    /// CPU seconds of a transaction on the threads that serve the load, spinning included.
    fn cpu(&self) -> Option<f64> {
        let states = self.summary.ledger.as_ref()?.seconds_per_txn;
        let seconds = states.cpu? + states.spin.unwrap_or(0.0);
        (seconds > 0.0).then_some(seconds)
    }

    fn is_busy(&self) -> bool {
        let used = self.summary.iron_law.as_ref().map(|law| law.utilisation);
        self.summary
            .busy_share
            .into_iter()
            .chain(used)
            .any(|share| share >= BUSY)
    }

    /// Seconds that all connections spend on a transaction, N/X.
    fn connection_seconds(&self) -> f64 {
        f64::from(self.summary.connections) / self.summary.throughput.value
    }
}

/// The findings of a run, the gravest first. `rungs` are those that count, by rising connections.
pub(crate) fn findings(
    rungs: &[Profiled<'_>],
    product: &str,
    settings: &[SettingRow],
    call_paths: &CallPaths<'_>,
) -> Vec<Finding> {
    let Some((last, before)) = rungs.split_last() else {
        return Vec::new();
    };
    let context = Context {
        knowledge: Knowledge::of(product),
        settings,
        call_paths,
    };
    let mut drafts = match last.is_busy() {
        true => context.dearer(before, last),
        false => context.waits(before, last),
    };
    drafts.extend(context.failed_transactions(last));
    drafts.retain(|draft| draft.lost.low.is_none_or(|low| low >= LEAST) && draft.lost.value >= LEAST);
    drafts.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    drafts.truncate(MOST);
    drafts.into_iter().map(Draft::finish).collect()
}

struct Context<'a> {
    knowledge: Knowledge,
    settings: &'a [SettingRow],
    call_paths: &'a CallPaths<'a>,
}

impl Context<'_> {
    /// What makes a transaction cost more CPU time.
    fn dearer(&self, before: &[Profiled<'_>], last: &Profiled<'_>) -> Vec<Draft> {
        let cheapest = before
            .iter()
            .filter(|rung| rung.cpu().is_some())
            .min_by(|a, b| a.cpu().unwrap_or(f64::MAX).total_cmp(&b.cpu().unwrap_or(f64::MAX)));
        let (Some(base), Some(cost)) = (cheapest, last.cpu()) else {
            return Vec::new();
        };
        let base_cost = base.cpu().unwrap_or(cost);
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
        let mut drafts: Vec<Draft> = self.spinning(base, last, cost).into_iter().collect();
        let dilation = dilation(base.costs, last.costs);
        let mut classes: BTreeMap<Kind, Vec<Pathway>> = BTreeMap::new();
        let mut rest = Vec::new();
        for pathway in last.costs.pathways("cpu").chain(base.costs.pathways("cpu")) {
            let functions = self.call_paths.functions(pathway.path);
            // Their share may change with how deep a thread stands, and says nothing about it.
            if functions.first().is_some_and(|root| root.starts_with("[incomplete")) {
                continue;
            }
            match Kind::of_cpu_path(&functions) {
                Some(kind) => classes.entry(kind).or_default().push(pathway),
                None => rest.push(pathway),
            }
        }
        for (kind, mut pathways) in classes {
            pathways.sort_by_key(|pathway| pathway.path);
            pathways.dedup();
            let lost = growth(base.costs, last.costs, &pathways, dilation).over(cost);
            let Some(worst) = heaviest(last.costs, &pathways) else {
                continue;
            };
            let path = self.call_paths.functions(worst.path);
            let mut draft = self.draft(kind, path, lost, base, last);
            draft.evidence.push(self.change(base, last, &pathways));
            drafts.push(draft);
        }
        rest.sort_by_key(|pathway| pathway.path);
        rest.dedup();
        let costs = rest.iter().map(|pathway| {
            let cost = last.costs.seconds(*pathway);
            (pathway.path, cost - dilation * base.costs.seconds(*pathway), cost)
        });
        for path in cover(costs, self.call_paths, LEAST * cost) {
            let below: Vec<Pathway> = rest
                .iter()
                .copied()
                .filter(|pathway| self.call_paths.is_within(pathway.path, path))
                .collect();
            let lost = growth(base.costs, last.costs, &below, dilation).over(cost);
            let functions = self.call_paths.functions(path);
            let mut draft = self.draft(Kind::CostGrowth, functions, lost, base, last);
            draft.evidence.push(self.change(base, last, &below));
            drafts.push(draft);
        }
        if dilation > 1.0 + LEAST_GROWTH {
            let worked = base
                .summary
                .ledger
                .as_ref()
                .and_then(|ledger| ledger.seconds_per_txn.cpu);
            let share = worked.unwrap_or(0.0) * (dilation - 1.0) / cost;
            let lost = Estimate {
                value: share,
                low: None,
                high: None,
            };
            let mut draft = Draft::new(Kind::SlowerEverywhere, Vec::new(), lost);
            draft.evidence.push(format!(
                "the functions that work hardest take {:.0} % longer for the same work, each about alike (weighted median)",
                (dilation - 1.0) * 100.0
            ));
            drafts.push(draft);
        }
        for draft in &mut drafts {
            draft.rungs = (base.summary.connections, last.summary.connections);
            draft.evidence.insert(0, law.clone());
        }
        drafts
    }

    /// What some paths cost at both rungs.
    fn change(&self, base: &Profiled<'_>, last: &Profiled<'_>, pathways: &[Pathway]) -> String {
        let micros = |costs: &PathCosts| pathways.iter().map(|pathway| costs.seconds(*pathway)).sum::<f64>() * 1e6;
        format!(
            "{:.1} \u{b5}s of a transaction at {} connections, {:.1} \u{b5}s at {}, without what other findings count",
            micros(last.costs),
            last.summary.connections,
            micros(base.costs),
            base.summary.connections
        )
    }

    /// Threads that run and only wait.
    fn spinning(&self, base: &Profiled<'_>, last: &Profiled<'_>, cost: f64) -> Option<Draft> {
        let pathways: Vec<Pathway> = last.costs.pathways("spin").collect();
        let mut waiters: BTreeMap<String, (f64, Vec<Pathway>)> = BTreeMap::new();
        for pathway in &pathways {
            let waiter = self.knowledge.waiter(&self.call_paths.functions(pathway.path));
            let (seconds, paths) = waiters.entry(waiter).or_default();
            *seconds += last.costs.seconds(*pathway);
            paths.push(*pathway);
        }
        let mut waiters: Vec<(String, (f64, Vec<Pathway>))> = waiters.into_iter().collect();
        waiters.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
        let (_, (_, paths)) = waiters.first()?;
        let worst = heaviest(last.costs, paths)?;
        let spent = last.costs.estimate(&pathways)?;
        let lost = spent.over(cost);
        let path = self.call_paths.functions(worst.path);
        let mut draft = self.draft(Kind::SpinWaiting, path, lost, base, last);
        let before: f64 = base
            .costs
            .pathways("spin")
            .map(|pathway| base.costs.seconds(pathway))
            .sum();
        draft.evidence.push(format!(
            "loops that only wait take {:.1} \u{b5}s of a transaction at {} connections and {:.1} \u{b5}s at {}; all of it is counted, not \
             only what grew",
            spent.value * 1e6,
            last.summary.connections,
            before * 1e6,
            base.summary.connections
        ));
        for (waiter, (seconds, _)) in waiters.iter().take(4) {
            draft.evidence.push(format!(
                "{} of the spinning in {waiter}",
                percent(seconds / spent.value)
            ));
        }
        draft.evidence.extend(self.settings_of(&draft.knobs));
        Some(draft)
    }

    /// What idles the CPUs.
    fn waits(&self, before: &[Profiled<'_>], last: &Profiled<'_>) -> Vec<Draft> {
        let efficiency = |rung: &&Profiled<'_>| -rung.connection_seconds() / f64::from(rung.summary.connections);
        let Some(base) = before
            .iter()
            .filter(|rung| rung.summary.ledger.is_some())
            .max_by(|a, b| efficiency(a).total_cmp(&efficiency(b)))
        else {
            return Vec::new();
        };
        let all = last.connection_seconds();
        if all / base.connection_seconds() - 1.0 < LEAST_GROWTH {
            return Vec::new();
        }
        let idle = last.summary.busy_share.map(|share| {
            format!(
                "the CPUs are {} busy at {} connections, so waiting idles them",
                percent(share),
                last.summary.connections
            )
        });
        let mut drafts: Vec<Draft> = last
            .summary
            .locks
            .iter()
            .filter_map(|lock| self.contended(lock, base, last, all))
            .collect();
        drafts.extend(self.spinning(base, last, all));
        for (state, plain) in [
            ("io", Kind::DiskBound),
            ("lock", Kind::LockConvoy),
            ("other", Kind::Blocked),
        ] {
            // Locks that were named are told above.
            if state == "lock" && !last.summary.locks.is_empty() {
                continue;
            }
            let pathways: Vec<Pathway> = last.costs.pathways(state).collect();
            let costs = pathways.iter().map(|pathway| {
                let cost = last.costs.seconds(*pathway);
                (pathway.path, cost - base.costs.seconds(*pathway), cost)
            });
            for path in cover(costs, self.call_paths, LEAST * all) {
                let below: Vec<Pathway> = pathways
                    .iter()
                    .copied()
                    .filter(|pathway| self.call_paths.is_within(pathway.path, path))
                    .collect();
                let lost = growth(base.costs, last.costs, &below, 1.0).over(all);
                let functions = self.call_paths.functions(path);
                let kind = Kind::of_wait(plain, self.knowledge.place_in_server(&functions));
                let mut draft = self.draft(kind, functions, lost, base, last);
                draft.evidence.push(self.change(base, last, &below));
                drafts.push(draft);
            }
        }
        for draft in &mut drafts {
            draft.rungs = (base.summary.connections, last.summary.connections);
            if let Some(idle) = &idle {
                draft.evidence.insert(0, idle.clone());
            }
        }
        drafts
    }

    fn contended(&self, lock: &LockSummary, base: &Profiled<'_>, last: &Profiled<'_>, all: f64) -> Option<Draft> {
        let same =
            |other: &&LockSummary| other.name == lock.name && (lock.name.is_some() || other.waiting == lock.waiting);
        let before = base.summary.locks.iter().find(same);
        let lost = lock
            .seconds_per_txn
            .less(before.map(|lock| lock.seconds_per_txn))
            .over(all);
        let kind = Kind::of_wait(Kind::LockConvoy, self.knowledge.place_in_server(&lock.waiting));
        let mut draft = self.draft(kind, lock.waiting.clone(), lost, base, last);
        if let Some(name) = &lock.name {
            draft.subject = Some(name.clone());
            draft.evidence.push(format!(
                "the lock is {name} of {}",
                lock.module.as_deref().unwrap_or("the server")
            ));
        }
        if let Some(holder) = lock.holder.last() {
            draft.evidence.push(format!(
                "its holder was most often in {holder} (seen at {} of {} waits): {}",
                lock.holder_samples,
                lock.samples,
                lock.holder.join(" > ")
            ));
        }
        Some(draft)
    }

    /// Transactions that end as deadlocks or time-outs and are done again.
    fn failed_transactions(&self, last: &Profiled<'_>) -> Option<Draft> {
        // ER_LOCK_WAIT_TIMEOUT and ER_LOCK_DEADLOCK of both products.
        let failed: u64 = ["1205", "1213"]
            .iter()
            .filter_map(|number| last.summary.errors.get(*number))
            .sum();
        let done = last.transactions;
        let share = failed as f64 / (failed as f64 + done);
        (failed > 0 && share.is_finite()).then(|| {
            let lost = Estimate {
                value: share,
                low: None,
                high: None,
            };
            let mut draft = Draft::new(Kind::Retries, Vec::new(), lost);
            draft.rungs = (last.summary.connections, last.summary.connections);
            draft.evidence.push(format!(
                "{failed} transactions ended with a deadlock or a lock wait time-out at {} connections",
                last.summary.connections
            ));
            draft
        })
    }

    /// A finding with what is known about its place.
    fn draft(&self, kind: Kind, path: Vec<String>, lost: Estimate, base: &Profiled<'_>, last: &Profiled<'_>) -> Draft {
        let mut draft = Draft::new(kind, path, lost);
        draft.rungs = (base.summary.connections, last.summary.connections);
        draft.place = self.knowledge.place_in_server(&draft.path).map(str::to_owned);
        if let Some((place, function)) = self.knowledge.place(kind, &draft.path) {
            draft.known = Some(format!("{function}: {} ({})", place.says, place.source));
            draft.subject = Some(place.what.clone());
            draft.tries.extend(place.try_settings.iter().cloned());
            draft.knobs.clone_from(&place.settings);
        }
        draft
    }

    fn settings_of(&self, names: &[String]) -> Option<String> {
        let known: Vec<String> = names
            .iter()
            .filter_map(|name| {
                let row = self.settings.iter().find(|row| row.name == *name)?;
                Some(format!("{name} = {}", row.value))
            })
            .collect();
        (!known.is_empty()).then(|| format!("the server runs with {}", known.join(", ")))
    }
}

/// By how much the same work took longer everywhere, at least 1; see [`dilation_of`].
fn dilation(base: &PathCosts, last: &PathCosts) -> f64 {
    let by_leaf = |costs: &PathCosts| costs.by_leaf("cpu").into_iter().collect();
    dilation_of(&by_leaf(base), &by_leaf(last)).map_or(1.0, |middle| middle.max(1.0))
}

/// By how much the same work takes longer everywhere: the weighted median of the growth of the innermost functions' CPU time per
/// transaction. It says something only where there are many such functions and they agree: no function has more
/// than a tenth of the weight, and the quartiles are within a third of each other; none otherwise.
pub(crate) fn dilation_of(before: &BTreeMap<usize, f64>, after: &BTreeMap<usize, f64>) -> Option<f64> {
    let all: f64 = before.values().sum();
    let mut ratios: Vec<(f64, f64)> = before
        .iter()
        .filter(|(_, seconds)| **seconds > 0.005 * all)
        .filter_map(|(leaf, seconds)| Some((after.get(leaf)? / seconds, seconds.min(0.1 * all))))
        .collect();
    if ratios.len() < 8 {
        return None;
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let weight: f64 = ratios.iter().map(|(_, weight)| weight).sum();
    let quantile = |part: f64| {
        let mut sum = 0.0;
        let at = ratios.iter().find(|(_, weight)| {
            sum += weight;
            sum >= part
        });
        at.map_or(1.0, |(ratio, _)| *ratio)
    };
    let (low, middle, high) = (quantile(weight / 4.0), quantile(weight / 2.0), quantile(weight * 0.75));
    (high <= low * 4.0 / 3.0).then_some(middle)
}

/// How much dearer these paths got, seconds a transaction.
fn growth(base: &PathCosts, last: &PathCosts, pathways: &[Pathway], dilation: f64) -> Estimate {
    let nothing = Estimate {
        value: 0.0,
        low: Some(0.0),
        high: Some(0.0),
    };
    let before = base.estimate(pathways).map(|before| before.times(dilation));
    last.estimate(pathways).unwrap_or(nothing).less(before)
}

fn heaviest(costs: &PathCosts, pathways: &[Pathway]) -> Option<Pathway> {
    let seconds = |pathway: &&Pathway| costs.seconds(**pathway);
    pathways
        .iter()
        .max_by(|a, b| seconds(a).total_cmp(&seconds(b)))
        .copied()
}

/// Calculating with figures and their intervals.
trait Figure: Sized {
    /// Over an exact one.
    fn over(self, whole: f64) -> Self;
    /// Times an exact one.
    fn times(self, factor: f64) -> Self;
    /// The difference of two independent ones; one without an interval leaves none.
    fn less(self, other: Option<Estimate>) -> Self;
}

impl Figure for Estimate {
    fn over(self, whole: f64) -> Self {
        self.times(1.0 / whole)
    }

    fn times(self, factor: f64) -> Self {
        Estimate {
            value: self.value * factor,
            low: self.low.map(|low| low * factor),
            high: self.high.map(|high| high * factor),
        }
    }

    fn less(self, other: Option<Estimate>) -> Self {
        let Some(other) = other else { return self };
        // No lower limit is below 0, so the upper one tells the width.
        let half = |figure: &Estimate| Some(figure.high? - figure.value);
        let half = half(&self).zip(half(&other)).map(|(a, b)| a.hypot(b));
        let value = self.value - other.value;
        Estimate {
            value,
            low: half.map(|half| value - half),
            high: half.map(|half| value + half),
        }
    }
}

#[cfg(test)]
mod tests;
