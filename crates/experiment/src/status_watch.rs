//! SHOW GLOBAL STATUS once a second.

use crate::boundary_watch::{Answer, Boundary, BoundaryWatch};
use crate::status::Status;
use scaleprof_bundle::CounterRow;
use scaleprof_wire::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long after the end of a second a reading still stands for it.
const LATEST: Duration = Duration::from_millis(250);
/// How long the last reading is waited for.
const LAST: Duration = Duration::from_millis(500);

/// Reads the status at every [`tick`](StatusWatch::tick).
pub(crate) struct StatusWatch(BoundaryWatch<Status>);

impl StatusWatch {
    /// Starts on a connection that is open already.
    pub(crate) fn start(client: Client) -> std::io::Result<StatusWatch> {
        let watch = BoundaryWatch::start("status", client, |client, at| match Status::read(client) {
            Ok(status) if at.elapsed() <= LATEST => Answer::Taken(status),
            Ok(_) => Answer::TooLate,
            Err(_) => Answer::Gone,
        });
        Ok(StatusWatch(watch?))
    }

    /// A second ends now. Does not wait.
    pub(crate) fn tick(&self, boundary: Boundary) {
        self.0.tick(boundary);
    }

    /// The changes of every second that has a reading at both ends, as rows of the measurement.
    pub(crate) fn finish(self, measurement: i32) -> Vec<CounterRow> {
        changes(&self.0.finish(LAST))
            .into_iter()
            .map(|(second, name, value)| CounterRow {
                measurement,
                second: i32::try_from(second).ok(),
                counter: format!("status.{name}"),
                value,
                running_share: None,
            })
            .collect()
    }
}

/// The change of every counter in every second that has both ends.
///
/// A counter that moved in one second has a row in all, a zero where it stood: a second without a row would count as
/// not measured. One that never moved, or ever fell (somebody reset it), has none.
fn changes(readings: &BTreeMap<Boundary, Status>) -> Vec<(u32, String, f64)> {
    let mut all = Vec::new();
    let (mut moved, mut fell) = (BTreeSet::new(), BTreeSet::new());
    for (&start, before) in readings {
        let Some(after) = readings.get(&(start + 1)) else {
            continue;
        };
        for (name, change) in after.since(before) {
            if change > 0.0 {
                moved.insert(name.to_owned());
            } else if change < 0.0 {
                fell.insert(name.to_owned());
            }
            all.push((start, name.to_owned(), change));
        }
    }
    all.retain(|(_, name, _)| moved.contains(name) && !fell.contains(name));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_a_reading_at_both_ends_is_left_out() {
        let readings = BTreeMap::from([
            (0, Status::from([("com_commit", 5.0), ("com_select", 1.0)])),
            (1, Status::from([("com_commit", 7.0), ("com_select", 1.0)])),
            (3, Status::from([("com_commit", 20.0), ("com_select", 1.0)])),
            (4, Status::from([("com_commit", 20.0), ("com_select", 1.0)])),
        ]);
        let found = changes(&readings);
        assert_eq!(
            found,
            [(0, "com_commit".to_owned(), 2.0), (3, "com_commit".to_owned(), 0.0)]
        );
    }

    #[test]
    fn what_somebody_reset_is_left_out() {
        let readings = BTreeMap::from([
            (0, Status::from([("a", 5.0), ("b", 1.0)])),
            (1, Status::from([("a", 9.0), ("b", 2.0)])),
            (2, Status::from([("a", 0.0), ("b", 4.0)])),
        ]);
        let names: BTreeSet<String> = changes(&readings).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names, BTreeSet::from(["b".to_owned()]));
    }
}
