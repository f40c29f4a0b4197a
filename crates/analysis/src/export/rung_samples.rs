//! The samples of a rung, summed up by all that an export tells of them.

use super::Wanted;
use super::stacks::Stacks;
use crate::measurement_rows::MeasurementRows;
use crate::sampled::Sampled;
use scaleprof_bundle::{Bundle, SampleBlock};
use scaleprof_profile::{About, Cost, CostProfile, StackId};
use scaleprof_vocabulary::{Role, ThreadState};
use std::collections::HashMap;

/// Sums over samples.
pub(super) struct RungSamples<'a> {
    wanted: &'a Wanted,
    stacks: Stacks<'a>,
    names: Vec<String>,
    name_numbers: HashMap<String, usize>,
    sums: HashMap<Key, Sum>,
}

/// What tells samples apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    stack: StackId,
    state: ThreadState,
    role: Role,
    thread: Option<usize>,
    lock: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    thread_seconds: f64,
    samples: u64,
}

impl<'a> RungSamples<'a> {
    pub(super) fn new(bundle: &'a Bundle, wanted: &'a Wanted) -> RungSamples<'a> {
        RungSamples {
            wanted,
            stacks: Stacks::of(bundle),
            names: Vec::new(),
            name_numbers: HashMap::new(),
            sums: HashMap::new(),
        }
    }

    /// Adds the samples of a measurement in the seconds that count.
    pub(super) fn add(&mut self, rows: &MeasurementRows<'_>, sampled: &Sampled<'_>) {
        let mut threads = HashMap::new();
        for row in &rows.states {
            if let Some((thread, name)) = row.thread.zip(row.name.as_deref()) {
                threads.entry(thread).or_insert_with(|| self.name(name));
            }
        }
        let mut locks = HashMap::new();
        for row in &rows.locks {
            if let Some(name) = row.name.as_deref() {
                locks.entry(row.lock).or_insert_with(|| self.name(name));
            }
        }
        for block in &rows.samples {
            self.add_block(block, sampled, &threads, &locks);
        }
    }

    fn add_block(
        &mut self,
        block: &SampleBlock,
        sampled: &Sampled<'_>,
        threads: &HashMap<i64, usize>,
        locks: &HashMap<i64, usize>,
    ) {
        let counts: Vec<bool> = sampled.seconds.places(block).iter().map(Option::is_some).collect();
        let role_of = |role: &Role| Some(*role).filter(|role| self.wanted.roles.contains(role));
        let roles = block.roles().by_code(role_of);
        let state_of = |state: &ThreadState| Some(*state).filter(|state| self.wanted.states.contains(state));
        let states = block
            .states()
            .by_code(|state| Some((state_of(state)?, sampled.scale(*state))));
        let threads = block.threads().by_code(|n| threads.get(n).copied());
        let locks = block.locks().by_code(|lock| locks.get(&(*lock)?).copied());
        let mut stacks: Vec<Option<StackId>> = vec![None; block.stacks().values().len()];
        let codes = block
            .seconds()
            .codes()
            .iter()
            .zip(block.roles().codes())
            .zip(block.states().codes())
            .zip(block.threads().codes())
            .zip(block.locks().codes())
            .zip(block.stacks().codes())
            .zip(block.weights_ns());
        for ((((((second, role), state), thread), lock), stack), weight) in codes {
            let is_sound = weight.is_finite() && *weight >= 0.0;
            let known = roles[*role as usize].zip(states[*state as usize]);
            let Some((role, (state, scale))) = known.filter(|_| counts[*second as usize] && is_sound) else {
                continue;
            };
            let stack = *stack as usize;
            let key = Key {
                stack: *stacks[stack].get_or_insert_with(|| self.stacks.stack(block.stacks().values()[stack])),
                state,
                role,
                thread: threads[*thread as usize],
                lock: locks[*lock as usize],
            };
            let sum = self.sums.entry(key).or_default();
            let scale = if role == Role::Connection { scale } else { 1.0 };
            sum.thread_seconds += weight / 1e9 * scale;
            sum.samples += 1;
        }
    }

    fn name(&mut self, name: &str) -> usize {
        if let Some(known) = self.name_numbers.get(name) {
            return *known;
        }
        self.name_numbers.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    /// All of it, in an order that only its content decides.
    pub(super) fn profile(self, about: About) -> CostProfile {
        let mut sums: Vec<(Key, Sum)> = self.sums.into_iter().collect();
        sums.sort_by_key(|(key, _)| *key);
        let costs = sums.into_iter().map(|(key, sum)| Cost {
            stack: key.stack,
            state: key.state,
            role: key.role,
            thread: key.thread,
            lock: key.lock,
            thread_seconds: sum.thread_seconds,
            samples: sum.samples,
        });
        CostProfile {
            about,
            frames: self.stacks.frames,
            stacks: self.stacks.stacks,
            names: self.names,
            costs: costs.collect(),
        }
    }
}
