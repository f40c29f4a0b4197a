//! Why throughput is lost: the ranked findings of a run.
//!
//! Two rungs are compared, the last one and the one before it at which a transaction was cheapest. Which account decides
//! depends on what loses more (DESIGN section 2): idle CPUs, or transactions that cost more CPU time.
//!
//! - Dearer transactions ([`busy`]): waiting loses nothing, since somebody else runs meanwhile. The paths whose CPU time per
//!   transaction grew are to blame. Loops that wait for another thread are waste wherever they are ([`spinning`]). What got
//!   dearer everywhere alike (caches, SMT, the clock) is taken out and said once ([`uniform_slowdown`]); what got dearer at one
//!   instruction alone waits for a cache line ([`shared_line`]).
//! - Idle CPUs ([`idle`]): then a wait idles them, and the waits whose time per transaction grew are to blame.
//!
//! Waits for rows that other transactions have locked ([`row_locks`]) are a queue of the application's own: they are told by
//! themselves in both accounts, and as no other kind of wait. [`explained`] says what all findings leave unexplained.
//!
//! A finding is listed when its share is beyond chance (the lower limit of its interval) and worth a word. What makes the
//! figures themselves doubtful is told behind ([`measurement`]).

mod advice;
mod busy;
mod bystanders;
mod code_kinds;
pub(crate) mod cover;
mod explained;
mod failed_transactions;
mod finding;
mod idle;
mod kind;
pub(crate) mod knowledge;
mod many_callers;
mod measurement;
mod row_locks;
mod shared_line;
mod spin_round;
mod spinning;
mod uniform_slowdown;

use crate::base_rung::cheapest;
use crate::call_paths::CallPaths;
use crate::instruction_costs::InstructionCosts;
use crate::lock_costs::LockCosts;
use crate::machine_code::MachineCode;
use crate::machine_shares::BUSY;
use crate::path_costs::{PathCosts, StatePath};
use advice::Scene;
pub(crate) use code_kinds::{CODE_KINDS, code_kinds};
use finding::Draft;
use knowledge::{Knowledge, Place};
use row_locks::RowLocks;
use scaleprof_bundle::{Estimate, Explained, Finding, Manifest, Remedy, RungSummary, SettingRow};
use scaleprof_vocabulary::{FindingKind, ShareOf, ThreadState};
use std::collections::{BTreeMap, HashMap};
pub(crate) use uniform_slowdown::{uniform_slowdown, uniform_slowdown_of};

pub(crate) use shared_line::{SharedLine, shared_lines};

pub(crate) use measurement::{Measured, doubts};

/// Findings that are listed.
const MOST: usize = 8;
/// Least share of the loss, by the lower limit, that is worth a word.
pub(crate) const LEAST: f64 = 0.02;
/// How many times that it must be where too few seconds give no interval.
const WITHOUT_INTERVAL: f64 = 2.0;
/// Growth of the cost of a transaction from which on it is looked at.
const LEAST_GROWTH: f64 = 0.1;
/// From this part of the CPUs on other programs count, as they do in the rung's warning.
const OTHERS: f64 = 0.05;

/// A rung with what its paths cost.
pub(crate) struct Profiled<'a> {
    pub summary: &'a RungSummary,
    pub costs: &'a PathCosts,
    pub locks: &'a LockCosts,
    pub instructions: &'a InstructionCosts,
    /// Transactions of its whole measurements, as its errors are.
    pub transactions: f64,
}

impl Profiled<'_> {
    /// CPU seconds of a transaction on the threads that serve the load, spinning included.
    fn cpu(&self) -> Option<f64> {
        let states = self.summary.ledger.as_ref()?.seconds_per_txn;
        let seconds = states[ThreadState::Cpu]? + states[ThreadState::Spin].unwrap_or(0.0);
        (seconds > 0.0).then_some(seconds)
    }

    fn busy(&self) -> Option<f64> {
        busy(self.summary)
    }

    /// CPUs that the threads used that serve the load.
    fn cpus_used(&self) -> Option<f64> {
        Some(self.cpu()? * self.summary.throughput.value)
    }

    /// The part of the CPUs that other programs took, where that is more than interrupts.
    fn others(&self) -> Option<f64> {
        others(self.summary)
    }

    /// Whether whoever waits loses nothing by it.
    pub(crate) fn is_busy(&self) -> bool {
        is_busy(self.summary)
    }

    /// Seconds that all connections spend on a transaction, N/X.
    fn connection_seconds(&self) -> f64 {
        f64::from(self.summary.connections) / self.summary.throughput.value
    }
}

/// The part of the CPUs that the server and its client used: of the machine's, or of those that the server may use. What other
/// programs took was there for the asking; a little of it is interrupts, which nobody is charged with.
fn busy(summary: &RungSummary) -> Option<f64> {
    let others = others(summary).unwrap_or(0.0);
    let busy = summary.busy_share.map(|share| share - others);
    let used = summary.iron_law.as_ref().map(|law| law.utilisation);
    busy.into_iter().chain(used).reduce(f64::max)
}

fn others(summary: &RungSummary) -> Option<f64> {
    summary.noise_cpu_share.filter(|share| *share > OTHERS)
}

/// Whether the CPUs are busy at a rung, so that whoever waits loses nothing by it.
pub(crate) fn is_busy(summary: &RungSummary) -> bool {
    busy(summary).is_some_and(|share| share >= BUSY)
}

/// What is known of the server and the machine.
pub(crate) struct Surroundings<'a> {
    pub manifest: &'a Manifest,
    pub settings: &'a [SettingRow],
    /// Reads the machine code that is known.
    pub code: &'a dyn Fn() -> MachineCode,
}

/// Why throughput is lost.
pub(crate) struct Found {
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// What they explain of the loss, an entry an account.
    pub explained: Vec<Explained>,
}

/// The findings of a run. `rungs` are those that count, by rising connections.
pub(crate) fn findings(rungs: &[Profiled<'_>], surroundings: &Surroundings<'_>, call_paths: &CallPaths<'_>) -> Found {
    let nothing = || Found {
        findings: Vec::new(),
        explained: Vec::new(),
    };
    let Some((last, before)) = rungs.split_last() else {
        return nothing();
    };
    let knowledge = Knowledge::of(&surroundings.manifest.server.product);
    let context = Context {
        row_locks: RowLocks::of(&knowledge, call_paths),
        knowledge,
        surroundings,
        call_paths,
    };
    let compared = match cheapest(before, |rung| rung.cpu()) {
        Some(base) if dearer_loses_more(base, last) => Some((ShareOf::CpuTime, base)),
        _ if last.is_busy() => None,
        // The best throughput per connection is the least time of a connection per transaction.
        _ => cheapest(before, |rung| {
            rung.summary.ledger.as_ref().map(|_| rung.connection_seconds())
        })
        .map(|base| (ShareOf::ConnectionTime, base)),
    };
    let compared = compared.filter(|(account, base)| has_grown(*account, base, last));
    let mut drafts = match compared {
        Some((ShareOf::CpuTime, base)) => context.dearer(base, last),
        Some((_, base)) => context.waits(base, last),
        None => Vec::new(),
    };
    drafts.extend(context.failed_transactions(last));
    drafts.retain(Draft::is_worth_a_word);
    if !drafts.iter().any(|draft| draft.kind == FindingKind::SpinWaiting) {
        drafts.extend(context.spinning_anywhere(rungs));
    }
    // What is at another rung explains nothing of the last one.
    let order = |draft: &Draft| (draft.is_elsewhere, -draft.rank());
    drafts.sort_by(|a, b| {
        let ((a_elsewhere, a), (b_elsewhere, b)) = (order(a), order(b));
        a_elsewhere.cmp(&b_elsewhere).then(a.total_cmp(&b))
    });
    drafts.truncate(MOST);
    // The one that decides stands first.
    let mut accounts = [ShareOf::CpuTime, ShareOf::ConnectionTime];
    let decides = |account: ShareOf| compared.is_some_and(|(deciding, _)| deciding == account);
    accounts.sort_by_key(|account| !decides(*account));
    let accounts = accounts.into_iter().filter(|account| {
        let has_finding = || {
            let mut here = drafts.iter().filter(|draft| !draft.is_elsewhere);
            here.any(|draft| draft.share_of == *account)
        };
        decides(*account) || (compared.is_some() && has_finding())
    });
    let explained = accounts.filter_map(|account| context.explained(account, &drafts, compared?.1, last));
    Found {
        explained: explained.collect(),
        findings: drafts.into_iter().map(Draft::finish).collect(),
    }
}

/// Whether a transaction takes so much more at the last rung that there is something to explain.
fn has_grown(account: ShareOf, base: &Profiled<'_>, last: &Profiled<'_>) -> bool {
    let growth = match account {
        ShareOf::CpuTime => base.cpu().zip(last.cpu()).map(|(before, now)| now / before),
        _ => Some(last.connection_seconds() / base.connection_seconds()),
    };
    growth.is_some_and(|growth| growth - 1.0 >= LEAST_GROWTH)
}

/// Whether it is what a transaction costs, not idle CPUs, that loses throughput: by the iron law, X = CPUs · use / cost, the
/// one loses ln(cost / its least), the other -ln(use). Where nobody knows how many CPUs there are, that can be told only of throughput
/// that fell: the other loses what use fell by meanwhile, ln(CPUs used before / CPUs used).
fn dearer_loses_more(base: &Profiled<'_>, last: &Profiled<'_>) -> bool {
    let cost = base.cpu().zip(last.cpu()).map(|(least, cost)| (cost / least).ln());
    let idle = match last.busy() {
        Some(busy) => Some(-busy.ln()),
        None if last.summary.throughput.value <= base.summary.throughput.value => {
            let used = base.cpus_used().zip(last.cpus_used());
            used.map(|(before, now)| (before / now).ln())
        }
        None => None,
    };
    last.is_busy()
        || cost
            .zip(idle)
            .is_some_and(|(dearer, idle)| dearer > LEAST_GROWTH.ln_1p() && dearer > idle)
}

struct Context<'a> {
    knowledge: Knowledge,
    row_locks: RowLocks,
    surroundings: &'a Surroundings<'a>,
    call_paths: &'a CallPaths<'a>,
}

impl Context<'_> {
    /// What some paths cost at both rungs.
    fn change(&self, base: &Profiled<'_>, last: &Profiled<'_>, state_paths: &[StatePath]) -> String {
        self.change_of((base.costs, base), (last.costs, last), state_paths)
    }

    /// The same by some of the costs of each rung.
    fn change_of(
        &self,
        (before, base): (&PathCosts, &Profiled<'_>),
        (after, last): (&PathCosts, &Profiled<'_>),
        state_paths: &[StatePath],
    ) -> String {
        let micros = |costs: &PathCosts| {
            state_paths
                .iter()
                .map(|state_path| costs.seconds(*state_path))
                .sum::<f64>()
                * 1e6
        };
        format!(
            "{:.1} \u{b5}s of a transaction at {} connections, {:.1} \u{b5}s at {}, without what other findings count",
            micros(after),
            last.summary.connections,
            micros(before),
            base.summary.connections
        )
    }

    /// A finding with what is known about its place.
    fn draft(
        &self,
        kind: FindingKind,
        path: Vec<String>,
        lost: Estimate,
        base: &Profiled<'_>,
        last: &Profiled<'_>,
    ) -> Draft {
        let mut draft = Draft::new(kind, path, lost);
        draft.rungs = (base.summary.connections, last.summary.connections);
        draft.place = self.knowledge.place_in_server(&draft.path).map(str::to_owned);
        let path = draft.path.clone();
        self.tell_place_on(&mut draft, &path, last);
        draft
    }

    /// What is known of a place on a path, where anything is.
    fn tell_place_on(&self, draft: &mut Draft, path: &[String], last: &Profiled<'_>) {
        if let Some((place, function)) = self.knowledge.place(draft.kind, path) {
            draft.known = Some(format!("{function}: {} ({})", place.says, place.source));
            self.tell_place(draft, place, last);
        }
    }

    /// The same of the heaviest path of which anything is known, where that of a finding says nothing: of the others those that hold
    /// a good part of it.
    fn tell_place_on_others(&self, draft: &mut Draft, state_paths: &[StatePath], last: &Profiled<'_>) {
        /// A quarter of what a finding is about.
        const GOOD_PART: f64 = 0.25;
        let mut heaviest_first = state_paths.to_vec();
        heaviest_first.sort_by(|a, b| last.costs.seconds(*b).total_cmp(&last.costs.seconds(*a)));
        let all: f64 = state_paths
            .iter()
            .map(|state_path| last.costs.seconds(*state_path))
            .sum();
        for state_path in heaviest_first {
            if draft.known.is_some() || last.costs.seconds(state_path) < GOOD_PART * all {
                return;
            }
            self.tell_place_on(draft, &self.call_paths.functions(state_path.path), last);
        }
    }

    /// What is known of the place that a finding is about: what it stands for, and what may relieve it.
    fn tell_place(&self, draft: &mut Draft, place: &Place, last: &Profiled<'_>) {
        draft.subject = Some(place.what.clone());
        let advice = self.advice(place, last);
        let of_settings = advice.iter().map(|(words, _)| words.clone());
        let others = place.try_settings.iter().cloned();
        match place.settings_last {
            true => draft.tries.extend(others.chain(of_settings)),
            false => draft.tries.extend(of_settings.chain(others)),
        }
        draft
            .remedies
            .extend(advice.into_iter().filter_map(|(_, remedy)| remedy));
        draft.knobs.clone_from(&place.settings);
    }

    /// A waiter of [`by_waiter`](Self::by_waiter) with what it waits for, where that is known.
    fn said_of(&self, waiter: &str) -> String {
        let outermost = waiter.split(" > ").next().unwrap_or(waiter);
        match self.knowledge.waited_for_by(outermost) {
            Some(place) => format!("{waiter}, for {} ({})", place.what, place.source),
            None => waiter.to_owned(),
        }
    }

    /// Who brings about what some paths cost, by the server's functions and how these wait: the heaviest few, with their parts.
    fn by_waiter(&self, costs: &PathCosts, state_paths: &[StatePath]) -> Vec<(String, f64, Vec<StatePath>)> {
        let mut waiters: BTreeMap<String, (f64, Vec<StatePath>)> = BTreeMap::new();
        let names = self.call_paths.function_names();
        let mut known: HashMap<usize, bool> = HashMap::new();
        for state_path in state_paths {
            let functions = self.call_paths.outwards(state_path.path);
            let functions = functions.map(|function| {
                let name = names[function].as_str();
                let is_primitive = known
                    .entry(function)
                    .or_insert_with(|| self.knowledge.is_primitive(name));
                (name, *is_primitive)
            });
            let waiter = Knowledge::waiter(functions);
            let (seconds, paths) = waiters.entry(waiter).or_default();
            *seconds += costs.seconds(*state_path);
            paths.push(*state_path);
        }
        let all: f64 = waiters.values().map(|(seconds, _)| seconds).sum();
        let mut waiters: Vec<(String, f64, Vec<StatePath>)> = waiters
            .into_iter()
            .map(|(waiter, (seconds, paths))| (waiter, seconds / all, paths))
            .filter(|(_, share, _)| share.is_finite())
            .collect();
        waiters.sort_by(|(_, a, _), (_, b, _)| b.total_cmp(a));
        waiters
    }

    /// What to try with the settings of a place, in view of what they are set to: in words, and as a setting where it is one.
    fn advice(&self, place: &Place, last: &Profiled<'_>) -> Vec<(String, Option<Remedy>)> {
        let manifest = self.surroundings.manifest;
        let scene = Scene {
            connections: last.summary.connections,
            cpus: manifest.server_cpus().or(manifest.machine.cpus),
        };
        let words = place.advice.iter().filter_map(|advice| {
            let now = self.setting_row(&advice.setting);
            Some((advice.words(now, scene)?, advice.remedy(now, scene)))
        });
        words.collect()
    }

    fn setting_row(&self, name: &str) -> Option<&SettingRow> {
        self.surroundings.settings.iter().find(|row| row.name == name)
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.setting_row(name).map(|row| row.value.as_str())
    }

    fn settings_of(&self, names: &[String]) -> Option<String> {
        let known: Vec<String> = names
            .iter()
            .filter_map(|name| Some(format!("{name} = {}", self.setting(name)?)))
            .collect();
        (!known.is_empty()).then(|| format!("the server runs with {}", known.join(", ")))
    }
}

/// A figure that was counted, not sampled.
fn counted(value: f64) -> Estimate {
    Estimate {
        value,
        low: None,
        high: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
