//! A watch over one process, for whoever asks for one.

use std::mem::MaybeUninit;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::code::CodeMap;
use super::features::KernelFeatures;
use super::options::WatchOptions;
use super::programs::TimerEvent;
use super::reading::WatchReading;
use super::watcher::{Request, Watcher};
use crate::error::ProbeError;
use crate::plain::Lack;

/// A watch over one process. It ends, and leaves nothing in the kernel, when it is dropped.
#[derive(Debug)]
pub struct Watch {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    timer_event: TimerEvent,
    features: KernelFeatures,
    frequency_hz: u32,
}

impl Watch {
    /// Begins to watch a process.
    ///
    /// # Errors
    /// [`ProbeError::BpfRefused`] where the kernel refuses the programs, [`ProbeError::Event`] where there is no timer,
    /// [`ProbeError::NoProcess`] where the process's memory map cannot be read.
    pub fn start(pid: u32, options: WatchOptions) -> Result<Self, ProbeError> {
        inside_initial_pid_namespace()?;
        let (requests, inbox) = channel();
        let (ready, started) = channel();
        let thread = std::thread::Builder::new()
            .name("scaleprof-watch".to_owned())
            .spawn(move || {
                let mut place = MaybeUninit::uninit();
                match Watcher::start(&mut place, pid, options) {
                    Ok(mut watcher) => {
                        let _ = ready.send(Ok((watcher.programs.timer_event, watcher.features)));
                        watcher.serve(&inbox);
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })
            .map_err(|error| ProbeError::Bpf {
                doing: "starting a thread",
                why: error.to_string(),
            })?;
        let (timer_event, features) = match started.recv() {
            Ok(result) => result?,
            Err(_) => return Err(gone()),
        };
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
            timer_event,
            features,
            frequency_hz: options.frequency_hz,
        })
    }

    /// Reads what happened since the last reading.
    pub fn read(&mut self) -> Result<WatchReading, ProbeError> {
        self.ask(Request::Read)
    }

    /// Where the code lies now.
    pub fn code(&self) -> Result<CodeMap, ProbeError> {
        self.ask(Request::Code)
    }

    /// Does nothing from now on, at the price of nothing, until it is [resumed](Self::resume): for measuring what the rest of the
    /// time costs. Time on CPU goes on being told in full; of what threads waited for meanwhile, it is concluded from the rest of the
    /// time, and samples on CPU are missing.
    ///
    /// # Errors
    /// [`ProbeError::Bpf`] where the kernel refuses, or the watch has ended.
    pub fn pause(&self) -> Result<(), ProbeError> {
        self.ask(Request::Pause)?
    }

    /// Goes on after a [pause](Self::pause), in the midst of the turn of watching or resting that it interrupted.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub fn resume(&self) -> Result<(), ProbeError> {
        self.ask(Request::Resume)?
    }

    /// The event that takes stacks of running threads, and how often a second and CPU.
    pub fn timer(&self) -> (TimerEvent, u32) {
        (self.timer_event, self.frequency_hz)
    }

    /// What cannot be measured since this kernel does not offer it, and which does.
    pub fn missing(&self) -> Vec<Lack> {
        self.features.missing()
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, ProbeError> {
        let (answer, answered) = channel();
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(request(answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread ends when nobody can ask any more, and takes the programs out of the kernel.
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn gone() -> ProbeError {
    ProbeError::Bpf {
        doing: "asking the watching thread",
        why: "it has ended".to_owned(),
    }
}

/// The kernel numbers processes by the initial PID namespace; from inside of another the numbers mean something else.
fn inside_initial_pid_namespace() -> Result<(), ProbeError> {
    // PROC_PID_INIT_INO of include/linux/proc_ns.h.
    const INITIAL: &str = "pid:[4026531836]";
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(link) if link.as_os_str() != INITIAL => Err(ProbeError::Bpf {
            doing: "watching from inside a container",
            why: "its PIDs are not those of the kernel. Run scaleprof on the host, or: docker run --pid=host"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}
