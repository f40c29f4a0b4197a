//! What `perf script` prints: a line for each sample, and below it the frames of its stack, innermost first, up to an empty line
//! (perf-script(1); print_sample_start and sample__fprintf_callchain of tools/perf).

mod frame_line;
mod header_line;

use crate::event_name::{are_one_on_different_cores, plain};
use crate::import::{ALL_PROCESSES, ImportError, ReadOptions, RecordedThread, Recording, RecordingFormat, Weights};
use crate::lines_left_out::LinesLeftOut;
use crate::named_stacks::{NamedSample, NamedStacks, UNKNOWN_MODULE};
use crate::{Frame, FrameId};
use frame_line::{FrameLine, function_alone, is_source_of_inlined};
use header_line::HeaderLine;
use scaleprof_binary::symbols::readable_name;
use scaleprof_vocabulary::ThreadState;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a sample stands for whose period was not printed: the same for all, so that shares hold.
const NANOSECONDS_A_SAMPLE: f64 = 1000.0;

/// Lines by which the format is told.
const FIRST_LINES: usize = 20;

/// Reads what `perf script` printed.
///
/// Of several events the first that counts nanoseconds of CPU time is taken, else the first; or the one that the options name.
/// Lines that are not understood are left out, and a warning says so.
///
/// # Errors
/// [`ImportError::Broken`] with the number of the first line where none is understood; [`ImportError::NoSuchEvent`] and
/// [`ImportError::NoSamples`] where what the options ask for is not in it.
pub fn read(text: &[u8], options: &ReadOptions) -> Result<Recording, ImportError> {
    let text = String::from_utf8_lossy(text);
    let events = events(&text);
    let mut reader = Reader {
        events: chosen(&events, options)?,
        process: options.process.as_deref(),
        processes: options
            .process
            .as_deref()
            .filter(|name| name.parse::<u32>().is_err())
            .map(|name| processes_with_thread(&text, name))
            .unwrap_or_default(),
        ..Reader::default()
    };
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(number, line.trim_end());
    }
    reader.end_sample();
    reader.finished(&events, options)
}

/// Whether a text looks like it: one of its first lines begins a sample, with or without a stack.
pub(crate) fn looks_like_it(text: &str) -> bool {
    let first = text.lines().filter(|line| is_header(line)).take(FIRST_LINES);
    first.into_iter().any(|line| HeaderLine::parse(line).is_some())
}

/// Whether a text has stacks as it prints them, whatever stands above them.
pub(crate) fn has_stacks(text: &str) -> bool {
    let is_address = |word: &str| {
        let mut digits = word.bytes();
        word.len() >= 4 && digits.all(|byte| byte.is_ascii_hexdigit()) && word.contains(|c: char| c.is_ascii_digit())
    };
    let has_address = |line: &&str| line.split_whitespace().next().is_some_and(is_address);
    let mut frames = text
        .lines()
        .filter(|line| line.starts_with([' ', '\t']))
        .filter(has_address);
    frames.any(|line| FrameLine::parse(line).is_some())
}

/// The events with the number of samples of each, in the order in which they appear.
fn events(text: &str) -> Vec<(String, usize)> {
    let mut events: Vec<(String, usize)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let headers = text
        .lines()
        .filter(|line| is_header(line))
        .filter_map(HeaderLine::parse);
    for header in headers {
        let place = *places.entry(header.event).or_insert_with(|| {
            events.push((header.event.to_owned(), 0));
            events.len() - 1
        });
        events[place].1 += 1;
    }
    events
}

/// The processes of which a thread has that name in the end: servers call theirs by what they do, and the process is meant with all of
/// them. A process has its parent's name until it becomes a program of its own.
fn processes_with_thread(text: &str, name: &str) -> HashSet<u32> {
    let headers = text
        .lines()
        .filter(|line| is_header(line))
        .filter_map(HeaderLine::parse);
    let named = headers.filter_map(|header| Some((header.thread, (header.process?, header.name))));
    let last: HashMap<u32, (u32, &str)> = named.collect();
    last.into_values()
        .filter(|(_, last)| *last == name)
        .map(|(process, _)| process)
        .collect()
}

/// Frames are indented by a tab or more than perf indents names of threads.
fn is_header(line: &str) -> bool {
    if line.is_empty() || line.starts_with(['#', '\t']) {
        return false;
    }
    // Without call graphs a header ends in what a frame is, behind a name that is indented to its place.
    FrameLine::parse(line).is_none_or(|_| !line.starts_with(' ')) || HeaderLine::parse(line).is_some()
}

/// The event to take, which may be several on as many kinds of cores; none where the text tells of none.
fn chosen(events: &[(String, usize)], options: &ReadOptions) -> Result<Vec<String>, ImportError> {
    let names = || events.iter().map(|(name, _)| name.as_str());
    if let Some(asked) = options.event.as_deref() {
        let found = names().find(|name| *name == asked || plain(name) == asked);
        return match found {
            Some(name) => Ok(with_other_cores(name, Some(asked), events)),
            None => Err(ImportError::NoSuchEvent {
                asked: asked.to_owned(),
                present: names().collect::<Vec<_>>().join(", "),
            }),
        };
    }
    let of_work = WORK.iter().find_map(|work| names().find(|name| plain(name) == *work));
    let taken = names()
        .find(|name| counts_nanoseconds(name))
        .or(of_work)
        .or_else(|| names().next());
    Ok(taken.map_or_else(Vec::new, |name| with_other_cores(name, None, events)))
}

/// An event with those that are the same on other kinds of cores; asked for that of one kind, the user gets that.
fn with_other_cores(name: &str, asked: Option<&str>, events: &[(String, usize)]) -> Vec<String> {
    let is_other = |other: &&str| asked != Some(name) && are_one_on_different_cores(name, other);
    let others = events.iter().map(|(other, _)| other.as_str()).filter(is_other);
    std::iter::once(name).chain(others).map(str::to_owned).collect()
}

/// Whether its modifiers are for user space alone: `cycles:u`, `cycles:Pu`, `cycles:ppu`, `cpu_core/cycles/Pu`.
fn leaves_out_the_kernel(event: &str) -> bool {
    let modifiers = match event.rsplit_once('/') {
        Some((_, modifiers)) => modifiers,
        None => event.strip_prefix(plain(event)).unwrap_or_default(),
    };
    modifiers.contains('u') && !modifiers.contains('k')
}

/// Events that come with work, the nearest to CPU time first.
const WORK: [&str; 4] = ["cycles", "cpu-cycles", "ref-cycles", "instructions"];

/// Whether its samples say where CPU time goes: faults, switches and other tracepoints do not.
fn comes_with_work(event: &str) -> bool {
    WORK.contains(&plain(event))
}

fn counts_nanoseconds(event: &str) -> bool {
    ["cpu-clock", "task-clock"].contains(&plain(event))
}

#[derive(Default)]
struct Reader<'a> {
    /// Those that are taken.
    events: Vec<String>,
    process: Option<&'a str>,
    /// Those that are meant by it where it is a name.
    processes: HashSet<u32>,
    stacks: NamedStacks,
    frames: HashMap<String, FrameId>,
    threads: BTreeMap<u32, RecordedThread>,
    /// The sample whose frames are being read.
    open: Option<Open>,
    /// The function of the line before, of which the next one says whether it is inlined.
    alone: Option<String>,
    left_out: LinesLeftOut,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    without_stack: usize,
    without_period: usize,
    /// Samples of other processes than the one that was asked for.
    of_others: usize,
    /// Samples of CPUs that had nothing to do.
    idle: usize,
    /// Samples that were taken.
    taken: usize,
    /// Whether the text tells a thread's process anywhere.
    tells_processes: bool,
    /// CPUs on which the samples are that were taken.
    cpus: HashSet<u32>,
}

/// A sample with its frames so far, innermost first.
struct Open {
    time_ns: u64,
    thread: u32,
    cpu: u32,
    weight_ns: f64,
    frames: Vec<FrameId>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) {
        // Only the very next line says of a function that it is inlined.
        let alone = self.alone.take();
        if line.trim().is_empty() {
            self.end_sample();
        } else if line.starts_with('#') {
            // Comments stand before all samples.
        } else if is_header(line)
            && let Some(header) = HeaderLine::parse(line)
        {
            self.end_sample();
            self.begin(&header);
        } else if let Some(frame) = FrameLine::parse(line) {
            // Frames of samples that are not taken have no place to go.
            let frame = self.open.is_some().then(|| self.frame(&frame));
            if let Some((open, frame)) = self.open.as_mut().zip(frame) {
                open.frames.push(frame);
            }
        } else if line.starts_with(char::is_whitespace) {
            self.inlined_function(alone, line);
        } else {
            self.end_sample();
            self.left_out.add(number);
        }
        // Else a source line, branch or data of a tracepoint: more of the frame or sample above it.
    }

    /// An inlined function of `-F +srcline` takes two lines: its name, and its place in the source with the word that it is inlined.
    fn inlined_function(&mut self, before: Option<String>, line: &str) {
        if let Some(function) = before.filter(|_| is_source_of_inlined(line)) {
            let frame = FrameLine {
                text: &format!("{function} (inlined)"),
                function: Some(&function),
                module: UNKNOWN_MODULE.into(),
                inlined: true,
            };
            let frame = self.frame(&frame);
            if let Some(open) = &mut self.open {
                open.frames.push(frame);
            }
        } else if self.open.is_some() {
            self.alone = function_alone(line).map(str::to_owned);
        }
    }

    fn begin(&mut self, header: &HeaderLine<'_>) {
        if !self.events.iter().any(|event| event == header.event) {
            return;
        }
        self.tells_processes |= header.process.is_some();
        // The idle task of a CPU, which `perf record -a` samples as well.
        if header.thread == 0 && header.process.unwrap_or(0) == 0 {
            self.idle += 1;
            return;
        }
        if !self.is_of_process(header) {
            self.of_others += 1;
            return;
        }
        self.cpus.extend(header.cpu);
        let thread = self.threads.entry(header.thread).or_default();
        thread.process = header.process.unwrap_or(header.thread);
        if thread.name != header.name {
            header.name.clone_into(&mut thread.name);
        }
        if let Some(time) = header.time_ns {
            self.first_ns = Some(self.first_ns.map_or(time, |first| first.min(time)));
            self.last_ns = Some(self.last_ns.map_or(time, |last| last.max(time)));
        }
        self.without_period += usize::from(header.period.is_none());
        let frame = FrameLine::parse(header.rest).map(|frame| self.frame(&frame));
        self.open = Some(Open {
            time_ns: header.time_ns.unwrap_or(0),
            thread: header.thread,
            cpu: header.cpu.unwrap_or(0),
            weight_ns: header.period.unwrap_or(NANOSECONDS_A_SAMPLE),
            frames: frame.into_iter().collect(),
        });
    }

    /// Without a number of the process, that and the name are those of the thread.
    fn is_of_process(&self, header: &HeaderLine<'_>) -> bool {
        let Some(asked) = self.process.filter(|asked| *asked != ALL_PROCESSES) else {
            return true;
        };
        let process = header.process.unwrap_or(header.thread);
        asked == header.name || asked.parse() == Ok(process) || self.processes.contains(&process)
    }

    fn frame(&mut self, line: &FrameLine<'_>) -> FrameId {
        if let Some(known) = self.frames.get(line.text) {
            return *known;
        }
        // Where it lies in the file is not printed.
        let unnamed = || format!("[unnamed in {}]", line.module);
        let number = self.stacks.frame(Frame {
            inlined: line.inlined,
            ..Frame::named(&*line.module, Some(line.function.map_or_else(unnamed, readable_name)))
        });
        self.frames.insert(line.text.to_owned(), number);
        number
    }

    fn end_sample(&mut self) {
        let Some(open) = self.open.take() else { return };
        let mut stack = None;
        for frame in open.frames.into_iter().rev() {
            stack = Some(self.stacks.child(stack, frame));
        }
        let Some(stack) = stack else {
            self.without_stack += 1;
            return;
        };
        let sample = NamedSample {
            time_ns: open.time_ns,
            thread: open.thread,
            cpu: open.cpu,
            state: ThreadState::Cpu,
            weight_ns: open.weight_ns,
            lock: None,
        };
        self.stacks.add(stack, sample);
        self.taken += 1;
    }

    fn finished(self, events: &[(String, usize)], options: &ReadOptions) -> Result<Recording, ImportError> {
        if self.stacks.sample_count() == 0 {
            if events.is_empty() {
                return Err(self
                    .left_out
                    .nothing_understood("`perf script` as it prints without -F"));
            }
            return Err(ImportError::NoSamples {
                of: options
                    .process
                    .as_ref()
                    .map_or(String::new(), |process| format!(" of process {process}")),
                why: match self.without_stack {
                    0 if self.idle > 0 && self.of_others == 0 => "all are of CPUs that had nothing to do".to_owned(),
                    0 if options.process.is_none() => "none is of a thread".to_owned(),
                    0 => "none is of that process".to_owned(),
                    count => format!(
                        "{count} samples have neither a stack nor a readable address: record with -g, and print all \
                         fields (`perf script` without -F)"
                    ),
                },
            });
        }
        let event = self.events.first();
        let is_time = event.is_some_and(|event| counts_nanoseconds(event)) && self.without_period == 0;
        let weights = if is_time { Weights::Nanoseconds } else { Weights::Counts };
        let cut = self.stacks.warning();
        let mut recording = Recording::new(RecordingFormat::PerfScript, self.stacks.into_profile(), weights);
        let has_rate = event.is_none_or(|event| counts_nanoseconds(event) || comes_with_work(event));
        recording.samples_of_unknown_rate = (!is_time && has_rate).then_some(self.taken as f64);
        recording.span = self.first_ns.zip(self.last_ns).map(|(first, last)| first..last);
        // Many threads move over all CPUs that they may use; a few leave some of them out.
        let cpus = self.cpus.len();
        let is_told = cpus > 0 && self.threads.len() >= 2 * cpus;
        recording.machine.cpus = is_told.then_some(cpus as u32);
        recording.threads = self.threads;
        recording
            .warnings
            .extend(self.left_out.warning().into_iter().chain(cut));
        if self.idle > 0 {
            let warning = format!("{} samples of idle CPUs were left out", self.idle);
            recording.warnings.push(warning);
        }
        if self.without_stack > 0 {
            let warning = format!("{} samples have no stack and were left out", self.without_stack);
            recording.warnings.push(warning);
        }
        let by_thread = !self.tells_processes && self.of_others > 0;
        if let (true, Some(asked)) = (by_thread, self.process) {
            recording.warnings.push(format!(
                "the text has no PIDs, so --process {asked} took threads of that name or number and skipped {} \
                 samples. Print it with `perf script -F +pid`",
                self.of_others
            ));
        }
        let others = events.iter().filter(|(name, _)| !self.events.contains(name));
        let others: Vec<&str> = others.map(|(name, _)| name.as_str()).collect();
        if !others.is_empty() && !self.events.is_empty() {
            let (taken, others) = (self.events.join(" and "), others.join(", "));
            let warning = format!("event {taken} was read; choose another with --event: {others}");
            recording.warnings.push(warning);
        }
        recording.without_kernel = event.is_some_and(|event| leaves_out_the_kernel(event));
        recording.event = self.events.into_iter().next();
        Ok(recording)
    }
}

#[cfg(test)]
mod tests;
