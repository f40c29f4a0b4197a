//! What each instruction costs a transaction at one rung, second by second.
//!
//! The address of a sample is where the thread stood when the sampling timer's interrupt came: the instruction that was next
//! to run. The time was mostly taken by one before it (skid), which address it was cannot be known. So costs are given for the
//! address as it was sampled, and nothing is shifted; whoever needs the instruction that took the time looks at the few before
//! it as well.

use crate::block_ratio::Transactions;
use crate::call_paths::CallPaths;
use crate::grouped::Grouped;
use crate::sampled::{Row, Sampled};
use scaleprof_bundle::{Estimate, FrameRow, NumberMap};
use scaleprof_vocabulary::{SymbolSource, ThreadState};
use std::collections::HashMap;

/// A place in a file of machine code, the same in every process, rung and run of that file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeAddress {
    /// File name of the executable or library, as in the table `frames`.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// Address in the file.
    pub address: i64,
}

/// A function at an instruction as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePlace {
    /// The function; none where nothing names it.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<i32>,
}

/// An instruction of user space at which a thread was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledInstruction {
    /// Where it is.
    pub at: CodeAddress,
    /// What it belongs to, innermost first: functions that the compiler built in, and at last the function that the machine
    /// runs. Never empty.
    pub source: Vec<SourcePlace>,
    /// Samples, those in the kernel included.
    pub samples: u64,
}

impl SampledInstruction {
    /// What tells places apart that have no address: the file and the functions.
    fn names(&self) -> (String, Vec<Option<String>>) {
        let functions = self.source.iter().map(|place| place.function.clone());
        (self.at.module.clone(), functions.collect())
    }
}

/// How a thread on a CPU spends its time at an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spent {
    /// It runs it.
    Running,
    /// It runs it, in a loop that waits for another thread.
    Spinning,
    /// It is in the kernel, which it entered there: by a system call (the address is that of the instruction behind it), a
    /// page fault or an interrupt.
    InKernel,
}

impl Spent {
    /// On the instruction itself, whether it works or waits.
    pub const ITSELF: [Spent; 2] = [Spent::Running, Spent::Spinning];
    /// All ways.
    const ALL: [Spent; 3] = [Spent::Running, Spent::Spinning, Spent::InKernel];
}

/// Names an instruction within its [`InstructionCosts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstructionId(usize);

/// CPU seconds per transaction by instruction, of the threads that serve the load's connections, in the measured seconds of
/// one rung. They add up to [`all`](InstructionCosts::all) with what no instruction is known for, because the weights of the
/// samples are scaled to the exact time in each state.
#[derive(Debug, Clone, Default)]
pub struct InstructionCosts {
    /// Transactions of each measured second.
    transactions: Transactions,
    instructions: Vec<SampledInstruction>,
    /// Seconds by place of the measured second, of each instruction in each way of [`Spent`].
    seconds: Grouped,
    /// Samples of the same.
    samples: Vec<u64>,
    /// Seconds on CPUs altogether, and the samples that tell of them.
    on_cpu: f64,
    all_samples: u64,
}

impl InstructionCosts {
    pub(crate) fn of(sampled: &Sampled<'_>, call_paths: &CallPaths<'_>) -> InstructionCosts {
        let mut costs = InstructionCosts {
            transactions: sampled.seconds.transactions.clone(),
            ..InstructionCosts::default()
        };
        let mut numbers: HashMap<CodeAddress, InstructionId> = HashMap::new();
        // Of functions that are known by name alone each is one place.
        let mut by_names: HashMap<(String, Vec<Option<String>>), InstructionId> = HashMap::new();
        // Most frames are those of many stacks.
        let mut of_frames: NumberMap<i64, InstructionId> = NumberMap::default();
        // What each stack on a CPU is at.
        let of_pairs: Vec<OnCpu> = sampled
            .pairs()
            .iter()
            .map(|pair| {
                if !pair.state.is_on_cpu() {
                    return OnCpu::No;
                }
                let spins = pair.state == ThreadState::Spin;
                let Some(stands) = Standing::of(call_paths.frames_outwards(pair.stack)) else {
                    return OnCpu::Somewhere;
                };
                let made = || stands.instruction(call_paths.frames_outwards(pair.stack));
                let mut add = |instruction| {
                    costs.instructions.push(instruction);
                    InstructionId(costs.instructions.len() - 1)
                };
                let instruction = match stands.has_name_alone() {
                    true => {
                        let made = made();
                        *by_names.entry(made.names()).or_insert_with(|| add(made))
                    }
                    false => *of_frames
                        .entry(stands.frame.frame)
                        .or_insert_with(|| *numbers.entry(stands.address()).or_insert_with(|| add(made()))),
                };
                let spent = match (stands.in_kernel, spins) {
                    (true, _) => Spent::InKernel,
                    (false, true) => Spent::Spinning,
                    (false, false) => Spent::Running,
                };
                OnCpu::At(instruction, spent)
            })
            .collect();
        let places = costs.instructions.len() * Spent::ALL.len();
        costs.samples = vec![0; places];
        for row in sampled.rows() {
            let stands = of_pairs[row.pair as usize];
            if matches!(stands, OnCpu::No) {
                continue;
            }
            costs.on_cpu += row.seconds;
            costs.all_samples += 1;
            if let OnCpu::At(instruction, spent) = stands {
                costs.instructions[instruction.0].samples += 1;
                costs.samples[place(instruction, spent)] += 1;
            }
        }
        let group = |row: &Row| match of_pairs[row.pair as usize] {
            OnCpu::At(instruction, spent) => Some(place(instruction, spent) as u32),
            _ => None,
        };
        let rows = || {
            let rows = sampled.rows().iter();
            rows.filter_map(|row| Some((group(row)?, row.second, row.seconds)))
        };
        costs.seconds = Grouped::of(places, rows).merged();
        costs
    }

    /// Transactions of all measured seconds.
    pub fn transactions(&self) -> f64 {
        self.transactions.all()
    }

    /// CPU seconds per transaction altogether, in user space and in the kernel, whether or not the instruction is known; none
    /// without transactions or samples.
    pub fn all(&self) -> Option<f64> {
        Some(self.on_cpu / self.transactions()).filter(|value| value.is_finite() && *value > 0.0)
    }

    /// Samples of threads on a CPU, whether or not the instruction is known.
    pub fn all_samples(&self) -> u64 {
        self.all_samples
    }

    /// Samples at one instruction of threads that spent their time there so.
    pub fn samples(&self, instruction: InstructionId, spent: Spent) -> u64 {
        self.samples.get(place(instruction, spent)).copied().unwrap_or(0)
    }

    /// What three samples stand for, seconds per transaction: where no sample fell, something costs less than that with 95 %
    /// certainty (rule of three: Hanley and Lippman-Hand 1983). None without transactions or samples.
    pub fn least_seen(&self) -> Option<f64> {
        Some(3.0 * self.all()? / self.all_samples.max(1) as f64)
    }

    /// The instructions at which threads were seen, in no particular order.
    pub fn instructions(&self) -> impl Iterator<Item = (InstructionId, &SampledInstruction)> {
        let numbered = self.instructions.iter().enumerate();
        numbered.map(|(number, instruction)| (InstructionId(number), instruction))
    }

    /// Seconds per transaction at one instruction; 0 where no thread was seen so.
    pub fn seconds(&self, instruction: InstructionId, spent: Spent) -> f64 {
        let blocks = self.seconds.get(place(instruction, spent));
        let sum: f64 = blocks.iter().map(|(_, seconds)| seconds).sum();
        match self.transactions() {
            all if all > 0.0 => sum / all,
            _ => 0.0,
        }
    }

    /// Seconds per transaction of some instructions together, with a 95 % interval from the spread
    /// over the measured seconds and measurements; none where there were no transactions.
    pub fn estimate(&self, instructions: impl IntoIterator<Item = InstructionId>, spent: &[Spent]) -> Option<Estimate> {
        let of_kinds = |instruction: InstructionId| spent.iter().map(move |spent| place(instruction, *spent));
        let places = instructions.into_iter().flat_map(of_kinds);
        let parts = places.flat_map(|place| self.seconds.get(place));
        self.transactions.ratio(parts.copied())
    }
}

/// Where the thread-seconds of an instruction stand among those of all.
fn place(instruction: InstructionId, spent: Spent) -> usize {
    instruction.0 * Spent::ALL.len() + spent as usize
}

/// What a stack in a state says of instructions.
#[derive(Clone, Copy)]
enum OnCpu {
    /// Its thread did not run.
    No,
    /// It ran, and nobody knows where.
    Somewhere,
    At(InstructionId, Spent),
}

/// The instruction of user space at which a thread stands, and whether it has gone into the kernel from there; none where its
/// stack tells neither. `frames`: innermost first.
pub(crate) fn innermost<'a>(frames: impl Iterator<Item = &'a FrameRow> + Clone) -> Option<(SampledInstruction, bool)> {
    let stands = Standing::of(frames.clone())?;
    Some((stands.instruction(frames), stands.in_kernel))
}

/// Where a thread stands.
struct Standing<'a> {
    /// The innermost frame of user space.
    frame: &'a FrameRow,
    /// Whether there are frames of the kernel within it.
    in_kernel: bool,
}

impl<'a> Standing<'a> {
    fn of(mut frames: impl Iterator<Item = &'a FrameRow>) -> Option<Standing<'a>> {
        let mut in_kernel = false;
        let frame = frames.find(|frame| {
            let of_kernel = is_of_kernel(frame);
            in_kernel |= of_kernel;
            !of_kernel
        })?;
        (&*frame.module != PLACEHOLDER).then_some(Standing { frame, in_kernel })
    }

    /// Whether it was imported from what names functions and no addresses.
    fn has_name_alone(&self) -> bool {
        self.frame.symbol_source == SymbolSource::NameAlone
    }

    fn address(&self) -> CodeAddress {
        CodeAddress {
            module: self.frame.module.to_string(),
            build_id: self.frame.build_id.as_deref().map(str::to_owned),
            address: self.frame.address,
        }
    }

    /// With what it belongs to; `frames` are those from which it was made.
    fn instruction<'f>(&self, frames: impl Iterator<Item = &'f FrameRow>) -> SampledInstruction {
        let mut source = Vec::new();
        let user = frames.skip_while(|frame| is_of_kernel(frame));
        for frame in user.take_while(|frame| &*frame.module != PLACEHOLDER) {
            source.push(SourcePlace {
                function: frame.function.as_deref().map(str::to_owned),
                file: frame.file.as_deref().map(str::to_owned),
                line: frame.line,
            });
            if !frame.inlined {
                break;
            }
        }
        SampledInstruction {
            at: self.address(),
            source,
            samples: 0,
        }
    }
}

/// The module of frames that stand for what is not known.
const PLACEHOLDER: &str = "[scaleprof]";

/// Whether a frame is of the kernel or of one of its modules, such as `[ext4]`; the vDSO runs in user space.
pub fn is_of_kernel(frame: &FrameRow) -> bool {
    frame.module.starts_with('[') && &*frame.module != "[vdso]" && &*frame.module != PLACEHOLDER
}

#[cfg(test)]
pub(crate) mod tests;
