//! The samples of a measurement, thread by thread.

use super::Wanted;
use super::stacks::Stacks;
use crate::measurement_rows::MeasurementRows;
use crate::sampled::Sampled;
use scaleprof_bundle::{Bundle, SampleBlock, UtcMicros};
use scaleprof_profile::{About, Moment, ThreadLine, Timeline};
use scaleprof_vocabulary::{Role, ThreadState};
use std::collections::BTreeMap;

/// Threads with their samples.
pub(super) struct ThreadLines<'a> {
    wanted: &'a Wanted,
    stacks: Stacks<'a>,
    /// A thread that changed its role stands here twice.
    threads: BTreeMap<(i64, Role), ThreadLine>,
    /// What samples of threads that run stand for.
    periods_ns: Vec<f64>,
}

impl<'a> ThreadLines<'a> {
    pub(super) fn new(bundle: &'a Bundle, wanted: &'a Wanted) -> ThreadLines<'a> {
        ThreadLines {
            wanted,
            stacks: Stacks::of(bundle),
            threads: BTreeMap::new(),
            periods_ns: Vec::new(),
        }
    }

    /// Adds the samples of a measurement in the seconds that count.
    pub(super) fn add(&mut self, rows: &MeasurementRows<'_>, sampled: &Sampled<'_>) {
        let Some(measurement) = rows.rung else { return };
        for block in &rows.samples {
            self.add_block(block, measurement.started_at, sampled);
        }
        for row in &rows.states {
            let Some((thread, name)) = row.thread.zip(row.name.as_ref()) else {
                continue;
            };
            for (_, line) in self
                .threads
                .range_mut((thread, Role::Connection)..=(thread, Role::Background))
            {
                line.name = Some(name.clone());
            }
        }
    }

    fn add_block(&mut self, block: &SampleBlock, started_at: UtcMicros, sampled: &Sampled<'_>) {
        let counts: Vec<bool> = sampled.seconds.places(block).iter().map(Option::is_some).collect();
        let rows = block.rows().zip(block.seconds().codes());
        for (row, second) in rows.filter(|(row, _)| row.weight_ns.is_finite() && row.weight_ns >= 0.0) {
            let role = Some(row.role).filter(|role| self.wanted.roles.contains(role));
            let state = Some(row.state).filter(|state| self.wanted.states.contains(state));
            let Some((role, state)) = role.zip(state).filter(|_| counts[*second as usize]) else {
                continue;
            };
            if state == ThreadState::Cpu {
                self.periods_ns.push(row.weight_ns);
            }
            let scale = match role {
                Role::Connection => sampled.scale(row.state),
                _ => 1.0,
            };
            let moment = Moment {
                at_ns: row.time_us.0.saturating_sub(started_at.0).saturating_mul(1000),
                state,
                stack: self.stacks.stack(row.stack),
                thread_seconds: row.weight_ns / 1e9 * scale,
            };
            let line = self.threads.entry((row.thread, role)).or_insert_with(|| ThreadLine {
                number: row.thread,
                name: None,
                role,
                moments: Vec::new(),
            });
            line.moments.push(moment);
        }
    }

    /// All of it.
    pub(super) fn timeline(mut self, about: About) -> Timeline {
        self.periods_ns.sort_by(f64::total_cmp);
        let mut threads: Vec<ThreadLine> = self.threads.into_values().collect();
        for thread in &mut threads {
            thread.moments.sort_by_key(|moment| moment.at_ns);
        }
        Timeline {
            about,
            frames: self.stacks.frames,
            stacks: self.stacks.stacks,
            interval_ns: self.periods_ns.get(self.periods_ns.len() / 2).copied(),
            threads,
        }
    }
}
