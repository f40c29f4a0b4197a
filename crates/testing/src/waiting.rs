//! Waiting for what happens soon.

use std::time::{Duration, Instant};

/// Sixty times what anything that is waited for takes here: what has not come by then does not come.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something is so.
///
/// # Panics
/// It is not so within [`LIMIT`].
#[track_caller]
pub fn soon(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !so() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
