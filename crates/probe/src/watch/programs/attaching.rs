//! Which programs are in the kernel's way: at switches and wake-ups, and where it fights for its locks.

use std::time::Duration;

use super::super::clock::monotonic_ns;
use super::super::fights::Fought;
use super::super::layout::{counted, fights, resting};
use super::super::libbpf_log::LibbpfLog;
use super::Programs;
use crate::error::ProbeError;
use crate::process::own_thread_clock;

impl Programs<'_> {
    pub(super) fn attach_switches(&mut self) -> Result<(), ProbeError> {
        let log = LibbpfLog::listen();
        let failed = |doing| log.failed(doing);
        let programs = &self.skeleton.progs;
        for (program, doing) in [
            (&programs.on_switch, "watching context switches"),
            (&programs.on_waking, "watching wake-ups"),
        ] {
            self.switch_links.push(program.attach().map_err(failed(doing))?);
        }
        Ok(())
    }

    /// Watches fights for the kernel's locks, where that is possible and not done already.
    pub(super) fn attach_fights(&mut self) -> Result<(), ProbeError> {
        if !self.sees_kernel_locks || !self.fight_links.is_empty() {
            return Ok(());
        }
        let log = LibbpfLog::listen();
        let began = own_thread_clock();
        self.change(|control| control.fights = fights::GET_READY);
        let programs = &self.skeleton.progs;
        // Ends first: a fight of which only the beginning is seen would never end.
        let attached = [&programs.on_contention_end, &programs.on_contention].map(|program| program.attach());
        let [Ok(ends), Ok(beginnings)] = attached else {
            let error = attached.into_iter().find_map(Result::err);
            self.detach_fights();
            return error.map_or(Ok(()), |error| Err(log.failed("watching the kernel's locks")(error)));
        };
        self.fight_links = vec![ends, beginnings];
        self.change(|control| {
            control.fights_epoch = control.fights_epoch.wrapping_add(1);
            control.fights = fights::SEEN;
        });
        let took = own_thread_clock().saturating_sub(began);
        self.fights.attached(took, self.fought(), monotonic_ns());
        Ok(())
    }

    fn detach_fights(&mut self) {
        self.change(|control| control.fights = fights::UNSEEN);
        self.fight_links.clear();
    }

    fn fought(&self) -> Fought {
        Fought {
            all: self.count(counted::FIGHTS),
            asleep: self.count(counted::SLEEPING_FIGHTS),
        }
    }

    /// Takes the programs at switches and wake-ups out of the kernel's way for a rest, and those at its locks where to stay would
    /// cost too much. What they saw ends at `rested_from`.
    pub(crate) fn rest(&mut self, rest: Duration) -> Result<(), ProbeError> {
        self.leave_switches()?;
        if !self.fight_links.is_empty() && !self.fights.stay(self.fought(), monotonic_ns(), rest) {
            self.detach_fights();
        }
        Ok(())
    }

    /// Between two stints without a rest: the programs at the kernel's locks go where they cost too much, and come back.
    pub(crate) fn review_fights(&mut self) -> Result<(), ProbeError> {
        let now = monotonic_ns();
        if self.fight_links.is_empty() {
            return match self.fights.are_due(now) {
                true => self.attach_fights(),
                false => Ok(()),
            };
        }
        if !self.fights.stay(self.fought(), now, Duration::ZERO) {
            self.detach_fights();
        }
        Ok(())
    }

    /// Takes all programs out of the kernel's way that run more often than threads begin and end. Returns whether those at the kernel's
    /// locks were there.
    pub(crate) fn leave(&mut self) -> Result<bool, ProbeError> {
        if !self.switch_links.is_empty() {
            self.leave_switches()?;
        }
        let saw_fights = !self.fight_links.is_empty();
        self.detach_fights();
        Ok(saw_fights)
    }

    /// After a pause of so many nanoseconds: puts the programs at the kernel's locks back if they were there.
    pub(crate) fn resume_fights(&mut self, saw_fights: bool, paused: u64) -> Result<(), ProbeError> {
        self.fights.put_off(paused);
        match saw_fights {
            true => self.attach_fights(),
            false => Ok(()),
        }
    }

    fn leave_switches(&mut self) -> Result<(), ProbeError> {
        // Since when threads are queued, which nobody will know later.
        self.run_over_threads()?;
        self.change(|control| control.rested_from = monotonic_ns());
        self.detach_switches();
        Ok(())
    }

    fn detach_switches(&mut self) {
        self.change(|control| control.resting = resting::RESTS);
        self.switch_links.clear();
    }

    /// Puts them back. Threads that do not run are brought up to date; those that run, their next switch does.
    pub(crate) fn go_on(&mut self) -> Result<(), ProbeError> {
        // Half of them would see half of the truth: nothing counts before all are there.
        self.change(|control| control.resting = resting::GETS_READY);
        let attached = self
            .attach_switches()
            .and_then(|()| match self.fights.are_due(monotonic_ns()) {
                true => self.attach_fights(),
                false => Ok(()),
            });
        let back = attached.and_then(|()| {
            self.change(|control| {
                control.epoch = control.epoch.wrapping_add(1);
                control.resting = resting::WATCHES;
            });
            self.run_over_threads()
        });
        if back.is_err() {
            self.detach_switches();
        }
        back
    }
}
