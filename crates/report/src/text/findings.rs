//! Why throughput is lost, at the end of the table, where a terminal shows it.

use super::layout::{Ink, wrap};
use crate::figures::percent;
use scaleprof_bundle::{Finding, Summary};

/// The innermost functions that are shown of a path.
const MOST_FUNCTIONS: usize = 6;

/// Which rungs are compared, one numbered entry a finding, and what has no finding; none where there is nothing to say.
pub(super) fn list(summary: &Summary, ink: &Ink, wrap_at: usize) -> Option<String> {
    if summary.findings.is_empty() && summary.explained.is_empty() {
        return None;
    }
    let mut out = String::new();
    if let Some(compared) = &summary.base_rungs {
        out.push_str(&ink.dim(&wrap(compared, wrap_at, "  ")));
        out.push_str("\n\n");
    }
    for (place, finding) in summary.findings.iter().enumerate() {
        let title = format!("{}. {} ({})", place + 1, finding.title, share(finding));
        out.push_str(&ink.bold(&wrap(&title, wrap_at, "   ")));
        out.push('\n');
        let path = innermost(&finding.path);
        let lines = path
            .map(|path| format!("in {path}"))
            .into_iter()
            .chain(finding.evidence.iter().map(|line| format!("- {line}")))
            .chain(finding.suggestions.iter().map(|line| format!("try {line}")))
            .chain(
                finding
                    .remedy_results
                    .iter()
                    .map(|tried| format!("tried {}", crate::tried::words(tried))),
            );
        for line in lines {
            out.push_str("   ");
            out.push_str(&wrap(&line, wrap_at.saturating_sub(3), "     "));
            out.push('\n');
        }
    }
    for account in &summary.explained {
        if !summary.findings.is_empty() {
            out.push('\n');
        }
        out.push_str(&wrap(&account.sentence, wrap_at, "  "));
        out.push('\n');
    }
    Some(out)
}

fn share(finding: &Finding) -> String {
    let lost = &finding.lost_share;
    let share = format!("{} of {}", percent(lost.value), finding.share_of.label());
    match lost.low.zip(lost.high) {
        Some((low, high)) => format!("{share}, {} to {}", percent(low), percent(high)),
        None => share,
    }
}

/// Outermost first, as it is called; what is left out is outside.
fn innermost(path: &[String]) -> Option<String> {
    let first = path.len().saturating_sub(MOST_FUNCTIONS);
    let shown = path.get(first..).filter(|shown| !shown.is_empty())?.join(" > ");
    Some(match first {
        0 => shown,
        _ => format!("... > {shown}"),
    })
}
