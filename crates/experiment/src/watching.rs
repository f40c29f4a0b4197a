//! Watching a server as a run does, for measuring what it costs.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use scaleprof_probe::{ProbeError, Sampler, SamplerOptions, WatchOptions};

use crate::threads::ThreadWatch;

/// A run reads everything so often.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Nothing is read in a pause.
const NOT_SOON: Duration = Duration::from_secs(3600);

/// All that a run watches a server with, read once a second and thrown away, until it is dropped.
#[derive(Debug)]
pub struct Watching {
    requests: Option<Sender<Request>>,
    reader: Option<JoinHandle<()>>,
}

/// To pause or to go on, and where to say how that went.
struct Request {
    pause: bool,
    answer: Sender<Result<(), ProbeError>>,
}

impl Watching {
    /// Begins.
    ///
    /// # Errors
    /// Where the server's threads cannot be watched.
    pub fn start(pid: u32, options: WatchOptions) -> Result<Self, ProbeError> {
        let (mut threads, _) = ThreadWatch::start(pid, options)?;
        let mut sampler = Sampler::start(pid, SamplerOptions::default())?;
        let (requests, inbox) = channel::<Request>();
        let reader = std::thread::spawn(move || {
            let mut due = Instant::now();
            // What was left until the next reading when the pause began.
            let mut paused: Option<Duration> = None;
            loop {
                let until_due = due.saturating_duration_since(Instant::now());
                match inbox.recv_timeout(paused.map_or(until_due, |_| NOT_SOON)) {
                    Ok(Request { pause, answer }) => {
                        let _ = answer.send(threads.set_paused(pause));
                        match (pause, paused) {
                            (true, None) => paused = Some(until_due),
                            (false, Some(left)) => {
                                due = Instant::now() + left;
                                paused = None;
                            }
                            _ => {}
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        let _ = (sampler.sample(), threads.read());
                        due = Instant::now() + READ_EVERY;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Ok(Self {
            requests: Some(requests),
            reader: Some(reader),
        })
    }

    /// Stops watching for a while, or goes on where it stopped.
    ///
    /// # Errors
    /// Where the kernel refuses, or watches without BPF.
    pub fn set_paused(&self, pause: bool) -> Result<(), ProbeError> {
        let ended = || ProbeError::Bpf {
            doing: "pausing",
            why: "the watch has ended".to_owned(),
        };
        let (answer, answered) = channel();
        let requests = self.requests.as_ref().ok_or_else(ended)?;
        requests.send(Request { pause, answer }).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())?
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
