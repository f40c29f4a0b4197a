//! A bug report for the people who make the server, in Markdown that reads as well in plain text.
//!
//! What they ask for first, in the order in which they read: one sentence, exactly which server, machine and load, the ladder,
//! what it points at with the call stacks, which settings are not the defaults, what to doubt, and how to see it themselves.
//! Figures and stacks stand in code blocks, which every bug tracker shows as they are.

mod doubts;
mod environment;
mod findings;
mod hot;
mod ladder;
mod repeat;
mod settings;
mod title;
mod words;

use crate::text;
use scaleprof_bundle::{Bundle, Summary, without_folders};
use scaleprof_vocabulary::WorkloadName;
use words::{block, inline};

/// The report of a run, or of what was watched; ends with a newline. It holds no host or user name, no path that says whose
/// machine it was, no query, and no name of a schema, table or column.
pub fn markdown(bundle: &Bundle, summary: &Summary) -> String {
    let watched = summary.workload.name == WorkloadName::Watch;
    let sections = [
        Some(environment::server(bundle)),
        Some(environment::machine(
            &bundle.manifest.machine,
            bundle.manifest.workload.imported().is_some(),
        )),
        (!watched).then(|| environment::workload(&bundle.manifest, &bundle.settings)),
        watched.then(|| watch(summary)),
        ladder::throughput(summary),
        ladder::states(summary),
        findings::section(summary),
        hot::section(bundle, summary),
        findings::locks(summary),
        Some(settings::section(bundle)),
        Some(doubts::section(summary)),
        repeat::section(bundle),
    ];
    let mut out = format!("# {}\n", inline(&title::of(summary)));
    if let Some(verdict) = &summary.verdict {
        out.push_str(&format!("\n{}\n", verdict.sentence));
    }
    for (heading, body) in sections.into_iter().flatten() {
        out.push_str(&format!("\n## {heading}\n\n{}\n", body.trim_end()));
    }
    out.push_str(&format!(
        "\nMeasured with scaleprof {} on {}.\n",
        bundle.manifest.scaleprof,
        bundle.manifest.started_at.split('T').next().unwrap_or("an unknown day")
    ));
    // A bundle holds none; this is for those that others wrote.
    without_folders(&out)
}

/// A section: its heading and its body.
type Section = (&'static str, String);

/// There are no rungs under somebody else's load: what the threads did is all there is.
fn watch(summary: &Summary) -> Section {
    (
        "What its threads did",
        block(&text::table(summary, text::Style::plain())),
    )
}
