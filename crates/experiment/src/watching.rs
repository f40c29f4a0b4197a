//! Watching a server as a run does, for measuring what it costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use scaleprof_probe::{ProbeError, Sampler, SamplerOptions, WatchOptions};

use crate::threads::ThreadWatch;

/// All that a run watches a server with, read once a second and thrown away, until it is dropped.
#[derive(Debug)]
pub struct Watching {
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Watching {
    /// Begins.
    ///
    /// # Errors
    /// Where the server's threads cannot be watched.
    pub fn start(pid: u32, options: WatchOptions) -> Result<Self, ProbeError> {
        let (mut threads, _) = ThreadWatch::start(pid, options)?;
        let mut sampler = Sampler::start(pid, SamplerOptions::default())?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let reader = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let _ = (sampler.sample(), threads.read());
                std::thread::park_timeout(Duration::from_secs(1));
            }
        });
        Ok(Self {
            over,
            reader: Some(reader),
        })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.thread().unpark();
            let _ = reader.join();
        }
    }
}
