//! The time of a load, which stands while the load rests.

use super::worker::SECOND_NS;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often one who waits for the clock looks whether it still should.
const LOOK: Duration = Duration::from_millis(50);
/// Set in [`Hands::standing`] while the clock stands.
const STANDS: u64 = 1 << 63;
/// In [`Hands::standing`] while it is being stopped: whoever looks must wait for what it will show, which may not be less than what it
/// showed to anybody.
const TURNED: u64 = u64::MAX;

/// What a load tells the time by: CLOCK_MONOTONIC, less the time for which the clock was made to stand.
///
/// Two servers that are measured side by side take turns, and the one whose turn it is not is stopped. By its own clock it was never
/// stopped: a second of its load holds a second of its work, and a transaction that was under way at the end of a turn took as long as
/// it was worked on. The clock of [`LoadClock::default`] never stands and costs nothing.
#[derive(Debug, Clone, Default)]
pub struct LoadClock(Option<Arc<Hands>>);

#[derive(Debug, Default)]
struct Hands {
    /// While it goes the nanoseconds that it has stood for so far; while it stands the time that it shows, and [`STANDS`].
    standing: AtomicU64,
    /// Held by who makes it stand or go.
    turned: Mutex<()>,
    goes: Condvar,
}

impl LoadClock {
    /// One that can be made to stand. It goes.
    pub fn that_can_stand() -> LoadClock {
        LoadClock(Some(Arc::default()))
    }

    /// The time, nanoseconds. It never goes back.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            None => monotonic_ns(),
            Some(hands) => hands.now_ns(),
        }
    }

    /// Makes it stand, where it can.
    pub fn stand(&self) {
        if let Some(hands) = &self.0 {
            let _turned = hands.turned();
            let before = hands.standing.load(Ordering::SeqCst);
            if before & STANDS == 0 {
                hands.standing.store(TURNED, Ordering::SeqCst);
                let shown = monotonic_ns() - before;
                hands.standing.store(shown | STANDS, Ordering::SeqCst);
            }
        }
    }

    /// Makes it go on from where it stands.
    pub fn go(&self) {
        if let Some(hands) = &self.0 {
            let _turned = hands.turned();
            let shown = hands.standing.load(Ordering::SeqCst);
            if shown & STANDS != 0 {
                let stood = monotonic_ns().saturating_sub(shown & !STANDS);
                hands.standing.store(stood, Ordering::SeqCst);
                hands.goes.notify_all();
            }
        }
    }

    /// Waits while it stands, or until `give_up` is set.
    #[inline]
    pub(crate) fn wait_while_it_stands(&self, give_up: &AtomicBool) {
        if let Some(hands) = &self.0
            && hands.stands()
        {
            hands.wait(give_up);
        }
    }
}

impl Hands {
    fn now_ns(&self) -> u64 {
        loop {
            let before = self.standing.load(Ordering::SeqCst);
            if before == TURNED {
                std::thread::yield_now();
                continue;
            }
            if before & STANDS != 0 {
                return before & !STANDS;
            }
            let now = monotonic_ns();
            // A thread that loses its CPU here must not take the time after a rest for one before it.
            if self.standing.load(Ordering::SeqCst) == before {
                return now - before;
            }
        }
    }

    fn stands(&self) -> bool {
        self.standing.load(Ordering::SeqCst) & STANDS != 0
    }

    fn turned(&self) -> MutexGuard<'_, ()> {
        self.turned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn wait(&self, give_up: &AtomicBool) {
        let mut turned = self.turned();
        while self.stands() && !give_up.load(Ordering::Relaxed) {
            let waited = self.goes.wait_timeout(turned, LOOK);
            turned = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// CLOCK_MONOTONIC, nanoseconds.
#[inline]
fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_the_time_less_its_rests() {
        let (usual, clock) = (LoadClock::default(), LoadClock::that_can_stand());
        let apart = || usual.now_ns().abs_diff(clock.now_ns());
        assert!(apart() < 20_000_000);
        clock.stand();
        let shown = clock.now_ns();
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(clock.now_ns(), shown);
        clock.stand();
        assert_eq!(clock.now_ns(), shown, "one that stands already stands on");
        clock.go();
        clock.go();
        assert!(clock.now_ns() >= shown);
        assert!(apart() >= 60_000_000);
    }

    #[test]
    fn it_never_goes_back_whoever_looks_while_it_is_turned() {
        let clock = LoadClock::that_can_stand();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !over.load(Ordering::Relaxed) {
                        let now = clock.now_ns();
                        assert!(now >= last, "{now} after {last}");
                        last = now;
                    }
                });
            }
            for _ in 0..2000 {
                clock.stand();
                std::thread::sleep(Duration::from_micros(20));
                clock.go();
                std::thread::sleep(Duration::from_micros(20));
            }
            over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn who_waits_for_it_goes_on_with_it_or_gives_up() {
        let clock = LoadClock::that_can_stand();
        let give_up = AtomicBool::new(false);
        clock.wait_while_it_stands(&give_up);
        clock.stand();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| clock.wait_while_it_stands(&give_up));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waits.is_finished());
            clock.go();
            waits.join().expect("it goes on");
            clock.stand();
            let waits = scope.spawn(|| clock.wait_while_it_stands(&give_up));
            give_up.store(true, Ordering::Relaxed);
            waits.join().expect("it gives up");
        });
    }
}
