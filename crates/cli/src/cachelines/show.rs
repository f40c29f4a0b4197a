//! Judged lines on a terminal.

use super::{Listing, Shown};
use crate::global_arguments::has_colours;
use crate::output::{self, Unwritten};
use scaleprof_analysis::cache_lines::{JudgedPlace, LineKind, PairElsewhere, PlaceRole, Toucher};
use std::fmt::Write as _;

/// Functions that are named of those that touch a place.
const MOST_NAMES: usize = 3;
/// Longer names of places are cut.
const WIDEST_NAME: usize = 44;
/// Neighbours that are named of those that nobody touches.
const MOST_UNTOUCHED: usize = 6;

/// Writes a line into a text, which cannot fail.
macro_rules! say {
    ($out:expr, $($words:tt)*) => {{
        let _ = writeln!($out, $($words)*);
    }};
}

pub(super) fn print(listing: &Listing) -> Result<(), Unwritten> {
    let paint = Paint(has_colours());
    output::print(text(listing, &paint))
}

fn text(listing: &Listing, paint: &Paint) -> String {
    let mut out = String::new();
    say!(
        out,
        "{}: {} that threads share; {} of {} bytes in which one may take another from a CPU's cache.",
        listing.binary,
        count(listing.variables, "variable"),
        count(listing.judged, "line"),
        listing.line,
    );
    if let Some(words) = which(listing) {
        say!(out, "{words}");
    }
    match &listing.measured {
        Some(measured) => say!(
            out,
            "Costs: CPU time per transaction of the threads that serve the load, at {} and {} connections ({:.1} and {:.1} µs in all).",
            measured.connections[0],
            measured.connections[1],
            measured.cpu_seconds_per_txn[0] * 1e6,
            measured.cpu_seconds_per_txn[1] * 1e6
        ),
        None => say!(
            out,
            "Ranked by how much code reads and writes; with --bundle, by measured CPU time."
        ),
    }
    for note in &listing.notes {
        say!(out, "note: {note}");
    }
    for (number, shown) in listing.lines.iter().enumerate() {
        add_line(&mut out, number + 1, shown, paint);
    }
    out
}

/// Which of the lines are listed; none where all are.
fn which(listing: &Listing) -> Option<String> {
    let (listed, all) = (listing.lines.len(), listing.judged);
    let left = all - listed;
    let Some(costly) = listing.costly else {
        return (left > 0).then(|| format!("Listed: the {listed} that most code reads and writes (--all shows all)."));
    };
    let rest = match left {
        0 => String::new(),
        left if left == all => format!(" (--all lists all {all})"),
        left => format!(" (--all lists the other {left} too)"),
    };
    Some(match costly {
        0 => format!(
            "None has measured time in this run: none takes 0.1 % of the CPU time per transaction or grows \
             significantly{rest}."
        ),
        costly => {
            let gravest = match listed < costly {
                true => format!("; listed are the {listed} gravest"),
                false => String::new(),
            };
            format!(
                "{costly} of them cost something in this run: 0.1 % of a transaction's CPU time, or surely more than at the other \
                 rung{gravest}{rest}."
            )
        }
    })
}

fn add_line(out: &mut String, number: usize, shown: &Shown, paint: &Paint) {
    let line = &shown.line;
    let kind = match line.kind {
        LineKind::FalseSharing => "false sharing",
        LineKind::LockSharesLine => "a lock beside data",
        LineKind::IndependentWriters => "written together",
        LineKind::TrueSharing => "true sharing",
        LineKind::LongerLinesOnly => "predicted for longer lines",
    };
    say!(out, "\n{number}. {:#x}  {}", line.address, paint.strong(kind));
    say!(out, "   {}", line.sentence);
    let widest = line
        .variables
        .iter()
        .map(|place| place.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(WIDEST_NAME);
    let (quiet, busy): (Vec<&JudgedPlace>, Vec<&JudgedPlace>) =
        line.variables.iter().partition(|place| place.role == PlaceRole::Unused);
    for place in busy {
        say!(
            out,
            "   {:>5} {:>4}  {:widest$}  {}",
            format!("{:+}", place.offset),
            place.size,
            shortened(&place.name),
            touched(place)
        );
        if let Some(words) = cost(place) {
            say!(out, "   {:>10}  {:widest$}  {}", "", "", paint.weak(&words));
        }
    }
    let quiet = quiet.into_iter().map(|place| &place.name);
    let others: Vec<&String> = quiet.chain(&shown.untouched).collect();
    if !others.is_empty() {
        let named: Vec<String> = others.iter().take(MOST_UNTOUCHED).map(|name| shortened(name)).collect();
        let more = others.len().saturating_sub(MOST_UNTOUCHED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        say!(
            out,
            "\u{20}  in the same line, not accessed while the server runs: {}{more}",
            named.join(", ")
        );
    }
    let mut before = "";
    for step in &line.evidence {
        // The same lack is told once.
        if step.words == std::mem::replace(&mut before, &step.words) {
            continue;
        }
        let mark = match step.holds {
            Some(true) => paint.good("yes"),
            Some(false) => paint.weak("no "),
            None => paint.weak("?  "),
        };
        say!(out, "   {mark} {}", step.words);
    }
    for advice in &line.advice {
        say!(out, "   try {advice}");
    }
    for pair in &shown.elsewhere {
        say!(out, "   other build: {}", elsewhere(pair));
    }
}

/// A name that leaves room for what is said of it.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(WIDEST_NAME) {
        Some((end, _)) => format!("{}...", name.get(..end - 3).unwrap_or(name)),
        None => name.to_owned(),
    }
}

fn elsewhere(pair: &PairElsewhere) -> String {
    let PairElsewhere { read, written, .. } = pair;
    match (pair.together, pair.apart) {
        (Some(true), _) => format!("{read} and {written} are in one line there too"),
        (Some(false), Some(apart)) => {
            format!("{read} and {written} are in different lines ({apart} bytes between them)")
        }
        _ => format!("{read} and {written} are not both named there"),
    }
}

fn touched(place: &JudgedPlace) -> String {
    let mut parts = Vec::new();
    if place.role == PlaceRole::Lock {
        parts.push("a lock".to_owned());
    }
    if !place.writers.is_empty() {
        let how = if place.locked {
            "written (locked) by"
        } else {
            "written by"
        };
        parts.push(format!("{how} {}", names(&place.writers)));
    }
    if !place.readers.is_empty() {
        let how = match (place.role, place.writers.is_empty()) {
            (PlaceRole::ReadMostly, true) => "only read, by",
            (PlaceRole::ReadMostly, false) => "mostly read, by",
            _ => "read by",
        };
        parts.push(format!("{how} {}", names(&place.readers)));
    }
    if place.address_passed_by > 0 {
        parts.push(format!(
            "address handed on by {}",
            count(place.address_passed_by as usize, "function")
        ));
    }
    if place.rare_writers > 0 {
        parts.push(format!("written at start, stop or setting by {}", place.rare_writers));
    }
    match parts.is_empty() {
        true => "not touched while the server runs".to_owned(),
        false => parts.join("; "),
    }
}

/// `1 line`, `4 600 lines`.
fn count(number: usize, what: &str) -> String {
    let digits = number.to_string();
    let mut told = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            told.push(' ');
        }
        told.push(digit);
    }
    format!("{told} {what}{}", if number == 1 { "" } else { "s" })
}

fn names(touchers: &[Toucher]) -> String {
    let named: Vec<&str> = touchers
        .iter()
        .take(MOST_NAMES)
        .map(|toucher| toucher.function.as_str())
        .collect();
    let more = if touchers.len() > MOST_NAMES { ", ..." } else { "" };
    format!("{} ({}{more})", count(touchers.len(), "function"), named.join(", "))
}

/// What reading and writing cost, where a bundle tells.
fn cost(place: &JudgedPlace) -> Option<String> {
    let told = |what: &str, cost: Option<scaleprof_analysis::cache_lines::PlaceCost>| {
        let cost = cost.filter(|cost| cost.samples != [0, 0])?;
        let two = cost.with_skid;
        let sure = match cost.grows() {
            Some(true) => ", surely more",
            Some(false) => ", no sure growth",
            None => ", too little to say whether it grows",
        };
        Some(format!(
            "{what} {:.3} -> {:.3} µs a transaction ({:.3} -> {:.3} at the instructions themselves{sure}; {} of its CPU time)",
            two.base.value * 1e6,
            two.last.value * 1e6,
            cost.itself.base.value * 1e6,
            cost.itself.last.value * 1e6,
            cost.share_in_words()
        ))
    };
    let both = [told("reads", place.read_cost), told("writes", place.write_cost)];
    let both: Vec<String> = both.into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join("; "))
}

/// Colours, where there is a terminal.
struct Paint(bool);

impl Paint {
    fn wrap(&self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    fn strong(&self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    fn good(&self, text: &str) -> String {
        self.wrap("32", text)
    }

    fn weak(&self, text: &str) -> String {
        self.wrap("2", text)
    }
}
