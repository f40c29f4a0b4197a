//! Who waits for whom, for the page: call paths are numbers of functions, each function stands there once.

use scaleprof_analysis::wait_graph::{
    Holder, HolderSource, Known, LeftOut, LockName, Place, WaitGraph, WaitedLock, Waiters, WaitsFor, Waker, wait_graphs,
};
use scaleprof_bundle::{Bundle, Estimate};
use scaleprof_vocabulary::{ThreadState, WakerKind};
use serde::Serialize;
use std::collections::HashMap;

/// The graphs of all rungs; `web/src/waitData.ts` holds the same shape.
#[derive(Serialize)]
pub(super) struct Waits {
    /// Names of the functions; those of the kernel end in ` [k]`.
    functions: Vec<String>,
    rungs: Vec<Rung>,
}

#[derive(Serialize)]
struct Rung {
    connections: Option<u32>,
    measurements: usize,
    seconds: f64,
    waiting: Estimate,
    attribution: [f64; 3],
    /// `per_wait`, `unknown`.
    holders_by: &'static str,
    locks: Vec<Lock>,
    omitted: Rest,
}

#[derive(Serialize)]
struct Lock {
    #[serde(flatten)]
    name: Name,
    waiting: Estimate,
    on_cpu: f64,
    samples: u64,
    /// Threads whose holder is known, of whom only the waker is, and neither.
    attribution: [f64; 3],
    waiters: Vec<Waiter>,
    omitted_waiters: Rest,
    holders: Vec<Held>,
    omitted_holders: Rest,
    wakers: Vec<Woken>,
    omitted_wakers: Rest,
}

#[derive(Serialize)]
struct Name {
    /// Whether the bundle knows for what was waited.
    is_seen: bool,
    name: Option<String>,
    module: Option<String>,
    operations: Vec<String>,
    waited_for_in: Vec<usize>,
}

/// Functions by their numbers: the path outermost first, the few that say what it is about innermost first.
#[derive(Serialize)]
struct Where {
    path: Vec<usize>,
    label: Vec<usize>,
}

#[derive(Serialize)]
struct Waiter {
    place: Where,
    on_cpu: bool,
    threads: Estimate,
    samples: u64,
}

#[derive(Serialize)]
struct Held {
    place: Option<Where>,
    state: Option<ThreadState>,
    threads: f64,
    samples: u64,
    waits_for: Vec<Link>,
}

#[derive(Serialize)]
struct Link {
    #[serde(flatten)]
    name: Name,
    /// The place of the lock among those of the rung.
    lock: Option<usize>,
    share: f64,
}

#[derive(Serialize)]
struct Woken {
    kind: WakerKind,
    place: Option<Where>,
    threads: f64,
    samples: u64,
}

#[derive(Serialize)]
struct Rest {
    count: usize,
    threads: f64,
}

/// The graphs; none where nobody waits for a lock at any rung.
pub(super) fn waits(bundle: &Bundle) -> Option<Waits> {
    let graphs = wait_graphs(bundle);
    let mut functions = Functions::default();
    let rungs: Vec<Rung> = graphs.into_iter().map(|graph| rung(graph, &mut functions)).collect();
    (!rungs.is_empty()).then_some(Waits {
        functions: functions.names,
        rungs,
    })
}

/// Gives every function a number.
#[derive(Default)]
struct Functions {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Functions {
    fn number(&mut self, name: String) -> usize {
        let names = &mut self.names;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() - 1
        })
    }

    fn numbers(&mut self, names: Vec<String>) -> Vec<usize> {
        names.into_iter().map(|name| self.number(name)).collect()
    }

    fn place(&mut self, place: Place) -> Where {
        Where {
            path: self.numbers(place.path),
            label: self.numbers(place.label),
        }
    }

    fn lock(&mut self, lock: LockName) -> Name {
        Name {
            is_seen: lock.lock.is_some(),
            name: lock.name,
            module: lock.module,
            operations: lock.operations,
            waited_for_in: self.numbers(lock.waited_for_in),
        }
    }
}

fn rung(graph: WaitGraph, functions: &mut Functions) -> Rung {
    Rung {
        connections: graph.connections,
        measurements: graph.measurements,
        seconds: graph.seconds,
        waiting: graph.waiting,
        attribution: shares(graph.attribution),
        holders_by: match graph.holders {
            HolderSource::PerWait => "per_wait",
            HolderSource::Unknown => "unknown",
        },
        locks: graph.locks.into_iter().map(|one| lock(one, functions)).collect(),
        omitted: rest(graph.omitted),
    }
}

fn lock(lock: WaitedLock, functions: &mut Functions) -> Lock {
    Lock {
        name: functions.lock(lock.lock),
        waiting: lock.waiting,
        on_cpu: lock.on_cpu,
        samples: lock.samples,
        attribution: shares(lock.attribution),
        waiters: lock.waiters.into_iter().map(|one| waiter(one, functions)).collect(),
        omitted_waiters: rest(lock.omitted_waiters),
        holders: lock.holders.into_iter().map(|one| held(one, functions)).collect(),
        omitted_holders: rest(lock.omitted_holders),
        wakers: lock.wakers.into_iter().map(|one| woken(one, functions)).collect(),
        omitted_wakers: rest(lock.omitted_wakers),
    }
}

fn waiter(waiters: Waiters, functions: &mut Functions) -> Waiter {
    Waiter {
        place: functions.place(waiters.place),
        on_cpu: waiters.on_cpu,
        threads: waiters.threads,
        samples: waiters.samples,
    }
}

fn held(holder: Holder, functions: &mut Functions) -> Held {
    let link = |to: WaitsFor, functions: &mut Functions| Link {
        name: functions.lock(to.lock),
        lock: to.told_as,
        share: to.share,
    };
    Held {
        place: holder.place.map(|place| functions.place(place)),
        state: holder.state,
        threads: holder.threads,
        samples: holder.samples,
        waits_for: holder.waits_for.into_iter().map(|to| link(to, functions)).collect(),
    }
}

fn woken(waker: Waker, functions: &mut Functions) -> Woken {
    Woken {
        kind: waker.kind,
        place: waker.place.map(|place| functions.place(place)),
        threads: waker.threads,
        samples: waker.samples,
    }
}

fn shares(known: Known) -> [f64; 3] {
    [known.holder, known.waker, known.neither]
}

fn rest(left_out: LeftOut) -> Rest {
    Rest {
        count: left_out.count,
        threads: left_out.threads,
    }
}
