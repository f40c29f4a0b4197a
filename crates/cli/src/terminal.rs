//! Progress on the terminal: which rung, seconds left, live throughput.

use crate::error_text;
use crate::sanitized::sanitized;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scaleprof_analysis::numbers::counted;
use scaleprof_experiment::{MeasurementDone, MeasurementStart, Progress};
use scaleprof_workload::schema::FillProgress;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Progress on standard error; nothing where that is no terminal, or quiet was asked for, but warnings.
pub(crate) struct TerminalProgress {
    bar: ProgressBar,
    measurement: Option<MeasurementStart>,
    /// Seconds of all measurements that were planned so far, and those that are done.
    planned_seconds: u64,
    done_seconds: u64,
    measuring_since: Option<Instant>,
    last_throughput: Option<f64>,
    said: HashSet<String>,
}

/// Opening and closing connections takes about so long for each measurement, in tenths of its
/// length; measured as it goes.
const OVERHEAD_AT_FIRST: f64 = 1.05;

impl TerminalProgress {
    pub(crate) fn new(quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(10),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(spinner());
        TerminalProgress {
            bar,
            measurement: None,
            planned_seconds: 0,
            done_seconds: 0,
            measuring_since: None,
            last_throughput: None,
            said: HashSet::new(),
        }
    }

    /// Clears the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn left(&self) -> String {
        let left = self.planned_seconds.saturating_sub(self.done_seconds) as f64;
        let pace = match self.measuring_since {
            Some(since) if self.done_seconds >= 5 => since.elapsed().as_secs_f64() / self.done_seconds as f64,
            _ => OVERHEAD_AT_FIRST,
        };
        let seconds = (left * pace) as u64;
        match seconds {
            0..60 => format!("{seconds} s left"),
            _ => format!("{} min {:02} s left", seconds / 60, seconds % 60),
        }
    }

    fn show_left(&self) {
        let known = self
            .measurement
            .is_some_and(|measurement| measurement.seconds.is_some());
        self.bar.set_prefix(if known { self.left() } else { String::new() });
    }

    fn show_measurement(&self, rest: &str) {
        if let Some(measurement) = &self.measurement {
            self.bar.set_message(format!(
                "{}, repeat {} (measurement {} of {})  {rest}",
                counted(measurement.connections, "connection"),
                measurement.repeat + 1,
                measurement.measurement + 1,
                measurement.of
            ));
        }
    }
}

fn spinner() -> ProgressStyle {
    style("{spinner} {msg}")
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a wrong one shows as the plain default.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

impl Progress for TerminalProgress {
    fn stage(&mut self, what: &str) {
        // The tick below starts a thread, for a bar that nobody sees.
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_style(spinner());
        self.bar.enable_steady_tick(Duration::from_millis(100));
        self.bar.set_message(what.to_owned());
    }

    fn filling(&mut self, progress: FillProgress) {
        if self.bar.length() != Some(progress.of) {
            self.bar.set_length(progress.of);
            self.bar.set_style(style(
                "{spinner} filling the tables [{bar:30}] {human_pos} of {human_len} rows, {eta} left",
            ));
        }
        self.bar.set_position(progress.rows);
        if progress.rows == progress.of && progress.of > 0 {
            self.bar
                .set_style(style("{spinner} making the indexes ({human_len} rows)"));
        }
    }

    fn measurement_begins(&mut self, start: MeasurementStart) {
        if self.measuring_since.is_none() {
            self.measuring_since = Some(Instant::now());
        }
        // A script that runs once takes as long as it takes: then the measurements are what is
        // counted.
        let seconds = u64::from(start.seconds.unwrap_or(1));
        self.planned_seconds = u64::from(start.of) * seconds;
        self.done_seconds = u64::from(start.measurement) * seconds;
        self.measurement = Some(start);
        self.bar.set_style(style("{spinner} [{bar:24}] {prefix}  {msg}"));
        self.bar.set_length(self.planned_seconds);
        self.bar.set_position(self.done_seconds);
        self.show_left();
        self.bar.disable_steady_tick();
        self.show_measurement("");
    }

    fn connecting(&mut self, open: u32, wanted: u32) {
        if open == wanted || open.is_multiple_of(16) {
            self.show_measurement(&format!("opening connections: {open} of {wanted}"));
        }
    }

    fn second(&mut self, _second: u32, transactions: u64, p99_ns: u64) {
        if self
            .measurement
            .is_some_and(|measurement| measurement.seconds.is_some())
        {
            self.done_seconds += 1;
            self.bar.set_position(self.done_seconds);
        }
        self.show_left();
        // The last second of a script that runs once is no whole one: a count is true of it, a rate is not.
        let unit = match self
            .measurement
            .is_some_and(|measurement| measurement.seconds.is_none())
        {
            true => "transactions ended",
            false => "tx/s",
        };
        self.show_measurement(&format!("{transactions} {unit}, p99 {:.1} ms", p99_ns as f64 / 1e6));
    }

    fn watched(&mut self, second: u32, of: u32, threads: usize) {
        self.bar.disable_steady_tick();
        self.bar.set_style(style("{spinner} [{bar:24}] {msg}"));
        self.bar.set_length(u64::from(of));
        self.bar.set_position(u64::from(second));
        let left = of.saturating_sub(second);
        self.bar.set_message(format!(
            "watching {threads} threads, {left} s left (^C ends it and keeps what was seen)"
        ));
    }

    fn measurement_done(&mut self, done: MeasurementDone) {
        self.last_throughput = Some(done.throughput);
    }

    fn refined(&mut self, rungs: &[u32]) {
        let list = rungs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        // Asked first: within `suspend` the bar is locked.
        if !self.bar.is_hidden() {
            self.bar
                .suspend(|| eprintln!("adding rungs around the peak and the fall-over: {list}"));
        }
    }

    fn remains(&mut self, text: &str) {
        self.bar.suspend(|| eprintln!("note: {}", sanitized(text)));
    }

    fn warning(&mut self, text: &str) {
        // The same lack shows in every measurement; once is enough.
        if self.said.insert(text.to_owned()) {
            self.bar.suspend(|| eprintln!("{}", error_text::warning(text)));
        }
    }
}
