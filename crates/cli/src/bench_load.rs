//! One load and its figures, in a process of its own so that its CPU time can be taken from outside.

use crate::arguments::BenchLoadArguments;
use crate::output::{self, say};
use anyhow::Context;
use scaleprof_wire::{Client, Credentials, Endpoint};
use scaleprof_workload::schema::{self, FillPlan, SCHEMA};
use scaleprof_workload::{
    LoadClock, LoadObserver, LoadPlan, LoadScheduling, LoopKind, OltpOptions, OltpWorkload, Program, SecondRecord,
    Tally, drive, raise_open_file_limit,
};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Default)]
struct Sums {
    /// Tell when the load begins.
    tells: bool,
    transactions: u64,
    queries: u64,
    service_ns: u64,
    in_transaction_ns: u64,
    errors: u64,
    seconds: u32,
    service: Option<SecondRecord>,
}

impl LoadObserver for Sums {
    fn connected(&mut self, _open: u32, _wanted: u32) {}
    fn begins(&mut self) {
        if self.tells {
            // The reader may have gone: whoever started this ends it.
            let _ = output::write(format_args!("begins\n"));
        }
    }
    fn second_ended(&mut self, _second: u32) {}
    fn record(&mut self, record: SecondRecord) {
        self.transactions += record.transactions;
        self.queries += record.queries;
        self.service_ns += record.service_sum_ns;
        self.in_transaction_ns += record.in_transaction_ns;
        self.errors += record.error_count();
        self.seconds += 1;
        match &mut self.service {
            Some(sum) => {
                // Same bounds: it always fits.
                let _ = sum.service.add(&record.service);
            }
            None => self.service = Some(record),
        }
    }
}

pub(crate) fn execute(arguments: &BenchLoadArguments) -> anyhow::Result<ExitCode> {
    let endpoint = Endpoint::Unix(arguments.socket.clone());
    let who = Credentials::user(&arguments.user);
    let mut options = OltpOptions {
        tables: arguments.tables,
        table_size: arguments.rows,
        distribution: arguments.distribution,
        protocol: arguments.protocol,
        ..OltpOptions::default()
    };
    for option in &arguments.option {
        let (name, value) = option.split_once('=').context("--option NAME=VALUE")?;
        options.set(name, value)?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    if let Some(threads) = arguments.fill {
        let mut client = Client::connect(&endpoint, &who)?;
        schema::create(&mut client, Some(&options), "bench")?;
        let plan = FillPlan {
            endpoint,
            credentials: who,
            options,
            kind: arguments.workload,
            seed: 1,
            threads,
            skip_binary_log: true,
        };
        schema::fill(&plan, &stop, &mut |_| {})?;
        return Ok(ExitCode::SUCCESS);
    }
    raise_open_file_limit(arguments.connections)
        .map_err(|limit| anyhow::anyhow!("the limit of {limit} open files is too low"))?;
    let tally = match arguments.tell_counts {
        true => tell_counts()?,
        false => Tally::default(),
    };
    let plan = LoadPlan {
        endpoint,
        credentials: who.in_database(SCHEMA),
        program: Arc::new(Program::Oltp(OltpWorkload::new(arguments.workload, options)?)),
        connections: arguments.connections,
        idle_connections: 0,
        seconds: arguments.seconds,
        loop_kind: LoopKind::Closed,
        threads: 1,
        cpus: Vec::new(),
        scheduling: LoadScheduling::on_shared_cpus(),
        seed: 1,
        transport: arguments.transport.choose()?.transport,
        session_statements: Vec::new(),
        clock: LoadClock::default(),
        tally,
    };
    let mut sums = Sums {
        tells: arguments.tell_counts,
        ..Sums::default()
    };
    let outcome = drive(&plan, &stop, &mut sums)?;
    let seconds = f64::from(sums.seconds.max(1));
    let mean_ns = sums.service_ns as f64 / sums.transactions.max(1) as f64;
    let quantile = |q| {
        sums.service
            .as_ref()
            .map(|r| r.service.value_at_quantile(q) as f64 / 1e3)
    };
    say!(
        "{}",
        serde_json::json!({
            "transactions": sums.transactions + outcome.late_transactions,
            "queries": sums.queries,
            "errors": sums.errors,
            "transactions_per_second": sums.transactions as f64 / seconds,
            "latency_us": {"mean": mean_ns / 1e3, "p50": quantile(0.5), "p95": quantile(0.95), "min": quantile(0.0)},
            "littles_law_ratio": sums.in_transaction_ns as f64 / 1e9 / seconds / f64::from(arguments.connections),
            "connect_seconds": outcome.connect_seconds,
            "transport": outcome.transport.to_string(),
        })
    );
    Ok(ExitCode::SUCCESS)
}

/// Answers every line of the standard input with the time (CLOCK_MONOTONIC, nanoseconds) and the transactions so far: whoever asks
/// knows how many there were between two answers, however late these are read.
fn tell_counts() -> anyhow::Result<Tally> {
    let tally = Tally::that_counts();
    let counted = tally.clone();
    // It ends with the process.
    std::thread::Builder::new()
        .name("counts".to_owned())
        .spawn(move || {
            for _ in std::io::stdin().lines().map_while(Result::ok) {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
                let told = output::write(format_args!(
                    "{}{:09} {}\n",
                    time.tv_sec,
                    time.tv_nsec,
                    counted.transactions().unwrap_or_default()
                ));
                if told.is_err() {
                    return;
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(tally)
}
