//! The judged cache lines of the hot code, for the page.
//!
//! `web/src/lineData.ts` holds the same shape.

use super::measurements::round;
use super::packed::packed_json;
use scaleprof_analysis::Per;
use scaleprof_analysis::cache_lines::{BundleLine, Evidence, LineKind, LineToucher, PlaceRole};
use scaleprof_analysis::machine_code::MachineCode;
use scaleprof_analysis::rung_instructions::RungInstructions;
use scaleprof_analysis::waiting_instructions::{WaitingInstruction, waiting_instructions};
use scaleprof_bundle::{Estimate, InstructionRow};
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
    omitted: usize,
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
    costs_something: bool,
    sentence: &'a str,
    advice: &'a [String],
    /// What it stands on: whether it holds (null where it was not measured), and in words.
    evidence: Vec<(Option<bool>, &'a str)>,
    variables: Vec<Place<'a>>,
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
    address_passed_by: u32,
    /// Functions that write it at the start, the stop, or when a setting changes.
    rare_writers: u32,
}

#[derive(Serialize)]
struct Toucher<'a> {
    /// Place among the line's places.
    place: usize,
    function: &'a str,
    writes: bool,
    locked: bool,
    in_spin_loop: bool,
    instructions: usize,
    /// The hottest of them.
    address: Option<u64>,
    /// CPU microseconds of a transaction, by rung.
    costs: Vec<f64>,
    samples: u64,
}

/// The text for the page.
pub(super) fn packed(lines: &[BundleLine], rungs: &[RungInstructions], instructions: &[InstructionRow]) -> String {
    let waiting = waiting_instructions(rungs, || MachineCode::from_rows(instructions));
    packed_json(&Lines {
        waiting: waiting.iter().map(|one| Waiting::of(one, lines)).collect(),
        per: rungs.first().map_or(Per::Transaction, RungInstructions::per),
        rungs: rungs
            .iter()
            .map(|rung| (rung.connections, micros(rung.costs.all().unwrap_or(0.0))))
            .collect(),
        omitted: lines.len().saturating_sub(MOST_LINES),
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
        let places = line.variables.iter().map(|place| Place {
            name: &place.name,
            offset: place.offset,
            size: place.size,
            role: place.role,
            readers: place.readers.len(),
            writers: place.writers.len(),
            address_passed_by: place.address_passed_by,
            rare_writers: place.rare_writers,
        });
        Line {
            module: &found.module,
            address: line.address,
            bytes: line.bytes,
            kind: line.kind,
            costs_something: line.costs_something(),
            sentence: &line.sentence,
            advice: &line.advice,
            evidence: line
                .evidence
                .iter()
                .filter(|step| is_told(step.step))
                .map(|step| (step.holds, step.words.as_str()))
                .collect(),
            variables: places.collect(),
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
            in_spin_loop: found.in_spin_loop,
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

#[cfg(test)]
mod tests {
    use super::super::packed::unpacked;
    use super::*;
    use scaleprof_analysis::cache_lines::{JudgedLine, JudgedPlace, LadderStep};
    use scaleprof_analysis::instruction_costs::InstructionCosts;
    use std::collections::BTreeSet;

    fn place(name: &str, offset: i64, role: PlaceRole) -> JudgedPlace {
        JudgedPlace {
            name: name.into(),
            offset,
            size: 8,
            role,
            read_weight: 1.0,
            write_weight: 1.0,
            readers: Vec::new(),
            writers: Vec::new(),
            locked: false,
            address_passed_by: 2,
            rare_writers: 1,
            read_cost: None,
            write_cost: None,
            write_rate: None,
        }
    }

    fn line(address: u64, is_compared: bool) -> BundleLine {
        let step = |step, holds, words: &str| LadderStep {
            step,
            holds,
            words: words.into(),
        };
        let judged = JudgedLine {
            address,
            bytes: 64,
            kind: LineKind::FalseSharing,
            rank: 1.0,
            variables: vec![
                place("counter", 0, PlaceRole::Written),
                place("enabled", 8, PlaceRole::ReadMostly),
            ],
            evidence: vec![
                step(Evidence::Neighbours, Some(true), "in one line"),
                step(Evidence::GrowingCost, None, "not measured"),
                step(Evidence::HardwareSample, None, "perf c2c"),
            ],
            sentence: "every write of counter takes enabled".into(),
            advice: vec!["alignas(64)".into()],
        };
        let toucher = |place| LineToucher {
            place,
            function: "spin".into(),
            writes: true,
            locked: true,
            in_spin_loop: false,
            instructions: vec![0x2010, 0x2000],
            seconds: vec![2e-6],
            samples: 9,
        };
        BundleLine {
            module: "mysqld".into(),
            line: judged,
            is_compared,
            costs: vec![Some(Estimate {
                value: 3e-6,
                low: Some(0.0),
                high: Some(7e-6),
            })],
            samples: 9,
            addresses: BTreeSet::from([0x2000, 0x2010]),
            touchers: vec![toucher(0); MOST_TOUCHERS + 3],
        }
    }

    fn rung() -> RungInstructions {
        RungInstructions {
            connections: Some(64),
            client_limited: false,
            costs: InstructionCosts::default(),
        }
    }

    #[test]
    fn a_line_carries_its_places_its_touchers_and_its_cost_by_rung() {
        let found = unpacked(&packed(&[line(0x1000, true)], &[rung()], &[]));
        assert_eq!(found["rungs"], serde_json::json!([[64, 0.0]]));
        let shown = &found["lines"][0];
        assert_eq!(
            (&shown["kind"], &shown["address"]),
            (&"false_sharing".into(), &0x1000.into())
        );
        assert_eq!(shown["costs"], serde_json::json!([[3.0, 4.0]]));
        assert_eq!(shown["variables"][1]["name"], "enabled");
        assert_eq!(shown["variables"][1]["role"], "read_mostly");
        assert_eq!(shown["evidence"].as_array().map(Vec::len), Some(3));
        let toucher = &shown["touchers"][0];
        assert_eq!(
            (&toucher["address"], &toucher["instructions"]),
            (&0x2010.into(), &2.into())
        );
        assert_eq!(toucher["costs"], serde_json::json!([2.0]));
        assert_eq!(
            (&shown["more_touchers"], shown["touchers"].as_array().map(Vec::len)),
            (&3.into(), Some(MOST_TOUCHERS))
        );
        assert_eq!(found["waiting"], serde_json::json!([]));
    }

    #[test]
    fn what_needs_two_rungs_is_not_told_of_one_and_lines_beyond_the_page_are_counted() {
        let lines: Vec<BundleLine> = (0..30).map(|number| line(64 * number, false)).collect();
        let found = unpacked(&packed(&lines, &[rung()], &[]));
        assert_eq!(found["omitted"], 30 - MOST_LINES);
        let words: Vec<&str> = found["lines"][0]["evidence"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|step| step[1].as_str())
            .collect();
        assert_eq!(words, ["in one line", "perf c2c"]);
    }
}
