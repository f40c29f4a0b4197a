//! Progress of an experiment on the terminal: which round, which variant, time left.

use crate::error_text;
use crate::sanitized::sanitized;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scaleprof_experiment::trials::ExperimentProgress;
use scaleprof_experiment::{MeasurementStart, Progress};
use scaleprof_workload::schema::FillProgress;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Progress on standard error: a line that moves on a terminal, else a line for each start. With `quiet` warnings only.
pub(crate) struct TerminalExperiment {
    bar: ProgressBar,
    quiet: bool,
    step: String,
    /// When the step began, and the seconds that were left then.
    left: Option<(Instant, f64)>,
    said: HashSet<String>,
}

impl TerminalExperiment {
    pub(crate) fn new(quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(10),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is a constant; a wrong one shows as the plain default.
        let style = ProgressStyle::with_template("{spinner} {prefix}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(200));
        TerminalExperiment {
            bar,
            quiet,
            step: String::new(),
            left: None,
            said: HashSet::new(),
        }
    }

    /// Clears the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, rest: &str) {
        if let Some((since, left)) = self.left {
            let left = (left - since.elapsed().as_secs_f64()).max(0.0);
            self.bar.set_prefix(format!("{} left", duration(left)));
        }
        self.bar.set_message(format!("{}: {rest}", self.step));
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{}", sanitized(text)));
    }
}

/// `45 s`, `12 min 05 s`, `3 h 20 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

impl ExperimentProgress for TerminalExperiment {
    fn step_begins(&mut self, words: &str, seconds_left: f64) {
        self.step = words.to_owned();
        self.left = Some((Instant::now(), seconds_left));
        self.show("");
        if self.bar.is_hidden() && !self.quiet {
            eprintln!("{words} ({} left)", duration(seconds_left));
        }
    }

    fn variant_dropped(&mut self, name: &str, why: &str) {
        self.say(&error_text::warning(&format!("{name} takes no part any more: {why}")));
    }
}

impl Progress for TerminalExperiment {
    fn stage(&mut self, what: &str) {
        self.show(what);
    }

    fn filling(&mut self, progress: FillProgress) {
        self.show(&format!(
            "filling the tables, {} of {} rows",
            progress.rows, progress.of
        ));
    }

    fn measurement_begins(&mut self, start: MeasurementStart) {
        self.show(&format!("{} connections", start.connections));
    }

    fn second(&mut self, _second: u32, transactions: u64, p99_ns: u64) {
        self.show(&format!("{transactions} tx/s, p99 {:.1} ms", p99_ns as f64 / 1e6));
    }

    fn warning(&mut self, text: &str) {
        // Every start meets the same lack; once is enough.
        if self.said.insert(text.to_owned()) {
            self.say(&error_text::warning(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_well() {
        let found = [0.4, 59.4, 60.0, 725.0, 12_000.0].map(duration);
        assert_eq!(found, ["0 s", "59 s", "1 min 00 s", "12 min 05 s", "3 h 20 min"]);
    }
}
