//! Asking a server something at every end of a second, on a thread and a connection of its own: one that is slow to answer never delays
//! the seconds of the load.

use scaleprof_wire::Client;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The end of a second; 0 is the start of the measurement.
pub(crate) type Boundary = u32;

/// What a server answered.
pub(crate) enum Answer<T> {
    Taken(T),
    /// It came too late to stand for the end of that second.
    TooLate,
    /// The server or the connection is gone.
    Gone,
}

/// Asks at every [`tick`](BoundaryWatch::tick).
pub(crate) struct BoundaryWatch<T> {
    ticks: Sender<(Boundary, Instant)>,
    answers: Receiver<(Boundary, T)>,
}

impl<T: Send + 'static> BoundaryWatch<T> {
    /// Starts on a connection that is open already: opening one under load would wait behind the load. `ask` is told when the tick was.
    pub(crate) fn start(
        name: &str,
        mut client: Client,
        mut ask: impl FnMut(&mut Client, Instant) -> Answer<T> + Send + 'static,
    ) -> io::Result<Self> {
        let (ticks, inbox) = channel::<(Boundary, Instant)>();
        let (sender, answers) = channel();
        // Never joined: a server that stands still may not answer for ever. The thread ends with the connection.
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Ok(mut tick) = inbox.recv() {
                // When it is behind, only the newest boundary can still be met.
                while let Ok(newer) = inbox.try_recv() {
                    tick = newer;
                }
                let (boundary, at) = tick;
                match ask(&mut client, at) {
                    Answer::Taken(answer) => {
                        if sender.send((boundary, answer)).is_err() {
                            return;
                        }
                    }
                    Answer::TooLate => {}
                    Answer::Gone => return,
                }
            }
            client.quit();
        })?;
        Ok(BoundaryWatch { ticks, answers })
    }

    /// A second ends now. Does not wait.
    pub(crate) fn tick(&self, boundary: Boundary) {
        // The thread is gone when the server went away: there is nothing to read then.
        let _ = self.ticks.send((boundary, Instant::now()));
    }

    /// All answers that came in time; the last is waited for, at most so long.
    pub(crate) fn finish(self, last: Duration) -> BTreeMap<Boundary, T> {
        drop(self.ticks);
        let deadline = Instant::now() + last;
        let mut all = BTreeMap::new();
        while let Ok((boundary, answer)) = self
            .answers
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            all.insert(boundary, answer);
        }
        all
    }
}
