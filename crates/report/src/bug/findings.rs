//! What it points at: the findings with their call stacks, and the locks with who held them.

use super::Section;
use super::words::{block, inline, item};
use crate::figures::{number, percent};
use crate::text::functions::innermost_waiting;
use scaleprof_analysis::condition::waits_at_condition_variable;
use scaleprof_bundle::{Finding, LockSummary, Summary};

/// Findings that are shown: who reads a bug report wants the bug.
const MOST: usize = 4;
/// Functions of a stack, from the innermost.
const MOST_FUNCTIONS: usize = 24;
const MOST_LOCKS: usize = 3;
const MOST_FUNCTIONS_OF_A_LOCK: usize = 10;

/// The findings; none where there was no ladder to find anything on.
pub(super) fn section(summary: &Summary) -> Option<Section> {
    if summary.rungs.is_empty() {
        return None;
    }
    if summary.findings.is_empty() {
        if let Some(why) = &summary.findings_unavailable {
            return Some(("Findings", format!("No analysis: {why}.\n")));
        }
        let nothing = "No significant finding: no call path, lock or state explains a loss of throughput.";
        return Some(("Findings", format!("{nothing}\n{}", left_over(summary))));
    }
    let mut told = Vec::new();
    let found = summary.findings.iter().take(MOST).enumerate();
    let bodies: Vec<String> = found.map(|(at, finding)| one(at + 1, finding, &mut told)).collect();
    let compared = summary
        .base_rungs
        .as_ref()
        .map_or(String::new(), |words| format!("{}\n\n", inline(words)));
    Some((
        "Findings",
        format!("{compared}{}{}", bodies.join("\n"), left_over(summary)),
    ))
}

/// What the findings explain of the loss, and what has none.
fn left_over(summary: &Summary) -> String {
    let sentences = summary
        .explained
        .iter()
        .map(|account| format!("\n{}\n", inline(&account.sentence)));
    sentences.collect()
}

/// What speaks for several findings is told once.
fn one<'a>(number: usize, finding: &'a Finding, told: &mut Vec<&'a str>) -> String {
    let mut out = format!("### {number}. {}\n\n", inline(&finding.title));
    out.push_str(&item(&share(finding)));
    out.push_str(&item(&match finding.rungs {
        [base, last] if base == last => format!("seen at {last} connections"),
        [base, last] => format!("seen by comparing {base} and {last} connections"),
    }));
    for line in &finding.evidence {
        if !told.contains(&line.as_str()) {
            told.push(line);
            out.push_str(&item(line));
        }
    }
    for tried in &finding.remedy_results {
        out.push_str(&item(&format!("tried {}", crate::tried::words(tried))));
    }
    if !finding.path.is_empty() {
        out.push_str("\nThe heaviest call stack, innermost function first:\n\n");
        out.push_str(&block(&stack(&finding.path)));
    }
    out
}

fn share(finding: &Finding) -> String {
    let whole = format!("of {}", finding.share_of.label().replace('\u{2019}', "'"));
    let lost = &finding.lost_share;
    match lost.low.zip(lost.high) {
        Some((low, high)) => format!(
            "{} {whole}, 95 % interval {} to {}",
            percent(lost.value),
            percent(low),
            percent(high)
        ),
        None => format!("{} {whole} (no interval)", percent(lost.value)),
    }
}

fn stack(path: &[String]) -> String {
    let mut lines: Vec<String> = path
        .iter()
        .rev()
        .take(MOST_FUNCTIONS)
        .enumerate()
        .map(|(depth, function)| format!("#{depth:<2} {function}"))
        .collect();
    let more = path.len().saturating_sub(MOST_FUNCTIONS);
    if more > 0 {
        lines.push(format!("    {more} more outside"));
    }
    lines.join("\n")
}

/// The locks of the last rung that were waited for longest; none where none was seen.
pub(super) fn locks(summary: &Summary) -> Option<Section> {
    let rung = summary.last_judged()?;
    if rung.locks.is_empty() {
        return None;
    }
    let mut out = format!(
        "Futex wait time per transaction at {} connections, with waiter stacks and, where known, holder stacks (innermost \
         function first):\n",
        rung.connections
    );
    for lock in rung.locks.iter().take(MOST_LOCKS) {
        out.push('\n');
        out.push_str(&one_lock(lock));
    }
    Some(("Locks", out))
}

fn one_lock(lock: &LockSummary) -> String {
    let module = lock
        .module
        .as_ref()
        .map_or(String::new(), |module| format!(" of {module}"));
    let is_condition = waits_at_condition_variable(&lock.waiter);
    let name = match (&lock.name, is_condition) {
        (Some(name), false) => format!("`{name}`{module}"),
        (Some(name), true) => format!("the condition variable `{name}`{module}"),
        (None, false) => "a lock on the heap".to_owned(),
        (None, true) => "a condition variable on the heap".to_owned(),
    };
    let time = lock.seconds_per_txn;
    let micros = |seconds: f64| number(seconds * 1e6);
    let interval = time.low.zip(time.high).map_or(String::new(), |(low, high)| {
        format!(", 95 % interval {} to {}", micros(low), micros(high))
    });
    let mut out = item(&format!(
        "{name}: {} \u{b5}s per transaction{interval}, {} waits sampled",
        micros(time.value),
        lock.samples
    ));
    let mut stacks = format!("waits:\n{}", indented(&lock.waiter));
    if !lock.holder.is_empty() && !is_condition {
        stacks.push_str(&format!(
            "held, at {} of {} sampled waits of all threads, in:\n{}",
            lock.holder_samples,
            lock.total_waits,
            indented(&lock.holder)
        ));
    }
    if !lock.waker.is_empty() {
        stacks.push_str(&format!("woken in:\n{}", indented(&lock.waker)));
    }
    out.push('\n');
    out.push_str(&block(&stacks));
    out
}

/// The innermost functions but those of the kernel and the C library in which every thread waits.
fn indented(path: &[String]) -> String {
    let own = innermost_waiting(path, MOST_FUNCTIONS_OF_A_LOCK);
    own.iter().map(|function| format!("    {function}\n")).collect()
}
