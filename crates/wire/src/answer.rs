//! How long one answer of a server is waited for and how much of it is taken: a server that hangs, drips or never ends is left.

use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How often a wait looks whether it is still wanted.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Most bytes of one answer. What is asked here is answered in kilobytes; a hundred thousand sessions of a process list are 20 MB.
pub(crate) const MOST_BYTES: usize = 64 << 20;

/// Time that an answer under way has left once the end was asked for: enough for one that is nearly there.
const STILL_UNDER_WAY: Duration = Duration::from_secs(1);
/// Time that each statement has that is sent after it, such as one that removes what was made.
const CLEANING_UP: Duration = Duration::from_secs(30);

/// When the end was asked for.
static END_ASKED_FOR: OnceLock<Instant> = OnceLock::new();

/// The user asked this process to end: answers that are waited for are given up a second later, and statements that are sent from now
/// on get half a minute each. For good, as the end of a process is.
pub fn end_soon() {
    let _ = END_ASKED_FOR.set(Instant::now());
}

/// Why an answer was given up.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the server answered")]
struct EndAskedFor;

/// Whether an answer that was given up since the user asked for the end is behind an error.
pub fn was_stopped(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut behind = Some(error);
    while let Some(error) = behind {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if inner.is_some_and(|inner| inner.is::<EndAskedFor>()) {
            return true;
        }
        behind = error.source();
    }
    false
}

/// The bounds of one answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    began: Instant,
    /// Longest time for the whole of it; none waits for ever.
    longest: Option<Duration>,
    bytes: usize,
}

impl Answer {
    /// The bounds of an answer that is waited for from now on.
    pub(crate) fn within(longest: Option<Duration>) -> Self {
        Answer {
            began: Instant::now(),
            longest,
            bytes: 0,
        }
    }

    /// The same bounds for the next answer.
    pub(crate) fn next(self) -> Self {
        Answer::within(self.longest)
    }

    /// The same answer with another time.
    pub(crate) fn longest(self, longest: Option<Duration>) -> Self {
        Answer { longest, ..self }
    }

    /// Nothing came for a moment.
    ///
    /// # Errors
    /// It is waited for no longer, and why.
    pub(crate) fn still_wanted(&self) -> io::Result<()> {
        self.still_wanted_at(Instant::now(), END_ASKED_FOR.get().copied())
    }

    fn still_wanted_at(&self, now: Instant, end_asked_for: Option<Instant>) -> io::Result<()> {
        let end = end_asked_for.map(|asked| match self.began <= asked {
            true => asked + STILL_UNDER_WAY,
            false => self.began + CLEANING_UP,
        });
        if end.is_some_and(|end| now >= end) {
            return Err(io::Error::other(EndAskedFor));
        }
        match self.longest {
            Some(longest) if now.duration_since(self.began) >= longest => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the server did not answer within {} s", longest.as_secs()),
            )),
            _ => Ok(()),
        }
    }

    /// So many bytes more came.
    ///
    /// # Errors
    /// They are more than any answer has, or come too slowly.
    pub(crate) fn took(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_BYTES {
            return Err(too_much());
        }
        self.still_wanted()
    }

    /// So many bytes are announced to come in one piece.
    ///
    /// # Errors
    /// They are more than an answer has.
    pub(crate) fn announces(&self, bytes: usize) -> io::Result<()> {
        match bytes > MOST_BYTES.saturating_sub(self.bytes) {
            true => Err(too_much()),
            false => Ok(()),
        }
    }
}

fn too_much() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "its answer has more than {} MiB, as no server's answer to this has",
            MOST_BYTES >> 20
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_waited_for_as_long_as_was_said() {
        let answer = Answer::within(Some(Duration::from_secs(60)));
        let after = |seconds: u64| answer.still_wanted_at(answer.began + Duration::from_secs(seconds), None);
        assert!(after(59).is_ok());
        assert_eq!(after(60).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let patient = answer.longest(None);
        assert!(
            patient
                .still_wanted_at(answer.began + Duration::from_secs(1_000_000), None)
                .is_ok()
        );
    }

    #[test]
    fn the_end_ends_what_is_under_way_and_leaves_time_to_clean_up() {
        let under_way = Answer::within(None);
        let asked = under_way.began + Duration::from_secs(5);
        let at = |answer: &Answer, seconds: f64| {
            answer
                .still_wanted_at(under_way.began + Duration::from_secs_f64(seconds), Some(asked))
                .is_ok()
        };
        assert_eq!(
            [5.0, 5.9, 6.0].map(|seconds| at(&under_way, seconds)),
            [true, true, false]
        );
        let later = Answer {
            began: under_way.began + Duration::from_secs(6),
            ..under_way
        };
        assert_eq!(
            [6.0, 35.9, 36.0].map(|seconds| at(&later, seconds)),
            [true, true, false]
        );
    }

    #[test]
    fn an_end_that_was_asked_for_is_told_from_other_errors() {
        let under_way = Answer::within(None);
        let given_up = under_way.still_wanted_at(under_way.began + Duration::from_secs(1), Some(under_way.began));
        let lost = crate::Error::lost("waiting")(given_up.unwrap_err());
        assert!(was_stopped(&lost));
        let late = Answer::within(Some(Duration::ZERO)).still_wanted().unwrap_err();
        assert!(!was_stopped(&crate::Error::lost("waiting")(late)));
    }

    #[test]
    fn no_more_is_taken_than_an_answer_has() {
        let mut answer = Answer::within(None);
        assert!(answer.announces(MOST_BYTES).is_ok());
        assert!(answer.took(MOST_BYTES).is_ok());
        assert!(answer.announces(1).is_err());
        assert!(answer.took(1).is_err());
    }
}
