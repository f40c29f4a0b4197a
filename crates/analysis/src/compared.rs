//! Which rungs a summary compares with which, and why: each question has its own base, and a reader must not mix them up.

use scaleprof_bundle::{Explained, ScalingProfile, Verdict};
use scaleprof_vocabulary::ShareOf;
use std::collections::BTreeMap;

/// One sentence; none where nothing is compared.
pub(crate) fn compared(
    verdict: Option<&Verdict>,
    explained: &[Explained],
    scaling: Option<&ScalingProfile>,
) -> Option<String> {
    let last = scaling.and_then(|profile| profile.rungs.last().map(|rung| rung.connections));
    let last = last.or_else(|| explained.first().map(|account| account.rungs[1]))?;
    let mut bases: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    // The account that decides stands first; others have the same rungs.
    if let Some(account) = explained.first() {
        bases.entry(account.rungs[0]).or_default().push(match account.account {
            ShareOf::CpuTime => "findings: least CPU time per transaction",
            _ => "findings: least time per transaction",
        });
    }
    if let Some(verdict) = verdict.filter(|verdict| verdict.peak_connections != last) {
        let peak = "verdict: highest throughput";
        bases.entry(verdict.peak_connections).or_default().push(peak);
    }
    if let Some(profile) = scaling.filter(|profile| profile.base_connections != last) {
        let base = "lost threads: highest throughput per connection";
        bases.entry(profile.base_connections).or_default().push(base);
    }
    let words: Vec<String> = bases
        .iter()
        .map(|(connections, why)| format!("{connections} ({})", why.join("; ")))
        .collect();
    let (end, rest) = words.split_last()?;
    let list = match rest.is_empty() {
        true => end.clone(),
        false => format!("{} and {end}", rest.join(", ")),
    };
    Some(format!("{last} connections are compared with {list}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_bundle::{Estimate, LostThreads};

    const EXACT: Estimate = Estimate {
        value: 1.0,
        low: None,
        high: None,
    };

    fn account(base: u32) -> Explained {
        Explained {
            account: ShareOf::CpuTime,
            rungs: [base, 512],
            lost_seconds_per_txn: 1.0,
            explained_share: EXACT,
            unexplained_share: 0.0,
            waiting_for_cpu_share: None,
            outside_server_share: None,
            heaviest: None,
            sentence: String::new(),
        }
    }

    fn profile(base: u32) -> ScalingProfile {
        ScalingProfile {
            base_connections: base,
            rungs: vec![LostThreads {
                connections: 512,
                effective_threads: 1.0,
                cpus_busy: true,
                lost_threads: BTreeMap::new(),
                uniform_slowdown: None,
                residual: 0.0,
            }],
            paths: Vec::new(),
            saturated: Vec::new(),
        }
    }

    #[test]
    fn each_base_is_named_with_its_reason_and_equal_ones_once() {
        assert_eq!(
            compared(None, &[account(16)], Some(&profile(1))).as_deref(),
            Some(
                "512 connections are compared with 1 (lost threads: highest throughput per connection) and 16 (findings: \
                 least CPU time per transaction)."
            )
        );
        assert_eq!(
            compared(None, &[account(4)], Some(&profile(4))).as_deref(),
            Some(
                "512 connections are compared with 4 (findings: least CPU time per transaction; lost threads: highest \
                 throughput per connection)."
            )
        );
        assert_eq!(compared(None, &[], Some(&profile(512))), None);
    }
}
