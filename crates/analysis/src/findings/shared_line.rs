//! Instructions that wait for a cache line which other threads write.
//!
//! Such an instruction takes longer with every thread that runs beside it, while what stands next to it takes as long as ever
//! (MySQL bug 97777: the load of a setting beside a counter; MDEV-37152: one increment with 40 % of its function). Where a
//! function merely has more to do, all of its instructions get dearer alike. So within a function the growth of one address is
//! compared with that of all others. Where the machine code is known, an instruction that cannot have waited for memory is
//! none of them: how the samples of a loop in registers fall on its instructions depends on what else the core does.

use crate::figure::Figure as _;
use crate::instruction_costs::{CodeAddress, InstructionCosts, InstructionId, SampledInstruction, Spent};
use crate::machine_code::MachineCode;
use crate::numbers::factor;
use scaleprof_bundle::Estimate;
use scaleprof_profile::without_clone_suffix;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many times as much as its neighbours it must have grown, at least.
const CONTRAST: f64 = 4.0;
/// By how many standard errors that must be beyond 1.
const SURE: f64 = 3.0;
/// Part of the growth of its function that it must make up.
const MOST_OF_GROWTH: f64 = 0.4;
/// From this ratio on the rest of a function got dearer too.
const GREW_TOO: f64 = 1.3;
/// A function with this part of its time in loops that wait is one that spins: its lock's line is told there.
const SPINS: f64 = 0.1;

/// One such instruction.
pub(crate) struct SharedLine {
    /// The function that the machine runs there and those that the compiler built in there, outermost first. The last one is what
    /// it belongs to in the source.
    functions: Vec<String>,
    /// All functions that the compiler built into that machine function.
    built_in: BTreeSet<String>,
    /// What it got dearer by, seconds a transaction.
    pub lost: Estimate,
    /// Where it is.
    pub at: CodeAddress,
    /// Its source line.
    pub source: Option<String>,
    /// Of the instruction and of the rest of its function.
    own: Change,
    rest: Change,
}

/// What something takes of a transaction at two rungs.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    before: Taken,
    after: Taken,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    seconds: f64,
    samples: u64,
}

impl Taken {
    fn add(&mut self, costs: &InstructionCosts, id: InstructionId) {
        self.seconds += costs.seconds(id, Spent::Running);
        // Only who runs it touches its line: not the kernel that was entered there, nor a loop that waits.
        self.samples += costs.samples(id, Spent::Running);
    }
}

impl Change {
    /// How many times as much it takes; what was not seen at all is taken for half a sample of that worth.
    fn ratio(&self, sample_before: f64, sample_after: f64) -> f64 {
        (self.after.seconds.max(sample_after / 2.0)) / (self.before.seconds.max(sample_before / 2.0))
    }

    /// Variance of the logarithm of that, by the number of samples.
    fn log_variance(&self) -> f64 {
        1.0 / (self.before.samples as f64 + 0.5) + 1.0 / (self.after.samples as f64 + 0.5)
    }
}

/// The instructions that got dearer by `least` seconds a transaction or more where their neighbours did not, the worst first.
/// `uniform_slowdown` is what got dearer everywhere; `code` is asked for once there is one.
pub(crate) fn shared_lines(
    base: &InstructionCosts,
    last: &InstructionCosts,
    uniform_slowdown: f64,
    least: f64,
    code: impl FnOnce() -> MachineCode,
) -> Vec<SharedLine> {
    let before: HashMap<&CodeAddress, (InstructionId, &SampledInstruction)> = base
        .instructions()
        .map(|(id, instruction)| (&instruction.at, (id, instruction)))
        .collect();
    let worth = (of_a_sample(base), of_a_sample(last));
    let mut functions: BTreeMap<(&str, &str), Vec<(InstructionId, &SampledInstruction)>> = BTreeMap::new();
    for (id, instruction) in last.instructions() {
        if let Some(function) = machine_function(instruction) {
            let key = (instruction.at.module.as_str(), function);
            functions.entry(key).or_default().push((id, instruction));
        }
    }
    // Addresses at which nobody was seen at the last rung are neighbours too.
    let mut only_before: BTreeMap<(&str, &str), Taken> = BTreeMap::new();
    let at_last: std::collections::HashSet<&CodeAddress> =
        last.instructions().map(|(_, instruction)| &instruction.at).collect();
    for (id, instruction) in base.instructions() {
        if let (Some(function), false) = (machine_function(instruction), at_last.contains(&instruction.at)) {
            let key = (instruction.at.module.as_str(), function);
            only_before.entry(key).or_default().add(base, id);
        }
    }
    let mut found: Vec<SharedLine> = functions
        .iter()
        .filter_map(|(key, instructions)| {
            let (mut running, mut spinning) = (0.0, 0.0);
            for (id, _) in instructions {
                running += last.seconds(*id, Spent::Running);
                spinning += last.seconds(*id, Spent::Spinning);
            }
            if running < least || spinning > SPINS * (running + spinning) {
                return None;
            }
            let change = |(id, instruction): &(InstructionId, &SampledInstruction)| {
                let mut change = Change::default();
                change.after.add(last, *id);
                if let Some((id, _)) = before.get(&instruction.at) {
                    change.before.add(base, *id);
                }
                change
            };
            let grown = |change: &Change| change.after.seconds - uniform_slowdown * change.before.seconds;
            let changes: Vec<Change> = instructions.iter().map(change).collect();
            let hot = (0..changes.len()).max_by(|a, b| grown(&changes[*a]).total_cmp(&grown(&changes[*b])))?;
            let mut rest = Change {
                before: only_before.get(key).copied().unwrap_or_default(),
                after: Taken::default(),
            };
            for change in changes
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != hot)
                .map(|(_, change)| change)
            {
                rest.before.seconds += change.before.seconds;
                rest.before.samples += change.before.samples;
                rest.after.seconds += change.after.seconds;
                rest.after.samples += change.after.samples;
            }
            let own = changes[hot];
            let contrast = own.ratio(worth.0, worth.1) / rest.ratio(worth.0, worth.1);
            let sure = contrast.ln() / (own.log_variance() + rest.log_variance()).sqrt();
            let most = grown(&own) >= MOST_OF_GROWTH * (grown(&own) + grown(&rest)).max(0.0);
            if grown(&own) < least || contrast < CONTRAST || sure < SURE || !most {
                return None;
            }
            let (id, instruction) = instructions[hot];
            let then = before
                .get(&instruction.at)
                .and_then(|(id, _)| base.estimate([*id], &[Spent::Running]))
                .map(|estimate| estimate.times(uniform_slowdown));
            let place = instruction.source.first()?;
            let functions = instruction.source.iter().rev();
            let functions = functions.map(|source| Some(without_clone_suffix(source.function.as_deref()?).to_owned()));
            let line = place.file.as_ref().zip(place.line);
            let sources = instructions.iter().flat_map(|(_, instruction)| &instruction.source);
            let built_in = sources.filter_map(|source| source.function.as_deref());
            Some(SharedLine {
                functions: functions.collect::<Option<_>>()?,
                built_in: built_in.map(|name| without_clone_suffix(name).to_owned()).collect(),
                lost: last.estimate([id], &[Spent::Running])?.less(then),
                at: instruction.at.clone(),
                source: line.map(|(file, line)| format!("{file}:{line}")),
                own,
                rest,
            })
        })
        .collect();
    if !found.is_empty() {
        let code = code();
        found.retain(|line| !code.cannot_wait_for_memory(&line.at));
    }
    found.sort_by(|a, b| b.lost.value.total_cmp(&a.lost.value));
    found
}

/// What one sample of a thread that ran an instruction stands for, seconds a transaction.
fn of_a_sample(costs: &InstructionCosts) -> f64 {
    let mut all = Taken::default();
    for (id, _) in costs.instructions() {
        all.add(costs, id);
    }
    all.seconds / (all.samples as f64).max(1.0)
}

fn machine_function(instruction: &SampledInstruction) -> Option<&str> {
    instruction.source.last()?.function.as_deref()
}

impl SharedLine {
    /// The innermost function that it belongs to.
    pub(crate) fn function(&self) -> &str {
        self.functions.last().map_or("", String::as_str)
    }

    /// Whether a path ends in the function that the machine runs there, and goes on neither into a function of its own nor into the
    /// kernel. Waits for one line show at its neighbours too (stores that queue behind one that misses, work that the CPU undoes), so
    /// what else grew in that function, whatever was built into it, is not told apart.
    pub(super) fn is_in_its_function<'f>(&self, mut innermost_first: impl Iterator<Item = &'f str>) -> bool {
        let Some(machine) = self.functions.first() else {
            return false;
        };
        innermost_first
            .find(|function| *function == machine || !self.built_in.contains(*function))
            .is_some_and(|function| function == machine)
    }

    /// Samples of threads that ran it, at both rungs.
    #[cfg(test)]
    pub(super) fn samples(&self) -> [u64; 2] {
        [self.own.before.samples, self.own.after.samples]
    }

    /// Seconds of a transaction at both rungs: at the instruction, and in the rest of its function.
    pub(crate) fn seconds(&self) -> ([f64; 2], [f64; 2]) {
        let both = |change: Change| [change.before.seconds, change.after.seconds];
        (both(self.own), both(self.rest))
    }

    /// In words, for rungs with so many connections.
    pub(super) fn evidence(&self, before: u32, after: u32) -> Vec<String> {
        let micros = |taken: Taken| taken.seconds * 1e6;
        let source = self
            .source
            .as_ref()
            .map_or_else(String::new, |line| format!(" ({line})"));
        let times = match self.own.before.seconds {
            seconds if seconds > 0.0 => format!(" ({} times)", factor(self.own.after.seconds / seconds)),
            _ => String::new(),
        };
        let all_else = format!(
            "the rest of {} takes {:.1} \u{b5}s, {:.1} \u{b5}s before",
            self.function(),
            micros(self.rest.after),
            micros(self.rest.before)
        );
        vec![
            format!(
                "{}+{:#x}{source} takes {:.1} \u{b5}s per transaction at {after} connections, {:.1} \u{b5}s at {before}{times}; because of \
                 skid, it may be the previous instruction",
                self.at.module,
                self.at.address,
                micros(self.own.after),
                micros(self.own.before)
            ),
            match self.rest.after.seconds <= GREW_TOO * self.rest.before.seconds {
                true => format!("{all_else}: the instruction does not run more often, it waits"),
                false => format!("{all_else}: a smaller increase"),
            },
        ]
    }
}
