//! The closing table of a run in a terminal.

mod annotation;
mod columns;
pub mod comparison;
mod costs;
pub mod experiment;
mod findings;
pub(crate) mod functions;
mod heading;
mod hot_functions;
mod layout;
mod ledger;
mod long_run;
mod reasons;
mod scaling;
mod statements;
mod watch;

pub use annotation::annotation;
use columns::Column;
pub use hot_functions::{candidates, hot_functions};
use layout::{Ink, wrap};
use reasons::by_reason;
use scaleprof_bundle::{RungSummary, Summary};
use scaleprof_vocabulary::WorkloadName;

/// How the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours (ANSI escape sequences).
    pub colour: bool,
    /// Columns of the terminal; none for as wide as it comes.
    pub width: Option<usize>,
}

impl Style {
    /// For a file or a pipe: no colour, as wide as it comes.
    pub const fn plain() -> Self {
        Style {
            colour: false,
            width: None,
        }
    }
}

/// The width at which running text is broken where the terminal's is not known.
const USUAL_WIDTH: usize = 110;

/// What was watched, for a bundle of a watch. Else the rungs with their figures, what is missing and why, warnings, the verdict, and the findings; ends with a newline.
pub fn table(summary: &Summary, style: Style) -> String {
    let ink = Ink::new(style.colour);
    if summary.workload.name == WorkloadName::Watch {
        return watch::table(summary, &ink, style);
    }
    let wrap_at = style.width.unwrap_or(USUAL_WIDTH).max(20);
    let mut out = String::new();
    let mut notes = Vec::new();
    for line in heading::lines(summary) {
        out.push_str(&ink.dim(&wrap(&line, wrap_at, "")));
        out.push('\n');
    }
    out.push('\n');
    if !summary.rungs.is_empty() {
        let (measured, empty): (Vec<Column>, Vec<Column>) =
            columns::all(summary).into_iter().partition(Column::is_measured);
        let (shown, hidden) = layout::fit(measured, style.width);
        out.push_str(&layout::grid(&shown, &summary.rungs, &ink, |rung| {
            row_ink(rung, summary)
        }));
        out.push('\n');
        notes.extend(not_measured(&empty, summary));
        notes.extend(not_seen(summary));
        notes.extend(ledger::reason(summary));
        if !hidden.is_empty() {
            let names: Vec<&str> = hidden.iter().map(|column| column.name).collect();
            notes.push(format!("Omitted at this width: {}.", names.join(", ")));
        }
        notes.extend(reasons(&summary.rungs));
    }
    for statements in [statements::table(summary), statements::kinds(summary)]
        .into_iter()
        .flatten()
    {
        out.push_str(&statements);
        out.push('\n');
    }
    notes.extend(statements::tpmc(summary));
    notes.extend(statements::finished(summary));
    notes.extend(long_run::lines(&summary.rungs));
    if let Some(ledger) = ledger::table(summary, &ink, style, wrap_at) {
        out.push_str(&ledger);
        out.push('\n');
    }
    if let Some(lost) = summary
        .scaling
        .as_ref()
        .and_then(|profile| scaling::section(profile, &summary.rungs, &ink, wrap_at))
    {
        out.push_str(&lost);
        out.push('\n');
    }
    for note in &notes {
        out.push_str(&ink.dim(&wrap(note, wrap_at, "  ")));
        out.push('\n');
    }
    for warning in &summary.warnings {
        out.push_str(&ink.yellow(&wrap(&format!("Warning: {warning}"), wrap_at, "  ")));
        out.push('\n');
    }
    if !(notes.is_empty() && summary.warnings.is_empty()) {
        out.push('\n');
    }
    let sentence = match &summary.verdict {
        Some(verdict) => verdict.sentence.as_str(),
        None => "No rung was measured, so there is no verdict.",
    };
    out.push_str(&ink.bold(&wrap(sentence, wrap_at, "")));
    out.push('\n');
    for sentence in of_others(summary) {
        out.push_str(&wrap(sentence, wrap_at, ""));
        out.push('\n');
    }
    if let Some(findings) = findings::list(summary, &ink, wrap_at) {
        out.push('\n');
        out.push_str(&findings);
    }
    out
}

/// What there is to say of the servers beside the one that was measured.
fn of_others(summary: &Summary) -> impl Iterator<Item = &str> {
    let replicas = summary.replay_rates.iter().map(|speed| speed.sentence.as_str());
    replicas.chain(summary.combined_throughput.as_deref())
}

/// What could not be watched at all, those with one reason together. Of figures without a column only what has words for a name is
/// told here; the rest is in `summary.json`.
fn not_seen(summary: &Summary) -> Vec<String> {
    let in_words = summary.missing.iter().filter(|missing| missing.figure.contains(' '));
    by_reason(in_words.map(|missing| (&missing.reason, missing.figure.as_str())))
        .into_iter()
        .map(|(reason, figures)| format!("Not seen: {} ({reason})", figures.join("; ")))
        .collect()
}

/// The columns that were not measured, those with one reason together.
fn not_measured(empty: &[Column], summary: &Summary) -> Vec<String> {
    by_reason(empty.iter().map(|column| (column.reason(summary), column.name)))
        .into_iter()
        .map(|(reason, names)| format!("Not shown: {} ({reason})", names.join(", ")))
        .collect()
}

/// Why rungs are not steady or not to be believed, one line for each reason with the rungs it holds for.
fn reasons(rungs: &[RungSummary]) -> Vec<String> {
    let doubts = rungs.iter().flat_map(|rung| {
        let flags = [
            (!rung.steady, "Not steady", &rung.unsteady_reason),
            (rung.client_limited, "Client-limited", &rung.client_limited_reason),
        ];
        let set = flags.into_iter().filter(|(is_set, ..)| *is_set);
        set.map(|(_, name, reason)| {
            let why = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            (format!("{name}{why}"), rung.connections.to_string())
        })
    });
    by_reason(doubts)
        .into_iter()
        .map(|(text, at)| {
            let plural = if at == ["1"] { "" } else { "s" };
            format!("{text} (at {} connection{plural})", at.join(", "))
        })
        .collect()
}

/// The peak stands out, what is not to be relied on does too.
fn row_ink(rung: &RungSummary, summary: &Summary) -> layout::RowInk {
    if rung.client_limited || !rung.steady {
        layout::RowInk::Doubtful
    } else if summary
        .verdict
        .as_ref()
        .is_some_and(|verdict| verdict.peak_connections == rung.connections)
    {
        layout::RowInk::Peak
    } else {
        layout::RowInk::Plain
    }
}
