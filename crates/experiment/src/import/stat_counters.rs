//! What `perf stat` counted beside a recording, as the counters of its measurement.

use scaleprof_bundle::CounterRow;
use scaleprof_profile::perf_stat::PerfStat;

/// perf's names of events that a live run counts too (docs/bundle.md).
const KNOWN: [(&str, &str); 11] = [
    ("cycles", "hw.cycles"),
    ("cpu-cycles", "hw.cycles"),
    ("instructions", "hw.instructions"),
    ("cache-references", "hw.cache_references"),
    ("cache-misses", "hw.cache_misses"),
    ("branch-misses", "hw.branch_misses"),
    ("task-clock", "hw.task_clock_seconds"),
    ("context-switches", "server.context_switches"),
    ("cs", "server.context_switches"),
    ("cpu-migrations", "server.migrations"),
    ("migrations", "server.migrations"),
];

/// The counts as those of a measurement that lasted `measurement_seconds`: perf stat may have
/// counted for another time than was recorded. An event that could not be counted has no row.
pub(super) fn rows(measurement: i32, stat: &PerfStat, measurement_seconds: f64) -> Vec<CounterRow> {
    let scale = stat
        .elapsed_seconds
        .map_or(1.0, |elapsed| measurement_seconds / elapsed);
    let counted = stat.counts.iter().filter_map(|(event, counted)| {
        Some(CounterRow {
            measurement,
            second: None,
            counter: named(event),
            value: counted.value? * scale,
            running_share: Some(counted.running_share),
        })
    });
    counted.collect()
}

/// An event of user space or the kernel alone keeps its own name: it is not the whole.
fn named(event: &str) -> String {
    let known = KNOWN.iter().find(|(name, _)| *name == event);
    known.map_or_else(|| format!("stat.{event}"), |(_, counter)| (*counter).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_measurement_and_what_was_not_counted_is_no_zero() {
        let text = "1000,,cycles,0,50.00,,\n<not supported>,,instructions,0,100.00,,\n40,,cycles:u,0,100.00,,\n2,sec,duration_time,0,100,,\n";
        let stat = PerfStat::parse(text).expect("counts");
        let rows: Vec<(String, f64, Option<f64>)> = rows(3, &stat, 10.0)
            .into_iter()
            .map(|row| (row.counter, row.value, row.running_share))
            .collect();
        assert_eq!(
            rows,
            [
                ("hw.cycles".to_owned(), 5000.0, Some(0.5)),
                ("stat.cycles:u".to_owned(), 200.0, Some(1.0))
            ]
        );
    }
}
