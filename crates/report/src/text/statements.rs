//! The latency of each statement of a script, or of each kind of transaction, beneath the rungs; and what TPC-C counts.

use crate::figures;
use scaleprof_bundle::{Latency, RungSummary, Summary, TpccFigures};

/// One line for each rung and statement; none for a workload that has no statements of the user's.
pub(super) fn table(summary: &Summary) -> Option<String> {
    lines("statement", summary, |rung| {
        let statements = rung.statements.iter();
        statements
            .map(|one| (one.statement.as_str(), one.count, &one.latency_ms))
            .collect()
    })
}

/// One line for each rung and kind of transaction; none for a workload that has only one kind.
pub(super) fn kinds(summary: &Summary) -> Option<String> {
    lines("transaction", summary, |rung| {
        let transactions = rung.transactions.iter();
        transactions
            .map(|one| (one.transaction.name(), one.count, &one.latency_ms))
            .collect()
    })
}

/// New-Orders per minute of each rung, and what to think of them; none for another workload than TPC-C.
pub(super) fn tpmc(summary: &Summary) -> Option<String> {
    let rungs: Vec<(u32, &TpccFigures)> = summary
        .rungs
        .iter()
        .filter_map(|rung| Some((rung.connections, rung.tpcc.as_ref()?)))
        .collect();
    let (_, first) = rungs.first()?;
    let figures: Vec<String> = rungs
        .iter()
        .map(|(connections, one)| {
            let tpmc = figures::number(one.tpmc.value);
            match one.nominal_is_limit {
                true => format!(
                    "{tpmc} at {connections} ({} %)",
                    figures::number(one.nominal_share * 100.0)
                ),
                false => format!("{tpmc} at {connections}"),
            }
        })
        .collect();
    let limit = match first.nominal_is_limit {
        true => "Percentages are of 12.86 per warehouse, the most that its users can reach",
        false => "The limit of 12.86 per warehouse does not apply without keying and think times",
    };
    Some(format!(
        "tpmC (New-Orders per minute, planned rollbacks included) by connections: {}. {limit}. tx/s counts all five \
         kinds.",
        figures.join(", ")
    ))
}

/// When all clients had finished, at each rung; none where they run until time is up.
pub(super) fn finished(summary: &Summary) -> Option<String> {
    let of_rungs = summary.rungs.iter().filter_map(|rung| {
        let seconds = figures::number(rung.finished_seconds?);
        Some(format!("{seconds} s at {}", rung.connections))
    });
    let of_rungs: Vec<String> = of_rungs.collect();
    (!of_rungs.is_empty()).then(|| {
        format!(
            "All clients had finished after, by connections: {}.",
            of_rungs.join(", ")
        )
    })
}

type Line<'a> = (&'a str, u64, &'a Latency);

fn lines<'a>(what: &str, summary: &'a Summary, of: impl Fn(&'a RungSummary) -> Vec<Line<'a>>) -> Option<String> {
    let head = ["connections", what, "times", "p50 ms", "p95 ms", "p99 ms", "max ms"];
    let mut rows = vec![head.map(str::to_owned)];
    let ms = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figures::number);
    for rung in &summary.rungs {
        for (at, (name, count, latency)) in of(rung).into_iter().enumerate() {
            rows.push([
                if at == 0 {
                    rung.connections.to_string()
                } else {
                    String::new()
                },
                name.to_owned(),
                figures::whole(count),
                ms(latency.p50),
                ms(latency.p95),
                ms(latency.p99),
                ms(latency.max),
            ]);
        }
    }
    if rows.len() == 1 {
        return None;
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                1 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
        cells.collect::<Vec<_>>().join("  ")
    };
    Some(rows.iter().map(|row| line(row) + "\n").collect())
}
