//! The iron law of throughput, X = C·U·f / (I·K) (DESIGN section 2), from the counters of one rung.

use crate::totals::Total;
use scaleprof_bundle::{IronLaw, Missing};
use std::collections::BTreeMap;

/// The law of one rung with what could not be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The law; none where the server's CPU time is unknown.
    pub law: Option<IronLaw>,
    /// Figures of it that are missing, each with its reason.
    pub missing: Vec<Missing>,
    /// The share of the time in which the hardware counters really counted, where it is below 1.
    pub running_share: Option<f64>,
}

/// Fits the parts together for a rung with `throughput` transactions per second, by the client's
/// count, of a server that may use `cpus` CPUs.
///
/// The law would hold by construction if all its parts came from one place. So per-transaction
/// figures use the server's own count of transactions, U the scheduler's account of its CPU time, f
/// the hardware counters' own clock, and X is the client's count: the residual is what these four
/// disagree by. Figures that have no second source fall back on the first, and `residual_sources`
/// names those that were really compared.
pub fn iron_law(cpus: u32, throughput: f64, totals: &BTreeMap<String, Total>) -> Found {
    let mut missing = Vec::new();
    let mut lack = |figure: &str, reason: &str| {
        missing.push(Missing {
            figure: format!("iron_law.{figure}"),
            reason: reason.into(),
        });
    };
    let per_second = |name: &str| totals.get(name).and_then(Total::per_second);
    let per_transaction = |name: &str| totals.get(name).and_then(Total::per_transaction).filter(|v| *v > 0.0);
    // Transactions by the server for each one by the client.
    let server_count = per_transaction("server.transactions_by_status").filter(|ratio| *ratio > 1e-6);
    let count = server_count.unwrap_or(1.0);
    let accounted = per_second("server.cpu_user_seconds").zip(per_second("server.cpu_system_seconds"));
    let process = accounted.map(|(user, system)| user + system).filter(|v| *v > 0.0);
    let scheduler = per_second("server.cpu_seconds_by_scheduler").filter(|v| *v > 0.0);
    let Some(used) = scheduler.or(process).filter(|_| cpus > 0) else {
        let reason = match scheduler.or(process) {
            None => "the server's CPU time could not be read; run on the server's machine, as its user or root",
            Some(_) => "how many CPUs the server may use is not known",
        };
        lack("utilisation", reason);
        return Found {
            law: None,
            missing,
            running_share: None,
        };
    };
    let instructions = per_transaction("hw.instructions");
    let cycles = per_transaction("hw.cycles");
    // A counter next to nothing was not counting: ratios with it have no meaning.
    let real = |v: &f64| *v > 1e-12;
    let task_clock = per_transaction("hw.task_clock_seconds").filter(real);
    let process_per_txn = per_transaction("server.cpu_user_seconds")
        .zip(totals.get("server.cpu_system_seconds").and_then(Total::per_transaction))
        .map(|(user, system)| user + system);
    let scheduler_per_txn = per_transaction("server.cpu_seconds_by_scheduler");
    // The CPU time in which the cycles were counted; the process's own account where the counters keep no clock.
    let busy = task_clock
        .filter(|_| cycles.is_some())
        .or(process_per_txn.filter(real))
        .or(scheduler_per_txn.filter(real));
    let Some(busy) = busy else {
        lack(
            "cpu_seconds_per_txn",
            "no transaction was counted in the measured window",
        );
        return Found {
            law: None,
            missing,
            running_share: None,
        };
    };
    if instructions.is_none() || cycles.is_none() {
        let reason = "no hardware counters: a virtual machine, or kernel.perf_event_paranoid forbids them \
                      (`scaleprof check` tells which); the iron law uses CPU seconds per transaction";
        for figure in ["instructions_per_txn", "cycles_per_instruction", "clock_hz"] {
            lack(figure, reason);
        }
    }
    let both = instructions.zip(cycles).filter(|(i, c)| *i >= 1.0 && *c >= 1.0);
    let cpu_seconds_per_txn = busy / count;
    // Through transactions, so that a figure of the whole measurement is not spread over a warm-up
    // that did less.
    let used_per_txn = if scheduler.is_some() {
        scheduler_per_txn
    } else {
        process_per_txn
    };
    let utilisation = used_per_txn.map_or(used, |per_txn| per_txn * throughput) / f64::from(cpus);
    let mut sources = Vec::new();
    if server_count.is_some() {
        sources.push("transactions by the server's count against the client's");
    }
    if both.is_some() && task_clock.is_some() {
        sources.push(match scheduler.is_some() {
            true => "CPU time by the scheduler against that of the hardware counters' clock",
            false => "CPU time of the process against that of the hardware counters' clock",
        });
    } else if scheduler.is_some() && process.is_some() {
        sources.push("CPU time by the scheduler against that of the process");
    }
    if sources.is_empty() {
        lack(
            "residual",
            "there is only one source for the transactions and for the CPU time, so nothing can be compared",
        );
    }
    // The right side over X: U holds X as a factor, so what is left is CPU time over CPU time.
    let residual = used_per_txn
        .filter(|_| !sources.is_empty())
        .map(|used| used / cpu_seconds_per_txn - 1.0);
    let share = |name: &str| totals.get(name).map_or(1.0, |total| total.running_share);
    let running_share = share("hw.instructions").min(share("hw.cycles"));
    let law = IronLaw {
        cpus: f64::from(cpus),
        utilisation,
        clock_hz: both.map(|(_, cycles)| cycles / busy),
        instructions_per_txn: both.map(|(instructions, _)| instructions / count),
        cycles_per_instruction: both.map(|(instructions, cycles)| cycles / instructions),
        cpu_seconds_per_txn,
        system_share: accounted
            .zip(process)
            .map(|((_, system), all)| system / all)
            .filter(|v| (0.0..=1.0).contains(v)),
        residual,
        residual_sources: residual.map(|_| sources.join("; ")),
    };
    Found {
        law: Some(law),
        missing,
        running_share: (both.is_some() && running_share < 0.999).then_some(running_share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::Amount;

    /// 10 s, 20 000 transactions by the client.
    fn rung(counters: &[(&str, f64)]) -> BTreeMap<String, Total> {
        let over = Amount {
            seconds: 10.0,
            transactions: 20_000.0,
        };
        counters
            .iter()
            .map(|(name, value)| {
                (
                    (*name).to_owned(),
                    Total {
                        value: *value,
                        over,
                        running_share: 1.0,
                    },
                )
            })
            .collect()
    }

    const ALL: [(&str, f64); 7] = [
        ("server.cpu_user_seconds", 12.0),
        ("server.cpu_system_seconds", 4.0),
        ("server.cpu_seconds_by_scheduler", 16.08),
        ("hw.instructions", 48e9),
        ("hw.cycles", 40e9),
        ("hw.task_clock_seconds", 16.0),
        ("server.transactions_by_status", 20_100.0),
    ];

    #[test]
    fn every_factor_and_an_independent_residual() {
        let found = iron_law(2, 2000.0, &rung(&ALL));
        let law = found.law.unwrap();
        assert!((law.utilisation - 0.804).abs() < 1e-12);
        assert!((law.clock_hz.unwrap() - 2.5e9).abs() < 1.0);
        assert!((law.cycles_per_instruction.unwrap() - 40.0 / 48.0).abs() < 1e-12);
        assert!((law.instructions_per_txn.unwrap() - 48e9 / 20_100.0).abs() < 1e-3);
        assert!((law.system_share.unwrap() - 0.25).abs() < 1e-12);
        // 2000/s by the client; the right side is C·U·f / (I·K) in full.
        let right = law.cpus * law.utilisation * law.clock_hz.unwrap()
            / (law.instructions_per_txn.unwrap() * law.cycles_per_instruction.unwrap());
        assert!((law.residual.unwrap() - (right / 2000.0 - 1.0)).abs() < 1e-12);
        assert!((law.residual.unwrap() - (1.005 * 1.005 - 1.0)).abs() < 1e-9);
        assert!(law.residual_sources.unwrap().contains("scheduler"));
        assert!(found.missing.is_empty() && found.running_share.is_none());
    }

    #[test]
    fn without_hardware_counters_cpu_seconds_stand_in_and_it_is_said() {
        let counters: Vec<_> = ALL.into_iter().filter(|(name, _)| !name.starts_with("hw.")).collect();
        let found = iron_law(2, 2000.0, &rung(&counters));
        let law = found.law.unwrap();
        assert_eq!((law.clock_hz, law.instructions_per_txn), (None, None));
        assert!((law.cpu_seconds_per_txn - 16.0 / 20_100.0).abs() < 1e-12);
        assert!(law.residual.is_some());
        assert!(
            found
                .missing
                .iter()
                .any(|m| m.figure == "iron_law.instructions_per_txn" && m.reason.contains("check"))
        );
    }

    #[test]
    fn one_source_alone_has_no_residual() {
        let found = iron_law(2, 2000.0, &rung(&ALL[..2]));
        assert_eq!(found.law.unwrap().residual, None);
        assert!(found.missing.iter().any(|m| m.figure == "iron_law.residual"));
    }

    #[test]
    fn a_server_from_afar_has_no_law() {
        let found = iron_law(2, 2000.0, &rung(&[]));
        assert_eq!((found.law, found.missing.len()), (None, 1));
    }

    #[test]
    fn multiplexed_counters_are_marked() {
        let mut totals = rung(&ALL);
        totals.get_mut("hw.cycles").unwrap().running_share = 0.5;
        assert_eq!(iron_law(2, 2000.0, &totals).running_share, Some(0.5));
    }
}
