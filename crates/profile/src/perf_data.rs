//! Recordings of `perf record`.
//!
//! The file is read once: [`container`] finds events and records and puts these by time, [`timeline`] follows what every process
//! has mapped. Then nothing depends on order any more, and stacks are walked ([`stacks`]) and named ([`resolve`]) on all CPUs.
//! Every number in the file may be wrong: what is read is bounded by the file's length, and a broken part ends what is read of it.

mod address_space;
mod attribute;
mod blocked;
mod compressed;
mod container;
mod cursor;
mod endings;
mod features;
mod files;
mod kernel;
mod record;
mod resolve;
mod sample;
mod selection;
mod stacks;
mod switches;
mod timeline;
mod weights;

use crate::import::{ImportError, ReadOptions, RecordedProgram, Recording, RecordingFormat, Weights};
use crate::walk::Processor;
use crate::{Converter, KeptSample, ThreadState};
use blocked::BlockedStates;
use container::{Container, Timed};
use cursor::Words;
use features::Features;
use files::Files;
use kernel::{KERNEL_PROCESS, RecordedKernel};
use record::{Deferred, Forked, Mapped, Named, kind};
use resolve::Names;
use sample::Sampled;
use selection::Selection;
use stacks::{Surroundings, Wanted, stacks};
use std::collections::{BTreeMap, HashMap};
use switches::{Ended, SwitchFormat, Switches};
use timeline::Timeline;
use weights::{Counted, Scale};

/// The idle task: what it "runs" is no work.
const IDLE: u32 = 0;

/// Reads a recording of `perf record`, from a file or a pipe.
///
/// # Errors
/// Nothing can be had of it. A recording that is cut or broken behind its beginning gives what was before, with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions) -> Result<Recording, ImportError> {
    let expanded;
    let mut container = Container::open(bytes)?;
    if container.is_compressed() {
        expanded = container.expand(bytes.len());
        container.add_expanded(&expanded);
    }
    let timed = container.in_order();
    let Container {
        events,
        mut features,
        problems,
        ..
    } = container;
    let selection = Selection::of(&events, options)?;
    let mut files = Files::new(options, std::mem::take(&mut features.build_ids));
    let format = SwitchFormat::of(features.tracing);
    let mut passed = Passed::through(&timed, &selection, options, (&mut files, format));
    passed.end_waits(&selection);
    passed.check(&selection, options, &problems)?;
    Ok(passed.into_recording(&selection, options, &files, (&features, problems)))
}

/// One sample that counts.
#[derive(Debug, Clone, Copy)]
struct Taken {
    counted: Counted,
    event: u32,
    /// What the thread was doing, where the record says it.
    state: Option<ThreadState>,
}

/// What going through the records by time gave.
#[derive(Default)]
struct Passed<'a> {
    taken: Vec<Taken>,
    wanted: Vec<Wanted<'a>>,
    deferred: HashMap<u64, Words<'a>>,
    timeline: Timeline,
    kernel: RecordedKernel,
    lost: u64,
    switches: Switches,
    /// Samples of the idle task, which were left out.
    idle: u64,
    /// Samples that are cut.
    broken: u64,
    /// Samples of each process, and what they weigh.
    processes: BTreeMap<u32, f64>,
}

impl<'a> Passed<'a> {
    fn through(
        timed: &Timed<'a>,
        selection: &Selection<'_>,
        options: &ReadOptions,
        (files, format): (&mut Files, SwitchFormat),
    ) -> Passed<'a> {
        let mut passed = Passed::default();
        passed.switches.format = format;
        for (_, record) in &timed.records {
            match record.kind {
                kind::MMAP | kind::MMAP2 => match Mapped::of(record) {
                    Some(mapped) if mapped.process == KERNEL_PROCESS => passed.kernel.map(&mapped),
                    Some(mapped) => passed.timeline.map(&mapped, files),
                    None => {}
                },
                kind::COMM => {
                    if let Some(named) = Named::of(record) {
                        passed.timeline.name(&named);
                    }
                }
                kind::FORK => {
                    if let Some(forked) = Forked::of(record) {
                        passed.timeline.fork(&forked);
                    }
                }
                kind::LOST | kind::LOST_SAMPLES => {
                    passed.lost = passed.lost.saturating_add(record::lost(record).unwrap_or(0));
                }
                kind::CALLCHAIN_DEFERRED => {
                    let later = Deferred::of(record).map(|later| (later.cookie, later.addresses));
                    passed.deferred.extend(later);
                }
                kind::SAMPLE => {
                    let event = timed.ids.of_record(record).filter(|event| selection.takes(*event));
                    if let Some(event) = event {
                        passed.take(record, event, selection, options);
                    }
                }
                _ => {}
            }
        }
        passed
    }

    fn take(&mut self, record: &record::Record<'a>, event: usize, selection: &Selection<'_>, options: &ReadOptions) {
        let attribute = &selection.events[event];
        let Some(sample) = Sampled::of(record.body, attribute) else {
            self.broken += 1;
            return;
        };
        let is_idle = sample.process == IDLE && sample.thread == IDLE && attribute.has(attribute::field::TID);
        self.idle += u64::from(is_idle);
        let is_wanted = !is_idle && self.is_of(options.process.as_deref(), sample.process);
        let mut state = None;
        if attribute.is_switch() {
            let own = is_wanted.then_some(self.taken.len());
            let thread = sample.thread;
            let ended;
            (ended, state) = match is_idle || is_wanted {
                true => self.switches.switch(thread, own, sample.time_ns, sample.raw),
                false => (self.switches.come_back(sample.time_ns, sample.raw), None),
            };
            self.end_wait(ended);
        }
        if !is_wanted {
            return;
        }
        // A fixed period may stand with the event alone.
        let fixed = (!attribute.in_hertz).then_some(attribute.period_or_frequency);
        let period = sample.period.or(fixed).unwrap_or(1) as f64;
        self.timeline.thread(sample.process, sample.thread);
        *self.processes.entry(sample.process).or_default() += period;
        self.wanted.push(Wanted {
            record: *record,
            event,
            layout: self.timeline.layout(sample.process),
        });
        self.taken.push(Taken {
            counted: Counted {
                time_ns: sample.time_ns,
                thread: sample.thread,
                cpu: sample.cpu,
                period,
            },
            event: event as u32,
            state,
        });
    }

    fn is_of(&mut self, asked: Option<&str>, process: u32) -> bool {
        asked.is_none_or(|asked| process.to_string() == asked || self.timeline.thread(process, process).name == asked)
    }

    fn end_wait(&mut self, ended: Option<Ended>) {
        if let Some(ended) = ended
            && let Some(taken) = self.taken.get_mut(ended.sample)
        {
            taken.counted.period = ended.length_ns as f64;
        }
    }

    /// Gives the waits that go on at the end their length so far. Where lengths cannot be known, leaving a CPU is no time: it counts
    /// only if it was asked for, or if there is nothing else.
    fn end_waits(&mut self, selection: &Selection<'_>) {
        if self.switches.of_whole_machine() {
            let end_ns = self.taken.iter().map(|taken| taken.counted.time_ns).max().unwrap_or(0);
            let unended: Vec<Ended> = self.switches.unended(end_ns).collect();
            unended.into_iter().for_each(|ended| self.end_wait(Some(ended)));
            return;
        }
        let counts = |taken: &Taken| {
            let event = taken.event as usize;
            event == selection.chosen() || !selection.events[event].is_switch()
        };
        for taken in &mut self.taken {
            if selection.events[taken.event as usize].is_switch() {
                taken.counted.period = 1.0;
            }
        }
        let mut kept = self.taken.iter().map(counts).collect::<Vec<bool>>().into_iter();
        self.wanted.retain(|_| kept.next().unwrap_or(true));
        self.taken.retain(counts);
    }

    /// Whether there is anything to show.
    fn check(&self, selection: &Selection<'_>, options: &ReadOptions, problems: &[String]) -> Result<(), ImportError> {
        if !self.taken.is_empty() {
            return Ok(());
        }
        let of = options.process.as_ref().map(|process| format!(" of process {process}"));
        let mut why = problems.to_vec();
        if self.idle > 0 {
            why.push(format!("its {} samples are of idle CPUs", self.idle));
        }
        if self.broken > 0 {
            why.push(format!("{} samples are cut", self.broken));
        }
        if why.is_empty() {
            why.push("nothing of it ran while it was recorded".to_owned());
        }
        Err(ImportError::NoSamples {
            of: of.unwrap_or_else(|| format!(" of {}", selection.words())),
            why: why.join("; "),
        })
    }

    fn into_recording(
        self,
        selection: &Selection<'_>,
        options: &ReadOptions,
        files: &Files,
        (features, problems): (&Features<'_>, Vec<String>),
    ) -> Recording {
        let scales = selection.scales(&self.taken, self.switches.of_whole_machine());
        let stale = self.timeline.stale;
        let heaviest = self
            .processes
            .iter()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .map(|(process, _)| *process);
        let program = heaviest.and_then(|process| {
            let file = files.get(self.timeline.program(process)?)?;
            Some(RecordedProgram {
                process,
                name: file.name(),
                build_id: file.build_id().map(str::to_owned),
            })
        });
        let (layouts, threads) = self.timeline.finish();
        let architecture = features.machine.architecture.as_deref();
        let processor = architecture.map_or(Some(Processor::HERE), Processor::of_name);
        let surroundings = Surroundings {
            events: selection.events,
            layouts: &layouts,
            files,
            deferred: &self.deferred,
            processor,
        };
        // The list of the kernel's functions takes as long as walking thousands of stacks.
        let in_kernel = self
            .wanted
            .iter()
            .any(|wanted| stacks::is_of_kernel(wanted.record.misc));
        let (mut found, mut names, kernel) = std::thread::scope(|scope| {
            let read_kernel = || self.kernel.symbols(&features.machine, files.build_ids());
            let kernel = in_kernel.then(|| scope.spawn(read_kernel));
            let found = stacks(&self.wanted, &surroundings);
            let names = Names::of(&found.stacks, files, options.inlines);
            let kernel = kernel.map(|kernel| kernel.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            (found, names, kernel)
        });
        let no_kernel = kernel.and_then(|kernel| match kernel {
            Ok(symbols) => {
                names.kernel = Some(symbols);
                None
            }
            Err(why) => Some(why),
        });
        endings::settle(&mut found.stacks, &names);
        let mut converter = Converter::new();
        let blocked = BlockedStates::of(&found.stacks, &names);
        let kept: Vec<_> = found
            .stacks
            .iter()
            .map(|stack| converter.keep(stack, &mut names))
            .collect();
        for (taken, stack) in self.taken.iter().zip(&found.of_samples) {
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
                state: match selection.waits(event) {
                    true => taken.state.unwrap_or_else(|| blocked.state(*stack)),
                    false => ThreadState::Cpu,
                },
                weight_ns: match scales.get(&event) {
                    Some(Scale::Nanoseconds(each)) => period * each,
                    _ => period,
                },
            };
            converter.add_kept(&sample, kept[*stack as usize]);
        }
        let weights = match scales.values().any(|scale| *scale == Scale::Unknown) {
            true => Weights::Counts,
            false => Weights::Nanoseconds,
        };
        let times = self.taken.iter().map(|taken| taken.counted.time_ns);
        let mut recording = Recording::new(RecordingFormat::PerfData, converter.take(), weights);
        recording.span = times.clone().min().zip(times.max()).map(|(first, last)| first..last);
        recording.event = Some(selection.words());
        let seen: std::collections::BTreeSet<u32> = self.taken.iter().map(|taken| taken.counted.thread).collect();
        recording.threads = threads
            .into_iter()
            .filter(|(thread, _)| seen.contains(thread))
            .collect();
        recording.program = program;
        recording.files = names.files().filter_map(|file| files.get(file)?.recorded()).collect();
        recording.machine = features.machine.clone();
        recording.samples_lost = Some(self.lost);
        recording.waiting_loops = names.loops;
        recording.lacks = lacks(&names, no_kernel, processor, architecture);
        recording.warnings = problems;
        recording.warnings.extend(selection.note());
        let counts = [
            (
                self.lost,
                "samples were lost while it was recorded: perf could not write as fast as they came",
            ),
            (self.broken, "samples are cut and were left out"),
            (self.idle, "samples of idle CPUs were left out"),
        ];
        recording.warnings.extend(
            counts
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, words)| format!("{count} {words}")),
        );
        let doubtful: Vec<String> = names
            .files()
            .filter_map(|file| files.get(file))
            .filter(|file| file.is_doubtful())
            .map(files::CodeFile::name)
            .collect();
        if !doubtful.is_empty() {
            recording.warnings.push(format!(
                "nothing tells whether these files were replaced since: {}",
                doubtful.join(", ")
            ));
        }
        if stale {
            recording.warnings.push(
                "it maps more files, or more often, than can be followed: some addresses may have the names of what lay there before"
                    .to_owned(),
            );
        }
        recording
    }
}

/// What stacks and names lack.
fn lacks(
    names: &Names,
    no_kernel: Option<String>,
    processor: Option<Processor>,
    architecture: Option<&str>,
) -> Vec<(String, String)> {
    let mut lacks: Vec<(String, String)> = names
        .without_symbols
        .iter()
        .map(|(file, why)| {
            let mend = "copy it here, and give its folder to --symfs";
            (format!("functions of {file}"), format!("{why}; {mend}"))
        })
        .collect();
    lacks.extend(no_kernel.map(|why| ("functions of the kernel".to_owned(), why)));
    if processor.is_none() {
        let architecture = architecture.unwrap_or("another processor");
        lacks.push((
            "stacks that were copied".to_owned(),
            format!("only those of x86-64 and aarch64 can be walked; it was recorded on {architecture}"),
        ));
    }
    lacks
}
