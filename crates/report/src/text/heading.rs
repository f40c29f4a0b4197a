//! What a table is of: it is read, and sent, far from where it was made.

use crate::figures::whole;
use scaleprof_analysis::numbers::counted;
use scaleprof_bundle::{Summary, UNKNOWN, Workload};

/// Server, load and machine in a sentence, and what commits are worth in another where that is less than usual.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let mut lines = vec![format!(
        "{}, {}{}.",
        summary.server.named(),
        load(&summary.workload),
        machine(summary)
    )];
    lines.extend(summary.durability.as_ref().map(|words| format!("{words}.")));
    lines
}

fn load(workload: &Workload) -> String {
    let option = |wanted: &str| {
        let found = workload.options.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let name = workload.title();
    let data = match (workload.tables, workload.rows, option("warehouses")) {
        (_, _, Some("1")) => " with 1 warehouse".to_owned(),
        (_, _, Some(warehouses)) => format!(" with {warehouses} warehouses"),
        (Some(tables), Some(rows), _) => {
            format!(" on {} of {} rows", counted(tables, "table"), whole(rows))
        }
        _ => String::new(),
    };
    let how = match (workload.imported(), option("repetition")) {
        (Some(_), _) => "recorded".to_owned(),
        (_, Some("once")) => "once on every connection".to_owned(),
        _ => workload
            .loop_kind
            .map_or_else(|| "unknown loop".to_owned(), |word| format!("{} loop", word.label())),
    };
    format!("{name}{data}, {how}")
}

fn machine(summary: &Summary) -> String {
    let cpus = summary.server.cpu_count.map(|count| {
        let shared = match summary.server.shares_cpus_with_client {
            Some(true) => " shared with the client",
            _ => "",
        };
        format!("{}{shared}", counted(count, "CPU"))
    });
    let model = Some(summary.machine.cpu_model.clone()).filter(|model| model != UNKNOWN);
    let words: Vec<String> = cpus.into_iter().chain(model).collect();
    match words.is_empty() {
        true => String::new(),
        false => format!("; {}", words.join(", ")),
    }
}
