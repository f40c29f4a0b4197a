//! A remedy that was tried, in words.

use crate::figures::percent;
use scaleprof_bundle::{Estimate, RemedyResult};
use scaleprof_vocabulary::ExperimentVerdict;

/// Such as `innodb_sync_spin_loops = 5: faster, +12.0 % (+4.0 % to +21.0 %) at 512 connections`.
pub(crate) fn words(tried: &RemedyResult) -> String {
    let RemedyResult {
        remedy, connections, ..
    } = tried;
    let Some(throughput) = tried.throughput else {
        let why = tried
            .caveat
            .as_deref()
            .unwrap_or("no pair of starts was measured completely");
        return format!("{remedy}: not measured, because {why}");
    };
    let verdict = tried.verdict.unwrap_or(ExperimentVerdict::Inconclusive);
    let above = match (verdict, tried.margin) {
        (ExperimentVerdict::NoDifference, Some(margin)) => format!(" above {}", percent(margin)),
        _ => String::new(),
    };
    let verdict = verdict.label();
    let doubt = tried
        .caveat
        .as_ref()
        .map_or(String::new(), |doubt| format!("; not reliable: {doubt}"));
    let pairs = tried.pairs;
    format!(
        "{remedy}: {verdict}{above}, {} at {connections} connections ({pairs} pairs of starts){doubt}",
        change(throughput)
    )
}

fn change(ratio: Estimate) -> String {
    let signed = |ratio: f64| {
        let sign = if ratio < 1.0 { "\u{2212}" } else { "+" };
        format!("{sign}{}", percent((ratio - 1.0).abs()))
    };
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!("{} ({} to {})", signed(ratio.value), signed(low), signed(high)),
        None => format!("{} (no interval)", signed(ratio.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_bundle::Remedy;

    fn tried(verdict: Option<ExperimentVerdict>) -> RemedyResult {
        RemedyResult {
            remedy: Remedy {
                setting: "a".to_owned(),
                value: "5".to_owned(),
            },
            connections: 512,
            throughput: verdict.map(|_| Estimate {
                value: 1.12,
                low: Some(1.04),
                high: Some(1.21),
            }),
            pairs: 6,
            verdict,
            margin: Some(0.02),
            caveat: None,
        }
    }

    #[test]
    fn the_effect_is_told_with_its_interval() {
        let of = |verdict| words(&tried(Some(verdict)));
        assert_eq!(
            of(ExperimentVerdict::Faster),
            "a = 5: faster, +12.0 % (+4.0 % to +21.0 %) at 512 connections (6 pairs of starts)"
        );
        assert!(of(ExperimentVerdict::NoDifference).contains("no difference above 2.0 %"));
        assert!(of(ExperimentVerdict::Inconclusive).contains("inconclusive"));
        let doubtful = RemedyResult {
            caveat: Some("it drifted".to_owned()),
            ..tried(Some(ExperimentVerdict::Faster))
        };
        assert!(words(&doubtful).ends_with("; not reliable: it drifted"));
    }

    #[test]
    fn what_was_not_measured_says_why() {
        let refused = RemedyResult {
            caveat: Some("the server refused it".to_owned()),
            ..tried(None)
        };
        assert_eq!(words(&refused), "a = 5: not measured, because the server refused it");
    }
}
