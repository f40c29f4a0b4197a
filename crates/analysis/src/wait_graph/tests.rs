use super::*;
use crate::summarise;
use proptest::collection::vec;
use proptest::prelude::*;
use scaleprof_bundle::{FrameRow, LockRow, RungRow, SampleRow, SecondRow, StackRow, StateRow, UtcMicros};
use std::collections::HashMap;

const SECONDS: i32 = 10;

/// A bundle of one rung, 8 connections and 100 transactions a second, that grows sample by sample.
struct Made {
    bundle: Bundle,
    numbers: HashMap<String, i64>,
}

impl Made {
    fn new(visits: i32) -> Made {
        let mut bundle = testing::planted::empty();
        for visit in 0..visits {
            bundle.rungs.push(RungRow {
                visit,
                connections: 8,
                idle_connections: 0,
                repeat: visit,
                offered_rate: None,
                started_at: UtcMicros(0),
                connect_seconds: 0.1,
                outcome: "complete".into(),
                client_lag_p99_us: None,
                client_threads: 1,
                client_resident_bytes: None,
            });
            bundle.seconds.extend((0..SECONDS).map(|second| SecondRow {
                visit,
                second,
                started_at: UtcMicros(0),
                duration_ns: 1_000_000_000,
                transactions: 100,
                queries: 100,
                reads: 0,
                writes: 0,
                errors: 0,
                retries: 0,
                service_sum_ns: 0,
                response_sum_ns: 0,
                inside_ns: 8_000_000_000,
                p50_ns: None,
                p95_ns: None,
                p99_ns: None,
                max_ns: None,
            }));
        }
        Made {
            bundle,
            numbers: HashMap::new(),
        }
    }

    fn number(&mut self, words: &str) -> (i64, bool) {
        let next = self.numbers.len() as i64 + 1;
        let number = *self.numbers.entry(words.to_owned()).or_insert(next);
        (number, number == next)
    }

    /// The stack of such functions, outermost first; the innermost may end in ` [k]` written as `_k`.
    fn stack(&mut self, functions: &str) -> i64 {
        let mut parent = None;
        let mut path = String::new();
        for (depth, function) in (0..).zip(functions.split(' ')) {
            path += &format!(" > {function}");
            let (stack, is_new) = self.number(&path);
            if is_new {
                let kernel = function.strip_suffix("_k");
                self.bundle.frames.push(FrameRow {
                    frame: stack,
                    module: if kernel.is_some() { "[kernel]" } else { "mysqld" }.into(),
                    build_id: None,
                    address: stack,
                    function: Some(kernel.unwrap_or(function).into()),
                    inlined: false,
                    file: None,
                    line: None,
                    name_source: "symtab".into(),
                });
                self.bundle.stacks.push(StackRow {
                    stack,
                    parent,
                    frame: stack,
                    depth,
                });
            }
            parent = Some(stack);
        }
        parent.unwrap()
    }

    /// A wait of so many milliseconds in every second of every visit; the row is there for more to be said of it.
    fn waits(&mut self, lock: Option<i64>, path: &str, milliseconds: f64, say: impl Fn(&mut SampleRow)) {
        let stack = self.stack(&format!("{path} __schedule_k"));
        for visit in 0..self.bundle.rungs.len() as i32 {
            for second in 0..SECONDS {
                let mut row = SampleRow {
                    visit,
                    second,
                    time_us: UtcMicros(0),
                    thread: 1,
                    role: "connection".into(),
                    cpu: 0,
                    state: "lock".into(),
                    stack,
                    ending: "complete".into(),
                    weight_ns: milliseconds * 1e6,
                    lock,
                    waker_kind: None,
                    waker_stack: None,
                    owner_stack: None,
                    owner_state: None,
                };
                say(&mut row);
                self.bundle.samples.extend([row]);
            }
        }
    }

    /// The same with a holder, at a place unless it runs.
    fn waits_for_holder(&mut self, lock: i64, path: &str, milliseconds: f64, (place, state): (&str, &str)) {
        let owner_stack = (state != "cpu").then(|| self.stack(place));
        self.waits(Some(lock), path, milliseconds, |row| {
            row.owner_stack = owner_stack;
            row.owner_state = Some(state.to_owned().into());
        });
    }

    /// What the threads of the load did exactly: so many milliseconds a second of waiting for locks, and the rest on a CPU.
    fn with_exact_time(mut self, lock_milliseconds: f64) -> Made {
        for visit in 0..self.bundle.rungs.len() as i32 {
            for second in 0..SECONDS {
                for (state, milliseconds) in [("lock", lock_milliseconds), ("cpu", 8e3 - lock_milliseconds)] {
                    self.bundle.states.push(StateRow {
                        visit,
                        second: Some(second),
                        role: "connection".into(),
                        state: state.into(),
                        nanoseconds: (milliseconds * 1e6) as i64,
                        ..StateRow::default()
                    });
                }
            }
        }
        self
    }

    fn lock_row(&mut self, lock: i64, name: &str, owner: Option<(&str, i64)>, waits: i64) {
        let owner_stack = owner.map(|(path, _)| self.stack(path));
        for visit in 0..self.bundle.rungs.len() as i32 {
            self.bundle.locks.push(LockRow {
                visit,
                lock,
                name: Some(name.to_owned()),
                module: Some("mysqld".into()),
                operation: "wait".into(),
                waits,
                wait_ns: 0.0,
                owner_stack,
                owner_samples: owner.map_or(0, |(_, samples)| samples),
            });
        }
    }

    fn graph(&self) -> WaitGraph {
        let mut graphs = wait_graphs(&self.bundle);
        assert_eq!(graphs.len(), 1);
        graphs.remove(0)
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

fn sums_up(graph: &WaitGraph) {
    let known = |known: &Known| known.holder + known.waker + known.neither;
    assert!(
        near(known(&graph.known), graph.waiting.value),
        "{:?} {:?}",
        graph.known,
        graph.waiting
    );
    let told: f64 = graph.locks.iter().map(|lock| lock.waiting.value + lock.on_cpu).sum();
    let on_cpu: f64 = graph.locks.iter().map(|lock| lock.on_cpu).sum();
    assert!(near(told + graph.left_out.threads - on_cpu, graph.waiting.value));
    for lock in &graph.locks {
        assert!(near(known(&lock.known), lock.waiting.value));
        let waiters: f64 = lock.waiters.iter().map(|one| one.threads.value).sum();
        assert!(near(
            waiters + lock.waiters_left_out.threads,
            lock.waiting.value + lock.on_cpu
        ));
        let holders: f64 = lock.holders.iter().map(|one| one.threads).sum();
        assert!(near(holders + lock.holders_left_out.threads, lock.known.holder));
        let wakers: f64 = lock.wakers.iter().map(|one| one.threads).sum();
        assert!(near(wakers + lock.wakers_left_out.threads, lock.known.waker));
    }
}

#[test]
fn a_wait_counts_by_its_holder_else_by_its_waker_else_as_unknown() {
    let mut made = Made::new(1);
    let waker = made.stack("main commit give_back");
    let woken = |row: &mut SampleRow| {
        row.waker_kind = Some("sibling".into());
        row.waker_stack = Some(waker);
    };
    made.waits(Some(1), "main work wait", 400.0, |row| {
        woken(row);
        row.owner_state = Some("cpu".into());
    });
    made.waits_for_holder(1, "main other wait", 100.0, ("main flush fsync", "io"));
    made.waits(Some(1), "main work wait", 300.0, woken);
    made.waits(Some(1), "main work wait", 50.0, |row| {
        row.waker_kind = Some("kernel".into())
    });
    made.waits(Some(2), "main idle", 30.0, |_| ());
    made.waits(None, "main before", 20.0, |_| ());
    made.lock_row(1, "log_sys+64", None, 10);
    let graph = made.graph();
    sums_up(&graph);
    assert_eq!((graph.connections, graph.visits, graph.seconds), (Some(8), 1, 10.0));
    assert_eq!(graph.holders, HolderSource::EachWait);
    assert!(near(graph.waiting.value, 0.9));
    let [worst, heap, unseen] = graph.locks.as_slice() else {
        panic!("{:?}", graph.locks)
    };
    assert_eq!(worst.lock.name.as_deref(), Some("log_sys+64"));
    assert!(near(worst.known.holder, 0.5) && near(worst.known.waker, 0.35) && worst.known.neither == 0.0);
    let holders: Vec<_> = worst
        .holders
        .iter()
        .map(|one| {
            (
                one.state.as_deref(),
                one.place.as_ref().map(|place| place.path.join(" ")),
            )
        })
        .collect();
    let fsync = Some("main flush fsync".to_owned());
    assert_eq!(holders, [(Some("cpu"), None), (Some("io"), fsync)]);
    let wakers: Vec<_> = worst
        .wakers
        .iter()
        .map(|one| (one.kind.as_str(), one.place.is_some()))
        .collect();
    assert_eq!(wakers, [("sibling", true), ("kernel", false)]);
    // The functions of the kernel in which it waits are no part of the place.
    assert_eq!(worst.waiters[0].place.path, ["main", "work", "wait"]);
    assert_eq!(worst.waiters[0].samples, 30);
    assert_eq!(
        (heap.lock.name.as_ref(), heap.known.neither),
        (None, heap.waiting.value)
    );
    assert_eq!(heap.lock.waited_for_in, ["idle", "main"]);
    assert_eq!(unseen.lock.lock, None);
}

#[test]
fn a_holder_that_waits_itself_leads_to_its_lock_even_around_a_circle() {
    let mut made = Made::new(1);
    made.waits_for_holder(1, "main a wait", 300.0, ("main b wait", "lock"));
    made.waits_for_holder(2, "main b wait", 200.0, ("main c wait", "lock"));
    made.waits_for_holder(3, "main c wait", 100.0, ("main a wait", "lock"));
    for (lock, name) in [(1, "A"), (2, "B"), (3, "C")] {
        made.lock_row(lock, name, None, 10);
    }
    let graph = made.graph();
    sums_up(&graph);
    let links: Vec<_> = graph
        .locks
        .iter()
        .map(|lock| {
            let to = &lock.holders[0].waits_for;
            assert_eq!((to.len(), to[0].share), (1, 1.0));
            (
                lock.lock.name.as_deref().unwrap(),
                to[0].told_as,
                to[0].lock.name.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(links, [("A", Some(1), "B"), ("B", Some(2), "C"), ("C", Some(0), "A")]);
}

#[test]
fn the_same_place_may_wait_for_several_locks_and_their_parts_are_told() {
    let mut made = Made::new(1);
    made.waits_for_holder(1, "main a wait", 300.0, ("main b wait", "lock"));
    made.waits(Some(2), "main b wait", 30.0, |_| ());
    made.waits(Some(3), "main b wait", 10.0, |row| row.role = "background".into());
    // A thread that was seen there and waits for nothing is no link.
    made.waits_for_holder(4, "main a wait", 200.0, ("main b wait", "runq"));
    let graph = made.graph();
    sums_up(&graph);
    let parts: Vec<_> = graph.locks[0].holders[0]
        .waits_for
        .iter()
        .map(|to| (to.lock.lock, to.told_as, to.share))
        .collect();
    // Nobody of the load waits for the third.
    assert_eq!(parts, [(Some(2), Some(2), 0.75), (Some(3), None, 0.25)]);
    assert!(graph.locks[1].holders[0].waits_for.is_empty());
}

#[test]
fn a_lock_behind_a_holder_is_told_though_others_are_waited_for_longer() {
    let mut made = Made::new(1);
    for lock in 1..=30 {
        made.waits(Some(lock), &format!("main f{lock}"), 100.0 - lock as f64, |_| ());
    }
    made.waits_for_holder(1, "main g", 50.0, ("main h", "lock"));
    made.waits_for_holder(77, "main h", 0.5, ("main i", "lock"));
    made.waits(Some(78), "main i", 0.25, |_| ());
    let graph = made.graph();
    assert_eq!(graph.locks.len(), MOST_LOCKS + 2);
    let last: Vec<_> = graph.locks[MOST_LOCKS..].iter().map(|lock| lock.lock.lock).collect();
    assert_eq!(last, [Some(77), Some(78)]);
    assert_eq!(graph.left_out.count, 20);
    let told: f64 = graph.locks.iter().map(|lock| lock.waiting.value).sum();
    assert!(near(told + graph.left_out.threads, graph.waiting.value));
}

#[test]
fn an_earlier_bundle_has_the_most_frequent_place_of_holders_by_waits_and_not_what_they_did() {
    let mut made = Made::new(2);
    let waker = made.stack("main give_back");
    made.waits(Some(1), "main wait", 100.0, |row| {
        row.waker_kind = Some("sibling".into());
        row.waker_stack = Some(waker);
    });
    made.lock_row(1, "LOCK_open", Some(("main hold", 6)), 8);
    let graph = made.graph();
    sums_up(&graph);
    assert_eq!(graph.holders, HolderSource::MostFrequentPlace);
    let lock = &graph.locks[0];
    assert!(
        near(lock.known.holder, 0.075) && near(lock.known.waker, 0.025),
        "{:?}",
        lock.known
    );
    let holder = &lock.holders[0];
    assert_eq!((holder.samples, holder.state.as_deref()), (12, None));
    assert_eq!(holder.place.as_ref().unwrap().path, ["main", "hold"]);
}

#[test]
fn threads_that_fight_for_a_lock_of_the_kernel_on_a_cpu_stand_beside_those_that_wait() {
    let mut made = Made::new(1);
    made.waits(Some(1), "main read", 100.0, |_| ());
    made.waits(Some(1), "main read", 40.0, |row| row.state = "cpu".into());
    let graph = made.graph();
    assert!(near(graph.waiting.value, 0.1) && near(graph.locks[0].on_cpu, 0.04));
    let kinds: Vec<_> = graph.locks[0]
        .waiters
        .iter()
        .map(|one| (one.on_cpu, one.samples))
        .collect();
    assert_eq!(kinds, [(false, 10), (true, 10)]);
}

#[test]
fn intervals_come_from_the_visits_where_there_are_three() {
    let mut made = Made::new(3);
    made.waits(Some(1), "main wait", 100.0, |row| {
        row.weight_ns *= 1.0 + f64::from(row.visit) / 10.0
    });
    let waiting = made.graph().waiting;
    // Means 0.10, 0.11 and 0.12: a standard error of 0.01 / sqrt(3), and t of 2 degrees is 4.30.
    assert!(near(waiting.value, 0.11));
    assert!(
        (waiting.high.unwrap() - 0.11 - 0.01 / 3f64.sqrt() * 4.303).abs() < 1e-4,
        "{waiting:?}"
    );
    let mut short = Made::new(1);
    short.waits(Some(1), "main wait", 100.0, |_| ());
    assert_eq!(short.graph().waiting.high, None);
}

#[test]
fn nobody_who_waits_is_no_graph() {
    let mut made = Made::new(1);
    made.waits(None, "main work", 100.0, |row| row.state = "cpu".into());
    assert!(wait_graphs(&made.bundle).is_empty());
}

proptest! {
    /// The oracle is the ledger: what waits for locks is what it has in that state, wherever the samples say it was.
    #[test]
    fn all_waiting_is_that_of_the_ledger(
        waits in vec((0..20i64, 0..6usize, 0.1..500.0f64, 0..5usize), 1..60),
        exact in 1.0..7_000.0f64,
        visits in 1..4i32,
    ) {
        let mut made = Made::new(visits);
        let waker = made.stack("main give_back");
        for (lock, path, milliseconds, kind) in waits {
            let path = format!("main f{path}");
            match kind {
                0 => made.waits_for_holder(lock, &path, milliseconds, ("main f3", "lock")),
                1 => made.waits_for_holder(lock, &path, milliseconds, ("", "cpu")),
                2 => made.waits(Some(lock), &path, milliseconds, |row| {
                    row.waker_kind = Some("sibling".into());
                    row.waker_stack = Some(waker);
                }),
                3 => made.waits(Some(lock), &path, milliseconds, |_| ()),
                _ => made.waits(None, &path, milliseconds, |_| ()),
            }
        }
        let made = made.with_exact_time(exact);
        let graph = made.graph();
        sums_up(&graph);
        let summary = summarise(&made.bundle);
        let ledger = summary.rungs[0].ledger.clone().unwrap();
        // 100 transactions a second.
        let truth = ledger.seconds_per_txn.lock.unwrap() * 100.0;
        prop_assert!((graph.waiting.value / truth - 1.0).abs() < 1e-9);
        prop_assert!((graph.waiting.value / (exact / 1e3) - 1.0).abs() < 1e-5);
    }

    /// Locks in a row, each held by who waits for the next one, the last by who waits for the first: all of it is kept.
    #[test]
    fn planted_circles_are_kept(order in Just((0..8i64).collect::<Vec<_>>()).prop_shuffle(), weights in vec(1.0..100.0f64, 8)) {
        let mut made = Made::new(1);
        for (place, lock) in order.iter().enumerate() {
            let next = order[(place + 1) % order.len()];
            let path = format!("main waits_for_{lock}");
            made.waits_for_holder(*lock, &path, weights[place], (&format!("main waits_for_{next}"), "lock"));
        }
        let graph = made.graph();
        sums_up(&graph);
        let mut at = 0;
        let mut seen = Vec::new();
        for _ in 0..order.len() {
            seen.push(graph.locks[at].lock.lock.unwrap());
            at = graph.locks[at].holders[0].waits_for[0].told_as.unwrap();
        }
        prop_assert_eq!(at, 0, "around");
        let first = order.iter().position(|lock| *lock == seen[0]).unwrap();
        let expected: Vec<i64> = order[first..].iter().chain(&order[..first]).copied().collect();
        prop_assert_eq!(seen, expected);
    }
}
