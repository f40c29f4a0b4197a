//! CPU time of the servers beside the one under test: on the same machine it is nobody else's.

use crate::company::Beside;
use scaleprof_bundle::CounterRow;

/// Reads it at every end of a second.
pub(crate) struct BesideCpu {
    pids: Vec<u32>,
    ticks_a_second: f64,
    /// User and system time of all of them, seconds; none where one could not be read.
    readings: Vec<Option<[f64; 2]>>,
}

impl BesideCpu {
    /// For the servers that there are.
    pub(crate) fn of(beside: &Beside) -> BesideCpu {
        BesideCpu {
            pids: beside.servers().iter().map(|server| server.pid()).collect(),
            ticks_a_second: rustix::param::clock_ticks_per_second() as f64,
            readings: Vec::new(),
        }
    }

    /// A second ends, or the first begins.
    pub(crate) fn read(&mut self) {
        let mut times = self.pids.iter().map(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            ticks(&stat)
        });
        let sum = times.try_fold([0.0; 2], |sum, one| {
            let [user, system] = one?;
            Some([sum[0] + user, sum[1] + system])
        });
        let seconds = |[user, system]: [f64; 2]| [user / self.ticks_a_second, system / self.ticks_a_second];
        self.readings.push(sum.map(seconds));
    }

    /// What was used in every second, as rows of the visit; none where there is no such server.
    pub(crate) fn rows(&self, visit: i32) -> Vec<CounterRow> {
        if self.pids.is_empty() {
            return Vec::new();
        }
        let seconds = (0..).zip(self.readings.windows(2));
        let known = seconds.filter_map(|(second, pair)| Some((second, pair[0]?, pair[1]?)));
        known
            .flat_map(|(second, before, after)| {
                ["user", "system"]
                    .into_iter()
                    .zip(0..)
                    .map(move |(what, at): (&str, usize)| CounterRow {
                        visit,
                        second: Some(second),
                        counter: format!("beside.cpu_{what}_seconds"),
                        value: after[at] - before[at],
                        counted_share: None,
                    })
            })
            .collect()
    }
}

/// User and system time of a line of /proc/PID/stat (proc(5), fields 14 and 15), in clock ticks. The name may hold anything but ends
/// with the last parenthesis.
fn ticks(stat: &str) -> Option<[f64; 2]> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    Some([fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_behind_a_name_that_may_hold_anything() {
        let line = "7 (my) sql (d)) S 1 7 7 0 -1 4194560 100 0 1 0 350 21 0 0 20 0 40 0 100 1 2";
        assert_eq!(ticks(line), Some([350.0, 21.0]));
        assert_eq!(ticks("7 (x"), None);
    }
}
