//! Several runs at once, which take turns on the machine.

use crate::error::RunError;
use crate::options::RunOptions;
use crate::progress::{MeasurementDone, MeasurementStart, Progress};
use crate::run::{RunResult, run_at};
use crate::turns::{Turns, turn_ns};
use scaleprof_workload::schema::FillProgress;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};

/// Carries out runs side by side, each as [`run`](crate::run()) does one, and gives what each left, in their order, which is that of their
/// turns. `names` are what they are called.
///
/// What is heard of them is of all as far as it is words, which begin with the run's name, and otherwise of the first that still goes on:
/// they climb the same ladder in the same order.
pub(crate) fn run_side_by_side(
    runs: &[RunOptions],
    names: &[&str],
    stop: &Arc<AtomicBool>,
    progress: &mut dyn Progress,
) -> Vec<Result<RunResult, RunError>> {
    let most = runs.iter().map(RunOptions::most_connections).max();
    let (turns, seats) = Turns::new(runs.len(), turn_ns(most.unwrap_or(1)));
    std::thread::scope(|scope| {
        let (sender, heard) = channel();
        let running: Vec<_> = (0..)
            .zip(runs.iter().zip(names).zip(seats))
            .map(|(number, ((options, name), seat))| {
                let mut relay = Relay {
                    number,
                    name: (*name).to_owned(),
                    heard: sender.clone(),
                };
                scope.spawn(move || {
                    let _leaving = seat.clone().leaving();
                    run_at(options, Some(seat), stop, &mut relay)
                })
            })
            .collect();
        drop(sender);
        scope.spawn(|| turns.conduct());
        let mut going_on: Vec<usize> = (0..runs.len()).collect();
        for Heard { number, what } in heard {
            match what {
                What::Over => going_on.retain(|one| *one != number),
                What::Words(tell) => tell(progress),
                What::Figures(tell) if going_on.first() == Some(&number) => tell(progress),
                What::Figures(_) => {}
            }
        }
        let results = running.into_iter().map(|run| run.join());
        results
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// What a run tells its watcher.
struct Heard {
    number: usize,
    what: What,
}

/// Tells one thing to whoever watches.
type Telling = Box<dyn FnOnce(&mut dyn Progress) + Send>;

enum What {
    /// What everybody should hear.
    Words(Telling),
    /// How far it is.
    Figures(Telling),
    Over,
}

/// Tells it to who watches all runs.
struct Relay {
    number: usize,
    /// What the run is called.
    name: String,
    heard: Sender<Heard>,
}

impl Relay {
    fn tell(&self, what: What) {
        // Who watches outlives the runs.
        let _ = self.heard.send(Heard {
            number: self.number,
            what,
        });
    }

    fn named(&self, text: &str) -> String {
        format!("{}: {text}", self.name)
    }

    fn words(&self, tell: impl FnOnce(&mut dyn Progress) + Send + 'static) {
        self.tell(What::Words(Box::new(tell)));
    }

    fn figures(&self, tell: impl FnOnce(&mut dyn Progress) + Send + 'static) {
        self.tell(What::Figures(Box::new(tell)));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.tell(What::Over);
    }
}

impl Progress for Relay {
    fn stage(&mut self, what: &str) {
        let what = self.named(what);
        self.words(move |progress| progress.stage(&what));
    }

    fn filling(&mut self, filled: FillProgress) {
        self.words(move |progress| progress.filling(filled));
    }

    fn measurement_begins(&mut self, start: MeasurementStart) {
        self.figures(move |progress| progress.measurement_begins(start));
    }

    fn connecting(&mut self, open: u32, wanted: u32) {
        self.figures(move |progress| progress.connecting(open, wanted));
    }

    fn second(&mut self, second: u32, transactions: u64, p99_ns: u64) {
        self.figures(move |progress| progress.second(second, transactions, p99_ns));
    }

    fn watched(&mut self, second: u32, of: u32, threads: usize) {
        self.figures(move |progress| progress.watched(second, of, threads));
    }

    fn measurement_done(&mut self, done: MeasurementDone) {
        self.figures(move |progress| progress.measurement_done(done));
    }

    fn refined(&mut self, rungs: &[u32]) {
        let rungs = rungs.to_vec();
        self.figures(move |progress| progress.refined(&rungs));
    }

    fn warning(&mut self, text: &str) {
        let text = self.named(text);
        self.words(move |progress| progress.warning(&text));
    }

    fn remains(&mut self, text: &str) {
        let text = self.named(text);
        self.words(move |progress| progress.remains(&text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what it is told.
    #[derive(Default)]
    struct Told(Vec<String>);

    impl Progress for Told {
        fn stage(&mut self, what: &str) {
            self.0.push(what.to_owned());
        }

        fn warning(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
    }

    #[test]
    fn words_of_runs_at_the_same_time_say_of_which_they_are() {
        let (sender, heard) = channel();
        let mut relay = Relay {
            number: 0,
            name: "large log".to_owned(),
            heard: sender,
        };
        relay.stage("starting the server");
        relay.warning("the disk is slow");
        drop(relay);
        let mut told = Told::default();
        for Heard { what, .. } in heard {
            if let What::Words(tell) = what {
                tell(&mut told);
            }
        }
        assert_eq!(
            told.0,
            ["large log: starting the server", "large log: the disk is slow"]
        );
    }
}
