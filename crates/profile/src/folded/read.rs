//! Reads folded stacks, one column or two.

use crate::function_name::without_clone_suffix;
use crate::import::{ImportError, Recording, RecordingFormat, Weights};
use crate::lines_left_out::LinesLeftOut;
use crate::named_stacks::{NamedSample, NamedStacks, UNKNOWN_MODULE};
use crate::names::OWN_MAKING;
use crate::{Frame, FrameId, KERNEL};
use scaleprof_binary::symbols::readable_name;
use scaleprof_vocabulary::ThreadState;
use std::collections::HashMap;

/// What one count stands for. What counts are is not written in such a file; what this program writes is microseconds.
const NANOSECONDS_A_COUNT: f64 = 1000.0;
/// Lines by which the format is told.
const FIRST_LINES: usize = 20;

/// Reads folded stacks: one recording, or two where every line has two numbers, as in the difference of two.
///
/// The endings `_[k]`, `_[j]` and `_[i]` of names are understood: functions of the kernel, of code made while the program ran, and
/// functions built into others. Lines that are not understood are left out, and a warning says so.
///
/// # Errors
/// [`ImportError::Broken`] with the number of the first line where none is understood, [`ImportError::NoSamples`] where a column is all
/// zeros.
pub fn read(text: &[u8]) -> Result<Vec<Recording>, ImportError> {
    let text = String::from_utf8_lossy(text);
    let columns = columns(&text);
    let mut readers: Vec<Reader> = (0..columns).map(|_| Reader::default()).collect();
    let mut left_out = LinesLeftOut::default();
    for (number, line) in content(&text) {
        match parse(line, columns) {
            Some((path, counts)) => {
                for (reader, count) in readers.iter_mut().zip(counts) {
                    reader.add(path, count);
                }
            }
            None => left_out.add(number),
        }
    }
    let understood = readers.iter().any(|reader| reader.stacks.sample_count() > 0);
    if !understood {
        return Err(left_out.nothing_understood("a call path `a;b;c` followed by a number"));
    }
    if let Some(column) = readers.iter().position(|reader| reader.stacks.sample_count() == 0) {
        return Err(ImportError::NoSamples {
            of: format!(" in its {} column", ["first", "second"][column.min(1)]),
            why: "all of its numbers are 0".to_owned(),
        });
    }
    let warning = left_out.warning();
    let recordings = readers.into_iter().map(|reader| {
        let cut = reader.stacks.warning();
        let (off_cpu, counted) = (reader.is_off_cpu(), reader.counted);
        let mut profile = reader.stacks.into_profile();
        for sample in &mut profile.samples {
            sample.state = match (off_cpu, sample.state) {
                (true, ThreadState::Cpu) => ThreadState::Other,
                (true, waits_for) => waits_for,
                (false, _) => ThreadState::Cpu,
            };
        }
        let mut recording = Recording::new(RecordingFormat::Folded, profile, Weights::Counts);
        recording.samples_of_unknown_rate = Some(counted);
        recording.warnings.extend(warning.iter().cloned().chain(cut));
        recording
    });
    Ok(recordings.collect())
}

/// Whether a text looks like folded stacks: most of its first lines are some. Its last may be cut off.
pub(crate) fn looks_like_it(text: &str) -> bool {
    let first = || content(text).take(FIRST_LINES).map(|(_, line)| line);
    let stacks = first().filter(|line| !line.starts_with(char::is_whitespace) && parse(line, 1).is_some());
    let stacks = stacks.count();
    stacks > 0 && 2 * stacks >= first().count()
}

/// The lines with something on them, by their numbers from 1; comments begin with `#` and a space.
fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim_end()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with("# "))
}

/// How many columns of numbers there are: one or two.
pub(crate) fn columns_of(text: &[u8]) -> usize {
    columns(&String::from_utf8_lossy(text))
}

/// Two where every line ends in two numbers that are not part of a name.
fn columns(text: &str) -> usize {
    let mut lines = content(text).filter_map(|(_, line)| Some((line, parse(line, 1)?)));
    let Some((first, _)) = lines.next() else { return 1 };
    let two = |line: &str| parse(line, 2).is_some();
    if two(first) && lines.all(|(line, _)| two(line)) {
        2
    } else {
        1
    }
}

/// A path and its numbers.
fn parse(line: &str, columns: usize) -> Option<(&str, Vec<f64>)> {
    let mut path = line;
    let mut counts = Vec::new();
    for _ in 0..columns {
        let (rest, count) = path.trim_end().rsplit_once([' ', '\t'])?;
        counts.push(number(count)?);
        path = rest;
    }
    counts.reverse();
    let path = path.trim();
    (!path.is_empty()).then_some((path, counts))
}

/// A number as a person writes it; not `inf` or `nan`.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && text.starts_with(|c: char| c.is_ascii_digit());
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

/// One column.
#[derive(Default)]
struct Reader {
    stacks: NamedStacks,
    frames: HashMap<String, FrameId>,
    /// The sum of all numbers.
    counted: f64,
    /// The same of stacks that end where a thread leaves its CPU.
    leaving: f64,
}

impl Reader {
    /// Whether stacks were taken as threads left their CPUs, as offcputime of bcc does it: nearly all
    /// end there. Those of threads on a CPU end there too now and then, and bcc loses a stack.
    fn is_off_cpu(&self) -> bool {
        const NEARLY_ALL: f64 = 0.95;
        self.leaving >= NEARLY_ALL * self.counted
    }

    fn add(&mut self, path: &str, count: f64) {
        if count <= 0.0 {
            return;
        }
        let state = match leaves_its_cpu(path) {
            true => wait(path),
            false => ThreadState::Cpu,
        };
        let mut stack = None;
        for name in path.split(';').map(str::trim).filter(|name| !name.is_empty()) {
            let frame = self.frame(name);
            stack = Some(self.stacks.child(stack, frame));
        }
        let sample = NamedSample {
            time_ns: 0,
            thread: 0,
            cpu: 0,
            state,
            weight_ns: count * NANOSECONDS_A_COUNT,
            lock: None,
        };
        if let Some(stack) = stack {
            self.counted += count;
            self.leaving += if state == ThreadState::Cpu { 0.0 } else { count };
            self.stacks.add(stack, sample);
        }
    }

    fn frame(&mut self, name: &str) -> FrameId {
        if let Some(known) = self.frames.get(name) {
            return *known;
        }
        let frame = self.stacks.frame(frame(name));
        self.frames.insert(name.to_owned(), frame);
        frame
    }
}

/// Whether a stack ends in the kernel's functions in which a thread leaves its CPU.
fn leaves_its_cpu(path: &str) -> bool {
    const LEAVING: [&str; 4] = ["finish_task_switch", "schedule", "__schedule", "io_schedule"];
    let innermost = path.rsplit(';').next().unwrap_or_default().trim();
    LEAVING.contains(&without_clone_suffix(innermost.trim_end_matches("_[k]")))
}

/// What a thread waits for that left its CPU in this path.
fn wait(path: &str) -> ThreadState {
    let passes = |words: &[&str]| {
        path.split(';')
            .any(|name| words.iter().any(|word| name.trim().starts_with(word)))
    };
    match () {
        () if passes(&["futex_wait", "do_futex", "__x64_sys_futex"]) => ThreadState::Lock,
        () if passes(&["io_schedule"]) => ThreadState::Io,
        () => ThreadState::Other,
    }
}

fn frame(name: &str) -> Frame {
    let annotated = [
        ("_[k]", KERNEL, false),
        ("_[j]", OWN_MAKING, false),
        ("_[i]", UNKNOWN_MODULE, true),
    ];
    let found = annotated.into_iter().find_map(|(ending, module, inlined)| {
        let function = name.strip_suffix(ending).filter(|function| !function.is_empty())?;
        Some((function, module, inlined))
    });
    let (function, module, inlined) = found.unwrap_or((name, UNKNOWN_MODULE, false));
    Frame {
        inlined,
        ..Frame::named(module, Some(readable_name(function)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(recording: &Recording) -> Vec<(String, f64)> {
        let profile = &recording.profile;
        let path = |sample: &crate::Sample| {
            let frames = profile.stacks.frames(sample.stack).into_iter();
            let names: Vec<String> = frames
                .map(|frame| profile.frames.get(frame).unwrap().function_name())
                .collect();
            (names.join(" > "), sample.weight_ns / NANOSECONDS_A_COUNT)
        };
        profile.samples.iter().map(path).collect()
    }

    #[test]
    fn annotations_fractions_and_names_with_spaces_are_understood() {
        let text = "# cmdline: perf record\nmysqld;operator new(unsigned long);do_futex_[k] 12\r\n\nmysqld;f_[i] 1.5\nmysqld 0\n";
        let found = read(text.as_bytes()).unwrap();
        let expected = [
            ("mysqld > operator new(unsigned long) > do_futex [k]".to_owned(), 12.0),
            ("mysqld > f".to_owned(), 1.5),
        ];
        assert_eq!(paths(&found[0]), expected);
        assert!(found.len() == 1 && found[0].warnings.is_empty());
        let inlined = found[0].profile.frames.iter().filter(|(_, frame)| frame.inlined);
        assert_eq!(inlined.count(), 1);
    }

    /// bcc's offcputime -f: microseconds that threads were off the CPU.
    #[test]
    fn stacks_that_end_where_a_thread_leaves_its_cpu_are_no_cpu_time() {
        let text = "m;f;-;do_syscall_64;do_futex;futex_wait;schedule;finish_task_switch 70\nm;g;io_schedule;schedule 20\n\
                    m;h;schedule_[k] 5\nm;finish_task_switch.isra.0 1\n";
        let found = read(text.as_bytes()).unwrap();
        let states: Vec<ThreadState> = found[0].profile.samples.iter().map(|sample| sample.state).collect();
        let expected = [
            ThreadState::Lock,
            ThreadState::Io,
            ThreadState::Other,
            ThreadState::Other,
        ];
        assert_eq!(states, expected);
        let with_a_lost_one = format!("{text}m;f;-;[Missed Kernel Stack] 2\n");
        let off_cpu = read(with_a_lost_one.as_bytes()).unwrap();
        assert!(
            off_cpu[0]
                .profile
                .samples
                .iter()
                .all(|sample| sample.state != ThreadState::Cpu)
        );
        let on_cpu = read(format!("{text}m;work 30\n").as_bytes()).unwrap();
        assert!(
            on_cpu[0]
                .profile
                .samples
                .iter()
                .all(|sample| sample.state == ThreadState::Cpu)
        );
    }

    #[test]
    fn two_numbers_on_every_line_are_two_recordings() {
        let found = read(b"a;b 10 20\na;c 0 5\n").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(paths(&found[0]), [("a > b".to_owned(), 10.0)]);
        assert_eq!(
            paths(&found[1]),
            [("a > b".to_owned(), 20.0), ("a > c".to_owned(), 5.0)]
        );
        // A number that only some lines have is part of a name.
        let found = read(b"a;thread 7 20\na;c 5\n").unwrap();
        assert_eq!(paths(&found[0])[0], ("a > thread 7".to_owned(), 20.0));
    }

    #[test]
    fn a_column_of_nothing_is_refused() {
        let said = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            said("a;b 0 3\na;c 0 4\n"),
            "it holds no sample in its first column: all of its numbers are 0"
        );
        assert!(said("a;b 3 0\na;c 4 0\n").contains("second column"));
    }

    #[test]
    fn what_is_not_understood_is_told_by_its_line() {
        let found = read(b"a;b 1\na;c what\na;d 2\na;e").unwrap();
        assert_eq!(found[0].profile.samples.len(), 2);
        assert!(
            found[0].warnings[0].contains("2 lines") && found[0].warnings[0].contains("line 2"),
            "{:?}",
            found[0].warnings
        );
        let said = read(b"\nnothing here\n").unwrap_err().to_string();
        assert!(said.contains("line 2"), "{said}");
        assert!(read(b"a inf\n").is_err() && read(b"a -3\n").is_err() && read(b"a .\n").is_err());
    }
}
