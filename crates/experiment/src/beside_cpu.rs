//! CPU time of the servers beside the one under test: on the same machine it is nobody else's.

use crate::company::Beside;
use scaleprof_bundle::CounterRow;
use scaleprof_probe::parse_stat;

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
            let stat = parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
            Some([stat.user_ticks as f64, stat.system_ticks as f64])
        });
        let sum = times.try_fold([0.0; 2], |sum, one| {
            let [user, system] = one?;
            Some([sum[0] + user, sum[1] + system])
        });
        let seconds = |[user, system]: [f64; 2]| [user / self.ticks_a_second, system / self.ticks_a_second];
        self.readings.push(sum.map(seconds));
    }

    /// What was used in every second, as rows of the measurement; none where there is no such
    /// server.
    pub(crate) fn rows(&self, measurement: i32) -> Vec<CounterRow> {
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
                        measurement,
                        second: Some(second),
                        counter: format!("topology.cpu_{what}_seconds"),
                        value: after[at] - before[at],
                        running_share: None,
                    })
            })
            .collect()
    }
}
