//! Waits for rows that other transactions have locked: the application's own queue, and no latch of the server.

use super::finding::{Accounts, Draft};
use super::knowledge::{Knowledge, RowLockMark};
use super::{Context, LEAST, LEAST_GROWTH, Profiled};
use crate::call_paths::{CallPaths, PathId};
use crate::figure::{Figure as _, growth, heaviest};
use crate::machine_shares::BUSY;
use crate::numbers::percent;
use crate::path_costs::{PathCosts, StatePath};
use scaleprof_bundle::{Estimate, RungSummary};
use scaleprof_vocabulary::{FindingKind, ThreadState};
use std::collections::BTreeMap;

/// States of a thread that waits for a row: it sleeps at a condition variable, with a time limit.
const STATES: [ThreadState; 3] = [ThreadState::Lock, ThreadState::Sleep, ThreadState::Other];
/// What the server counts of waits for rows, milliseconds.
const ROW_LOCK_TIME: &str = "status.innodb_row_lock_time";
/// Kinds of statements that are told.
const MOST_STATEMENTS: usize = 3;
/// Functions that the work for the queues is told of.
const MOST_WORKERS: usize = 3;

/// The part of each function of some call paths in waits for rows, by the function's number.
pub(super) struct RowLocks {
    marks: Vec<RowLockMark>,
    works: Vec<bool>,
}

impl RowLocks {
    pub(super) fn of(knowledge: &Knowledge, call_paths: &CallPaths<'_>) -> RowLocks {
        let names = call_paths.function_names();
        RowLocks {
            marks: names.iter().map(|name| knowledge.row_lock_mark(name)).collect(),
            works: names.iter().map(|name| knowledge.works_for_row_locks(name)).collect(),
        }
    }

    /// Whether a thread that waits on this path waits for a row; its functions innermost first.
    pub(super) fn ends_at_a_row(&self, functions: impl Iterator<Item = usize>) -> bool {
        ends_at_a_row(functions.map(|function| self.marks[function]))
    }
}

impl Context<'_> {
    /// Whether a thread that waits on this path waits for a row.
    pub(super) fn waits_for_a_row(&self, path: PathId) -> bool {
        self.row_locks.ends_at_a_row(self.call_paths.outwards(path))
    }

    /// The same of a path with the names of its functions, outermost first.
    pub(super) fn is_row_lock_wait(&self, path: &[String]) -> bool {
        let inwards = path.iter().rev();
        ends_at_a_row(inwards.map(|function| self.knowledge.row_lock_mark(function)))
    }

    /// What waits for rows take of the connections' time at the last rung more than at the other.
    pub(super) fn row_lock_waits(&self, base: &Profiled<'_>, last: &Profiled<'_>) -> Option<Draft> {
        let all = last.connection_seconds();
        if all / base.connection_seconds() - 1.0 < LEAST_GROWTH {
            return None;
        }
        let of_both = STATES
            .iter()
            .flat_map(|state| last.costs.state_paths(*state).chain(base.costs.state_paths(*state)));
        let mut state_paths: Vec<StatePath> = of_both
            .filter(|state_path| self.waits_for_a_row(state_path.path))
            .collect();
        state_paths.sort();
        state_paths.dedup();
        let Some(worst) = heaviest(last.costs, &state_paths) else {
            return self.row_locks_by_counters(base, last);
        };
        let mut path = self.call_paths.functions(worst.path);
        // How it sleeps there says nothing.
        let sleeps = path
            .iter()
            .rposition(|function| self.knowledge.row_lock_mark(function) == RowLockMark::Waits)?;
        path.truncate(sleeps + 1);
        let lost = growth(base.costs, last.costs, &state_paths, 1.0).over(all);
        let mut draft = self.draft(FindingKind::RowLockWaits, path, lost, base, last);
        let (here, there) = (last.summary.connections, base.summary.connections);
        let micros = |costs: &PathCosts| total(state_paths.iter().map(|state_path| costs.seconds(*state_path))) * 1e6;
        draft.evidence.push(format!(
            "row lock waits per transaction: {:.0} \u{b5}s at {here} connections, {:.0} \u{b5}s at {there}, of {:.0} \u{b5}s and {:.0} \u{b5}s in all",
            micros(last.costs),
            micros(base.costs),
            all * 1e6,
            base.connection_seconds() * 1e6,
        ));
        draft.evidence.extend(counted_by_the_server(last.summary));
        for (statement, share) in self.by_statement(last.costs, &state_paths).iter().take(MOST_STATEMENTS) {
            draft.evidence.push(format!("{} of it in {statement}", percent(*share)));
        }
        draft.evidence.extend(self.price_of_queues(base, last));
        draft.evidence.extend(last.summary.busy_share.filter(|busy| *busy >= BUSY).map(|busy| {
            format!(
                "CPUs are {} busy at {here} connections: shorter lock queues help only if CPU time per transaction falls too",
                percent(busy)
            )
        }));
        let source = draft.path.last().and_then(|function| {
            let source = self.knowledge.row_lock_source(function)?;
            Some(format!(
                "a thread that sleeps in {function} waits for a row or a table: {source}"
            ))
        });
        draft.evidence.extend(source);
        draft.evidence.extend(self.settings_of(&draft.knobs));
        draft.accounts = Accounts {
            state_paths,
            ..Accounts::default()
        };
        Some(draft)
    }

    /// The same where no call path of who waits was seen, for want of rights or of a kernel that shows them: by what the server counts.
    fn row_locks_by_counters(&self, base: &Profiled<'_>, last: &Profiled<'_>) -> Option<Draft> {
        let all = last.connection_seconds();
        let waits = STATES
            .iter()
            .any(|state| last.costs.with_seconds(*state).next().is_some());
        let seconds = |rung: &Profiled<'_>| Some(rung.summary.per_txn.get(ROW_LOCK_TIME)? / 1e3);
        // What has not moved at a rung is not told there.
        let (before, after) = (seconds(base).unwrap_or(0.0), seconds(last)?);
        // Where waits were seen and none was for a row, there is none.
        if waits || after <= before {
            return None;
        }
        let lost = Estimate {
            value: ((after - before) / all).min(1.0),
            low: None,
            high: None,
        };
        let mut draft = self.draft(FindingKind::RowLockWaits, Vec::new(), lost, base, last);
        draft.evidence.extend(counted_by_the_server(last.summary));
        draft.evidence.push(format!(
            "time per transaction: {:.0} \u{b5}s at {} connections, {:.0} \u{b5}s at {}",
            all * 1e6,
            last.summary.connections,
            base.connection_seconds() * 1e6,
            base.summary.connections
        ));
        draft.evidence.push(
            "no call path of the waits is known: this is from the server's counters and has no interval".to_owned(),
        );
        if let Some(place) = self.knowledge.place_of(FindingKind::RowLockWaits) {
            draft.known = Some(format!("{} ({})", place.says, place.source));
            self.tell_place(&mut draft, place, last);
        }
        draft.evidence.extend(self.settings_of(&draft.knobs));
        draft.accounts.besides = Some(Estimate {
            value: after - before,
            low: None,
            high: None,
        });
        Some(draft)
    }

    /// Which kinds of statements wait, and in which function of the storage engine, with their parts.
    fn by_statement(&self, costs: &PathCosts, state_paths: &[StatePath]) -> Vec<(String, f64)> {
        let names = self.call_paths.function_names();
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        for state_path in state_paths {
            let marked = |mark: RowLockMark| {
                let mut functions = self.call_paths.outwards(state_path.path);
                functions.find(|function| self.row_locks.marks[*function] == mark)
            };
            let functions = [marked(RowLockMark::Statement), marked(RowLockMark::Engine)];
            let functions: Vec<&str> = functions.into_iter().flatten().map(|at| names[at].as_str()).collect();
            if !functions.is_empty() {
                *parts.entry(functions.join(" > ")).or_default() += costs.seconds(*state_path);
            }
        }
        let all = total(state_paths.iter().map(|state_path| costs.seconds(*state_path)));
        let mut parts: Vec<(String, f64)> = parts.into_iter().map(|(name, seconds)| (name, seconds / all)).collect();
        parts.retain(|(_, share)| *share >= LEAST);
        parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        parts
    }

    /// The CPU time that goes into searching deadlocks, putting threads to sleep and handing row locks on.
    fn price_of_queues(&self, base: &Profiled<'_>, last: &Profiled<'_>) -> Option<String> {
        let names = self.call_paths.function_names();
        let spent = |rung: &Profiled<'_>| {
            let mut by_function: BTreeMap<&str, f64> = BTreeMap::new();
            let on_cpu = [ThreadState::Cpu, ThreadState::Spin].into_iter();
            for (state_path, seconds) in on_cpu.flat_map(|state| rung.costs.with_seconds(state)) {
                let mut functions = self.call_paths.outwards(state_path.path);
                if let Some(works) = functions.find(|function| self.row_locks.works[*function]) {
                    *by_function.entry(names[works].as_str()).or_default() += seconds;
                }
            }
            by_function
        };
        let (before, after) = (spent(base), spent(last));
        let sum = |spent: &BTreeMap<&str, f64>| total(spent.values().copied());
        let of_all = sum(&after) / last.cpu()?;
        let mut workers: Vec<(&str, f64)> = after.iter().map(|(name, seconds)| (*name, *seconds)).collect();
        workers.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let workers: Vec<&str> = workers.into_iter().take(MOST_WORKERS).map(|(name, _)| name).collect();
        (of_all >= LEAST).then(|| {
            format!(
                "queues (sleep, wake, grants, deadlock search) take {:.1} \u{b5}s of CPU time per transaction at {} \
                 connections, {:.1} \u{b5}s at {}, {} of all: {}",
                sum(&after) * 1e6,
                last.summary.connections,
                sum(&before) * 1e6,
                base.summary.connections,
                percent(of_all),
                workers.join(", ")
            )
        })
    }
}

/// The sum; 0 of nothing, which the standard library's sum calls -0.
fn total(seconds: impl Iterator<Item = f64>) -> f64 {
    seconds.fold(0.0, |sum, seconds| sum + seconds)
}

/// Whether the innermost of the marked functions sleeps for a row; `marks` come innermost first.
fn ends_at_a_row(marks: impl Iterator<Item = RowLockMark>) -> bool {
    let mut telling = marks.filter(|mark| matches!(mark, RowLockMark::Waits | RowLockMark::Latches));
    telling.next() == Some(RowLockMark::Waits)
}

/// What the server counts of it, a second account beside the sampled stacks.
fn counted_by_the_server(last: &RungSummary) -> Option<String> {
    let waits = last.per_txn.get("status.innodb_row_lock_waits")?;
    let time = last.per_txn.get(ROW_LOCK_TIME)?;
    Some(format!(
        "server counters at {} connections: {waits:.2} row lock waits per transaction (innodb_row_lock_waits), {:.0} \u{b5}s \
         (innodb_row_lock_time)",
        last.connections,
        time * 1e3
    ))
}
