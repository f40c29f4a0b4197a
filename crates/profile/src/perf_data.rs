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
    let passed = Passed::through(&timed, &selection, options, &mut files);
    passed.check(&selection, options, &problems)?;
    Ok(passed.into_recording(&selection, options, &files, (&features, problems)))
}

/// One sample that counts.
#[derive(Debug, Clone, Copy)]
struct Taken {
    counted: Counted,
    event: u32,
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
    /// Samples of the idle task, which were left out.
    idle: u64,
    /// Samples that are cut.
    broken: u64,
    /// Samples of each process, and what they weigh.
    processes: BTreeMap<u32, f64>,
}

impl<'a> Passed<'a> {
    fn through(timed: &Timed<'a>, selection: &Selection<'_>, options: &ReadOptions, files: &mut Files) -> Passed<'a> {
        let mut passed = Passed::default();
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
        if sample.process == IDLE && sample.thread == IDLE && attribute.has(attribute::field::TID) {
            self.idle += 1;
            return;
        }
        if let Some(process) = &options.process
            && sample.process.to_string() != *process
            && self.timeline.thread(sample.process, sample.process).name != *process
        {
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
        });
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
        let scales = selection.scales(&self.taken);
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
        let mut found = stacks(
            &self.wanted,
            &Surroundings {
                events: selection.events,
                layouts: &layouts,
                files,
                deferred: &self.deferred,
                processor,
            },
        );
        let in_kernel = found.stacks.iter().any(|stack| !stack.kernel.is_empty());
        let kernel = in_kernel.then(|| self.kernel.symbols(&features.machine, files.build_ids()));
        let (kernel, no_kernel) = match kernel {
            Some(Ok(symbols)) => (Some(symbols), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let mut names = Names::of(&found.stacks, files, kernel, options.inlines);
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
                state: match selection.events[event].is_off_cpu() {
                    true => blocked.state(*stack),
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
        let doubtful: Vec<String> = names.files().filter_map(|file| files.get(file)).filter(|file| file.is_doubtful()).map(files::CodeFile::name).collect();
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
