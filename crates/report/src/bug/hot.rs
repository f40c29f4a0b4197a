//! The functions with the most CPU time at the last rung, beside the rung where a transaction was cheapest.

use super::Section;
use super::words::block;
use crate::figures::{number, percent};
use crate::grid::grid;
use scaleprof_analysis::hot_functions::{HotFunction, hot_functions};
use scaleprof_bundle::{Bundle, RungSummary, Summary};

const MOST: usize = 12;

/// The table; none where no stacks were sampled.
pub(super) fn section(bundle: &Bundle, summary: &Summary) -> Option<Section> {
    let last = summary.last_judged()?;
    let before = summary.rungs.iter().filter(|rung| rung.connections < last.connections);
    let cost = |rung: &RungSummary| rung.iron_law.as_ref().map(|law| law.cpu_seconds_per_txn);
    let base = before
        .filter_map(|rung| Some((rung.connections, cost(rung)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(connections, _)| connections);
    let hot = hot_functions(bundle, last.connections, base, MOST);
    if hot.is_empty() {
        return None;
    }
    let mut headings = vec!["share".to_owned(), format!("\u{b5}s/tx at {}", last.connections)];
    headings.extend(base.map(|base| format!("at {base}")));
    headings.extend(["function".to_owned(), "hottest place".to_owned()]);
    let at = headings.len();
    let mut rows = vec![headings];
    rows.extend(hot.iter().map(|function| line(function, base.is_some())));
    let note = match hot.iter().any(|function| function.waits) {
        true => {
            "\n(spin): most of its time is in a loop that only waits for another thread, found in the machine code.\n"
        }
        false => "",
    };
    Some((
        "Hot functions, own CPU time of the connections' threads",
        format!("{}{note}", block(&grid(&rows, &[at - 2, at - 1]))),
    ))
}

fn line(hot: &HotFunction, compares: bool) -> Vec<String> {
    let micros = |seconds: f64| number(seconds * 1e6);
    let half = hot.seconds_per_txn.high.map_or(String::new(), |high| {
        format!(" \u{b1}{}", micros(high - hot.seconds_per_txn.value))
    });
    let mut cells = vec![
        percent(hot.share),
        format!("{}{half}", micros(hot.seconds_per_txn.value)),
    ];
    if compares {
        cells.push(hot.before.map_or("\u{2013}".to_owned(), |before| micros(before.value)));
    }
    cells.push(format!("{}{}", hot.function, if hot.waits { " (spin)" } else { "" }));
    cells.push(hot.place.as_ref().map_or(String::new(), |place| {
        let code = format!("{}+{:#x}", place.module, place.address);
        match (&place.file, place.line) {
            (Some(file), Some(line)) => format!("{file}:{line} ({code})"),
            _ if hot.function.ends_with(" [k]") => format!("+{:#x}", place.address),
            _ => code,
        }
    }));
    cells
}
