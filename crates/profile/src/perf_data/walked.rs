//! Samples whose stacks are walked and named become a recording.

use super::blocked::BlockedStates;
use super::branches::branches;
use super::endings;
use super::files::{CodeFile, FileId, Files};
use super::jumps::is_of_kernel;
use super::kernel::RecordedKernel;
use super::passed::Taken;
use super::recorded_lock::RecordedLock;
use super::resolve::{KernelFrames, Names};
use super::selection::Selection;
use super::stacks::Stacks;
use super::weights::{Counted, Scale};
use crate::convert::KeptSample;
use crate::dictionary::Hashed;
use crate::import::{CallPaths, RecordedMachine, RecordedProgram, RecordedThread, Recording, RecordingFormat, Weights};
use crate::names::{OWN_MAKING, kernel_frame};
use crate::{Converter, RawStack, beside, in_parallel};
use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::symbols::SymbolFile;
use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Thousands are met, if any; of a hostile recording the others are named when they are asked for.
const MOST_FRAMES_IN_KERNEL: usize = 1 << 16;

/// What is left of a recording when its bytes are not needed any more.
pub(super) struct Walked {
    pub(super) taken: Vec<Taken>,
    /// For which lock samples waited, by their places.
    pub(super) locks: HashMap<usize, RecordedLock>,
    pub(super) found: Stacks,
    /// The kernel's functions, until they have given their names, or why they have none; none where nobody was in the kernel.
    pub(super) kernel: Option<Result<KernelSymbols, String>>,
    /// What the recording tells of its kernel.
    pub(super) recorded_kernel: RecordedKernel,
    /// The symbols of a file that were read meanwhile.
    pub(super) ready: Option<(FileId, SymbolFile)>,
    /// None yet.
    pub(super) names: Names,
    /// Whether it is of a processor whose stacks cannot be walked.
    pub(super) no_walking: bool,
    pub(super) threads: BTreeMap<u32, RecordedThread>,
    pub(super) program: Option<RecordedProgram>,
    pub(super) lost: u64,
    /// Copies of stacks that could not be read any more.
    pub(super) unread: u64,
    pub(super) broken: u64,
    pub(super) idle: u64,
    /// Whether what was mapped could not be followed to the end.
    pub(super) stale: bool,
    /// From the first to the last moment, where waits reach further than samples.
    pub(super) reach: Option<Range<u64>>,
    /// Whether it is known how long threads were away that left their CPUs.
    pub(super) lengths_known: bool,
}

/// What the file tells apart from its samples.
pub(super) struct Told {
    pub(super) machine: RecordedMachine,
    pub(super) problems: Vec<String>,
}

/// What samples reach over.
struct Extent {
    first_ns: u64,
    last_ns: u64,
    threads: foldhash::HashSet<u32>,
}

impl Extent {
    fn of(samples: &[Taken]) -> Extent {
        /// There may be millions.
        const AT_ONCE: usize = 1 << 18;
        let of_piece = |piece: &[Taken]| {
            let mut extent = Extent::nothing();
            let mut last = None;
            for Taken { counted, .. } in piece {
                extent.take_time(counted.time_ns);
                if last.replace(counted.thread) != Some(counted.thread) {
                    extent.threads.insert(counted.thread);
                }
            }
            extent
        };
        let pieces = in_parallel(samples.chunks(AT_ONCE).collect(), of_piece);
        pieces.into_iter().fold(Extent::nothing(), |mut whole, piece| {
            whole.take_time(piece.first_ns);
            whole.take_time(piece.last_ns);
            whole.threads.extend(piece.threads);
            whole
        })
    }

    fn nothing() -> Extent {
        Extent {
            first_ns: u64::MAX,
            last_ns: 0,
            threads: foldhash::HashSet::default(),
        }
    }

    fn take_time(&mut self, time_ns: u64) {
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
    }
}

impl Walked {
    /// Gives everything its name.
    pub(super) fn named(mut self, (files, machine): (&Files, &RecordedMachine), inlines: bool) -> Walked {
        let variables = self.locks.values().filter_map(|lock| lock.variable).collect();
        let mut jumps = self.found.jumps.ends();
        jumps.retain(|address| !is_of_kernel(*address));
        let asked = (&self.found.stacks[..], &variables, &jumps[..]);
        let (ready, kernel) = (self.ready.take(), self.kernel.take());
        let of_kernel = kernel.map(|kernel| || self.named_in_kernel(kernel, files, machine));
        let (of_kernel, names) = beside(of_kernel, || Names::of(asked, (files, ready), inlines));
        self.names = names;
        if let Some((kernel, frames)) = of_kernel {
            self.names.in_kernel = frames;
            match kernel {
                Ok(symbols) => self.names.kernel = Some(symbols),
                Err(why) => self.kernel = Some(Err(why)),
            }
        }
        self
    }

    /// The list of the kernel's functions that names most of what was met, and the frames of its addresses. Another list is only looked for
    /// where the first one lacks some.
    fn named_in_kernel(
        &self,
        found: Result<KernelSymbols, String>,
        files: &Files,
        machine: &RecordedMachine,
    ) -> (Result<KernelSymbols, String>, KernelFrames) {
        let symbols = match found {
            Ok(symbols) => symbols,
            Err(why) => return (Err(why), Vec::new()),
        };
        let frames = self.frames_in_kernel(&symbols);
        let jumps = self.found.jumps.ends_in_kernel();
        let names_all = frames.len() < MOST_FRAMES_IN_KERNEL
            && frames.iter().all(|(_, frame)| frame.content().function.is_some())
            && jumps.iter().all(|end| symbols.function(*end).is_some());
        if names_all {
            return (Ok(symbols), frames);
        }
        let met = self.places_in_kernel().chain(jumps).collect();
        match self.recorded_kernel.better_than(&symbols, &met, (machine, files)) {
            Some(other) => {
                let frames = self.frames_in_kernel(&other);
                (Ok(other), frames)
            }
            None => (Ok(symbols), frames),
        }
    }

    /// The places of stacks in the kernel, as the converter asks for them: callers by the byte before the return address.
    fn places_in_kernel(&self) -> impl Iterator<Item = u64> {
        let calls = self
            .found
            .stacks
            .iter()
            .flat_map(|stack| stack.kernel.iter().enumerate());
        calls.map(|(position, address)| address.wrapping_sub(u64::from(position > 0)))
    }

    /// The frames of these places, each once; of a hostile recording not of all.
    fn frames_in_kernel(&self, symbols: &KernelSymbols) -> KernelFrames {
        let mut frames = Vec::new();
        let mut named = foldhash::HashSet::default();
        for place in self.places_in_kernel() {
            if named.len() < MOST_FRAMES_IN_KERNEL && named.insert(place) {
                frames.push((place, Hashed::of(kernel_frame(Some(symbols), place))));
            }
        }
        frames
    }

    pub(super) fn into_recording(mut self, selection: &Selection<'_>, files: &Files, told: Told) -> Recording {
        let (call_paths, cut) = self.call_paths(selection);
        let mut converter = Converter::new();
        let weights = self.convert(selection, &mut converter);
        let mut recording = Recording::new(RecordingFormat::PerfData, converter.into_profile(), weights);
        let extent = Extent::of(&self.taken);
        recording.span = (!self.taken.is_empty()).then_some(match &self.reach {
            Some(reach) => reach.start.min(extent.first_ns)..reach.end.max(extent.last_ns),
            None => extent.first_ns..extent.last_ns,
        });
        recording.event = Some(selection.words());
        recording.call_paths = call_paths;
        recording.without_kernel = selection.is_without_kernel();
        self.threads.retain(|thread, _| extent.threads.contains(thread));
        recording.lacks = self.lacks(told.machine.architecture.as_deref());
        recording.warnings = told.problems;
        recording.warnings.extend(selection.notes());
        recording.warnings.extend(self.warnings(files));
        recording.warnings.extend(cut);
        if selection.has_jumps() {
            recording.warnings.extend(self.found.jumps.notes());
            recording.branches = branches(&self.found.jumps, &mut self.names);
        }
        recording.files = self
            .names
            .files()
            .filter_map(|file| files.get(file)?.recorded())
            .collect();
        recording.threads = self.threads;
        recording.program = self.program;
        recording.machine = told.machine;
        recording.samples_lost = Some(self.lost);
        recording.spin_loops = self.names.loops;
        recording.leftovers.keep(self.names);
        recording
    }

    /// Every stack once, and then the samples by time.
    fn convert(&mut self, selection: &Selection<'_>, converter: &mut Converter) -> Weights {
        let scales = selection.scales(&self.taken, self.lengths_known);
        endings::settle(&mut self.found.stacks, &self.names);
        // There may be millions of samples, of few events.
        let events = self
            .taken
            .iter()
            .map(|taken| taken.event)
            .max()
            .map_or(0, |last| last + 1);
        let waits: Vec<bool> = (0..events).map(|event| selection.waits(event as usize)).collect();
        let blocked = match waits.contains(&true) {
            true => BlockedStates::of(&self.found.stacks, &self.names),
            false => BlockedStates::none(),
        };
        converter.reserve(self.found.stacks.len(), self.names.addresses());
        self.names.give(converter);
        let stacks = std::mem::take(&mut self.found.stacks).into_iter();
        let kept: Vec<_> = stacks.map(|stack| converter.keep(&stack, &mut self.names)).collect();
        let each_ns: Vec<f64> = (0..events as usize)
            .map(|event| match scales.get(&event) {
                Some(Scale::Nanoseconds(each)) => *each,
                _ => 1.0,
            })
            .collect();
        let (samples, stack_of) = (&self.taken, &self.found.of_samples);
        converter.add_kept(samples.len(), |place| {
            let (taken, stack) = (&samples[place], stack_of[place]);
            let Counted {
                time_ns,
                thread,
                cpu,
                period,
            } = taken.counted;
            let event = taken.event as usize;
            let sample = KeptSample {
                time_ns,
                thread,
                cpu,
                state: match waits[event] {
                    true => taken.state.unwrap_or_else(|| blocked.state(stack)),
                    false => ThreadState::Cpu,
                },
                weight_ns: period * each_ns[event],
            };
            (sample, kept[stack as usize])
        });
        // A call that ended unseen leaves an address that means nothing any more: of waits for something else it is not kept.
        let mut locks: Vec<(&usize, &RecordedLock)> = self.locks.iter().collect();
        locks.sort_unstable_by_key(|(place, _)| **place);
        for (place, lock) in locks {
            let at = kept[stack_of[*place] as usize];
            converter.add_wait(*place, at, &lock.wait(), &mut self.names);
        }
        match scales.values().any(|scale| *scale == Scale::Unknown) {
            true => Weights::Counts,
            false => Weights::Nanoseconds,
        }
    }

    /// What stacks and names lack.
    fn lacks(&mut self, architecture: Option<&str>) -> Vec<(String, String)> {
        let without_symbols = self.names.without_symbols.iter().map(|(file, why)| {
            let mend = match file.as_str() {
                OWN_MAKING => {
                    "the program writes it with its option for perf maps; copied here, give its folder to --symfs"
                }
                file if file.starts_with('[') => {
                    "it is a part of the recorded kernel, and perf's cache (~/.debug) has it not"
                }
                _ => "copy it here, and give its folder to --symfs",
            };
            (format!("functions of {file}"), format!("{why}; {mend}"))
        });
        let mut lacks: Vec<(String, String)> = without_symbols.collect();
        let no_kernel = self.kernel.take().and_then(Result::err);
        lacks.extend(no_kernel.map(|why| ("functions of the kernel".to_owned(), why)));
        if self.no_walking {
            let architecture = architecture.unwrap_or("another processor");
            lacks.push((
                "stacks that were copied".to_owned(),
                format!("only those of x86-64 and aarch64 can be walked; it was recorded on {architecture}"),
            ));
        }
        lacks
    }

    /// How call paths were found, and what to say where many stacks are longer than what was copied of them.
    fn call_paths(&self, selection: &Selection<'_>) -> (Option<CallPaths>, Option<String>) {
        /// perf takes no more; a multiple of 8 below 64 KiB.
        const MOST_BYTES: u32 = 65528;
        const WORTH_TELLING: f64 = 0.05;
        let Some((way, bytes)) = selection.call_paths() else {
            return (None, None);
        };
        let share = |ends_so: &dyn Fn(&RawStack) -> bool| {
            let ends_so: Vec<bool> = self.found.stacks.iter().map(ends_so).collect();
            let of_samples = self.found.of_samples.iter();
            let share = of_samples.filter(|stack| ends_so[**stack as usize]).count() as f64;
            Some(share / self.found.of_samples.len() as f64).filter(|share| *share > WORTH_TELLING)
        };
        if way == CallPaths::FramePointers {
            // Where no rule tells whether the last address is a thread's first function, nothing is known.
            let lost = share(&|stack| stack.ending == UnwindStatus::NoProgress);
            let words = lost.map(|lost| {
                format!(
                    "{:.0} % of the stacks are incomplete: code without frame pointers hides callers. Record with \
                     --call-graph dwarf,32768",
                    lost * 100.0
                )
            });
            return (Some(way), words);
        }
        if !matches!(way, CallPaths::CopiedStacks { .. }) {
            return (Some(way), None);
        }
        let Some(cut) = share(&|stack| stack.ending == UnwindStatus::UnreadableMemory) else {
            return (Some(way), None);
        };
        let more = bytes.saturating_mul(2).min(MOST_BYTES);
        let longer = match more > bytes {
            true => format!("record with --call-graph dwarf,{more}"),
            false => "perf copies no more".to_owned(),
        };
        let words = format!(
            "{:.0} % of the stacks lead out of the {bytes} bytes that were copied of them, so their outer callers are missing: {longer}",
            cut * 100.0
        );
        (Some(CallPaths::CopiedStacks { cut_at: Some(bytes) }), Some(words))
    }

    fn warnings(&self, files: &Files) -> Vec<String> {
        let counts = [
            (
                self.lost,
                "samples were lost while it was recorded: perf could not write as fast as they came",
            ),
            (self.broken, "samples are cut and were left out"),
            (
                self.unread,
                "stacks could not be read: somebody changed the file meanwhile, or it cannot be reached any more",
            ),
            (self.idle, "samples of idle CPUs were left out"),
        ];
        let told = counts.into_iter().filter(|(count, _)| *count > 0);
        let mut warnings: Vec<String> = told.map(|(count, words)| format!("{count} {words}")).collect();
        warnings.extend(self.recorded_kernel.doubt());
        let used = self.names.files().filter_map(|file| files.get(file));
        let doubtful: Vec<String> = used.filter(|file| file.is_doubtful()).map(CodeFile::name).collect();
        if !doubtful.is_empty() {
            let doubtful = doubtful.join(", ");
            warnings.push(format!(
                "nothing tells whether these files were replaced since: {doubtful}"
            ));
        }
        if self.stale {
            warnings.push(
                "it maps more files, or more often, than can be followed: some addresses may have the names of what lay there \
                 before"
                    .to_owned(),
            );
        }
        warnings
    }
}
