//! The open loop: transactions come when they are due, and what waits is counted.

use super::general_log::while_logging;
use super::stage::*;
use scaleprof_workload::*;
use std::collections::BTreeMap;

fn open(rate: f64, arrivals: Arrivals) -> LoopKind {
    LoopKind::Open { rate, arrivals }
}

/// A table of 1000 rows for point selects.
fn a_thousand_rows(stage: &Stage) -> OltpOptions {
    let options = OltpOptions {
        table_size: 1000,
        ..OltpOptions::default()
    };
    prepare(stage, &options, OltpWorkloadKind::PointSelect);
    options
}

fn last_backlog(ran: &Ran) -> u64 {
    ran.records.last().expect("seconds").backlog
}

#[test]
fn a_rate_that_the_server_can_bear_is_kept() {
    on_the_distribution_server(|stage| {
        let options = a_thousand_rows(stage);
        for transport in transports() {
            for (arrivals, rate, tolerance) in [
                (Arrivals::Even, 400.0, 0.02),
                // The arrivals themselves scatter by the root of their number; this is five times as much.
                (Arrivals::Poisson, 1000.0, 0.11),
            ] {
                let load = LoadPlan {
                    connections: 16,
                    threads: 2,
                    seconds: 2,
                    loop_kind: open(rate, arrivals),
                    transport,
                    ..plan(stage, oltp(OltpWorkloadKind::PointSelect, &options))
                };
                // A machine that stands still just when time is up lets some wait.
                let what = format!("{transport} {arrivals:?}");
                let ran = run_undisturbed(stage, &load, &what);
                let off = (ran.transactions() as f64 / (2.0 * rate) - 1.0).abs();
                let due = (ran.transactions() + last_backlog(&ran)) as f64;
                let of_due = (due / (2.0 * rate) - 1.0).abs();
                assert_eq!(
                    ran.sum(|r| r.response.as_ref().expect("open").len()),
                    ran.sum(|r| r.transactions)
                );
                assert!(ran.sum(|r| r.response_sum_ns) >= ran.sum(|r| r.service_sum_ns));
                println!("{what}: {due} were due of {}, off by {off}", 2.0 * rate);
                assert!(
                    off < tolerance && of_due < tolerance + 0.02,
                    "{what}: {due} were due of {}, off by {off}",
                    2.0 * rate
                );
            }
        }
    });
}

/// Rows and warehouses belong to connections: a load that a few of them could bear has to come from all.
#[test]
fn connections_take_turns_below_capacity() {
    on_the_distribution_server(|stage| {
        let options = a_thousand_rows(stage);
        for transport in transports() {
            let load = LoadPlan {
                connections: 16,
                seconds: 2,
                loop_kind: open(160.0, Arrivals::Even),
                transport,
                ..plan(stage, oltp(OltpWorkloadKind::PointSelect, &options))
            };
            let log = while_logging(stage, || drop(run(&load)));
            let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
            for entry in log.iter().filter(|entry| entry.command == "Execute") {
                *counts.entry(entry.connection).or_default() += 1;
            }
            let each: Vec<u32> = counts.into_values().collect();
            // 320 in all, 20 each; a machine that stands still for a moment may move some.
            assert_eq!(each.len(), 16, "{transport}: {each:?}");
            assert!(
                each.iter().all(|count| (10..=30).contains(count)),
                "{transport}: {each:?}"
            );
        }
    });
}

#[test]
fn above_capacity_the_backlog_grows_and_waiting_counts_as_response_time() {
    on_the_distribution_server(|stage| {
        for (arrivals, transport) in [Arrivals::Even, Arrivals::Poisson]
            .into_iter()
            .zip(transports().into_iter().cycle())
        {
            // Two connections that take 20 ms or longer bear 100 a second at most.
            let load = LoadPlan {
                connections: 2,
                seconds: 3,
                loop_kind: open(500.0, arrivals),
                transport,
                ..plan(stage, script("DO SLEEP(0.02)", Repetition::Loop))
            };
            let ran = run(&load);
            ran.outcome();
            let done = ran.sum(|r| r.transactions);
            // Two connections, 20 ms and a round trip each.
            assert!((200..=302).contains(&done), "{done}");
            for pair in ran.records.windows(2) {
                assert!(pair[1].backlog > pair[0].backlog, "{transport} {arrivals:?}");
            }
            let waiting = last_backlog(&ran);
            assert!(
                waiting > 1000,
                "{waiting} wait of 1500 that were due less 300 that were done"
            );
            let (service, response) = (ran.sum(|r| r.service_sum_ns), ran.sum(|r| r.response_sum_ns));
            assert!(response > 5 * service, "service {service}, response {response}");
            assert_eq!(ran.sum(|r| r.response.as_ref().expect("open").len()), done);
        }
    });
}

#[test]
fn a_closed_loop_has_no_response_time_of_its_own() {
    on_the_distribution_server(|stage| {
        let ran = run(&plan(stage, script("DO 1", Repetition::Loop)));
        assert!(ran.transactions() > 0);
        assert_eq!(ran.records.len(), 1);
        assert!(ran.records.iter().all(|r| r.response.is_none() && r.backlog == 0));
    });
}
