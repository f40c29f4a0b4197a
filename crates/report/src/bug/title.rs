//! The one sentence by which a maintainer decides whether to read on.

use scaleprof_analysis::numbers::{counted, grouped};
use scaleprof_bundle::{Summary, Verdict};
use scaleprof_vocabulary::{LadderVerdict, WorkloadName};

/// Product and version, what throughput does, and the first finding.
pub(super) fn of(summary: &Summary) -> String {
    let server = summary.server.named();
    if summary.workload.name == WorkloadName::Watch {
        return format!("{server}: what its threads do under load");
    }
    let workload = summary.workload.title();
    let last = summary.last_judged().map_or(0, |rung| rung.connections);
    let what = match &summary.verdict {
        None => format!("{workload} could not be judged"),
        Some(verdict) => shape(verdict, workload, last),
    };
    // One of another rung is no cause of what the first half says, and would accuse somebody wrongly.
    let why = summary
        .findings
        .first()
        .filter(|finding| summary.verdict.is_none() || finding.rungs.contains(&last))
        .map_or_else(String::new, |finding| format!("; {}", begun_small(&finding.title)));
    format!("{server}: {what}{why}")
}

fn shape(verdict: &Verdict, workload: &str, last: u32) -> String {
    let peak = format!(
        "{}/s at {}",
        grouped(verdict.peak_throughput.value),
        counted(verdict.peak_connections, "connection")
    );
    let retention = verdict
        .retention
        .filter(|_| last > verdict.peak_connections)
        .map(|kept| format!("{:.0} % of that at {last}", kept.value * 100.0));
    match (verdict.falls_over_at, retention) {
        (Some(_), Some(kept)) => format!("throughput of {workload} falls from {peak} to {kept}"),
        (_, Some(kept)) if verdict.class != LadderVerdict::Inconclusive => {
            format!("throughput of {workload} peaks at {peak}, {kept}")
        }
        (_, Some(kept)) => format!("throughput of {workload} is {peak} and {kept}"),
        (_, None) => format!("throughput of {workload} is {peak}"),
    }
}

/// A title as the second half of a sentence; names and abbreviations keep their first letter.
fn begun_small(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() && !title.starts_with("InnoDB") => {
            first.to_lowercase().chain([second]).chain(letters).collect()
        }
        _ => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::begun_small;

    #[test]
    fn abbreviations_keep_their_letters() {
        assert_eq!(begun_small("Threads wait"), "threads wait");
        assert_eq!(begun_small("CPU time grew"), "CPU time grew");
        assert_eq!(begun_small("InnoDB waits"), "InnoDB waits");
        assert_eq!(begun_small(""), "");
    }
}
