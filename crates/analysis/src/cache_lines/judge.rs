//! From places and who touches them to judged lines.

use super::costs::MeasuredCosts;
use super::facts::{CodeFunction, Place};
use super::judged::{JudgedLine, LineKind, PlaceRole};
use super::roles::{Program, Touched};
use super::words;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The lines that today's x86-64 and most aarch64 CPUs hand to one another, bytes.
const USUAL_LINE: u64 = 64;
/// One thing that fewer functions write is no reason to look at its line.
const FEWEST_WRITERS: usize = 3;
/// A place over more lines than these is an array, in which only the lines at its ends have neighbours.
const MOST_LINES: u64 = 4;

/// Judges every line of `bytes` bytes in which somebody may take it from somebody else, the gravest
/// first. Lines in which nothing of the kind is seen are left out.
///
/// With `bytes` over 64, what is apart at 64 bytes is [predicted](LineKind::LongerLinesOnly) for
/// machines with longer lines.
pub fn judge(
    places: &[Place],
    functions: &[CodeFunction],
    bytes: u64,
    costs: Option<&MeasuredCosts<'_>>,
) -> Vec<JudgedLine> {
    let bytes = bytes.max(1);
    let program = Program::of(places, functions);
    let touched: Vec<Touched<'_>> = places.iter().map(|place| Touched::of(place, &program)).collect();
    let mut lines: BTreeMap<u64, Vec<&Touched<'_>>> = BTreeMap::new();
    for one in &touched {
        let (first, last) = lines_of(one.place, bytes).into_inner();
        // Of what is longer only its ends have neighbours.
        let numbers: Vec<u64> = match last - first < MOST_LINES {
            true => (first..=last).collect(),
            false => vec![first, last],
        };
        for number in numbers {
            lines.entry(number).or_default().push(one);
        }
    }
    let mut judged: Vec<JudgedLine> = lines
        .iter()
        .filter_map(|(number, inside)| line(number.saturating_mul(bytes), bytes, inside, costs))
        .collect();
    judged.sort_by(order);
    judged
}

/// The numbers of the lines that a place lies in.
pub fn lines_of(place: &Place, bytes: u64) -> RangeInclusive<u64> {
    let bytes = bytes.max(1);
    let last = place.address.saturating_add(place.size.max(1) - 1);
    place.address / bytes..=last / bytes
}

/// What surely got dearer first, then what is hot, then where a thread was seen at all, then what much code reads and writes.
pub(super) fn order(a: &JudgedLine, b: &JudgedLine) -> Ordering {
    b.sure_growth()
        .total_cmp(&a.sure_growth())
        .then(b.hot_share().total_cmp(&a.hot_share()))
        .then(b.is_sampled().cmp(&a.is_sampled()))
        .then(b.rank.total_cmp(&a.rank))
        .then(a.address.cmp(&b.address))
}

fn line(address: u64, bytes: u64, inside: &[&Touched<'_>], costs: Option<&MeasuredCosts<'_>>) -> Option<JudgedLine> {
    let apart = without_wholes(inside);
    let (kind, weight) = kind(&apart)?;
    let kind =
        match bytes > USUAL_LINE && !meet_in_usual_line(&apart, kind, address..=address.saturating_add(bytes - 1)) {
            true => LineKind::LongerLinesOnly,
            false => kind,
        };
    let mut places: Vec<_> = inside.iter().map(|touched| touched.judged(address, costs)).collect();
    places.sort_by_key(|place| place.offset);
    let mut judged = JudgedLine {
        address,
        bytes,
        kind,
        rank: weight,
        variables: places,
        evidence: Vec::new(),
        sentence: String::new(),
        advice: Vec::new(),
    };
    judged.evidence = words::ladder(&judged, costs);
    judged.sentence = words::sentence(&judged);
    judged.advice = words::advice(&judged);
    Some(judged)
}

/// Without the places that hold other ones: a structure or array, some part of which is touched, says nothing against its parts.
fn without_wholes<'a>(inside: &[&'a Touched<'a>]) -> Vec<&'a Touched<'a>> {
    let holds_another = |whole: &Touched<'_>| {
        inside.iter().any(|part| {
            let (whole, part) = (whole.place, part.place);
            let end = |place: &Place| place.address.saturating_add(place.size);
            whole.size > part.size && whole.address <= part.address && end(part) <= end(whole)
        })
    };
    inside.iter().copied().filter(|whole| !holds_another(whole)).collect()
}

/// Whether it is so within 64 bytes of the line already.
fn meet_in_usual_line(inside: &[&Touched<'_>], wanted: LineKind, line: RangeInclusive<u64>) -> bool {
    let mut lines: BTreeMap<u64, Vec<&Touched<'_>>> = BTreeMap::new();
    let (first, last) = (line.start() / USUAL_LINE, line.end() / USUAL_LINE);
    for touched in inside {
        let (from, to) = lines_of(touched.place, USUAL_LINE).into_inner();
        for number in from.max(first)..=to.min(last) {
            lines.entry(number).or_default().push(touched);
        }
    }
    lines
        .values()
        .any(|inside| kind(inside).is_some_and(|(kind, _)| kind == wanted))
}

/// What is wrong with a line of these places, and how much code takes part in it.
fn kind(inside: &[&Touched<'_>]) -> Option<(LineKind, f64)> {
    let of = |role: PlaceRole| inside.iter().copied().filter(move |touched| touched.role == role);
    let (written, locks) = (writers(of(PlaceRole::Written)), writers(of(PlaceRole::Lock)));
    // Who writes in the line has it in its own cache when it reads in it.
    let is_writer = |function: &usize| written.contains_key(function) || locks.contains_key(function);
    // The most used place decides, not how many there are: a line full of settings that hardly anybody touches stays cold.
    let read_by_others = |touched: &Touched<'_>| -> f64 {
        let others = touched.reads.iter().filter(|(function, _)| !is_writer(function));
        others.map(|(_, weight)| weight).sum()
    };
    let read = of(PlaceRole::ReadMostly).map(read_by_others).fold(0.0, f64::max);
    // Each of both sides has to be hot for the line to wander, so neither makes up for the other.
    let both = |a: f64, b: f64| (1.0 + a).ln() * (1.0 + b).ln();
    let is_written_by_many = written.len() >= FEWEST_WRITERS;
    let most = |role: PlaceRole| of(role).map(Touched::write_weight).fold(0.0, f64::max);
    let (written, locked) = (most(PlaceRole::Written), most(PlaceRole::Lock));
    if read > 0.0 && written > 0.0 {
        return Some((LineKind::FalseSharing, both(read, written + locked)));
    }
    if locked > 0.0 && read + written > 0.0 {
        return Some((LineKind::LockSharesLine, both(locked, read + written)));
    }
    let apart = written_apart(of(PlaceRole::Written));
    if let Some((one, other)) = apart {
        return Some((LineKind::IndependentWriters, both(one, other)));
    }
    is_written_by_many.then(|| (LineKind::TrueSharing, (1.0 + written).ln()))
}

/// How much code writes any of these places, by function.
fn writers<'a>(places: impl Iterator<Item = &'a Touched<'a>>) -> BTreeMap<usize, f64> {
    let mut all: BTreeMap<usize, f64> = BTreeMap::new();
    for (function, weight) in places.flat_map(|touched| &touched.writes) {
        let known = all.entry(*function).or_default();
        *known = known.max(*weight);
    }
    all
}

/// Of two places that are written by different functions, how much code writes only the one and only the other: the pair with
/// the most.
fn written_apart<'a>(places: impl Iterator<Item = &'a Touched<'a>>) -> Option<(f64, f64)> {
    let places: Vec<&Touched<'_>> = places.collect();
    let without = |one: &Touched<'_>, other: &Touched<'_>| -> f64 {
        let alone = one
            .writes
            .iter()
            .filter(|(function, _)| !other.writes.contains_key(function));
        alone.map(|(_, weight)| weight).sum()
    };
    let mut most: Option<(f64, f64)> = None;
    for (number, one) in places.iter().enumerate() {
        for other in places.iter().skip(number + 1) {
            let pair = (without(one, other), without(other, one));
            if pair.0.min(pair.1) > most.map_or(0.0, |most| most.0.min(most.1)) {
                most = Some(pair);
            }
        }
    }
    most
}
