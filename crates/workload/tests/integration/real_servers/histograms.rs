//! Our distributions are sysbench's: the ids that reach the server lie where its ids lie.

use super::general_log::{Logged, numbers, while_logging};
use super::stage::*;
use super::sysbench;
use scaleprof_workload::*;

const ROWS: u32 = 10_000;
/// A standard deviation of a share is at most 0.0036 with so many draws, of the difference of two 0.005.
const DRAWS: u32 = 20_000;
/// Over five of them; and both clients have fixed seeds.
const TOLERANCE: f64 = 0.025;

/// How often each id came.
fn histogram(log: &[Logged], statement: &str) -> Vec<u32> {
    let mut counts = vec![0; ROWS as usize + 2];
    for entry in log.iter().filter(|e| e.text.trim_start().starts_with(statement)) {
        for id in numbers(&entry.text) {
            counts[usize::try_from(id).expect("an id")] += 1;
        }
    }
    let draws: u32 = counts.iter().sum();
    assert!(draws >= DRAWS, "{draws} draws");
    counts
}

/// Shares of the ten tenths of the ids, of the hottest permille of them, and of the range that is hot in `special`.
fn shares(counts: &[u32]) -> Vec<f64> {
    let total: u32 = counts.iter().sum();
    let share = |part: &[u32]| f64::from(part.iter().sum::<u32>()) / f64::from(total);
    let mut shares: Vec<f64> = counts[..ROWS as usize].chunks(ROWS as usize / 10).map(share).collect();
    let mut hottest = counts.to_vec();
    hottest.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    shares.push(share(&hottest[..ROWS as usize / 1000]));
    shares.push(share(&counts[4970..5060]));
    shares
}

fn compare(what: &str, ours: &[u32], theirs: &[u32]) {
    let (ours, theirs) = (shares(ours), shares(theirs));
    for (mine, other) in ours.iter().zip(&theirs) {
        assert!(
            (mine - other).abs() < TOLERANCE,
            "{what}:\nours     {ours:.3?}\nsysbench {theirs:.3?}"
        );
    }
}

#[test]
fn ids_are_drawn_from_sysbenchs_distributions() {
    on_the_distribution_server(|stage| {
        if !sysbench::is_there() {
            return;
        }
        let base = OltpOptions {
            table_size: ROWS,
            // A statement of many ids costs the server less than as many statements.
            random_points: 1000,
            protocol: Protocol::Text,
            ..OltpOptions::default()
        };
        prepare(stage, &base, OltpWorkloadKind::PointSelect);
        let statements = DRAWS / base.random_points;
        for distribution in [
            Distribution::Uniform,
            Distribution::Special,
            Distribution::Pareto,
            Distribution::Gaussian,
        ] {
            let arguments = [
                format!("--table-size={ROWS}"),
                format!("--rand-type={distribution}"),
                "--random-points=1000".to_owned(),
                "--db-ps-mode=disable".to_owned(),
                format!("--events={statements}"),
            ];
            let theirs = while_logging(stage, || {
                sysbench::sysbench(stage, schema::SCHEMA, "select_random_points", &arguments, "run");
            });
            let options = OltpOptions {
                distribution,
                ..base.clone()
            };
            let load = LoadPlan {
                seconds: 2,
                ..plan(stage, oltp(OltpWorkloadKind::RandomPoints, &options))
            };
            let ours = while_logging(stage, || {
                run(&load).outcome();
            });
            let of = |log: &[Logged]| histogram(log, "SELECT id, k, c, pad");
            compare(distribution.name(), &of(&ours), &of(&theirs));
        }
    });
}

#[test]
fn point_selects_read_the_rows_that_sysbenchs_read() {
    on_the_distribution_server(|stage| {
        if !sysbench::is_there() {
            return;
        }
        let options = OltpOptions {
            table_size: ROWS,
            point_selects: DRAWS / 2,
            range_selects: false,
            skip_trx: true,
            distribution: Distribution::Special,
            ..OltpOptions::default()
        };
        prepare(stage, &options, OltpWorkloadKind::PointSelect);
        let arguments = [
            format!("--table-size={ROWS}"),
            "--rand-type=special".to_owned(),
            format!("--point-selects={}", DRAWS / 2),
            "--range-selects=off".to_owned(),
            "--skip-trx=on".to_owned(),
            "--events=2".to_owned(),
        ];
        let theirs = while_logging(stage, || {
            sysbench::sysbench(stage, schema::SCHEMA, "oltp_read_only", &arguments, "run");
        });
        let load = LoadPlan {
            // Each ends the transaction that it is in when time is up.
            connections: 2,
            ..plan(stage, oltp(OltpWorkloadKind::ReadOnly, &options))
        };
        let ours = while_logging(stage, || {
            run(&load).outcome();
        });
        let of = |log: &[Logged]| {
            let executed: Vec<Logged> = log.iter().filter(|e| e.command == "Execute").cloned().collect();
            histogram(&executed, "SELECT c FROM sbtest1")
        };
        compare("point selects", &of(&ours), &of(&theirs));
    });
}
