//! What idles the CPUs.

use super::busy::once_each;
use super::cover::{Covered, cover};
use super::finding::Draft;
use super::kind::{Kind, syncs_a_file};
use super::{Context, LEAST, LEAST_GROWTH, Profiled};
use crate::base_rung::cheapest;
use crate::condition::waits_at_condition_variable;
use crate::figure::{Figure as _, growth, heaviest};
use crate::numbers::percent;
use crate::path_costs::Pathway;
use scaleprof_bundle::LockSummary;

impl Context<'_> {
    /// Compares what is waited for with the rung that had the best throughput per connection. Time in run queues is no cause.
    pub(super) fn waits(&self, before: &[Profiled<'_>], last: &Profiled<'_>) -> Vec<Draft> {
        // The best throughput per connection is the least time of a connection per transaction.
        let cost = |rung: &&Profiled<'_>| rung.summary.ledger.as_ref().map(|_| rung.connection_seconds());
        let Some(base) = cheapest(before, cost) else {
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
        // Who holds the lock for the disk's sake waits for the disk on behalf of all: that is one cause, not two.
        let holders: Vec<String> = last
            .summary
            .locks
            .iter()
            .filter(|lock| syncs_a_file(&lock.holder))
            .filter_map(|lock| self.knowledge.place_in_server(&lock.holder))
            .map(str::to_owned)
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
            // Those of the base alone too: a wait that only moved to another path is no growth.
            let mut pathways: Vec<Pathway> = last.costs.pathways(state).chain(base.costs.pathways(state)).collect();
            once_each(&mut pathways);
            let costs = pathways.iter().map(|pathway| {
                let cost = last.costs.seconds(*pathway);
                (pathway.path, cost - base.costs.seconds(*pathway), cost)
            });
            for Covered { path, within } in cover(costs, self.call_paths, LEAST * all) {
                let below: Vec<Pathway> = pathways
                    .iter()
                    .copied()
                    .filter(|pathway| within.contains(&pathway.path))
                    .collect();
                let lost = growth(base.costs, last.costs, &below, 1.0).over(all);
                let functions = self.call_paths.functions(path);
                let place = self.knowledge.place_in_server(&functions);
                if place.is_some_and(|place| holders.iter().any(|holder| holder == place)) {
                    continue;
                }
                let kind = Kind::of_wait(plain, place, &functions);
                // A path that is named short of where it waits is told by the heaviest one in it.
                let waits = heaviest(last.costs, &below).map(|worst| self.call_paths.functions(worst.path));
                let mut draft = self.draft(kind, functions, lost, base, last);
                draft.evidence.push(self.change(base, last, &below));
                if state == "lock" && waits.is_some_and(|path| waits_at_condition_variable(&path)) {
                    name_condition_variable(&mut draft, None);
                }
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
        let place = self.knowledge.place_in_server(&lock.waiting).map(str::to_owned);
        let syncs = syncs_a_file(&lock.holder);
        let kind = match () {
            () if Kind::is_in_allocator(&lock.waiting) => Kind::AllocatorContention,
            () if syncs => Kind::LogStall,
            () => Kind::of_wait(Kind::LockConvoy, place.as_deref(), &lock.waiting),
        };
        let is_condition = waits_at_condition_variable(&lock.waiting);
        let thing = if is_condition { "condition variable" } else { "lock" };
        let mut draft = self.draft(kind, lock.waiting.clone(), lost, base, last);
        if let Some(name) = &lock.name {
            if kind != Kind::AllocatorContention {
                draft.subject = Some(name.clone());
            }
            draft.evidence.push(format!(
                "the {thing} is {name} of {}",
                lock.module.as_deref().unwrap_or("the server")
            ));
        }
        if kind == Kind::AllocatorContention {
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
            name_condition_variable(&mut draft, lock.name.as_deref());
        }
        if let Some(place) = place {
            draft.evidence.push(format!("threads wait for it in {place}"));
        }
        let is_known = |function: &&String| !function.starts_with("[incomplete");
        // Nobody holds a condition variable.
        if let Some(holder) = lock.holder.last().filter(|_| !is_condition).filter(is_known) {
            draft.evidence.push(format!(
                "its holder was most often in {holder} (seen at {} of {} waits): {}",
                lock.holder_samples,
                lock.samples,
                lock.holder.join(" > ")
            ));
        }
        Some(draft)
    }
}

/// A condition variable is not called a lock.
fn name_condition_variable(draft: &mut Draft, name: Option<&str>) {
    let place = draft.place.as_deref().unwrap_or("the server");
    if draft.kind == Kind::LockConvoy {
        let known = draft.subject.as_deref().filter(|subject| Some(*subject) != name);
        let what = known.map_or_else(|| format!("in {place}"), |subject| format!("of {subject}"));
        let named = name.map_or(String::new(), |name| format!(" {name}"));
        draft.title = Some(format!("Threads wait at a condition variable{named}, {what}"));
    }
    draft.evidence.push(
        "it is a condition variable: they wait until another thread wakes them, not for what somebody holds".to_owned(),
    );
}
