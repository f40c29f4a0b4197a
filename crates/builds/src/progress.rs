//! What a fetch tells of itself while it goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Is told how far a fetch has come.
pub trait Progress {
    /// What is being done now, in words.
    fn stage(&mut self, what: &str);
    /// Bytes that are done, and of how many where that is known.
    fn bytes(&mut self, done: u64, of: Option<u64>);
    /// The part that is done, from 0 to 1, where bytes are not known.
    fn share(&mut self, done: f64);
    /// Something worth a line that stays.
    fn note(&mut self, text: &str);
}

/// Whom a fetch tells of itself, and who may stop it.
pub(crate) struct Watcher<'a> {
    pub(crate) progress: &'a mut dyn Progress,
    pub(crate) stop: &'a AtomicBool,
}

impl Watcher<'_> {
    /// # Errors
    /// The user said stop.
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        match self.stop.load(Ordering::SeqCst) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}

/// Tells nobody.
#[cfg(test)]
pub(crate) struct Silent;

#[cfg(test)]
impl Progress for Silent {
    fn stage(&mut self, _: &str) {}
    fn bytes(&mut self, _: u64, _: Option<u64>) {}
    fn share(&mut self, _: f64) {}
    fn note(&mut self, _: &str) {}
}
