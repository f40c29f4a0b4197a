//! How many of a rung's connections were at work in the server: N less those that waited for the load generator (DESIGN section 2).
//!
//! In a closed loop a thread of the server that waits for its client waits for the generator: its CPU time, its wait for a CPU, and
//! the network. By Little's law `net` per transaction times throughput is how many connections do so on average.

use crate::load_threads::reason;
use crate::pacing::Pacing;
use scaleprof_bundle::{Ledger, LoadThreads, RungSummary};
use scaleprof_vocabulary::ThreadState;

/// A rung is one of N connections while so large a part of them is at work, or handled by the generator's CPUs.
const ENOUGH: f64 = 0.9;

/// N less the connections that waited for the load generator, on average. None where threads were not watched, or where connections
/// rest of their own accord.
pub(crate) fn effective_concurrency(connections: u32, pacing: Pacing, ledger: Option<&Ledger>) -> Option<f64> {
    if pacing != Pacing::Closed {
        return None;
    }
    let ledger = ledger?;
    let waiting_share = ledger.seconds_per_txn[ThreadState::Net]? / ledger.connections_over_throughput?;
    Some(f64::from(connections) * (1.0 - waiting_share)).filter(|value| value.is_finite())
}

/// Whether so few were at work that the rung says nothing of N connections. What the generator's own CPU time holds counts for the
/// rung, as it belongs to a transaction however fast the generator is. Less than one connection is never missing.
pub(crate) fn too_few(connections: u32, effective: Option<f64>, client_cpus: Option<f64>) -> bool {
    let all = f64::from(connections);
    let missing = effective
        .zip(client_cpus)
        .map(|(effective, client)| all - effective - client);
    missing.is_some_and(|missing| missing > (1.0 - ENOUGH) * all && missing >= 1.0)
}

/// What to say of rungs at which too few were at work: of the last of them, which is what the run is about.
pub(crate) fn sentence(rungs: &[&RungSummary]) -> Option<String> {
    let too_few: Vec<&&RungSummary> = rungs.iter().filter(|rung| rung.too_few_at_work).collect();
    let of_all: Vec<(u32, f64)> = too_few
        .iter()
        .filter_map(|rung| Some((rung.connections, rung.effective_concurrency?)))
        .collect();
    said_of(&of_all, too_few.last()?.load_threads.as_ref())
}

/// Connections and how many of them were at work, in words; what the load's threads did at the last of these rungs.
fn said_of(too_few: &[(u32, f64)], load_threads: Option<&LoadThreads>) -> Option<String> {
    let (last, before) = too_few.split_last()?;
    let others = match before {
        [] => String::new(),
        _ => {
            let list: Vec<String> = before.iter().map(|(connections, _)| connections.to_string()).collect();
            format!(" (too few were at {} too)", list.join(", "))
        }
    };
    Some(format!(
        "Of {} connections only {:.0} were at work{others}. The others waited for the load generator{}. What {} connections at work would do is not known.",
        last.0,
        last.1,
        reason(load_threads),
        last.0,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_for_client(net: f64, all: f64) -> Ledger {
        Ledger {
            seconds_per_txn: [(ThreadState::Net, Some(net))].into_iter().collect(),
            connections_over_throughput: Some(all),
            residual: None,
            states_residual: None,
            cpu_residual: None,
            uncharged_cpu_share: None,
            background: Vec::new(),
            complete_stacks_share: None,
            samples: None,
            samples_lost: None,
            observed_waits_share: None,
        }
    }

    /// MariaDB 10.11, oltp_read_write, 512 connections at 723 transactions a second on two CPUs that server and client share: nine tenths
    /// of the threads' time is waiting for the client.
    #[test]
    fn connections_that_wait_for_the_generator_are_not_at_work() {
        let ledger = waits_for_client(0.637, 512.0 / 723.0);
        let effective = effective_concurrency(512, Pacing::Closed, Some(&ledger)).expect("watched");
        assert!((effective - 51.4).abs() < 0.1, "{effective}");
        assert!(too_few(512, Some(effective), Some(0.3)));
        for resting in [Pacing::Open, Pacing::Paused, Pacing::Once, Pacing::Told] {
            assert_eq!(effective_concurrency(512, resting, Some(&ledger)), None);
        }
        assert_eq!(effective_concurrency(512, Pacing::Closed, None), None);
    }

    #[test]
    fn the_sentence_is_about_the_last_rung_and_names_the_others() {
        assert_eq!(said_of(&[], None), None);
        let one = said_of(&[(16, 13.6)], None).expect("a rung");
        assert!(
            one.starts_with("Of 16 connections only 14 were at work. The others waited for the load generator. What"),
            "{one}"
        );
        let starved = LoadThreads {
            count: 1,
            cpu_share: 0.12,
            run_queue_share: 0.88,
        };
        let two = said_of(&[(16, 13.6), (512, 51.8)], Some(&starved)).expect("rungs");
        assert!(two.starts_with("Of 512 connections only 52 were"), "{two}");
        assert!(two.contains("(too few were at 16 too)"), "{two}");
        assert!(
            two.contains("whose one thread waited for a CPU 88 % of the time"),
            "{two}"
        );
    }

    #[test]
    fn what_the_generator_itself_takes_and_less_than_one_connection_are_no_shortfall() {
        assert!(!too_few(1, Some(0.4), Some(0.3)));
        assert!(!too_few(4, Some(3.1), Some(0.1)), "0.8 of one");
        assert!(!too_few(8, Some(7.0), Some(0.9)));
        assert!(!too_few(64, Some(58.0), Some(0.5)));
        assert!(too_few(64, Some(50.0), Some(0.5)));
        assert!(!too_few(64, None, Some(0.5)), "nobody watched");
    }
}
