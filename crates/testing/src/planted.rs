//! Made-up runs of which every cause of unrest is known: what differs between two of them was planted.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use scaleprof_bundle::*;
use scaleprof_vocabulary::{MeasurementOutcome, Role, SymbolSource, ThreadState, UnwindStatus};

/// What a transaction costs in one path: state, functions (outermost first), microseconds.
pub type Cost<'a> = (ThreadState, &'a [&'a str], f64);

/// One rung: connections, transactions per second, costs.
pub type Rung<'a> = (u32, f64, Vec<Cost<'a>>);

/// How much figures move without a cause; standard deviations.
#[derive(Debug, Clone, Copy)]
pub struct Unrest {
    /// Of all costs and the throughput together, from measurement to measurement.
    pub of_measurements: f64,
    /// Of each path by itself, from measurement to measurement.
    pub of_paths: f64,
    /// Samples of running threads a second, which scatter by their number.
    pub samples_a_second: f64,
}

/// What a quiet machine shows.
pub const USUAL: Unrest = Unrest {
    of_measurements: 0.03,
    of_paths: 0.02,
    samples_a_second: 200.0,
};

struct Dice(Xoshiro256PlusPlus);

impl Dice {
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

/// A bundle of a run that has measured nothing yet.
pub fn empty() -> Bundle {
    Bundle {
        path: "nowhere".into(),
        manifest: serde_json::from_str(include_str!("manifest.json")).expect("a manifest"),
        measurements: vec![],
        seconds: vec![],
        counters: vec![],
        latency: vec![],
        errors: vec![],
        states: vec![],
        samples: Samples::default(),
        locks: vec![],
        stacks: vec![],
        frames: vec![],
        settings: vec![],
        summary: None,
        partial_measurements: vec![],
        unfinished_files: vec![],
        remedy_results: Vec::new(),
    }
}

/// A run of these rungs on two CPUs; the seed decides its unrest. Waits are those for locks.
pub fn run(rungs: &[Rung<'_>], repeats: i32, seconds: i32, unrest: Unrest, seed: u64) -> Bundle {
    let mut dice = Dice(Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut bundle = empty();
    for repeat in 0..repeats {
        for rung in rungs {
            let measurement = bundle.measurements.len() as i32;
            bundle.measurements.push(MeasurementRow {
                measurement,
                connections: rung.0 as i32,
                idle_connections: 0,
                repeat,
                offered_rate: None,
                started_at: UtcMicros(0),
                connect_seconds: 0.1,
                outcome: MeasurementOutcome::Complete,
                client_lag_p99_us: Some(1.0),
                client_threads: 1,
                client_resident_bytes: None,
            });
            add_measurement(&mut bundle, &mut dice, measurement, rung, seconds, unrest);
        }
    }
    bundle
}

fn add_measurement(
    bundle: &mut Bundle,
    dice: &mut Dice,
    measurement: i32,
    rung: &Rung<'_>,
    seconds: i32,
    unrest: Unrest,
) {
    let (connections, rate, costs) = rung;
    let pace = (unrest.of_measurements * dice.normal()).exp();
    let costs: Vec<(ThreadState, i64, f64)> = costs
        .iter()
        .map(|(state, path, micros)| {
            let own = (unrest.of_paths * dice.normal()).exp();
            (*state, stack(bundle, path), micros * 1e-6 * pace * own)
        })
        .collect();
    let of = |wanted: fn(&ThreadState) -> bool| -> f64 {
        let costs = costs.iter().filter(|(state, ..)| wanted(state));
        costs.map(|(_, _, seconds)| seconds).sum()
    };
    let (on_cpu, waiting) = (of(|state| state.is_on_cpu()), of(|state| !state.is_on_cpu()));
    for second in 0..seconds {
        let transactions = (rate / pace * (1.0 + 0.01 * dice.normal())).round().max(1.0);
        let inside = i64::from(*connections) * 999_000_000;
        bundle.seconds.push(SecondRow {
            measurement,
            second,
            started_at: UtcMicros(i64::from(second) * 1_000_000),
            duration_ns: 1_000_000_000,
            transactions: transactions as i64,
            queries: transactions as i64,
            reads: 0,
            writes: 0,
            errors: 0,
            retries: 0,
            service_sum_ns: inside,
            response_sum_ns: inside,
            in_transaction_ns: inside,
            p50_ns: None,
            p95_ns: None,
            p99_ns: None,
            max_ns: Some(50_000_000),
        });
        for (counter, value) in [
            ("server.cpu_user_seconds", on_cpu * transactions),
            ("server.cpu_seconds_by_scheduler", on_cpu * transactions),
        ] {
            bundle.counters.push(CounterRow {
                measurement,
                second: Some(second),
                counter: counter.into(),
                value,
                running_share: None,
            });
        }
        let mut state = |of: ThreadState, seconds: f64| {
            bundle.states.push(StateRow {
                measurement,
                second: Some(second),
                role: Role::Connection,
                state: of,
                nanoseconds: (seconds * 1e9).round() as i64,
                lifetime_ns: (of == ThreadState::Cpu).then_some(i64::from(*connections) * 1_000_000_000),
                thread: None,
                name: None,
            });
        };
        let busy = on_cpu * transactions;
        state(ThreadState::Cpu, busy);
        state(ThreadState::Lock, waiting * transactions);
        state(
            ThreadState::RunQueue,
            f64::from(*connections) - busy - waiting * transactions,
        );
        for (of, stack, cost) in &costs {
            // So many samples on average; their number scatters as that of independent ones.
            let expected = cost / on_cpu * unrest.samples_a_second;
            let seen = (expected + expected.sqrt() * dice.normal()).max(0.0);
            if seen > 0.0 {
                bundle.samples.extend([SampleRow {
                    measurement,
                    second,
                    time_us: UtcMicros(0),
                    thread: 1,
                    role: Role::Connection,
                    cpu: 0,
                    state: *of,
                    stack: *stack,
                    unwind_status: UnwindStatus::Complete,
                    weight_ns: seen * 1e7,
                    lock: None,
                    waker_kind: None,
                    waker_stack: None,
                    holder_stack: None,
                    holder_state: None,
                }]);
            }
        }
    }
}

/// The stack of a path, by a number that depends on its functions alone, as in real bundles.
fn stack(bundle: &mut Bundle, path: &[&str]) -> i64 {
    let mut parent = None;
    for (depth, function) in (0..).zip(path) {
        let frame = number(function.bytes(), 0);
        if !bundle.frames.iter().any(|row| row.frame == frame) {
            bundle.frames.push(FrameRow {
                frame,
                module: "mysqld".into(),
                build_id: None,
                address: frame,
                function: Some((*function).into()),
                inlined: false,
                file: None,
                line: None,
                symbol_source: SymbolSource::Symtab,
            });
        }
        let stack = number(frame.to_le_bytes().into_iter(), parent.unwrap_or(1));
        if !bundle.stacks.iter().any(|row| row.stack == stack) {
            bundle.stacks.push(StackRow {
                stack,
                parent,
                frame,
                depth,
            });
        }
        parent = Some(stack);
    }
    parent.expect("a path has functions")
}

/// FNV-1a.
fn number(bytes: impl Iterator<Item = u8>, seed: i64) -> i64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed as u64;
    let hash = bytes.fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash as i64
}

/// Forty paths of a server's usual work, 100 microseconds together, in four branches.
pub fn work() -> Vec<(Vec<&'static str>, f64)> {
    const BRANCHES: [&str; 4] = ["parse", "search", "change", "commit"];
    const LEAVES: [&str; 10] = [
        "copy", "compare", "allocate", "free", "hash", "latch", "log", "read", "write", "send",
    ];
    let mut paths = Vec::new();
    for (at, branch) in BRANCHES.into_iter().enumerate() {
        for (place, leaf) in LEAVES.into_iter().enumerate() {
            let weight = 1.0 + ((at * 7 + place * 3) % 5) as f64;
            paths.push((vec!["start_thread", "do_command", branch, leaf], weight));
        }
    }
    let all: f64 = paths.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut paths {
        *weight *= 100.0 / all;
    }
    paths
}
