//! What changed between two runs, as one page that works offline: the report's page, of two runs.
//!
//! It is built from TypeScript in `web/` like the report's (see [`crate::html`]) and shares its parts: `web/src/diff.ts` puts
//! them together. This module only puts the data into it.

use crate::html::{fill, for_markup, for_script, packed_profile};
use crate::text::{Style, comparison};
use scaleprof_analysis::comparison::{Comparison, OneRun};
use scaleprof_analysis::flame::{Flame, Side, flame_of_both};
use scaleprof_bundle::{Bundle, Machine, Server, Workload};
use serde::Serialize;

/// The built page, with `@@TITLE@@`, `@@NOSCRIPT@@`, `@@DATA@@` and `@@PROFILE@@` where the runs go.
const TEMPLATE: &str = include_str!("../assets/diff.html");

/// What was compared, and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// A and B.
    pub bundles: [&'a Bundle; 2],
    /// What the page calls them, such as the names of their folders; where these lie is nobody's business.
    pub names: [&'a str; 2],
    /// What changed.
    pub comparison: &'a Comparison,
    /// What each of them measured by itself.
    pub runs: &'a [OneRun; 2],
    /// The rung that the reader asked for; none for all.
    pub connections: Option<u32>,
}

/// The data of the page; `web/src/diffData.ts` holds the same shape.
#[derive(Serialize)]
struct Page<'a> {
    scaleprof: &'static str,
    comparison: &'a Comparison,
    /// Whether their call paths can be paired.
    paired: bool,
    /// The rung that the reader asked for.
    connections: Option<u32>,
    runs: [Run<'a>; 2],
}

/// One of the runs, without the command that made it.
#[derive(Serialize)]
struct Run<'a> {
    name: &'a str,
    started_at: &'a str,
    server: &'a Server,
    workload: &'a Workload,
    machine: &'a Machine,
    warnings: &'a [String],
    /// Connections of the rungs at which stacks of the threads that serve the load were sampled.
    sampled: Vec<u32>,
    #[serde(flatten)]
    measured: &'a OneRun,
}

/// The page. The same runs give the same page.
pub fn render(compared: &Compared<'_>) -> String {
    let flame = flame_of_both(compared.bundles[0], compared.bundles[1]);
    let run = |at: usize, side: Side| {
        let manifest = &compared.bundles[at].manifest;
        Run {
            name: compared.names[at],
            started_at: &manifest.started_at,
            server: &manifest.server,
            workload: &manifest.workload,
            machine: &manifest.machine,
            warnings: &manifest.warnings,
            sampled: flame.as_ref().map_or(Vec::new(), |flame| sampled(flame, side)),
            measured: &compared.runs[at],
        }
    };
    let page = Page {
        scaleprof: env!("CARGO_PKG_VERSION"),
        comparison: compared.comparison,
        paired: compared.comparison.unpaired.is_none(),
        connections: compared.connections,
        runs: [run(0, Side::A), run(1, Side::B)],
    };
    let data = serde_json::to_string(&page)
        .unwrap_or_else(|error| serde_json::json!({ "unreadable": error.to_string() }).to_string());
    let title = format!("{} \u{2192} {} · scaleprof diff", compared.names[0], compared.names[1]);
    let plain = comparison::table(compared.comparison, compared.names, Style::plain());
    fill(
        TEMPLATE,
        &[
            ("@@TITLE@@", &for_markup(&title)),
            ("@@NOSCRIPT@@", &for_markup(&plain)),
            ("@@DATA@@", &for_script(&data)),
            ("@@PROFILE@@", &packed_profile(flame.as_ref())),
        ],
    )
}

fn sampled(flame: &Flame, side: Side) -> Vec<u32> {
    let rungs = flame.rungs.iter().filter(|rung| rung.side == Some(side));
    let seen = rungs.filter(|rung| {
        rung.measurements
            .iter()
            .any(|measurement| !measurement.samples.is_empty())
    });
    // Of a server that was only watched there is one, which stands for one connection in the comparison.
    seen.map(|rung| rung.connections.unwrap_or(1)).collect()
}
