//! A load under which watchers come and go.

use super::Case;
use super::child::load_command;
use anyhow::{Context, bail};
use scaleprof_workload::Transport;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A load by scaleprof that goes on, and tells the transactions of each second. It ends when this is dropped.
pub(super) struct LastingLoad {
    child: Child,
    seconds: Arc<Mutex<Seconds>>,
}

/// The seconds of a load so far.
#[derive(Debug, Default)]
struct Seconds {
    /// When second 0 began.
    began: Option<Instant>,
    transactions: Vec<Option<u64>>,
    over: bool,
}

impl LastingLoad {
    /// Starts one of at most `seconds`, and waits until its connections are open.
    pub(super) fn start(socket: &Path, case: Case, seconds: u32, transport: Transport) -> anyhow::Result<Self> {
        let mut command = load_command(socket, case, seconds, transport)?;
        let mut child = command
            .arg("--tell-seconds")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the load")?;
        let shared = Arc::new(Mutex::new(Seconds::default()));
        if let Some(pipe) = child.stdout.take() {
            let told = Arc::clone(&shared);
            // It ends with the pipe, which the child holds.
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    told.lock().unwrap_or_else(PoisonError::into_inner).note(&line);
                }
                told.lock().unwrap_or_else(PoisonError::into_inner).over = true;
            });
        }
        let load = LastingLoad { child, seconds: shared };
        while load.seconds().began.is_none() {
            load.is_alive()?;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(load)
    }

    /// Waits for the next `count` whole seconds, and gives the transactions of each.
    pub(super) fn next_seconds(&self, count: u32) -> anyhow::Result<Vec<u64>> {
        let first = match self.seconds().began {
            Some(began) => began.elapsed().as_secs() as usize + 1,
            None => bail!("the load has not begun"),
        };
        loop {
            let told: Option<Vec<u64>> = (first..first + count as usize)
                .map(|second| self.seconds().transactions.get(second).copied().flatten())
                .collect();
            if let Some(told) = told {
                return Ok(told);
            }
            self.is_alive()?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn seconds(&self) -> MutexGuard<'_, Seconds> {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_alive(&self) -> anyhow::Result<()> {
        match self.seconds().over {
            true => bail!("the load ended before its time"),
            false => Ok(()),
        }
    }
}

impl Drop for LastingLoad {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Seconds {
    /// Takes a line of the load: `begins`, or a second and its transactions.
    fn note(&mut self, line: &str) {
        if line == "begins" {
            self.began = Some(Instant::now());
            return;
        }
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        if let (Some(Ok(second)), Some(Ok(transactions)), None) = (numbers.next(), numbers.next(), numbers.next()) {
            let second = second as usize;
            if self.transactions.len() <= second {
                self.transactions.resize(second + 1, None);
            }
            self.transactions[second] = Some(transactions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_kept_by_their_number_and_other_lines_ignored() {
        let mut seconds = Seconds::default();
        for line in ["1 20", "starting", "0 10", "3 x", "4 1 2"] {
            seconds.note(line);
        }
        assert_eq!(seconds.transactions, [Some(10), Some(20)]);
        assert!(seconds.began.is_none());
        seconds.note("begins");
        assert!(seconds.began.is_some());
    }
}
