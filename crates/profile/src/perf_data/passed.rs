//! What going through the records by time gives: the samples that count, and where the files lay when each was taken.

use super::attribute::{Attribute, field};
use super::container::Timed;
use super::cursor::Words;
use super::files::Files;
use super::futexes::{FutexWait, Futexes};
use super::jumps::Room;
use super::kernel::RecordedKernel;
use super::record::{Deferred, Forked, KERNEL_PROCESS, Lost, Mapped, Named, Record, kind};
use super::recorded_lock::locks;
use super::resolve::{self, Names};
use super::sample::Sampled;
use super::selection::Selection;
use super::stacks::{self, Surroundings, Wanted};
use super::summed_waits::{self, has_time};
use super::switches::{Ended, SwitchFormat, Switches};
use super::timeline::Timeline;
use super::tracepoint_format::TracepointFormats;
use super::walked::Walked;
use super::weights::Counted;
use crate::import::{ALL_PROCESSES, ImportError, ReadOptions, RecordedMachine, RecordedProgram};
use crate::walk::Processor;
use crate::{beside, both};
use scaleprof_vocabulary::ThreadState;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// So many records ahead memory is asked for what will be looked at.
const LOOKED_AHEAD: usize = 6;

/// The idle task: what it "runs" is no work.
const IDLE: u32 = 0;

/// One sample that counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) counted: Counted,
    pub(super) event: u32,
    process: u32,
    /// What the thread was doing, where the record says it.
    pub(super) state: Option<ThreadState>,
    /// For which lock it waited, where that was recorded.
    pub(super) futex: Option<FutexWait>,
}

/// What going through the records by time gave.
#[derive(Default)]
pub(super) struct Passed<'a> {
    taken: Vec<Taken>,
    wanted: Vec<Wanted>,
    deferred: HashMap<u64, Words<'a>>,
    timeline: Timeline,
    kernel: RecordedKernel,
    lost: Lost,
    switches: Switches,
    futexes: Option<Futexes>,
    /// Waits for a CPU, as the sample of the wait before, and from when on and how long: they count where all lengths are known.
    queued: Vec<(usize, (u64, u64))>,
    /// Whether processes that were not asked for have samples.
    others: bool,
    /// Samples of the idle task, which were left out.
    idle: u64,
    /// Samples that are cut.
    broken: u64,
    /// From the first to the last moment, where waits reach further than samples.
    reach: Option<Range<u64>>,
    /// Samples of each process, and what they weigh.
    processes: BTreeMap<u32, f64>,
}

impl<'a> Passed<'a> {
    pub(super) fn through(
        timed: &Timed<'a>,
        kernel: RecordedKernel,
        selection: &Selection<'_>,
        options: &ReadOptions,
        (files, formats): (&mut Files, &TracepointFormats),
    ) -> Passed<'a> {
        let mut passed = Passed {
            timeline: Timeline::new(timed.bytes),
            kernel,
            ..Passed::default()
        };
        // Nearly all are samples. Without the room they grow as needed.
        let records = timed.records.len();
        let _ = passed.taken.try_reserve_exact(records);
        let _ = passed.wanted.try_reserve_exact(records);
        passed.switches.format = SwitchFormat::of(formats);
        passed.futexes = selection
            .events
            .iter()
            .any(Attribute::is_futex_call)
            .then(|| Futexes::of(formats));
        for (place, (_, record)) in (0_u32..).zip(&timed.records) {
            if let Some((_, later)) = timed.records.get(place as usize + LOOKED_AHEAD) {
                later.prefetch();
            }
            if let Some(behind) = timed.behind {
                behind.is_at(record.body());
            }
            match record.kind {
                kind::MMAP | kind::MMAP2 => match Mapped::of(record) {
                    Some(mapped) if mapped.process == KERNEL_PROCESS => passed.kernel.map(&mapped, files),
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
                    passed.lost.add(record);
                }
                kind::CALLCHAIN_DEFERRED => {
                    let later = Deferred::of(record).map(|later| (later.cookie, later.addresses));
                    passed.deferred.extend(later);
                }
                kind::SAMPLE => match timed.ids.of_record(record) {
                    Some(event) if selection.takes(event) => passed.take((place, record), event, selection, options),
                    Some(event) if selection.listens_to(event) => {
                        let attribute = &selection.events[event];
                        if let Some(sample) = Sampled::of(record, attribute) {
                            passed.hear(&sample, attribute);
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        passed
    }

    /// Takes in what tells of others' waits.
    fn hear(&mut self, sample: &Sampled<'_>, attribute: &Attribute) {
        self.runs(sample);
        match &mut self.futexes {
            Some(futexes) if attribute.is_futex_call() => futexes.enter(sample.thread, sample.raw),
            Some(futexes) if attribute.is_futex_end() => futexes.exit(sample.thread),
            _ if attribute.is_wake_up() => self.switches.wake(sample.time_ns, sample.raw),
            _ => {}
        }
    }

    /// Whoever is in a record was running, and its wait is over.
    fn runs(&mut self, sample: &Sampled<'_>) {
        let ended = self.switches.runs(sample.thread, sample.time_ns);
        self.end_wait(ended);
    }

    fn take(
        &mut self,
        (place, record): (u32, &Record<'a>),
        event: usize,
        selection: &Selection<'_>,
        options: &ReadOptions,
    ) {
        let attribute = &selection.events[event];
        let Some(mut sample) = Sampled::of(record, attribute) else {
            self.broken += 1;
            return;
        };
        if attribute.is_off_cpu() {
            (sample.process, sample.thread) = self.timeline.in_order(sample.process, sample.thread);
        }
        let is_idle = sample.process == IDLE && sample.thread == IDLE && attribute.has(field::TID);
        self.idle += u64::from(is_idle);
        let is_wanted = !is_idle && self.is_of(options.process.as_deref(), sample.process);
        // Sums of waits are put out by whoever ran then.
        if !attribute.is_off_cpu() {
            self.runs(&sample);
        }
        let (mut state, mut futex) = (None, None);
        if attribute.is_switch() {
            let ended = self
                .switches
                .come_back((sample.cpu, sample.thread), sample.time_ns, sample.raw);
            self.end_wait(ended);
            let own = is_wanted.then_some(self.taken.len());
            if is_idle || is_wanted {
                state = self.switches.leave(sample.thread, own, sample.time_ns, sample.raw);
            }
            if is_wanted && state.is_none() {
                futex = self.futexes.as_mut().and_then(|futexes| futexes.wait(sample.thread));
            }
        }
        if !is_wanted {
            self.others |= !is_idle;
            return;
        }
        // A fixed period may stand with the event alone.
        let fixed = (!attribute.in_hertz).then_some(attribute.period_or_frequency);
        let period = sample.period.or(fixed).unwrap_or(1) as f64;
        self.timeline.meet(sample.process, sample.thread);
        self.wanted.push(Wanted {
            record: place,
            event: event as u32,
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
            process: sample.process,
            state,
            futex,
        });
    }

    fn is_of(&self, asked: Option<&str>, process: u32) -> bool {
        asked.is_none_or(|asked| {
            asked == ALL_PROCESSES || process.to_string() == asked || self.timeline.is_called(process, asked)
        })
    }

    /// Of a whole machine the database server, where one runs: figures per transaction are the server's, and what a load generator on the
    /// same machine uses is no cost of a transaction. Says in words what was left out.
    pub(super) fn leave_out_others(&mut self, files: &Files, options: &ReadOptions) -> Option<String> {
        let server = self
            .main_process(files)
            .filter(|process| self.is_server(*process, files))?;
        let others = self.processes.keys().filter(|process| **process != server).count();
        if options.process.is_some() || others == 0 {
            return None;
        }
        let all = self.taken.len();
        let gone = self.keep(|taken| taken.process == server);
        self.others = true;
        self.processes.retain(|process, _| *process == server);
        Some(format!(
            "{gone} of its {all} samples, of {others} other processes than the database server {server}, were \
             skipped: choose with --process NAME, NUMBER or all"
        ))
    }

    /// Whether it has samples of processes that are not shown.
    pub(super) fn has_others(&self) -> bool {
        self.others
    }

    fn is_server(&self, process: u32, files: &Files) -> bool {
        let file = self.timeline.program(process).and_then(|file| files.get(file));
        file.is_some_and(|file| RecordedProgram::is_database_server(&file.name()))
    }

    /// The process with the most samples; of a whole machine the database server, where one runs.
    fn main_process(&self, files: &Files) -> Option<u32> {
        let heaviest = self
            .processes
            .iter()
            .map(|(process, weight)| (self.is_server(*process, files), *weight, *process))
            .max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        heaviest.map(|(.., process)| process)
    }

    /// A wait has its length now.
    fn end_wait(&mut self, ended: Option<Ended>) {
        if let Some(ended) = ended
            && let Some(taken) = self.taken.get_mut(ended.sample)
        {
            taken.counted.period = ended.length_ns as f64;
            self.queued.extend(ended.queued.map(|queued| (ended.sample, queued)));
        }
    }

    /// Makes samples of their own, with the same stacks, of what threads waited for a CPU behind other waits.
    fn add_queued(&mut self) {
        for (sample, (since_ns, length_ns)) in std::mem::take(&mut self.queued) {
            let (mut queued, wanted) = (self.taken[sample], self.wanted[sample]);
            queued.counted.time_ns = since_ns;
            queued.counted.period = length_ns as f64;
            queued.state = Some(ThreadState::RunQueue);
            queued.futex = None;
            self.taken.push(queued);
            self.wanted.push(wanted);
        }
    }

    /// Gives the waits that go on at the end their length so far. Where lengths cannot be known, leaving a CPU is no time: it counts
    /// only if it was asked for, or if there is nothing else. Where they are known, what perf summed up of the same waits is left out;
    /// says so in words.
    pub(super) fn end_waits(&mut self, timed: &Timed<'_>, selection: &Selection<'_>) -> Vec<String> {
        let event = |taken: &Taken| &selection.events[taken.event as usize];
        if self.switches.of_whole_machine() {
            let times = self.taken.iter().filter(|taken| has_time(taken));
            let end_ns = times.map(|taken| taken.counted.time_ns).max().unwrap_or(0);
            for ended in self.switches.unended(end_ns) {
                self.end_wait(Some(ended));
            }
            self.add_queued();
            let sums = self.keep(|taken| !event(taken).is_off_cpu());
            self.weigh_processes(selection);
            let notes = [
                (
                    sums,
                    "sums of waits (perf record --off-cpu) were skipped: its switches have the same waits one by one",
                ),
                (
                    self.switches.ends_unseen,
                    "waits have no recorded end: they count until the next event of their thread",
                ),
            ];
            let sums = self.reach_over_waits(timed, selection);
            let told = notes.into_iter().filter(|(count, _)| *count > 0);
            let told = told.map(|(count, words)| format!("its {count} {words}"));
            return told.chain(sums).collect();
        }
        let mut left_out = 0;
        // Of millions of samples most have none.
        if selection.events.iter().any(Attribute::is_switch) {
            for taken in &mut self.taken {
                if event(taken).is_switch() {
                    taken.counted.period = 1.0;
                }
            }
            left_out = self.keep(|taken| taken.event as usize == selection.chosen() || !event(taken).is_switch());
        }
        self.weigh_processes(selection);
        let sums = self.reach_over_waits(timed, selection);
        let kept = selection
            .events
            .get(selection.chosen())
            .is_some_and(Attribute::is_switch);
        let note = match (left_out, kept) {
            (0, false) => None,
            (0, true) => Some("its switches count once each".to_owned()),
            (left_out, _) => Some(format!("its {left_out} switches were left out")),
        };
        let note = note.map(|what| {
            format!("{what}: off-CPU time is known only in recordings of the whole machine (perf record -a)")
        });
        note.into_iter().chain(sums).collect()
    }

    /// Finds how far waits reach that perf summed up, and says in words that sums have no time.
    fn reach_over_waits(&mut self, timed: &Timed<'_>, selection: &Selection<'_>) -> Option<String> {
        let is_off_cpu = |taken: &Taken| selection.events[taken.event as usize].is_off_cpu();
        // Of millions of samples.
        if !selection.events.iter().any(Attribute::is_off_cpu) && self.taken.iter().all(has_time) {
            return None;
        }
        let reach = summed_waits::reach(&timed.records, &self.taken, is_off_cpu);
        let sums = summed_waits::settle_times(&mut self.taken, reach.end);
        self.reach = Some(reach);
        (sums > 0).then(|| {
            format!("{sums} of its samples are sums of waits without a time, so the course of these waits is unknown")
        })
    }

    /// What the samples of each process weigh; those of waits count, as long ones do not make a process busy.
    fn weigh_processes(&mut self, selection: &Selection<'_>) {
        self.processes.clear();
        // Samples of one process often come one after the other.
        for of_process in self.taken.chunk_by(|a, b| a.process == b.process) {
            let weights = of_process
                .iter()
                .map(|taken| match selection.waits(taken.event as usize) {
                    true => 1.0,
                    false => taken.counted.period,
                });
            let process = of_process.first().map_or(0, |taken| taken.process);
            *self.processes.entry(process).or_default() += weights.sum::<f64>();
        }
    }

    /// Keeps the samples that fit. Returns how many went.
    fn keep(&mut self, fits: impl Fn(&Taken) -> bool) -> usize {
        let all = self.taken.len();
        let mut kept = self.taken.iter().map(&fits).collect::<Vec<bool>>().into_iter();
        self.wanted.retain(|_| kept.next().unwrap_or(true));
        self.taken.retain(fits);
        all - self.taken.len()
    }

    /// Whether there is anything to show.
    pub(super) fn check(
        &self,
        selection: &Selection<'_>,
        options: &ReadOptions,
        problems: &[String],
    ) -> Result<(), ImportError> {
        if !self.taken.is_empty() {
            return Ok(());
        }
        let of = options.process.as_ref().map(|process| format!(" of process {process}"));
        let mut why = problems.to_vec();
        if of.is_some() {
            why.extend(self.threads_in_words());
        } else if self.idle > 0 {
            why.push(format!("{} of its samples are of idle CPUs", self.idle));
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

    /// How the threads that it tells of are called, in words.
    fn threads_in_words(&self) -> Option<String> {
        /// A whole machine has hundreds.
        const MOST: usize = 12;
        let names = self.timeline.thread_names();
        let some: Vec<&str> = names.iter().copied().take(MOST).collect();
        let more = if names.len() > MOST { " and others" } else { "" };
        (!some.is_empty()).then(|| format!("it has threads called {}{more}", some.join(", ")))
    }

    /// Walks all stacks; the recording's bytes are not needed any more then.
    pub(super) fn walk(
        self,
        (timed, source): (&Timed<'_>, Option<&File>),
        selection: &Selection<'_>,
        files: &Files,
        (machine, inlines): (&RecordedMachine, bool),
    ) -> Walked {
        let main_process = self.main_process(files);
        let main_file = main_process.and_then(|process| self.timeline.program(process));
        let program = main_process.zip(main_file).and_then(|(process, file)| {
            let file = files.get(file)?;
            Some(RecordedProgram {
                process,
                name: file.name(),
                build_id: file.build_id().map(str::to_owned),
            })
        });
        let stale = self.timeline.stale;
        let (layouts, threads) = self.timeline.finish();
        let architecture = machine.architecture.as_deref();
        let surroundings = Surroundings {
            records: &timed.records,
            behind: timed.behind,
            source,
            unread: AtomicU64::new(0),
            events: selection.events,
            layouts: &layouts,
            files,
            room_for_jumps: Room::of(timed.bytes),
            deferred: &self.deferred,
            processor: architecture.map_or(Some(Processor::HERE), Processor::of_name),
        };
        let in_kernel = timed
            .records
            .iter()
            .any(|(_, record)| stacks::is_sample_of_kernel(record));
        // The list of the kernel's functions, and the symbols of the program that nearly all stacks are of, take as long to read as
        // thousands of stacks to walk.
        let read_kernel = || self.kernel.symbols(machine, files);
        let read_main = || Some((main_file?, resolve::symbols(main_file?, files, inlines)?));
        let walk = || stacks::stacks(&self.wanted, &surroundings);
        let (kernel, (ready, mut found)) = beside(in_kernel.then_some(&read_kernel), || both(read_main, walk));
        found.jumps.keep_most_taken();
        // Jumps may lead there where no sample was taken.
        let ends_of_jumps = found.jumps.ends_in_kernel();
        let kernel = kernel.or_else(|| (!ends_of_jumps.is_empty()).then(read_kernel));
        let locks = locks(self.futexes.as_ref(), (&self.taken, &self.wanted), &layouts, files);
        Walked {
            taken: self.taken,
            locks,
            found,
            kernel,
            recorded_kernel: self.kernel,
            ready,
            names: Names::default(),
            no_walking: surroundings.processor.is_none(),
            threads,
            program,
            lost: self.lost.samples(),
            unread: surroundings.unread.into_inner(),
            broken: self.broken,
            idle: self.idle,
            stale,
            reach: self.reach,
            lengths_known: self.switches.of_whole_machine(),
        }
    }
}
