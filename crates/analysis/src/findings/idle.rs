//! What idles the CPUs.

use super::busy::once_each;
use super::cover::{Covered, cover};
use super::finding::Draft;
use super::kind::{is_in_allocator, kind_of_wait, syncs_a_file};
use super::{Context, LEAST, Profiled};
use crate::condition::waits_at_condition_variable;
use crate::figure::{Figure as _, growth, heaviest};
use crate::numbers::percent;
use crate::path_costs::{PathCosts, StatePath};
use scaleprof_bundle::LockSummary;
use scaleprof_vocabulary::{FindingKind, ShareOf, ThreadState};

/// Waiters that are told of waits in many places.
const MOST_WAITERS: usize = 4;
/// From this part on one waiter stands for all.
const MOST_OF_ALL: f64 = 0.5;

impl Context<'_> {
    /// Compares what is waited for with the rung that had the best throughput per connection. Time in run queues is no cause.
    pub(super) fn waits(&self, base: &Profiled<'_>, last: &Profiled<'_>) -> Vec<Draft> {
        let all = last.connection_seconds();
        let idle = last.busy().map(|share| {
            let others = last.others().map_or(String::new(), |others| {
                format!(" (other programs, which took {}, left out)", percent(others))
            });
            format!(
                "server and client keep {} of the CPUs busy at {} connections{others}, so waiting idles them",
                percent(share),
                last.summary.connections
            )
        });
        let locks = last.summary.locks.iter().zip(last.locks.told());
        // A row is no lock of the server's: all waits for rows are told together.
        let locks = locks.filter(|(lock, _)| !self.is_row_lock_wait(&lock.waiter));
        let contended = locks.map(|(lock, number)| {
            let draft = self.contended(lock, *number, base, last, all);
            (lock, *number, draft)
        });
        let told: Vec<(&LockSummary, i64, Draft)> = contended.filter(|(.., draft)| draft.is_worth_a_word()).collect();
        // Who holds the lock for the disk's sake waits for the disk on behalf of all: that is one cause, not two.
        let holders: Vec<String> = told
            .iter()
            .filter(|(lock, ..)| syncs_a_file(&lock.holder))
            .filter_map(|(lock, ..)| self.knowledge.place_in_server(&lock.holder))
            .map(str::to_owned)
            .collect();
        let numbers: Vec<i64> = told.iter().map(|(_, number, _)| *number).collect();
        let mut drafts: Vec<Draft> = told.into_iter().map(|(.., draft)| draft).collect();
        drafts.extend(self.spinning(base, last, ShareOf::ConnectionTime));
        drafts.extend(self.row_lock_waits(base, last));
        // A lock on the heap is cut into one for each stack that waits for it, and only the heaviest locks are told: what is left
        // of all waits for locks is added up by call path.
        let untold = |rung: &Profiled<'_>| rung.costs.without(ThreadState::Lock, rung.locks.off_cpu(&numbers));
        let (base_untold, last_untold) = (untold(base), untold(last));
        for (state, plain) in [
            (ThreadState::Io, FindingKind::DiskBound),
            (ThreadState::Lock, FindingKind::LockConvoy),
            (ThreadState::Sleep, FindingKind::Blocked),
            (ThreadState::Other, FindingKind::Blocked),
        ] {
            let (before, after) = match state {
                ThreadState::Lock => (&base_untold, &last_untold),
                _ => (base.costs, last.costs),
            };
            // Those of the base alone too: a wait that only moved to another path is no growth.
            let mut state_paths: Vec<StatePath> = after.state_paths(state).chain(before.state_paths(state)).collect();
            once_each(&mut state_paths);
            state_paths.retain(|state_path| !self.waits_for_a_row(state_path.path));
            let costs = state_paths.iter().map(|state_path| {
                let cost = after.seconds(*state_path);
                (state_path.path, cost - before.seconds(*state_path), cost)
            });
            let covered = cover(costs, self.call_paths, LEAST * all);
            let compared = Compared {
                before,
                after,
                base,
                last,
                all,
            };
            for Covered { path, within } in &covered {
                let below: Vec<StatePath> = state_paths
                    .iter()
                    .copied()
                    .filter(|state_path| within.contains(&state_path.path))
                    .collect();
                let functions = self.call_paths.functions(*path);
                let place = self.knowledge.place_in_server(&functions);
                let is_told = || place.is_some_and(|place| holders.iter().any(|holder| holder == place));
                if state != ThreadState::Lock && is_told() {
                    continue;
                }
                let kind = kind_of_wait(plain, place, &functions);
                let asleep = (state == ThreadState::Sleep && kind == plain)
                    .then(|| format!("Threads are made to sleep, in {}", place.unwrap_or("the server")));
                let mut draft = self.waiting(kind, functions, &below, &compared);
                draft.title = asleep.or(draft.title);
                drafts.push(draft);
            }
            if state == ThreadState::Lock {
                state_paths
                    .retain(|state_path| !covered.iter().any(|covered| covered.within.contains(&state_path.path)));
                drafts.extend(self.in_many_places(&state_paths, &compared));
            }
        }
        for draft in &mut drafts {
            draft.share_of = ShareOf::ConnectionTime;
            draft.rungs = (base.summary.connections, last.summary.connections);
            if let Some(idle) = &idle {
                draft.evidence.insert(0, idle.clone());
            }
        }
        drafts
    }

    /// What the waits on some paths come to.
    fn waiting(
        &self,
        kind: FindingKind,
        path: Vec<String>,
        state_paths: &[StatePath],
        compared: &Compared<'_>,
    ) -> Draft {
        let Compared {
            before,
            after,
            base,
            last,
            all,
        } = *compared;
        let lost = growth(before, after, state_paths, 1.0).over(all);
        let mut draft = self.draft(kind, path, lost, base, last);
        draft
            .evidence
            .push(self.change_of((before, base), (after, last), state_paths));
        draft.accounts.state_paths = state_paths.to_vec();
        // A path that is named short of where it waits is told by the heaviest one in it.
        let waits = heaviest(after, state_paths).map(|worst| self.call_paths.functions(worst.path));
        if waits.is_some_and(|path| waits_at_condition_variable(&path)) {
            self.name_condition_variable(&mut draft, None);
        }
        draft
    }

    /// Waits for locks that are spread over so many call paths that none of them is worth a word, all together.
    fn in_many_places(&self, state_paths: &[StatePath], compared: &Compared<'_>) -> Option<Draft> {
        let waiters = self.by_waiter(compared.after, state_paths);
        let (_, most, of_most) = waiters.first()?;
        let path = self.call_paths.functions(heaviest(compared.after, of_most)?.path);
        let place = self.knowledge.place_in_server(&path);
        let kind = kind_of_wait(FindingKind::LockConvoy, place, &path);
        let mut draft = self.waiting(kind, path, state_paths, compared);
        if *most < MOST_OF_ALL {
            draft.title = Some("Threads queue for locks in many places".to_owned());
        }
        for (waiter, share, _) in waiters.iter().take(MOST_WAITERS) {
            draft.evidence.push(format!("{} of it in {waiter}", percent(*share)));
        }
        Some(draft)
    }

    /// What the waits for one lock come to, which has this number at all rungs.
    fn contended(&self, lock: &LockSummary, number: i64, base: &Profiled<'_>, last: &Profiled<'_>, all: f64) -> Draft {
        let lost = lock.seconds_per_txn.less(base.locks.estimate(number)).over(all);
        let place = self.knowledge.place_in_server(&lock.waiter).map(str::to_owned);
        let syncs = syncs_a_file(&lock.holder);
        let kind = match () {
            () if is_in_allocator(&lock.waiter) => FindingKind::AllocatorContention,
            () if syncs => FindingKind::LogStall,
            () => kind_of_wait(FindingKind::LockConvoy, place.as_deref(), &lock.waiter),
        };
        let is_condition = waits_at_condition_variable(&lock.waiter);
        let thing = if is_condition { "condition variable" } else { "lock" };
        let mut draft = self.draft(kind, lock.waiter.clone(), lost, base, last);
        draft.accounts.lock = Some(number);
        if let Some(name) = &lock.name {
            if kind != FindingKind::AllocatorContention {
                draft.subject = Some(name.clone());
            }
            draft.evidence.push(format!(
                "the {thing} is {name} of {}",
                lock.module.as_deref().unwrap_or("the server")
            ));
        }
        if kind == FindingKind::AllocatorContention {
            let under = draft.place.as_deref().unwrap_or("the server");
            draft.title = Some(format!(
                "Threads queue for the lock of the memory allocator, under {under}"
            ));
        } else if syncs {
            draft.title = Some(format!(
                "Threads queue for {} while its holder waits until the disk has what it wrote",
                draft.subject.as_deref().or(draft.place.as_deref()).unwrap_or("a lock")
            ));
        } else if is_condition {
            self.name_condition_variable(&mut draft, lock.name.as_deref());
        }
        if let Some(place) = place {
            draft.evidence.push(format!("threads wait for it in {place}"));
        }
        let is_known = |function: &&String| !function.starts_with("[incomplete");
        // Nobody holds a condition variable.
        if let Some(holder) = lock.holder.last().filter(|_| !is_condition).filter(is_known) {
            draft.evidence.push(format!(
                "its holder was most often in {holder} (seen at {} of {} waits of all threads): {}",
                lock.holder_samples,
                lock.total_waits,
                lock.holder.join(" > ")
            ));
        }
        draft
    }

    /// A condition variable is not called a lock, except where it is known that somebody holds what it stands for.
    fn name_condition_variable(&self, draft: &mut Draft, name: Option<&str>) {
        if let Some(what) = self.knowledge.held_behind_condition(&draft.path) {
            draft.title = Some(format!("Threads wait for {what}"));
            return;
        }
        let place = draft.place.as_deref().unwrap_or("the server");
        if draft.kind == FindingKind::LockConvoy {
            let known = draft.subject.as_deref().filter(|subject| Some(*subject) != name);
            let what = known.map_or_else(|| format!("in {place}"), |subject| format!("of {subject}"));
            let named = name.map_or(String::new(), |name| format!(" {name}"));
            draft.title = Some(format!("Threads wait at a condition variable{named}, {what}"));
        }
        draft.evidence.push(
            "it is a condition variable: they wait until another thread wakes them, not for what somebody holds"
                .to_owned(),
        );
    }
}

/// Two rungs, with the waits that are looked at.
#[derive(Clone, Copy)]
struct Compared<'a> {
    before: &'a PathCosts,
    after: &'a PathCosts,
    base: &'a Profiled<'a>,
    last: &'a Profiled<'a>,
    /// What they are a part of, seconds per transaction.
    all: f64,
}
