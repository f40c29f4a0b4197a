//! What `perf stat` prints: as text, with a separator (`-x`), or as JSON (`-j`); of a whole run or in intervals (`-I`).
//!
//! The forms are those of perf 6.1 (tools/perf/util/stat-display.c and Documentation/perf-stat.txt, "CSV FORMAT" and "JSON
//! FORMAT"). Lines with a CPU, socket or thread before the count (`-A`, `--per-core`, `--per-thread`) are refused: their sum is
//! not known to be all.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The counts of one measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PerfStat {
    /// How long was counted, seconds; none where the form does not say.
    pub elapsed_seconds: Option<f64>,
    /// By the names of the events, as perf prints them, such as `cycles:u`.
    pub counts: BTreeMap<String, Counted>,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Its count, over all intervals; in seconds for events that are times (`task-clock`, `duration_time`). None where perf could not
    /// count it, in some interval or at all.
    pub value: Option<f64>,
    /// The part of the time in which it was really counted, 0 to 1: there may be more events than counters. perf has scaled the
    /// count up already.
    pub running_share: f64,
}

/// Why a text is none of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PerfStatError {
    /// Nothing in it looks like a count.
    #[error("no line is a count of perf stat, as text, with -x or with -j")]
    NoCounts,
    /// Counts of parts of the machine.
    #[error("line {line}: counts by CPU, core, socket or thread; use perf stat without -A and --per-...")]
    ByPart {
        /// From 1.
        line: usize,
    },
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// Its end, seconds since counting began, where counts come in intervals.
    interval: Option<f64>,
    event: String,
    value: Option<f64>,
    unit: String,
    running_share: f64,
}

impl PerfStat {
    /// Reads what perf stat printed.
    ///
    /// # Errors
    /// [`PerfStatError`].
    pub fn parse(text: &str) -> Result<PerfStat, PerfStatError> {
        let mut stat = PerfStat::default();
        let mut last_interval: Option<f64> = None;
        // The interval in which each event was last counted.
        let mut counted_at: BTreeMap<String, Option<f64>> = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            if let Some(seconds) = elapsed(line) {
                stat.elapsed_seconds = Some(seconds);
                continue;
            }
            let line = match line.trim() {
                "" => continue,
                line if line.starts_with('#') => continue,
                json if json.starts_with('{') => of_json(json),
                line => separated(line)
                    .map_err(|()| PerfStatError::ByPart { line: number + 1 })?
                    .or_else(|| of_text(line)),
            };
            if let Some(line) = line {
                // Sums of all intervals, printed behind them (--summary), are those counts once more.
                if last_interval.is_some() && line.interval.is_none() {
                    continue;
                }
                last_interval = line.interval.or(last_interval);
                let before = counted_at.insert(line.event.clone(), line.interval);
                // An event that stands in several groups is counted in each: it is not more of it.
                if before != Some(line.interval) {
                    stat.add(line);
                }
            }
        }
        if stat.counts.is_empty() {
            return Err(PerfStatError::NoCounts);
        }
        let duration = stat.counts.remove("duration_time").and_then(|counted| counted.value);
        stat.elapsed_seconds = stat
            .elapsed_seconds
            .or(duration)
            .or(last_interval)
            .filter(|time| *time > 0.0);
        Ok(stat)
    }

    fn add(&mut self, line: Line) {
        let in_seconds = match line.unit.as_str() {
            "msec" => 1e-3,
            "ns" => 1e-9,
            _ => 1.0,
        };
        let value = line.value.map(|value| value * in_seconds);
        let counted = Counted {
            value,
            running_share: line.running_share,
        };
        match self.counts.get_mut(&line.event) {
            Some(sum) => {
                sum.value = sum.value.zip(value).map(|(sum, more)| sum + more);
                sum.running_share = sum.running_share.min(counted.running_share);
            }
            None => {
                self.counts.insert(line.event, counted);
            }
        }
    }
}

/// `       4.001234567 seconds time elapsed`, perhaps with `+- 0.000496` in between.
fn elapsed(line: &str) -> Option<f64> {
    let before = line.split_once("seconds time elapsed")?.0;
    number(before.split_whitespace().next()?, false)
}

/// An object of `perf stat -j`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct JsonLine {
    interval: Option<f64>,
    counter_value: Option<String>,
    #[serde(default)]
    unit: String,
    event: Option<String>,
    pcnt_running: Option<f64>,
}

fn of_json(line: &str) -> Option<Line> {
    let line: JsonLine = serde_json::from_str(line.trim_end_matches(',')).ok()?;
    Some(Line {
        interval: line.interval,
        event: line.event.filter(|event| !event.is_empty())?,
        value: line.counter_value?.parse().ok().filter(|value: &f64| value.is_finite()),
        unit: line.unit,
        running_share: share(line.pcnt_running),
    })
}

fn share(per_cent: Option<f64>) -> f64 {
    per_cent.map_or(1.0, |per_cent| (per_cent / 100.0).clamp(0.0, 1.0))
}

/// A line of `perf stat -x`: value, unit, event, perhaps a variance, run time, per cent; with `-I` a time before. An error where a part
/// of the machine stands before the value; nothing for another form.
fn separated(line: &str) -> Result<Option<Line>, ()> {
    for separator in [',', ';', '|', '\t', ':'] {
        let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
        let is_value = |place: usize| fields.get(place).is_some_and(|field| is_count(field));
        let is_word = |place: usize| {
            fields
                .get(place)
                .is_some_and(|field| field.starts_with(|first: char| first.is_ascii_alphabetic()))
        };
        let is_unit = |place: usize| fields.get(place).is_some_and(|field| field.is_empty()) || is_word(place);
        let begins = |place: usize| is_value(place) && is_unit(place + 1) && is_word(place + 2);
        let first = if begins(0) {
            0
        } else if begins(1) && fields[0].parse::<f64>().is_ok() {
            1
        } else if fields.len() > 4 && is_word(0) && (begins(1) || begins(2)) {
            return Err(());
        } else {
            continue;
        };
        // A variance stands before the run time, and has its sign.
        let after = first + 3 + usize::from(fields.get(first + 3).is_some_and(|field| field.ends_with('%')));
        return Ok(Some(Line {
            interval: (first == 1).then(|| fields[0].parse().ok()).flatten(),
            event: fields[first + 2].to_owned(),
            value: fields[first].parse().ok().filter(|value: &f64| value.is_finite()),
            unit: fields[first + 1].to_owned(),
            running_share: share(fields.get(after + 1).and_then(|field| field.parse().ok())),
        }));
    }
    Ok(None)
}

const NOT_COUNTED: [&str; 2] = ["<not counted>", "<not supported>"];

fn is_count(field: &str) -> bool {
    NOT_COUNTED.contains(&field) || field.parse::<f64>().is_ok_and(f64::is_finite)
}

/// A line for people: `  8,000.52 msec task-clock   #  1.990 CPUs utilized  (83.21%)`; with `-I` a time before.
fn of_text(line: &str) -> Option<Line> {
    let counted = line
        .rsplit_once('(')
        .and_then(|(_, last)| last.trim_end().strip_suffix("%)"))
        .and_then(|per_cent| per_cent.trim().parse().ok());
    let line = line.split('#').next()?;
    let (value, before, rest) = match NOT_COUNTED.iter().find_map(|words| line.split_once(words)) {
        Some((before, rest)) => (None, before, rest),
        None => {
            let end = line.find(|letter: char| letter.is_ascii_alphabetic())?;
            let (numbers, rest) = line.split_at(end);
            // The event may begin with a part of the count where it is glued: it never is.
            let (before, value) = match numbers.trim_end().rsplit_once([' ', '\t']) {
                Some((before, value)) => (before, value),
                None => ("", numbers.trim()),
            };
            let is_whole = !PARTED_UNITS.iter().any(|unit| rest.starts_with(unit));
            (Some(number(value, is_whole)?), before, rest)
        }
    };
    let interval = match before.trim() {
        "" => None,
        time => Some(time.parse().ok()?),
    };
    let mut words = rest.split_whitespace();
    let first = words.next()?;
    let (unit, event) = match first {
        "msec" | "ns" | "Joules" | "MiB" => (first, words.next()?),
        event => ("", event),
    };
    // `12 seconds user`, and prose.
    let is_alone = words.next().is_none_or(|word| word.starts_with('('));
    (is_alone && first != "seconds").then(|| Line {
        interval,
        event: event.to_owned(),
        value,
        unit: unit.to_owned(),
        running_share: share(counted),
    })
}

/// Units of which perf prints parts; all else is counted, and whole.
const PARTED_UNITS: [&str; 3] = ["msec", "Joules", "MiB"];

/// With the separators of whatever language perf spoke: `8,000.52`, `8.000,52`, `1,234,567`. `1.234` is more than a thousand where
/// it is a count, and little more than one where it is not.
fn number(text: &str, is_whole: bool) -> Option<f64> {
    let is_mark = |letter: char| matches!(letter, ',' | '.' | '\'' | '\u{a0}' | '\u{202f}');
    if text.is_empty() || !text.chars().all(|letter| letter.is_ascii_digit() || is_mark(letter)) {
        return None;
    }
    let (whole, part) = match text.rfind(is_mark) {
        None => (text, ""),
        Some(at) => {
            let mark = text[at..].chars().next()?;
            let part = &text[at + mark.len_utf8()..];
            let others = text[..at].chars().filter(|letter| is_mark(*letter));
            // Thousands have three digits and one kind of mark; what stands once and is longer or shorter is a part of one.
            let may_group = mark != '.' || (is_whole && !text.starts_with('0'));
            let groups = part.len() == 3 && may_group && others.clone().all(|other| other == mark);
            let repeated = others.clone().any(|other| other == mark);
            match groups || repeated {
                true => (text, ""),
                false => (&text[..at], part),
            }
        }
    };
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    format!("{digits}.{part}").parse().ok()
}

#[cfg(test)]
mod tests;
