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

/// Taking programs out of the kernel takes some milliseconds, and the load's seconds are known to about one.
const SWITCH_OFF_BEFORE: Duration = Duration::from_millis(40);

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
        self.whole_seconds(first, count as usize)
    }

    /// Waits for as many whole seconds as there are in `on`, and gives the transactions of each. Before a second begins, `switch` is
    /// told what `on` says of it: that it is off a moment before, so that seconds that are off are wholly so. At the end it is off.
    pub(super) fn alternate(
        &self,
        on: &[bool],
        switch: &mut dyn FnMut(bool) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<u64>> {
        let Some(began) = self.seconds().began else {
            bail!("the load has not begun")
        };
        let first = (began.elapsed() + SWITCH_OFF_BEFORE).as_secs() + 1;
        let mut is_on = false;
        for (second, wanted) in (first..).zip(on.iter().copied().chain([false])) {
            if wanted == is_on {
                continue;
            }
            let at = Duration::from_secs(second) - if wanted { Duration::ZERO } else { SWITCH_OFF_BEFORE };
            std::thread::sleep(at.saturating_sub(began.elapsed()));
            switch(wanted)?;
            is_on = wanted;
        }
        self.whole_seconds(first as usize, on.len())
    }

    /// Waits until these seconds are over, and gives the transactions of each.
    fn whole_seconds(&self, first: usize, count: usize) -> anyhow::Result<Vec<u64>> {
        loop {
            let told: Option<Vec<u64>> = (first..first + count)
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

    #[test]
    fn switches_between_seconds_and_is_off_in_the_end() {
        let load = LastingLoad {
            child: std::process::Command::new("sleep")
                .arg("60")
                .spawn()
                .expect("sleep runs"),
            seconds: Arc::default(),
        };
        for line in ["begins", "0 1", "1 10", "2 20", "3 30", "4 40", "5 50", "6 60"] {
            load.seconds().note(line);
        }
        let mut told = Vec::new();
        let mut switch = |on: bool| {
            told.push(on);
            Ok(())
        };
        let seconds = load
            .alternate(&[true, false, false, true], &mut switch)
            .expect("it is alive");
        assert!(
            seconds == [10, 20, 30, 40] || seconds == [20, 30, 40, 50],
            "{seconds:?}"
        );
        assert_eq!(told, [true, false, true, false]);
    }
}
