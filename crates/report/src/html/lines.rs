//! The judged cache lines of the hot code, for the page.
//!
//! `web/src/lineData.ts` holds the same shape.

use super::packed::packed_json;
use super::visits::round;
use scaleprof_analysis::cache_lines::{BundleLine, Evidence, LineKind, LineToucher, PlaceRole};
use scaleprof_analysis::flame::Per;
use scaleprof_analysis::instruction_costs::RungInstructions;
use scaleprof_analysis::waiting_instructions::{WaitingInstruction, waiting_instructions};
use scaleprof_bundle::Estimate;
use serde::Serialize;

/// Lines that a page shows, and functions of each line.
const MOST_LINES: usize = 24;
const MOST_TOUCHERS: usize = 12;

/// The part of the page's data.
#[derive(Serialize)]
struct Lines<'a> {
    per: Per,
    /// Connections (null for a watch) and CPU microseconds of a transaction, by rung.
    rungs: Vec<(Option<u32>, f64)>,
    /// Lines of the bundle that are not in the page.
    left_out: usize,
    lines: Vec<Line<'a>>,
    /// Instructions that wait for a line, whatever it is.
    waiting: Vec<Waiting<'a>>,
}

/// An instruction that got dearer where the rest of its function did not; CPU microseconds of a transaction at two rungs.
#[derive(Serialize)]
struct Waiting<'a> {
    module: &'a str,
    address: i64,
    function: &'a str,
    source: Option<&'a str>,
    /// Place of the line that it touches, where that is one of those that are shown.
    line: Option<usize>,
    costs: [f64; 2],
    rest: [f64; 2],
}

#[derive(Serialize)]
struct Line<'a> {
    module: &'a str,
    address: u64,
    bytes: u64,
    kind: LineKind,
    sentence: &'a str,
    advice: &'a [String],
    /// What it stands on: whether it holds (null where it was not measured), and in words.
    evidence: Vec<(Option<bool>, &'a str)>,
    places: Vec<Place<'a>>,
    /// CPU microseconds of a transaction, with half of the 95 % interval, at the instructions that touch it, by rung.
    costs: Vec<Option<(f64, Option<f64>)>>,
    samples: u64,
    touchers: Vec<Toucher<'a>>,
    /// Functions that touch it besides.
    more_touchers: usize,
}

#[derive(Serialize)]
struct Place<'a> {
    name: &'a str,
    /// Bytes from the line's start; negative where it begins before it.
    offset: i64,
    size: u64,
    role: PlaceRole,
    /// Functions of the running server that read it, that write it, and that hand its address on.
    readers: usize,
    writers: usize,
    passed_by: u32,
    /// Functions that write it at the start, the stop, or when a setting changes.
    rarely_written_by: u32,
}

#[derive(Serialize)]
struct Toucher<'a> {
    /// Place among the line's places.
    place: usize,
    function: &'a str,
    writes: bool,
    locked: bool,
    waits: bool,
    instructions: usize,
    /// The hottest of them.
    address: Option<u64>,
    /// CPU microseconds of a transaction, by rung.
    costs: Vec<f64>,
    samples: u64,
}

/// The text for the page.
pub(super) fn packed(lines: &[BundleLine], rungs: &[RungInstructions]) -> String {
    let waiting = waiting_instructions(rungs);
    packed_json(&Lines {
        waiting: waiting.iter().map(|one| Waiting::of(one, lines)).collect(),
        per: rungs.first().map_or(Per::Transaction, RungInstructions::per),
        rungs: rungs
            .iter()
            .map(|rung| (rung.connections, micros(rung.costs.all().unwrap_or(0.0))))
            .collect(),
        left_out: lines.len().saturating_sub(MOST_LINES),
        lines: lines.iter().take(MOST_LINES).map(Line::of).collect(),
    })
}

impl<'a> Waiting<'a> {
    fn of(found: &'a WaitingInstruction, lines: &[BundleLine]) -> Waiting<'a> {
        let touches =
            |line: &BundleLine| line.module == found.at.module && line.addresses.contains(&(found.at.address as u64));
        Waiting {
            module: &found.at.module,
            address: found.at.address,
            function: &found.function,
            source: found.source.as_deref(),
            line: lines.iter().take(MOST_LINES).position(touches),
            costs: found.seconds.map(micros),
            rest: found.rest_seconds.map(micros),
        }
    }
}

impl<'a> Line<'a> {
    fn of(found: &'a BundleLine) -> Line<'a> {
        let line = &found.line;
        // Without two rungs these say only that they were not measured.
        let is_told = |step: Evidence| {
            found.is_compared || !matches!(step, Evidence::HotLoad | Evidence::GrowingCost | Evidence::HotStore)
        };
        let places = line.places.iter().map(|place| Place {
            name: &place.name,
            offset: place.offset,
            size: place.size,
            role: place.role,
            readers: place.readers.len(),
            writers: place.writers.len(),
            passed_by: place.passed_by,
            rarely_written_by: place.rarely_written_by,
        });
        Line {
            module: &found.module,
            address: line.address,
            bytes: line.bytes,
            kind: line.kind,
            sentence: &line.sentence,
            advice: &line.advice,
            evidence: line
                .ladder
                .iter()
                .filter(|step| is_told(step.step))
                .map(|step| (step.holds, step.words.as_str()))
                .collect(),
            places: places.collect(),
            costs: found.costs.iter().map(|cost| cost.map(with_half)).collect(),
            samples: found.samples,
            touchers: found.touchers.iter().take(MOST_TOUCHERS).map(Toucher::of).collect(),
            more_touchers: found.touchers.len().saturating_sub(MOST_TOUCHERS),
        }
    }
}

impl<'a> Toucher<'a> {
    fn of(found: &'a LineToucher) -> Toucher<'a> {
        Toucher {
            place: found.place,
            function: &found.function,
            writes: found.writes,
            locked: found.locked,
            waits: found.waits,
            instructions: found.instructions.len(),
            address: found.instructions.first().copied(),
            costs: found.seconds.iter().copied().map(micros).collect(),
            samples: found.samples,
        }
    }
}

fn with_half(estimate: Estimate) -> (f64, Option<f64>) {
    (
        micros(estimate.value),
        estimate.high.map(|high| micros(high - estimate.value)),
    )
}

/// Microseconds with as many digits as anybody reads.
fn micros(seconds: f64) -> f64 {
    round(seconds * 1e6)
}
