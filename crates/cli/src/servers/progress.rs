//! Progress of a fetch on the terminal: what is done, bytes, time left.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scaleprof_builds::Progress;
use std::time::Duration;

/// Progress on standard error: a line that moves on a terminal, else a line for each step. With `quiet` nothing.
pub(crate) struct FetchProgress {
    bar: ProgressBar,
    quiet: bool,
    shown: Shown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Stage,
    Bytes,
    BytesOf,
    Share,
}

impl Shown {
    fn template(self) -> &'static str {
        match self {
            Shown::Stage => "{spinner} {msg}",
            Shown::Bytes => "{spinner} {msg}  {binary_bytes}",
            Shown::BytesOf => "{spinner} {msg} [{bar:24}] {binary_bytes} of {binary_total_bytes}, {eta} left",
            Shown::Share => "{spinner} {msg} [{bar:24}] {percent} %, {eta} left",
        }
    }
}

/// Parts that a share is shown in.
const PARTS: f64 = 10_000.0;

impl FetchProgress {
    pub(crate) fn new(quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(10),
        };
        let progress = FetchProgress {
            bar: ProgressBar::with_draw_target(None, target),
            quiet,
            shown: Shown::Stage,
        };
        progress.bar.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    /// Clears the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&mut self, shown: Shown) {
        if self.shown != shown {
            self.shown = shown;
            // The templates are constants of this file; a wrong one shows as the plain default.
            let style = ProgressStyle::with_template(shown.template());
            self.bar
                .set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        }
    }
}

impl Progress for FetchProgress {
    fn stage(&mut self, what: &str) {
        self.bar.reset();
        self.bar.unset_length();
        self.shown = Shown::Bytes;
        self.show(Shown::Stage);
        self.bar.set_message(what.to_owned());
        if self.bar.is_hidden() && !self.quiet {
            eprintln!("{what}");
        }
    }

    fn bytes(&mut self, done: u64, of: Option<u64>) {
        match of {
            Some(of) => {
                self.show(Shown::BytesOf);
                self.bar.set_length(of);
            }
            None => self.show(Shown::Bytes),
        }
        self.bar.set_position(done);
    }

    fn share(&mut self, done: f64) {
        self.show(Shown::Share);
        self.bar.set_length(PARTS as u64);
        self.bar.set_position((done * PARTS) as u64);
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("note: {text}"));
        }
    }
}
