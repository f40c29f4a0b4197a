//! What a watch of a running server saw, in a terminal.

use super::Style;
use super::functions::{innermost_in_state, innermost_waiting};
use super::layout::{Ink, wrap};
use super::reasons::by_reason;
use crate::figures::{number, percent, whole};
use scaleprof_analysis::condition::waits_at_condition_variable;
use scaleprof_analysis::numbers::counted;
use scaleprof_analysis::wait_graph::held_behind_condition;
use scaleprof_bundle::{Summary, WatchSummary, WatchedLock, WatchedPath};
use scaleprof_vocabulary::{PerState, ThreadState};

/// Call paths that are shown of each state, locks, and lines of background threads.
const MOST_PATHS: usize = 3;
const MOST_LOCKS: usize = 5;
const MOST_BACKGROUND: usize = 12;
/// Functions of a call path.
const MOST_FUNCTIONS: usize = 4;
/// What stands for a figure that is not known.
const UNKNOWN: &str = "\u{2013}";

/// Everything that was seen, what is missing and why, and the warnings; ends with a newline.
pub(super) fn table(summary: &Summary, ink: &Ink, style: Style) -> String {
    let wrap_at = style.width.unwrap_or(super::USUAL_WIDTH).max(20);
    let mut out = String::new();
    if let Some(watch) = &summary.watch {
        let binary = summary.server.binary.as_deref().unwrap_or("the server");
        let seconds = number(watch.seconds);
        let who = who(watch);
        let sentence = match summary.workload.imported() {
            Some(from) if summary.workload.has_shares_only() => {
                format!("A recording of {binary} of unknown length ({from}): {who}.")
            }
            Some(from) => format!("A recording of {binary} over {seconds} s ({from}): {who}."),
            None => format!("Observed {binary} for {seconds} s under external load: {who}."),
        };
        out.push_str(&ink.bold(&wrap(&sentence, wrap_at, "")));
        out.push_str("\n\n");
        out.push_str(&wrap(
            "Where their time goes, thread-seconds per second:",
            wrap_at,
            "  ",
        ));
        out.push('\n');
        out.push_str(&states(watch, ink, style.width));
        out.push('\n');
        out.push_str(&wrap(&trust(watch), wrap_at, "  "));
        out.push('\n');
        out.push_str(&paths(&watch.paths, style.width, wrap_at));
        out.push_str(&locks(&watch.locks, &summary.server.product, style.width));
        out.push('\n');
    }
    for missing in reasons(summary) {
        out.push_str(&ink.dim(&wrap(&missing, wrap_at, "  ")));
        out.push('\n');
    }
    for warning in &summary.warnings {
        out.push_str(&ink.yellow(&wrap(&format!("Warning: {warning}"), wrap_at, "  ")));
        out.push('\n');
    }
    out
}

/// A share that is nearly 0 has no sign.
fn residual(share: f64) -> String {
    percent((share * 1000.0).round() / 1000.0 + 0.0)
}

/// Whom the threads served, so far as that is known.
fn who(watch: &WatchSummary) -> String {
    let others = watch.others.threads.unwrap_or(0);
    match watch.connections.threads {
        // Of a program that is no server all threads do its work.
        Some(connections) if others == 0 => counted(connections, "thread"),
        Some(connections) => format!(
            "{} that served clients, {}",
            counted(connections, "thread"),
            counted(others, "other thread")
        ),
        None => format!(
            "{}; which of them served clients is not known",
            counted(others, "thread")
        ),
    }
}

/// One line of threads: their name, how many, their states, the sum against the lifetime.
struct Line {
    cells: Vec<String>,
    stands_out: bool,
}

fn states(watch: &WatchSummary, ink: &Ink, width: Option<usize>) -> String {
    let all = [&watch.connections.seconds_per_second, &watch.others.seconds_per_second];
    // A state in which nobody ever was only takes room.
    let is_used = |state: &ThreadState| all.iter().any(|states| states[*state] > Some(0.0));
    let shown: Vec<ThreadState> = ThreadState::ALL.into_iter().filter(is_used).collect();
    let known = |figure: Option<f64>| figure.map_or_else(|| UNKNOWN.to_owned(), number);
    let cells = |name: String, threads: Option<u32>, states: &PerState<Option<f64>>, against: [String; 3]| {
        let threads = threads.map_or_else(|| UNKNOWN.to_owned(), |threads| threads.to_string());
        let figures = shown.iter().map(|state| known(states[*state]));
        [name, threads].into_iter().chain(figures).chain(against).collect()
    };
    let against = |of: &scaleprof_bundle::WatchedThreads| {
        let sum = of.lifetime_per_second.map(|_| of.seconds_per_second.sum());
        [
            known(sum),
            known(of.lifetime_per_second),
            of.states_residual.map_or_else(|| UNKNOWN.to_owned(), residual),
        ]
    };
    let nothing = || [String::new(), String::new(), String::new()];
    let heading: Vec<String> = ["", "threads"]
        .into_iter()
        .chain(shown.iter().map(|state| state.name()))
        .chain(["sum", "alive", "off by"])
        .map(str::to_owned)
        .collect();
    let mut lines = vec![Line {
        cells: heading,
        stands_out: false,
    }];
    let others = if watch.connections.threads.is_some() {
        "all others"
    } else {
        "all threads"
    };
    let of_others = (watch.others.threads != Some(0)).then_some((others, &watch.others));
    for (name, of) in [("connections", &watch.connections)].into_iter().chain(of_others) {
        lines.push(Line {
            cells: cells(name.to_owned(), of.threads, &of.seconds_per_second, against(of)),
            stands_out: true,
        });
    }
    for threads in watch.background.iter().take(MOST_BACKGROUND) {
        lines.push(Line {
            cells: cells(
                format!("  {}", threads.name),
                threads.threads,
                &threads.seconds_per_second,
                nothing(),
            ),
            stands_out: false,
        });
    }
    let columns = lines.first().map_or(0, |line| line.cells.len());
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            lines
                .iter()
                .map(|line| line.cells[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        let text = cut(cells.join("  ").trim_end(), width);
        out.push_str(&match (at, line.stands_out) {
            (0, _) => ink.dim(&text),
            (_, true) => ink.bold(&text),
            _ => text,
        });
        out.push('\n');
    }
    let more = watch.background.len().saturating_sub(MOST_BACKGROUND);
    if more > 0 {
        out.push_str(&ink.dim(&format!("  and {more} more names, in summary.json")));
        out.push('\n');
    }
    out
}

/// How well the figures agree with one another and what was lost.
fn trust(watch: &WatchSummary) -> String {
    let by_scheduler = match watch.cpus_by_scheduler {
        Some(cpus) => format!("{} by the scheduler's account", number(cpus)),
        None => "not known by the scheduler's account".to_owned(),
    };
    let agreement = watch.cpu_residual.map_or_else(String::new, |off| {
        format!(
            " (residual {} over the same seconds, without interrupts and the hypervisor)",
            residual(off)
        )
    });
    let complete = match watch.complete_stacks_share {
        Some(share) => format!("{} of the stacks are complete", percent(share)),
        None if watch.samples.is_some_and(|samples| samples > 0) => "How far the stacks reach is not known".to_owned(),
        None => "No stack was taken".to_owned(),
    };
    let lost = match (watch.samples, watch.samples_lost) {
        (Some(samples), Some(lost)) => format!("{} samples, {} lost", whole(samples), whole(lost)),
        (Some(samples), None) => format!("{} samples, losses not known", whole(samples)),
        _ => "samples not counted".to_owned(),
    };
    let by_states = watch.cpus_by_states.map_or_else(|| "not known".to_owned(), number);
    format!("CPUs used: {by_states} by the threads' states, {by_scheduler}{agreement}. {complete}; {lost}.")
}

fn paths(paths: &[WatchedPath], width: Option<usize>, wrap_at: usize) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let heading = "Heaviest call paths of the connections\u{2019} threads by state, thread-seconds per second, innermost \
                   function first:";
    let mut out = format!("\n{}\n", wrap(heading, wrap_at, "  "));
    let mut shown: Vec<(ThreadState, usize)> = Vec::new();
    for path in paths {
        match shown.iter_mut().find(|(state, _)| *state == path.state) {
            Some((_, count)) => *count += 1,
            None => shown.push((path.state, 1)),
        }
        // Waiting for the client is no work of the server's: one path says it.
        let most = if path.state.waits_for_work() { 1 } else { MOST_PATHS };
        if shown.last().is_some_and(|(_, count)| *count > most) {
            continue;
        }
        let time = path.seconds_per_second;
        let half = time
            .high
            .map_or_else(String::new, |high| format!("\u{b1}{}", number(high - time.value)));
        let functions = innermost_in_state(path.state, &path.path, MOST_FUNCTIONS).join(" < ");
        let line = format!(
            "  {:<5}  {:>8}  {half:>8}  {functions}",
            path.state.name(),
            number(time.value)
        );
        out.push_str(&cut(&line, width));
        out.push('\n');
    }
    out
}

fn locks(locks: &[WatchedLock], product: &str, width: Option<usize>) -> String {
    if locks.is_empty() {
        return String::new();
    }
    let mut out = "\nLocks waited for longest, thread-seconds per second:\n".to_owned();
    for lock in locks.iter().take(MOST_LOCKS) {
        let is_condition = waits_at_condition_variable(&lock.waiter);
        let name = lock.name.as_deref().unwrap_or("(on the heap)");
        let waiting = innermost_waiting(&lock.waiter, 2).join(" < ");
        let woken = match lock.waker.is_empty() {
            true => String::new(),
            false => format!(", woken in {}", innermost_waiting(&lock.waker, 2).join(" < ")),
        };
        let held = held_behind_condition(product, &lock.waiter).filter(|_| is_condition);
        let holder = match (held, lock.holder.is_empty()) {
            (Some(what), _) => format!("{what}{woken}"),
            (None, _) if is_condition => format!("a condition variable{woken}"),
            (None, true) => "holder not seen".to_owned(),
            (None, false) => format!("held in {}", innermost_waiting(&lock.holder, 2).join(" < ")),
        };
        let line = format!(
            "  {:>8}  {name}, waited for in {waiting}, {holder}",
            number(lock.seconds_per_second.value)
        );
        out.push_str(&cut(&line, width));
        out.push('\n');
    }
    out
}

fn cut(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if line.chars().count() > width => {
            let mut cut: String = line.chars().take(width.saturating_sub(1)).collect();
            cut.push('\u{2026}');
            cut
        }
        _ => line.to_owned(),
    }
}

/// What is not known, those figures with one reason together.
fn reasons(summary: &Summary) -> Vec<String> {
    let missing = summary.missing.iter();
    by_reason(missing.map(|missing| (&missing.reason, missing.figure.as_str())))
        .into_iter()
        .map(|(reason, figures)| format!("Not known: {} ({reason})", figures.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_bundle::Estimate;

    fn lock(waiting: &[&str], waker: &[&str], holder: &[&str]) -> WatchedLock {
        let path = |functions: &[&str]| functions.iter().map(|function| (*function).to_owned()).collect();
        WatchedLock {
            name: None,
            module: None,
            seconds_per_second: Estimate {
                value: 0.5,
                low: None,
                high: None,
            },
            samples: 10,
            waiter: path(waiting),
            holder: path(holder),
            holder_samples: 0,
            waker: path(waker),
        }
    }

    #[test]
    fn a_lock_behind_a_condition_variable_is_named_and_any_other_says_who_woke_or_held() {
        let sleeps = |place| [place, "pthread_cond_timedwait", "futex_wait [k]"];
        let shown = locks(
            &[
                lock(
                    &sleeps("MDL_wait::timed_wait"),
                    &["MDL_wait::set_status", "futex_wake [k]"],
                    &[],
                ),
                lock(&sleeps("wait_for_work"), &["give_work", "futex_wake [k]"], &[]),
                lock(
                    &["insert", "pthread_mutex_lock", "futex_wait [k]"],
                    &[],
                    &["purge", "fsync"],
                ),
                lock(&["insert", "pthread_mutex_lock", "futex_wait [k]"], &[], &[]),
            ],
            "MariaDB",
            None,
        );
        let ends = [
            ", a metadata lock, woken in MDL_wait::set_status",
            ", a condition variable, woken in give_work",
            ", held in fsync < purge",
            ", holder not seen",
        ];
        let lines = shown.lines().skip(2).zip(ends);
        for (line, end) in lines.clone() {
            assert!(line.ends_with(end), "{shown}");
        }
        assert_eq!(lines.count(), ends.len(), "{shown}");
    }
}
