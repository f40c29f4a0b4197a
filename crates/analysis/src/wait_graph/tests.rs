use super::*;
use crate::summarise;
use proptest::collection::vec;
use proptest::prelude::*;
use scaleprof_bundle::{FrameRow, LockRow, MeasurementRow, SampleRow, SecondRow, StackRow, StateRow, UtcMicros};
use scaleprof_vocabulary::{MeasurementOutcome, Role, SymbolSource, ThreadState, UnwindStatus, WakerKind};
use std::collections::HashMap;

const SECONDS: i32 = 10;

/// A bundle of one rung, 8 connections and 100 transactions a second, that grows sample by sample.
struct Made {
    bundle: Bundle,
    numbers: HashMap<String, i64>,
}

impl Made {
    fn new(measurements: i32) -> Made {
        let mut bundle = testing::planted::empty();
        for measurement in 0..measurements {
            bundle.measurements.push(MeasurementRow {
                measurement,
                connections: 8,
                idle_connections: 0,
                repeat: measurement,
                offered_rate: None,
                started_at: UtcMicros(0),
                connect_seconds: 0.1,
                outcome: MeasurementOutcome::Complete,
                client_lag_p99_us: None,
                client_threads: 1,
                client_resident_bytes: None,
            });
            bundle.seconds.extend((0..SECONDS).map(|second| SecondRow {
                measurement,
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
                in_transaction_ns: 8_000_000_000,
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
                    symbol_source: SymbolSource::Symtab,
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

    /// A wait of so many milliseconds in every second of every measurement; the row is there for
    /// more to be said of it.
    fn waits(&mut self, lock: Option<i64>, path: &str, milliseconds: f64, say: impl Fn(&mut SampleRow)) {
        let stack = self.stack(&format!("{path} __schedule_k"));
        for measurement in 0..self.bundle.measurements.len() as i32 {
            for second in 0..SECONDS {
                let mut row = SampleRow {
                    measurement,
                    second,
                    time_us: UtcMicros(0),
                    thread: 1,
                    role: Role::Connection,
                    cpu: 0,
                    state: ThreadState::Lock,
                    stack,
                    unwind_status: UnwindStatus::Complete,
                    weight_ns: milliseconds * 1e6,
                    lock,
                    waker_kind: None,
                    waker_stack: None,
                    holder_stack: None,
                    holder_state: None,
                };
                say(&mut row);
                self.bundle.samples.extend([row]);
            }
        }
    }

    /// The same with a holder, at a place unless it runs.
    fn waits_for_holder(&mut self, lock: i64, path: &str, milliseconds: f64, (place, state): (&str, ThreadState)) {
        let holder_stack = (state != ThreadState::Cpu).then(|| self.stack(place));
        self.waits(Some(lock), path, milliseconds, |row| {
            row.holder_stack = holder_stack;
            row.holder_state = Some(state);
        });
    }

    /// What the threads of the load did exactly: so many milliseconds a second of waiting for locks, and the rest on a CPU.
    fn with_exact_time(mut self, lock_milliseconds: f64) -> Made {
        for measurement in 0..self.bundle.measurements.len() as i32 {
            for second in 0..SECONDS {
                for (state, milliseconds) in [
                    (ThreadState::Lock, lock_milliseconds),
                    (ThreadState::Cpu, 8e3 - lock_milliseconds),
                ] {
                    self.bundle.states.push(StateRow {
                        measurement,
                        second: Some(second),
                        role: Role::Connection,
                        state,
                        nanoseconds: (milliseconds * 1e6) as i64,
                        thread: None,
                        name: None,
                        lifetime_ns: None,
                    });
                }
            }
        }
        self
    }

    fn lock_row(&mut self, lock: i64, name: &str, owner: Option<(&str, i64)>, waits: i64) {
        let holder_stack = owner.map(|(path, _)| self.stack(path));
        for measurement in 0..self.bundle.measurements.len() as i32 {
            self.bundle.locks.push(LockRow {
                measurement,
                lock,
                name: Some(name.to_owned()),
                module: Some("mysqld".into()),
                operation: "wait".into(),
                waits,
                wait_ns: 0.0,
                holder_stack,
                holder_samples: owner.map_or(0, |(_, samples)| samples),
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
        near(known(&graph.attribution), graph.waiting.value),
        "{:?} {:?}",
        graph.attribution,
        graph.waiting
    );
    let told: f64 = graph.locks.iter().map(|lock| lock.waiting.value + lock.on_cpu).sum();
    let on_cpu: f64 = graph.locks.iter().map(|lock| lock.on_cpu).sum();
    assert!(near(told + graph.omitted.threads - on_cpu, graph.waiting.value));
    for lock in &graph.locks {
        assert!(near(known(&lock.attribution), lock.waiting.value));
        let waiters: f64 = lock.waiters.iter().map(|one| one.threads.value).sum();
        assert!(near(
            waiters + lock.omitted_waiters.threads,
            lock.waiting.value + lock.on_cpu
        ));
        let holders: f64 = lock.holders.iter().map(|one| one.threads).sum();
        assert!(near(holders + lock.omitted_holders.threads, lock.attribution.holder));
        let wakers: f64 = lock.wakers.iter().map(|one| one.threads).sum();
        assert!(near(wakers + lock.omitted_wakers.threads, lock.attribution.waker));
    }
}

#[test]
fn a_wait_counts_by_its_holder_else_by_its_waker_else_as_unknown() {
    let mut made = Made::new(1);
    let waker = made.stack("main commit give_back");
    let woken = |row: &mut SampleRow| {
        row.waker_kind = Some(WakerKind::SameProcess);
        row.waker_stack = Some(waker);
    };
    made.waits(Some(1), "main work wait", 400.0, |row| {
        woken(row);
        row.holder_state = Some(ThreadState::Cpu);
    });
    made.waits_for_holder(1, "main other wait", 100.0, ("main flush fsync", ThreadState::Io));
    made.waits(Some(1), "main work wait", 300.0, woken);
    made.waits(Some(1), "main work wait", 50.0, |row| {
        row.waker_kind = Some(WakerKind::Kernel)
    });
    made.waits(Some(2), "main idle", 30.0, |_| ());
    made.waits(None, "main before", 20.0, |_| ());
    made.lock_row(1, "log_sys+64", None, 10);
    let graph = made.graph();
    sums_up(&graph);
    assert_eq!(
        (graph.connections, graph.measurements, graph.seconds),
        (Some(8), 1, 10.0)
    );
    assert_eq!(graph.holders, HolderSource::PerWait);
    assert!(near(graph.waiting.value, 0.9));
    let [worst, heap, unseen] = graph.locks.as_slice() else {
        panic!("{:?}", graph.locks)
    };
    assert_eq!(worst.lock.name.as_deref(), Some("log_sys+64"));
    assert!(
        near(worst.attribution.holder, 0.5) && near(worst.attribution.waker, 0.35) && worst.attribution.neither == 0.0
    );
    let holders: Vec<_> = worst
        .holders
        .iter()
        .map(|one| (one.state, one.place.as_ref().map(|place| place.path.join(" "))))
        .collect();
    let fsync = Some("main flush fsync".to_owned());
    assert_eq!(
        holders,
        [(Some(ThreadState::Cpu), None), (Some(ThreadState::Io), fsync)]
    );
    let wakers: Vec<_> = worst.wakers.iter().map(|one| (one.kind, one.place.is_some())).collect();
    assert_eq!(wakers, [(WakerKind::SameProcess, true), (WakerKind::Kernel, false)]);
    // The functions of the kernel in which it waits are no part of the place.
    assert_eq!(worst.waiters[0].place.path, ["main", "work", "wait"]);
    assert_eq!(worst.waiters[0].samples, 30);
    assert_eq!(
        (heap.lock.name.as_ref(), heap.attribution.neither),
        (None, heap.waiting.value)
    );
    assert_eq!(heap.lock.waited_for_in, ["idle", "main"]);
    assert_eq!(unseen.lock.lock, None);
}

#[test]
fn a_holder_that_waits_itself_leads_to_its_lock_even_around_a_circle() {
    let mut made = Made::new(1);
    made.waits_for_holder(1, "main a wait", 300.0, ("main b wait", ThreadState::Lock));
    made.waits_for_holder(2, "main b wait", 200.0, ("main c wait", ThreadState::Lock));
    made.waits_for_holder(3, "main c wait", 100.0, ("main a wait", ThreadState::Lock));
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
    made.waits_for_holder(1, "main a wait", 300.0, ("main b wait", ThreadState::Lock));
    made.waits(Some(2), "main b wait", 30.0, |_| ());
    made.waits(Some(3), "main b wait", 10.0, |row| row.role = Role::Background);
    // A thread that was seen there and waits for nothing is no link.
    made.waits_for_holder(4, "main a wait", 200.0, ("main b wait", ThreadState::RunQueue));
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
    made.waits_for_holder(1, "main g", 50.0, ("main h", ThreadState::Lock));
    made.waits_for_holder(77, "main h", 0.5, ("main i", ThreadState::Lock));
    made.waits(Some(78), "main i", 0.25, |_| ());
    let graph = made.graph();
    assert_eq!(graph.locks.len(), MOST_LOCKS + 2);
    let last: Vec<_> = graph.locks[MOST_LOCKS..].iter().map(|lock| lock.lock.lock).collect();
    assert_eq!(last, [Some(77), Some(78)]);
    assert_eq!(graph.omitted.count, 20);
    let told: f64 = graph.locks.iter().map(|lock| lock.waiting.value).sum();
    assert!(near(told + graph.omitted.threads, graph.waiting.value));
}

#[test]
fn threads_that_fight_for_a_lock_of_the_kernel_on_a_cpu_stand_beside_those_that_wait() {
    let mut made = Made::new(1);
    made.waits(Some(1), "main read", 100.0, |_| ());
    made.waits(Some(1), "main read", 40.0, |row| row.state = ThreadState::Cpu);
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
fn intervals_come_from_the_measurements_where_there_are_three() {
    let mut made = Made::new(3);
    made.waits(Some(1), "main wait", 100.0, |row| {
        row.weight_ns *= 1.0 + f64::from(row.measurement) / 10.0
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
    made.waits(None, "main work", 100.0, |row| row.state = ThreadState::Cpu);
    assert!(wait_graphs(&made.bundle).is_empty());
}

proptest! {
    /// The oracle is the ledger: what waits for locks is what it has in that state, wherever the samples say it was.
    #[test]
    fn all_waiting_is_that_of_the_ledger(
        waits in vec((0..20i64, 0..6usize, 0.1..500.0f64, 0..5usize), 1..60),
        exact in 1.0..7_000.0f64,
        measurements in 1..4i32,
    ) {
        let mut made = Made::new(measurements);
        let waker = made.stack("main give_back");
        for (lock, path, milliseconds, kind) in waits {
            let path = format!("main f{path}");
            match kind {
                0 => made.waits_for_holder(lock, &path, milliseconds, ("main f3", ThreadState::Lock)),
                1 => made.waits_for_holder(lock, &path, milliseconds, ("", ThreadState::Cpu)),
                2 => made.waits(Some(lock), &path, milliseconds, |row| {
                    row.waker_kind = Some(WakerKind::SameProcess);
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
        let truth = ledger.seconds_per_txn[ThreadState::Lock].unwrap() * 100.0;
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
            made.waits_for_holder(*lock, &path, weights[place], (&format!("main waits_for_{next}"), ThreadState::Lock));
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
