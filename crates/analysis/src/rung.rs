//! All measurements of one rung together.

mod per_second;

use crate::beside;
use crate::by_path::ByPath;
use crate::call_paths::CallPaths;
use crate::course::Course;
use crate::effective_concurrency::{effective_concurrency, too_few};
use crate::guards::{Client, MOST_BY_OTHERS, MOST_STOLEN, client_limit, little};
use crate::instruction_costs::InstructionCosts;
use crate::intervals::{Measured, throughput};
use crate::iron_law::iron_law;
use crate::latency::{Histogram, statement_label};
use crate::ledger::{self, Watched, ledger};
use crate::load_threads::load_threads;
use crate::lock_costs::LockCosts;
use crate::long_run::long_run;
use crate::machine_shares::{MachineShares, cpu_rate};
use crate::measurement_rows::MeasurementRows;
use crate::pacing::Pacing;
use crate::path_costs::PathCosts;
use crate::paths::{MOST_LOCKS, heaviest_paths, lock_summaries, number_holders_and_wakers};
use crate::sampled::{Sampled, SampledPaths, WaitedFor};
use crate::steadiness::{Steadiness, judge};
use crate::totals::{Amount, Total, Window, totals};
use crate::unsteady::Unsteady;
use crate::usl;
use scaleprof_bundle::{
    Latency, LockRow, Missing, RungSummary, SecondRow, StatementLatency, TransactionLatency, in_parallel,
};
use scaleprof_vocabulary::{LatencyKind, Operation, TpccTransaction};
use std::collections::BTreeMap;

/// A rung as the rest of the analysis needs it.
pub(crate) struct RungResult {
    pub summary: RungSummary,
    pub throughput: Measured,
    /// Throughput of each measurement.
    pub measurements: Vec<usl::Measurement>,
    pub missing: Vec<Missing>,
    pub warnings: Vec<String>,
    /// What its call paths cost.
    pub costs: PathCosts,
    /// What waits for its locks cost.
    pub lock_costs: LockCosts,
    /// What its instructions cost.
    pub instructions: InstructionCosts,
    /// How throughput went in each measurement.
    pub courses: Vec<Course>,
    /// Whether nobody can tell if it settled, and nothing says that it did not.
    pub too_short_to_settle: bool,
    /// Transactions of the whole measurements, warm-up included.
    pub transactions: f64,
}

struct Measurement<'a> {
    rows: &'a MeasurementRows<'a>,
    steadiness: Steadiness,
    rates: Vec<f64>,
    window: Window,
    measured: Vec<&'a SecondRow>,
}

/// What a rung's measurements say before their call paths are looked at.
struct Counted<'a> {
    connections: u32,
    pacing: Pacing,
    measured: Vec<Measurement<'a>>,
    throughput: Measured,
    windows: Vec<Window>,
    sums: BTreeMap<String, Total>,
    threads: ledger::Found,
    /// The locks that were waited for longest.
    locks: Vec<WaitedFor>,
}

/// Goes through the complete measurements of the rung with `connections`; none where no second was
/// measured.
fn begun<'a>(
    connections: u32,
    pacing: Pacing,
    measurements: &[&'a MeasurementRows<'a>],
) -> Option<(Counted<'a>, Sampled<'a>)> {
    let measured: Vec<Measurement> = measurements.iter().filter_map(|rows| measure(rows, pacing)).collect();
    let throughput = throughput(&measured.iter().map(|m| m.rates.clone()).collect::<Vec<_>>())?;
    let windows: Vec<Window> = measured.iter().map(|m| m.window.clone()).collect();
    let sums = totals(&windows, measured.iter().flat_map(|m| m.rows.counters.iter().copied()));
    let watched = watched(&measured);
    let threads = ledger(connections, &windows, &sums, &watched, pacing == Pacing::Once);
    let per_transaction = threads.ledger.as_ref().map(|ledger| &ledger.seconds_per_txn);
    let sampled = Sampled::of(&windows, &watched, per_transaction);
    let counted = Counted {
        connections,
        pacing,
        measured,
        throughput,
        windows,
        sums,
        threads,
        locks: sampled.heaviest_locks(MOST_LOCKS),
    };
    Some((counted, sampled))
}

/// Sums up rungs: connections and complete measurements of each; none for one in which no second
/// was measured. The samples are gone through on all CPUs; call paths get their numbers in the
/// order of the rungs, so that sums over paths are always the same.
pub(crate) fn rungs<'a>(
    cpus: u32,
    pacing: Pacing,
    measurements: Vec<(u32, Vec<&'a MeasurementRows<'a>>)>,
    call_paths: &mut CallPaths<'_>,
) -> Vec<Option<RungResult>> {
    let begun = in_parallel(measurements, |(connections, measurements)| {
        begun(connections, pacing, &measurements)
    });
    let numbered = begun.into_iter().map(|rung| {
        let (counted, sampled) = rung?;
        let samples = sampled.on(call_paths);
        number_holders_and_wakers(&counted.locks, &samples, &counted.lock_rows(), call_paths);
        Some((counted, samples))
    });
    let numbered: Vec<Option<(Counted<'_>, SampledPaths<'_>)>> = numbered.collect();
    let call_paths = &*call_paths;
    in_parallel(numbered, |rung| {
        let (counted, samples) = rung?;
        Some(counted.result(cpus, &samples, call_paths))
    })
}

impl<'a> Counted<'a> {
    /// The rows of `locks` of the measurements that count.
    fn lock_rows(&self) -> Vec<&'a LockRow> {
        let measurements = self.measured.iter();
        measurements.flat_map(|m| m.rows.locks.iter().copied()).collect()
    }

    /// What is known of the rung.
    fn result(self, cpus: u32, samples: &SampledPaths<'_>, call_paths: &CallPaths<'_>) -> RungResult {
        let lock_rows = self.lock_rows();
        let Counted {
            connections,
            pacing,
            measured,
            throughput,
            windows,
            sums,
            threads,
            locks,
        } = self;
        let found = iron_law(cpus, throughput.value, &sums);
        let latency_ms = match pacing {
            // N/X: nobody measured how long a transaction takes.
            Pacing::Told => Histogram::of([]).latency_ms(),
            _ => latency(
                &measured,
                LatencyKind::Service,
                |row| row.service_sum_ns,
                |row| row.max_ns,
            ),
        };
        let machine = MachineShares::of(&sums);
        let client = Client {
            busy_share: machine.busy,
            ..client(&measured, connections, pacing, &sums, latency_ms.p50)
        };
        let limit = client_limit(&client);
        let effective = effective_concurrency(connections, pacing, threads.ledger.as_ref());
        let problems: Vec<String> = measured
            .iter()
            .filter_map(|m| {
                m.steadiness
                    .problem
                    .as_ref()
                    .map(|p| format!("measurement {}: {p}", m.window.measurement))
            })
            .collect();
        let too_short_to_settle = !problems.is_empty()
            && measured
                .iter()
                .filter_map(|m| m.steadiness.problem.as_ref())
                .all(|problem| matches!(problem, Unsteady::TooShort { .. }));
        let mut errors = BTreeMap::new();
        for row in measured.iter().flat_map(|m| &m.rows.errors) {
            *errors.entry(row.error_code.to_string()).or_insert(0) += u64::try_from(row.count).unwrap_or(0);
        }
        let per_txn: BTreeMap<String, f64> = sums
            .iter()
            .filter_map(|(name, total)| Some((name.clone(), total.per_transaction()?)))
            .collect();
        let switches = per_txn
            .get("server.voluntary_switches")
            .zip(per_txn.get("server.involuntary_switches"));
        let mut warnings = Vec::new();
        if let Some(share) = found.running_share {
            warnings.push(format!(
                "at {connections} connections hardware counters were multiplexed: they ran {:.0} % of the time and were scaled up",
                share * 100.0
            ));
        }
        if let Some(residual) = found
            .law
            .as_ref()
            .and_then(|law| law.residual)
            .filter(|r| r.abs() > 0.02)
        {
            warnings.push(format!(
                "residual {:+.1} % of the iron law at {connections} connections: its sources disagree by more than 2 %",
                residual * 100.0
            ));
        }
        if let Some(steal) = machine.steal.filter(|share| *share > MOST_STOLEN) {
            warnings.push(format!(
                "noise at {connections} connections: the hypervisor took {:.1} % of the CPUs",
                steal * 100.0
            ));
        }
        if let Some(other) = machine.other.filter(|share| *share > MOST_BY_OTHERS) {
            warnings.push(format!(
                "noise at {connections} connections: other processes used {:.1} % of the CPUs",
                other * 100.0
            ));
        }
        warnings.extend(threads.warnings);
        let by_path = ByPath::of(samples);
        let paths = heaviest_paths(&by_path, call_paths);
        let costs = PathCosts::of(by_path, call_paths);
        let instructions = InstructionCosts::of(&samples.sampled, call_paths);
        let lock_costs = LockCosts::of(samples, &locks);
        let locks = lock_summaries(&locks, samples, &lock_rows, call_paths);
        let mut missing = [found.missing, threads.missing].concat();
        if pacing == Pacing::Told {
            missing.iter_mut().for_each(of_a_recording);
        }
        if paths.is_empty() && threads.ledger.is_some() {
            missing.push(Missing {
                figure: "paths".into(),
                reason: "no stack of a connection thread was sampled".into(),
            });
        }
        // Of several measurements the one that held its throughput least.
        let long_runs = measured.iter().filter_map(|measurement| long_run(&measurement.rates));
        let least_even = long_runs.max_by(|a, b| a.jitter.total_cmp(&b.jitter));
        let measurements_beside: Vec<beside::Measurement<'_>> = measured
            .iter()
            .map(|m| beside::Measurement::of(m.rows, &m.window))
            .collect();
        let summary = RungSummary {
            connections,
            repeat_count: u32::try_from(measured.len()).unwrap_or(u32::MAX),
            throughput: throughput.estimate(),
            latency_ms,
            response_ms: (pacing == Pacing::Open)
                .then(|| latency(&measured, LatencyKind::Response, |row| row.response_sum_ns, |_| None)),
            errors,
            steady: problems.is_empty(),
            unsteady_reason: (!problems.is_empty()).then(|| problems.join("; ")),
            jitter: measured.iter().filter_map(|m| m.steadiness.jitter).reduce(f64::max),
            finished_seconds: (pacing == Pacing::Once && !windows.is_empty()).then(|| {
                let seconds: f64 = windows.iter().map(|window| window.whole.seconds).sum();
                seconds / windows.len() as f64
            }),
            warmup_seconds: measured.iter().map(|m| m.steadiness.warmup as u32).collect(),
            client_limited: limit.is_some(),
            client_limited_reason: limit,
            littles_law_ratio: client.little,
            effective_concurrency: effective,
            too_few_at_work: too_few(connections, effective, client.cpus),
            load_threads: load_threads(&sums, client.threads),
            client_cpus: client.cpus,
            noise_cpu_share: machine.other,
            steal_share: machine.steal,
            busy_share: machine.busy,
            iron_law: found.law,
            // `perf stat` counts both together.
            context_switches_per_txn: switches
                .map(|(a, b)| a + b)
                .or_else(|| per_txn.get("server.context_switches").copied()),
            per_txn,
            statements: statements(&measured),
            transactions: transactions(&measured),
            long_run: least_even,
            tpcc: None,
            replicas: beside::replicas(&measurements_beside),
            neighbours: beside::neighbours(&measurements_beside),
            ledger: threads.ledger,
            paths,
            locks,
        };
        let measurement = |m: &Measurement| usl::Measurement {
            connections,
            throughput: crate::warmup::mean(&m.rates),
        };
        let measurements = measured.iter().map(measurement).collect();
        let course = |m: &Measurement| {
            let steadiness = &m.steadiness;
            Course::of(
                m.window.measurement,
                steadiness.warmup,
                &m.rates,
                steadiness.problem.as_ref(),
            )
        };
        let courses = measured.iter().map(course).collect();
        RungResult {
            summary,
            throughput,
            measurements,
            missing,
            warnings,
            costs,
            lock_costs,
            instructions,
            courses,
            too_short_to_settle,
            transactions: windows.iter().map(|window| window.whole.transactions).sum(),
        }
    }
}

/// The samples of the rung's connections, scaled to its ledger; none where no second was measured.
pub(crate) fn sampled<'a>(
    connections: u32,
    pacing: Pacing,
    measurements: &[&'a MeasurementRows<'a>],
) -> Option<Sampled<'a>> {
    let measured: Vec<Measurement> = measurements.iter().filter_map(|rows| measure(rows, pacing)).collect();
    let windows: Vec<Window> = measured.iter().map(|m| m.window.clone()).collect();
    let watched = watched(&measured);
    let threads = ledger(connections, &windows, &BTreeMap::new(), &watched, false);
    let per_transaction = threads.ledger.as_ref().map(|ledger| &ledger.seconds_per_txn);
    (!measured.is_empty()).then(|| Sampled::of(&windows, &watched, per_transaction))
}

fn watched<'a>(measured: &[Measurement<'a>]) -> Watched<'a> {
    let rows = || measured.iter().map(|m| m.rows);
    Watched {
        states: rows().flat_map(|rows| rows.states.iter().copied()).collect(),
        samples: rows().flat_map(|rows| rows.samples.iter().copied()).collect(),
        counters: rows().flat_map(|rows| rows.counters.iter().copied()).collect(),
    }
}

fn measure<'a>(rows: &'a MeasurementRows<'a>, pacing: Pacing) -> Option<Measurement<'a>> {
    let mut seconds: Vec<&SecondRow> = rows.seconds.iter().copied().filter(|row| row.duration_ns > 0).collect();
    seconds.sort_by_key(|row| row.second);
    let amount = |row: &SecondRow| Amount {
        seconds: row.duration_ns as f64 / 1e9,
        transactions: row.transactions.max(0) as f64,
    };
    let rate = |row: &&SecondRow| amount(row).transactions / amount(row).seconds;
    let rates: Vec<f64> = match pacing {
        // Its seconds are no repetitions of one another: only all of them together are a figure.
        Pacing::Once | Pacing::Told => whole_rate(seconds.iter().copied().map(amount)).into_iter().collect(),
        _ => seconds.iter().map(rate).collect(),
    };
    let steadiness = match pacing {
        Pacing::Once | Pacing::Told => Steadiness {
            warmup: 0,
            jitter: None,
            problem: None,
        },
        _ => judge(&rates),
    };
    let measured = seconds.split_off(steadiness.warmup.min(seconds.len()));
    let whole = seconds
        .iter()
        .chain(&measured)
        .fold(Amount::default(), |sum, row| Amount {
            seconds: sum.seconds + amount(row).seconds,
            transactions: sum.transactions + amount(row).transactions,
        });
    let window = Window {
        measurement: rows.rung?.measurement,
        seconds: measured.iter().map(|row| (row.second, amount(row))).collect(),
        whole,
    };
    let rates = rates[steadiness.warmup.min(rates.len())..].to_vec();
    (!measured.is_empty()).then_some(Measurement {
        rows,
        steadiness,
        rates,
        window,
        measured,
    })
}

/// Transactions over the time that they really took; none where no time passed.
fn whole_rate(amounts: impl Iterator<Item = Amount>) -> Option<f64> {
    let (transactions, seconds) = amounts.fold((0.0, 0.0), |(transactions, seconds), amount| {
        (transactions + amount.transactions, seconds + amount.seconds)
    });
    (seconds > 0.0).then(|| transactions / seconds)
}

/// Each statement's latency, in the order of the script.
fn statements(measured: &[Measurement<'_>]) -> Vec<StatementLatency> {
    let statements = numbered(measured, Operation::Statement).into_iter();
    statements
        .map(|((number, verb), histogram)| StatementLatency {
            statement: statement_label(number, verb),
            count: histogram.count(),
            latency_ms: histogram.latency_ms(),
        })
        .collect()
}

/// The latency of each kind of transaction, in the workload's order of them.
fn transactions(measured: &[Measurement<'_>]) -> Vec<TransactionLatency> {
    let transactions = numbered(measured, Operation::Transaction).into_iter();
    transactions
        .filter_map(|((_, name), histogram)| {
            Some(TransactionLatency {
                transaction: TpccTransaction::parse(name?).ok()?,
                count: histogram.count(),
                latency_ms: histogram.latency_ms(),
            })
        })
        .collect()
}

/// The service times of an operation of which there are several, by number and name.
fn numbered<'a>(measured: &[Measurement<'a>], operation: Operation) -> BTreeMap<(i32, Option<&'a str>), Histogram> {
    let mut histograms: BTreeMap<(i32, Option<&str>), Histogram> = BTreeMap::new();
    for m in measured {
        let rows = m.rows.latency.iter();
        for row in rows.filter(|row| row.kind == LatencyKind::Service && row.operation == operation) {
            if let Some(number) = row.number.filter(|_| m.window.seconds.contains_key(&row.second)) {
                let histogram = histograms.entry((number, row.name.as_deref())).or_default();
                histogram.add(row.value_ns, row.count);
            }
        }
    }
    histograms
}

/// Percentiles from the histograms of the measured windows; mean and maximum exactly from the seconds.
fn latency(
    measured: &[Measurement<'_>],
    kind: LatencyKind,
    sum_ns: fn(&SecondRow) -> i64,
    max_ns: fn(&SecondRow) -> Option<i64>,
) -> Latency {
    let rows = measured.iter().flat_map(|m| {
        m.rows.latency.iter().copied().filter(|row| {
            row.kind == kind && row.is_of_all_transactions() && m.window.seconds.contains_key(&row.second)
        })
    });
    let mut latency = Histogram::of(rows).latency_ms();
    let seconds = || measured.iter().flat_map(|m| m.measured.iter().copied());
    let transactions: f64 = seconds().map(|row| row.transactions as f64).sum();
    if transactions > 0.0 {
        latency.mean = Some(seconds().map(|row| sum_ns(row) as f64).sum::<f64>() / transactions / 1e6);
    }
    latency.max = seconds()
        .filter_map(max_ns)
        .max()
        .map(|ns| ns as f64 / 1e6)
        .or(latency.max);
    latency
}

fn client(
    measured: &[Measurement<'_>],
    connections: u32,
    pacing: Pacing,
    sums: &BTreeMap<String, Total>,
    median_ms: Option<f64>,
) -> Client {
    let rows = || measured.iter().flat_map(|m| m.measured.iter());
    let inside: f64 = rows().map(|row| row.in_transaction_ns as f64 / 1e9).sum();
    let seconds: f64 = rows().map(|row| row.duration_ns as f64 / 1e9).sum();
    let measurements = || measured.iter().filter_map(|m| m.rows.rung);
    Client {
        // A connection that has run its one transaction rests: X·R/N says nothing then.
        little: if pacing == Pacing::Closed {
            little(inside, seconds, connections)
        } else {
            None
        },
        cpus: cpu_rate(sums, "client"),
        threads: measurements()
            .filter_map(|row| u32::try_from(row.client_threads).ok())
            .filter(|n| *n > 0)
            .min(),
        lag_p99_ms: measurements()
            .filter_map(|row| row.client_lag_p99_us)
            .reduce(f64::max)
            .map(|us| us / 1e3),
        median_ms,
        busy_share: None,
    }
}

/// A recording lacks what was not recorded, whatever its machine could have told.
fn of_a_recording(missing: &mut Missing) {
    let reason = match missing.figure.as_str() {
        "iron_law.instructions_per_txn" | "iron_law.cycles_per_instruction" | "iron_law.clock_hz" => {
            "not counted with the recordings: use perf stat -e instructions,cycles,task-clock and --stat; the iron \
             law uses CPU seconds per transaction"
        }
        "ledger" => "the recordings do not identify threads that serve clients",
        _ => return,
    };
    reason.clone_into(&mut missing.reason);
}
