//! The latency of each statement of a script, beneath the rungs.

use crate::figures;
use scaleprof_bundle::Summary;

/// One line for each rung and statement; none for a workload that has no statements of the user's.
pub(super) fn table(summary: &Summary) -> Option<String> {
    let mut rows = vec![
        [
            "connections",
            "statement",
            "times",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "max ms",
        ]
        .map(str::to_owned),
    ];
    let ms = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figures::number);
    for rung in &summary.rungs {
        for (at, one) in rung.statements.iter().enumerate() {
            let latency = &one.latency_ms;
            rows.push([
                if at == 0 {
                    rung.connections.to_string()
                } else {
                    String::new()
                },
                one.statement.clone(),
                figures::whole(one.count),
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
