//! Runs side by side that take turns on the machine.
//!
//! The speed of a machine changes from second to second and from minute to minute, and a virtual
//! one's by several percent. Two servers that are measured one after the other differ by that; two
//! that take turns of a quarter of a second, or somewhat more where there are many threads to stop,
//! meet the same machine. Whoever's turn it is not is stopped: its server's processes by a signal
//! ([`Pauser`]), its load by a clock that stands ([`LoadClock`]), and what the machine counts in
//! the meantime is not counted ([`MachineRests`]).
//!
//! Every run has a [`Seat`] and does all else at its own pace: starting its server, opening
//! connections, writing its tables. Turns are taken from when all have opened the connections of a
//! measurement until the last of them has ended it.

mod order;

use crate::error::RunError;
use order::{order, turn_end_ns};
pub(crate) use order::{turn_ns, turn_seconds};
use scaleprof_bundle::Interleaving;
use scaleprof_probe::MachineRests;
use scaleprof_server::Pauser;
use scaleprof_workload::LoadClock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often one who waits looks whether it was asked to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The table at which runs take turns.
#[derive(Debug)]
pub(crate) struct Turns {
    seats: Mutex<Vec<Place>>,
    changed: Condvar,
    /// Held by the run that starts its server.
    preparing: Mutex<()>,
    /// How long a turn is.
    turn_ns: u64,
}

/// What is known of a run.
#[derive(Debug)]
struct Place {
    phase: Phase,
    clock: LoadClock,
    /// What was learnt when the run was ready for its measurement.
    player: Option<Player>,
    /// What its clock showed then.
    began_ns: u64,
    /// How often its server was to rest, and how often of these it did not stand still in time.
    rests: u32,
    restless: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// At something that is not measured.
    Away,
    /// Stopped, with all connections open, before this measurement.
    Ready { measurement: u32 },
    /// It is its turn.
    Playing,
    /// Stopped, as it is another's turn.
    Resting,
    /// Its measurement is over; it waits for the others.
    Done,
    /// It takes no part any more.
    Left,
}

/// What is stopped and let go on.
#[derive(Debug, Clone)]
pub(crate) struct Player {
    pub(crate) server: Pauser,
    /// Where the machine is looked at.
    pub(crate) rests: Option<Arc<MachineRests>>,
}

/// One run's place at the table.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    turns: Arc<Turns>,
    number: usize,
}

/// Leaves the table when the run is over, however it ended: the others would wait for it.
pub(crate) struct Leaving(Seat);

impl Turns {
    /// A table for so many runs, and their seats. A turn lasts so many nanoseconds.
    pub(crate) fn new(runs: usize, turn_ns: u64) -> (Arc<Turns>, Vec<Seat>) {
        let place = || Place {
            phase: Phase::Away,
            clock: LoadClock::that_can_stand(),
            player: None,
            began_ns: 0,
            rests: 0,
            restless: 0,
        };
        let turns = Arc::new(Turns {
            seats: Mutex::new(std::iter::repeat_with(place).take(runs).collect()),
            changed: Condvar::new(),
            preparing: Mutex::new(()),
            turn_ns,
        });
        let seat = |number| Seat {
            turns: turns.clone(),
            number,
        };
        let seats = (0..runs).map(seat).collect();
        (turns, seats)
    }

    /// Gives the runs their turns until all have left.
    pub(crate) fn conduct(&self) {
        while let Some((measurement, seats)) = self.gather() {
            let order = order(&seats, measurement);
            let mut cycle = 0;
            loop {
                let playing = self.of_phase(&order, |phase| matches!(phase, Phase::Ready { .. } | Phase::Resting));
                if playing.is_empty() {
                    break;
                }
                // Whoever is alone needs not rest for anybody.
                let alone = playing.len() == 1;
                for seat in playing {
                    self.turn(seat, (!alone).then(|| turn_end_ns(self.turn_ns, cycle)));
                }
                cycle += 1;
            }
            self.release(&seats);
        }
    }

    /// Waits until all that are still there are ready, and gives those whose measurement is the
    /// first; none when all have left. Whoever is done before anybody plays was asked to stop.
    fn gather(&self) -> Option<(u32, Vec<usize>)> {
        let mut places = self.places();
        loop {
            for place in places.iter_mut().filter(|place| place.phase == Phase::Done) {
                place.release();
                self.changed.notify_all();
            }
            if places.iter().all(|place| place.phase == Phase::Left) {
                return None;
            }
            let measurement = |place: &Place| match place.phase {
                Phase::Ready { measurement } => Some(measurement),
                _ => None,
            };
            let waited_for = places.iter().filter(|place| place.phase == Phase::Away);
            if let (0, Some(first)) = (waited_for.count(), places.iter().filter_map(measurement).min()) {
                let all = places.iter().enumerate();
                let of_it = all.filter(|(_, place)| measurement(place) == Some(first));
                return Some((first, of_it.map(|(at, _)| at).collect()));
            }
            places = self.wait(places, LOOK);
        }
    }

    /// One run's turn: until its clock shows so much more than when its measurement began, or its
    /// measurement ends.
    fn turn(&self, seat: usize, until_ns: Option<u64>) {
        let mut places = self.places();
        let place = &mut places[seat];
        let Some((began_ns, player)) = place.begin_turn() else {
            return;
        };
        let clock = place.clock.clone();
        self.changed.notify_all();
        while places[seat].phase == Phase::Playing {
            let left = until_ns.map(|until| (began_ns + until).saturating_sub(clock.now_ns()));
            match left {
                Some(0) => break,
                Some(left) => places = self.wait(places, Duration::from_nanos(left)),
                None => places = self.wait(places, LOOK),
            }
        }
        let place = &mut places[seat];
        if place.phase == Phase::Left {
            return;
        }
        if place.phase == Phase::Playing {
            place.phase = Phase::Resting;
        }
        // One that is done is stopped too: its server still has things to do, and it is another's turn.
        place.stop();
        drop(places);
        let stands = player.wait_until_it_stands();
        self.places()[seat].rests(stands);
    }

    /// The measurement is over for all: they go on as they like.
    fn release(&self, seats: &[usize]) {
        let mut places = self.places();
        for &seat in seats {
            places[seat].release();
        }
        self.changed.notify_all();
    }

    fn of_phase(&self, seats: &[usize], which: impl Fn(Phase) -> bool) -> Vec<usize> {
        let places = self.places();
        seats
            .iter()
            .copied()
            .filter(|&seat| which(places[seat].phase))
            .collect()
    }

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, places: MutexGuard<'a, Vec<Place>>, longest: Duration) -> MutexGuard<'a, Vec<Place>> {
        let waited = self.changed.wait_timeout(places, longest);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Place {
    /// Lets it go on, if it waits for that; gives the time by its clock at which its measurement
    /// began.
    fn begin_turn(&mut self) -> Option<(u64, Player)> {
        let waits = matches!(self.phase, Phase::Ready { .. } | Phase::Resting);
        let player = self.player.clone().filter(|_| waits)?;
        self.phase = Phase::Playing;
        self.go_on();
        Some((self.began_ns, player))
    }

    /// Lets it go on as it likes, where it took part in a measurement.
    fn release(&mut self) {
        if self.phase == Phase::Done {
            self.phase = Phase::Away;
            self.go_on();
            self.player = None;
        }
    }

    /// Counts a rest, and whether its server stands in it.
    fn rests(&mut self, stands: bool) {
        self.rests += 1;
        self.restless += u32::from(!stands);
    }

    fn stop(&self) {
        if let Some(player) = &self.player {
            player.server.pause();
            self.clock.stand();
        }
    }

    fn go_on(&self) {
        if let Some(player) = &self.player {
            player.rests.iter().for_each(|rests| rests.end());
            player.server.go_on();
            self.clock.go();
        }
    }
}

impl Player {
    /// Waits until it stands: from then on what the machine does is another's. False where it did not in time.
    fn wait_until_it_stands(&self) -> bool {
        let stands = self.server.is_paused();
        self.rests.iter().for_each(|rests| rests.begin());
        stands
    }
}

impl Seat {
    /// How many runs take turns.
    pub(crate) fn table(&self) -> u32 {
        u32::try_from(self.turns.places().len()).unwrap_or(u32::MAX)
    }

    /// What a bundle says of it.
    pub(crate) fn turns(&self) -> Interleaving {
        Interleaving {
            runs: self.table(),
            seconds: self.turns.turn_ns as f64 / 1e9,
        }
    }

    /// What there is to say where its server did not stand still when it was to rest.
    pub(crate) fn restless(&self) -> Option<String> {
        let place = &self.turns.places()[self.number];
        (place.restless > 0).then(|| {
            format!(
                "the server was not fully paused in {} of {} slices; its activity overlaps the slices of another server",
                place.restless, place.rests
            )
        })
    }

    /// Keeps the others from starting their servers as long as the answer is held: prepared data are made and copied by one at a time, and
    /// so is a disk filled and read.
    ///
    /// # Errors
    /// It was asked to stop while another held it: there is nothing to be prepared any more.
    pub(crate) fn prepare_alone(&self, stop: &AtomicBool) -> Result<MutexGuard<'_, ()>, RunError> {
        let alone = self.turns.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        match stop.load(Ordering::Relaxed) {
            true => Err(RunError::Stopped),
            false => Ok(alone),
        }
    }

    /// What the load tells the time by.
    pub(crate) fn clock(&self) -> LoadClock {
        self.turns.places()[self.number].clock.clone()
    }

    /// The connections of a measurement are open: stops the server and waits for the first turn, or
    /// for `stop`.
    pub(crate) fn ready(&self, measurement: u32, player: Player, stop: &AtomicBool) {
        let mut places = self.turns.places();
        let place = &mut places[self.number];
        place.player = Some(player.clone());
        place.stop();
        place.began_ns = place.clock.now_ns();
        let stands = player.wait_until_it_stands();
        place.rests(stands);
        place.phase = Phase::Ready { measurement };
        self.turns.changed.notify_all();
        while matches!(places[self.number].phase, Phase::Ready { .. }) && !stop.load(Ordering::Relaxed) {
            places = self.turns.wait(places, LOOK);
        }
    }

    /// The load of the measurement is over, or it could not be begun: waits until it is over for
    /// all. The server goes on then.
    pub(crate) fn done(&self) {
        let mut places = self.turns.places();
        if places[self.number].player.is_none() {
            return;
        }
        places[self.number].phase = Phase::Done;
        self.turns.changed.notify_all();
        while places[self.number].phase == Phase::Done {
            places = self.turns.wait(places, LOOK);
        }
    }

    /// Leaves the table when the answer is dropped.
    pub(crate) fn leaving(self) -> Leaving {
        Leaving(self)
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Leaving(Seat { turns, number }) = self;
        // Its server is gone or about to be killed: nothing of it is touched any more.
        turns.places()[*number].phase = Phase::Left;
        turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
