//! The line that begins a sample: `mysqld  1234/1240 [001] 12345.678901:     250000 cpu-clock:pppH:`, of which perf leaves out what
//! it was not asked for.

/// A sample without its stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HeaderLine<'a> {
    /// The thread's name.
    pub name: &'a str,
    /// The process, where it stands there too.
    pub process: Option<u32>,
    /// The thread.
    pub thread: u32,
    /// The CPU.
    pub cpu: Option<u32>,
    /// When, nanoseconds of the recording's clock.
    pub time_ns: Option<u64>,
    /// How much of the event the sample stands for.
    pub period: Option<f64>,
    /// The event with its modifiers.
    pub event: &'a str,
    /// What stands behind the event: the frame of a sample without a stack, or the data of a tracepoint.
    pub rest: &'a str,
}

impl<'a> HeaderLine<'a> {
    /// Takes a line apart; none where it is no such line.
    pub(super) fn parse(line: &'a str) -> Option<HeaderLine<'a>> {
        let words = Words::of(line);
        // A thread's name may have spaces and numbers in it. What follows the thread tells where it ends.
        (1..words.list.len()).find_map(|place| words.header(place))
    }
}

/// The words of a line with their places in it.
struct Words<'a> {
    line: &'a str,
    list: Vec<(usize, &'a str)>,
}

/// Words of a line before which its event must stand: names of threads have 15 bytes.
const MOST_WORDS: usize = 16;

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        let words = line.split_ascii_whitespace().take(MOST_WORDS);
        let place = |word: &'a str| (word.as_ptr() as usize - line.as_ptr() as usize, word);
        Words {
            line,
            list: words.map(place).collect(),
        }
    }

    /// The sample if the thread's number is the word at that place.
    fn header(&self, place: usize) -> Option<HeaderLine<'a>> {
        let (begin, numbers) = self.list[place];
        let (process, thread) = match numbers.split_once('/') {
            Some((process, thread)) => (Some(number(process)?), number(thread)?),
            None => (None, number(numbers)?),
        };
        let name = self.line[..begin].trim();
        let mut rest = self.list[place + 1..].iter().copied().peekable();
        let cpu = rest
            .next_if(|(_, word)| cpu(word).is_some())
            .and_then(|(_, word)| cpu(word));
        // Flags of a tracepoint's moment, such as d..2.
        let _ = rest.next_if(|(_, word)| word.len() <= 6 && word.contains('.') && nanoseconds(word).is_none());
        let time_ns = rest
            .next_if(|(_, word)| nanoseconds(word).is_some())
            .and_then(|(_, word)| nanoseconds(word));
        let period = rest
            .next_if(|(_, word)| number::<u64>(word).is_some())
            .and_then(|(_, word)| number::<u64>(word));
        let (at, word) = rest.next()?;
        let event = word.strip_suffix(':').filter(|event| is_event(event))?;
        Some(HeaderLine {
            name,
            process,
            thread,
            cpu,
            time_ns,
            period: period.map(|period| period as f64),
            event,
            rest: self.line[at + word.len()..].trim(),
        })
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// `[003]`.
fn cpu(word: &str) -> Option<u32> {
    number(word.strip_prefix('[')?.strip_suffix(']')?)
}

/// `12345.678901:`, with six digits of a second or nine.
fn nanoseconds(word: &str) -> Option<u64> {
    let (seconds, part) = word.strip_suffix(':')?.split_once('.')?;
    let digits = u32::try_from(part.len())
        .ok()
        .filter(|digits| (1..=9).contains(digits))?;
    let part = number::<u64>(part)? * 10u64.pow(9 - digits);
    number::<u64>(seconds)?.checked_mul(1_000_000_000)?.checked_add(part)
}

/// An event begins with a letter: a time does not.
fn is_event(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_shapes_are_taken_apart() {
        let usual = HeaderLine {
            name: "mysqld",
            process: Some(1234),
            thread: 1240,
            cpu: Some(1),
            time_ns: Some(12_345_678_901_000),
            period: Some(250_000.0),
            event: "cpu-clock:pppH",
            rest: "",
        };
        for (line, expected) in [
            (
                "mysqld  1234/1240 [001] 12345.678901:     250000 cpu-clock:pppH: ",
                usual,
            ),
            (
                "Web Content 12 34/35 [000] 1.5: 1 cycles:u: ",
                HeaderLine {
                    name: "Web Content 12",
                    process: Some(34),
                    thread: 35,
                    cpu: Some(0),
                    time_ns: Some(1_500_000_000),
                    period: Some(1.0),
                    event: "cycles:u",
                    rest: "",
                },
            ),
            (
                "swapper     0 12345.678901234: cycles:  ffffffff81 mwait_idle ([kernel.kallsyms])",
                HeaderLine {
                    name: "swapper",
                    process: None,
                    thread: 0,
                    cpu: None,
                    time_ns: Some(12_345_678_901_234),
                    period: None,
                    event: "cycles",
                    rest: "ffffffff81 mwait_idle ([kernel.kallsyms])",
                },
            ),
            (
                "mysqld  1240 [001] d..2. 12345.678901: sched:sched_switch: prev_comm=mysqld prev_pid=1",
                HeaderLine {
                    process: None,
                    period: None,
                    event: "sched:sched_switch",
                    rest: "prev_comm=mysqld prev_pid=1",
                    ..usual
                },
            ),
        ] {
            assert_eq!(HeaderLine::parse(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_samples() {
        for line in [
            "",
            "mysqld",
            "mysqld;main;f 12",
            "            55d0 main+0x1 (/usr/sbin/mysqld)",
            "a 1/x [0] 1.0: cycles:",
            "a 99999999999 1.0: cycles:",
            "mysqld 1/2 [001] 1.0: 5",
        ] {
            assert_eq!(HeaderLine::parse(line), None, "{line}");
        }
    }
}
