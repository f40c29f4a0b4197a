//! A load under which watchers come and go.

use super::Case;
use super::child::load_command;
use anyhow::{Context, bail};
use scaleprof_workload::TransportChoice;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A load by scaleprof that goes on, and tells its transactions whenever it is asked. It ends when this is dropped.
pub(super) struct LastingLoad {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// How far the load was at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    /// By CLOCK_MONOTONIC.
    at_ns: u64,
    transactions: u64,
}

impl LastingLoad {
    /// Starts one of at most `seconds`, and waits until its connections are open.
    pub(super) fn start(socket: &Path, case: Case, seconds: u32, transport: TransportChoice) -> anyhow::Result<Self> {
        let mut command = load_command(socket, case, seconds, transport)?;
        command.arg("--tell-counts");
        Self::of(command)
    }

    fn of(mut command: Command) -> anyhow::Result<Self> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().context("cannot start the load")?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the load has no pipes");
        };
        let mut load = LastingLoad {
            child,
            questions,
            answers: BufReader::new(answers),
        };
        while load.line()? != "begins" {}
        Ok(load)
    }

    /// Transactions per second in the time from now on.
    pub(super) fn rate_for(&mut self, length: Duration) -> anyhow::Result<f64> {
        let before = self.count()?;
        std::thread::sleep(length);
        let after = self.count()?;
        before
            .rate_until(after)
            .context("the load told of no time between two counts")
    }

    /// Transactions per second in as many stretches of time as there are in `on`. Between two stretches `switch` is told what `on` says
    /// of the next, where it says another thing; how long that takes is in neither. At the end it is off.
    pub(super) fn alternate(
        &mut self,
        on: &[bool],
        length: Duration,
        switch: &mut dyn FnMut(bool) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<f64>> {
        let mut is_on = false;
        let mut rates = Vec::with_capacity(on.len());
        for &wanted in on {
            if wanted != is_on {
                switch(wanted)?;
                is_on = wanted;
            }
            rates.push(self.rate_for(length)?);
        }
        if is_on {
            switch(false)?;
        }
        Ok(rates)
    }

    fn count(&mut self) -> anyhow::Result<Count> {
        // A load that has ended says so by its silence.
        let _ = self.questions.write_all(b"\n").and_then(|()| self.questions.flush());
        let line = self.line()?;
        Count::of(&line).with_context(|| format!("the load said {line:?} where a count was asked for"))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).context("reading from the load")?;
        if read == 0 {
            bail!("the load ended before its time");
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for LastingLoad {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Count {
    /// Reads `NANOSECONDS TRANSACTIONS`.
    fn of(line: &str) -> Option<Count> {
        let (at, transactions) = line.split_once(' ')?;
        Some(Count {
            at_ns: at.parse().ok()?,
            transactions: transactions.parse().ok()?,
        })
    }

    /// Transactions per second from this moment to a later one.
    fn rate_until(self, later: Count) -> Option<f64> {
        let seconds = later.at_ns.checked_sub(self.at_ns)? as f64 / 1e9;
        let transactions = later.transactions.checked_sub(self.transactions)?;
        (seconds > 0.0).then(|| transactions as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that does 100 transactions a second by its own account, of which it tells a second at every question.
    fn made_up(answers: u32) -> LastingLoad {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!(
            "echo opening; echo begins; for n in $(seq {answers}); do read question; echo ${{n}}000000000 ${{n}}00; done"
        ));
        LastingLoad::of(command).expect("sh runs")
    }

    #[test]
    fn rates_are_by_the_load_s_own_time_and_switches_stand_between_them() {
        let mut load = made_up(8);
        let mut told = Vec::new();
        let mut switch = |on: bool| {
            told.push(on);
            Ok(())
        };
        let on = [true, false, false, true];
        let rates = load.alternate(&on, Duration::from_millis(1), &mut switch);
        assert_eq!(rates.expect("it is alive"), [100.0; 4]);
        assert_eq!(told, [true, false, true, false]);
    }

    #[test]
    fn a_load_that_ends_early_is_no_rate() {
        let mut load = made_up(1);
        let rate = load.rate_for(Duration::ZERO);
        assert!(rate.is_err_and(|error| error.to_string().contains("before its time")));
    }

    #[test]
    fn what_is_no_count_is_none() {
        for line in ["", "1", "1 x", "1 2 3"] {
            assert_eq!(Count::of(line), None, "{line:?}");
        }
        let count = Count::of("2000000000 50").expect("a count");
        assert_eq!(count.rate_until(count), None);
        assert_eq!(
            Count::of("1000000000 10").and_then(|first| first.rate_until(count)),
            Some(40.0)
        );
    }
}
