//! The machine code of the hot functions with what every instruction costs at every rung, for the page's annotate view.
//!
//! `web/src/codeData.ts` holds the same shape. Rows are short arrays, and words that come again are told once: the listings of
//! sixty functions are the largest part of a page after its samples.

use super::measurements::round;
use super::packed::packed_json;
use scaleprof_analysis::Per;
use scaleprof_analysis::annotate::{EveryRung, FunctionAtRungs, InstructionAtRungs, RungCost};
use scaleprof_bundle::{Estimate, InstructionRow};
use scaleprof_vocabulary::{AccessKind, BranchKind};
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

/// A function with no more instructions than this is shown whole.
const WHOLE: usize = 300;
/// Of a longer one, so many instructions before and behind each at which threads were seen.
const AROUND: usize = 24;
/// No more instructions than these are in a page, about 500 kB; the functions that cost least go first.
const MOST: usize = 16_000;

/// The part of the page's data.
#[derive(Serialize)]
struct Code<'a> {
    per: Per,
    /// Connections (null for a watch) and CPU microseconds of a transaction, by rung.
    rungs: Vec<(Option<u32>, f64)>,
    base: Option<usize>,
    rung: usize,
    /// The part of the CPU time at `rung` that is in these functions.
    covered: f64,
    /// Functions that are in the bundle and not in the page.
    omitted: usize,
    functions: Vec<Function<'a>>,
    /// Words of the rows, by number; 0 is none.
    strings: Vec<&'a str>,
}

/// A function; its costs are those of its own instructions.
#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    module: &'a str,
    build_id: Option<&'a str>,
    /// Instructions in the bundle.
    instructions: usize,
    /// One a rung.
    costs: Vec<FunctionCost>,
    /// What is shown of it, by address.
    regions: Vec<Region<'a>>,
}

/// CPU microseconds of a transaction, half of the 95 % interval (null where there is none), the part in loops that wait for
/// another thread, what is spent in the kernel from there, and samples.
#[derive(Serialize)]
struct FunctionCost(f64, Option<f64>, f64, f64, u64);

/// Instructions without a gap.
#[derive(Serialize)]
struct Region<'a> {
    /// Instructions that are left out before it.
    omitted: usize,
    rows: Vec<Row<'a>>,
}

/// Address, text, file, line (0 for none), what was built in here, marks, target, the address of the memory that it names, costs.
#[derive(Serialize)]
struct Row<'a>(i64, &'a str, usize, i32, usize, u8, Option<i64>, Option<i64>, Vec<Cost>);

/// Rung, CPU microseconds of a transaction, half of the interval, microseconds in the kernel, samples.
#[derive(Serialize)]
struct Cost(usize, f64, Option<f64>, f64, u64);

/// Marks of a row.
const WAITS: u8 = 1;
const TARGET: u8 = 2;
const LOCKED: u8 = 4;
const READS: u8 = 8;
const WRITES: u8 = 16;
const BRANCHES: u8 = 32;

/// The text for the page; empty where there is no machine code with samples.
pub(super) fn packed(code: Option<&EveryRung<'_>>) -> String {
    code.filter(|code| !code.functions.is_empty())
        .map(|code| packed_json(&Code::of(code)))
        .unwrap_or_default()
}

impl<'a> Code<'a> {
    fn of(all: &'a EveryRung<'a>) -> Code<'a> {
        let mut words = Words::default();
        let mut functions = Vec::new();
        let mut room = MOST;
        for function in &all.functions {
            let regions = regions(&function.instructions);
            let size: usize = regions.iter().map(ExactSizeIterator::len).sum();
            if size > room {
                continue;
            }
            room -= size;
            functions.push(Function::of(function, &regions, &mut words));
        }
        Code {
            per: all.per,
            rungs: all
                .rungs
                .iter()
                .map(|(connections, all)| (*connections, micros(*all)))
                .collect(),
            base: all.base,
            rung: all.shown,
            covered: round(all.covered),
            omitted: all.functions.len() - functions.len(),
            functions,
            strings: words.words,
        }
    }
}

impl<'a> Function<'a> {
    fn of(function: &'a FunctionAtRungs<'a>, regions: &[Range<usize>], words: &mut Words<'a>) -> Function<'a> {
        let mut end = 0;
        let regions = regions.iter().map(|region| {
            let omitted = region.start - std::mem::replace(&mut end, region.end);
            let instructions = function.instructions.get(region.clone()).unwrap_or_default();
            Region {
                omitted,
                rows: instructions.iter().map(|one| Row::of(one, words)).collect(),
            }
        });
        Function {
            name: &function.function,
            module: &function.module,
            build_id: function.build_id.as_deref(),
            instructions: function.instructions.len(),
            regions: regions.collect(),
            costs: function
                .costs
                .iter()
                .zip(&function.waiting_seconds)
                .map(|(cost, waiting)| FunctionCost::of(cost, *waiting))
                .collect(),
        }
    }
}

impl FunctionCost {
    fn of(cost: &RungCost, waiting: f64) -> FunctionCost {
        let seconds = cost.seconds_per_txn;
        FunctionCost(
            micros(seconds.map_or(0.0, |seconds| seconds.value)),
            seconds.and_then(half),
            micros(waiting),
            micros(cost.kernel_seconds_per_txn),
            cost.samples,
        )
    }
}

impl<'a> Row<'a> {
    fn of(instruction: &InstructionAtRungs<'a>, words: &mut Words<'a>) -> Row<'a> {
        let row = instruction.row;
        let costs = instruction.costs.iter().map(|(rung, cost)| {
            Cost(
                *rung,
                micros(cost.seconds_per_txn.value),
                half(cost.seconds_per_txn),
                micros(cost.kernel_seconds_per_txn),
                cost.samples,
            )
        });
        Row(
            row.address,
            &row.text,
            words.number(row.file.as_deref()),
            row.line.unwrap_or(0),
            words.number(row.inlined.as_deref()),
            marks(row, instruction.is_branch_target),
            row.target.filter(|_| row.branch.is_some()),
            row.data_address,
            costs.collect(),
        )
    }
}

fn marks(row: &InstructionRow, is_target: bool) -> u8 {
    let access = row.access;
    let branches = matches!(row.branch, Some(BranchKind::Jump | BranchKind::Conditional));
    [
        (row.in_spin_loop, WAITS),
        (is_target, TARGET),
        (row.locked, LOCKED),
        (matches!(access, Some(AccessKind::Read | AccessKind::Update)), READS),
        (matches!(access, Some(AccessKind::Write | AccessKind::Update)), WRITES),
        (branches, BRANCHES),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .fold(0, |marks, (_, mark)| marks | mark)
}

/// What of a function is shown: all of it, or what stands around the instructions at which threads were seen.
fn regions(instructions: &[InstructionAtRungs<'_>]) -> Vec<Range<usize>> {
    if instructions.len() <= WHOLE {
        return std::iter::once(0..instructions.len()).collect();
    }
    let seen = instructions.iter().enumerate().filter(|(_, one)| !one.costs.is_empty());
    let mut regions: Vec<Range<usize>> = Vec::new();
    for (place, _) in seen {
        let region = place.saturating_sub(AROUND)..(place + AROUND + 1).min(instructions.len());
        match regions.last_mut().filter(|last| region.start <= last.end) {
            Some(last) => last.end = region.end,
            None => regions.push(region),
        }
    }
    regions
}

/// Upper half, as the lower one is cut off at 0.
fn half(estimate: Estimate) -> Option<f64> {
    estimate.high.map(|high| micros(high - estimate.value))
}

/// Microseconds with as many digits as anybody reads.
fn micros(seconds: f64) -> f64 {
    round(seconds * 1e6)
}

/// Words that come again, each told once.
#[derive(Default)]
struct Words<'a> {
    words: Vec<&'a str>,
    numbers: HashMap<&'a str, usize>,
}

impl<'a> Words<'a> {
    /// From 1 on; 0 for nothing.
    fn number(&mut self, word: Option<&'a str>) -> usize {
        let Some(word) = word else { return 0 };
        let words = &mut self.words;
        *self.numbers.entry(word).or_insert_with(|| {
            words.push(word);
            words.len()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed::unpacked;
    use super::*;
    use scaleprof_analysis::annotate::InstructionCost;

    fn row(address: i64, text: &str) -> InstructionRow {
        InstructionRow {
            module: "mysqld".into(),
            function: "walk".into(),
            address,
            length: 4,
            text: text.into(),
            file: Some("row/walk.cc".into()),
            line: Some(7),
            ..InstructionRow::default()
        }
    }

    fn cost(seconds: f64, samples: u64) -> InstructionCost {
        InstructionCost {
            seconds_per_txn: Estimate {
                value: seconds,
                low: Some(0.0),
                high: Some(seconds * 1.5),
            },
            kernel_seconds_per_txn: 0.0,
            samples,
        }
    }

    fn function<'a>(rows: &'a [InstructionRow], hot: &[usize]) -> FunctionAtRungs<'a> {
        let of_function = RungCost {
            connections: Some(64),
            seconds_per_txn: Some(cost(2e-6, 3).seconds_per_txn),
            kernel_seconds_per_txn: 0.0,
            all_seconds_per_txn: Some(1e-5),
            samples: 3,
            all_samples: 1000,
            least_seen_seconds_per_txn: Some(1e-7),
        };
        FunctionAtRungs {
            function: "walk".into(),
            module: "mysqld".into(),
            build_id: None,
            costs: vec![of_function],
            waiting_seconds: vec![1e-6],
            instructions: rows
                .iter()
                .enumerate()
                .map(|(place, row)| InstructionAtRungs {
                    row,
                    is_branch_target: place == 1,
                    costs: hot
                        .iter()
                        .filter(|hot| **hot == place)
                        .map(|_| (0, cost(2e-6, 3)))
                        .collect(),
                })
                .collect(),
        }
    }

    fn all(functions: Vec<FunctionAtRungs<'_>>) -> EveryRung<'_> {
        EveryRung {
            per: Per::Transaction,
            rungs: vec![(Some(64), 1e-5)],
            base: None,
            shown: 0,
            covered: 0.2,
            functions,
        }
    }

    #[test]
    fn a_row_carries_what_the_bundle_has_of_the_instruction() {
        let rows = [
            row(0x2000, "push rbp"),
            InstructionRow {
                in_spin_loop: true,
                locked: true,
                access: Some(AccessKind::Update),
                data_address: Some(0x9040),
                inlined: Some("look > peek".into()),
                ..row(0x2004, "lock add qword ptr [counter], 1")
            },
            InstructionRow {
                branch: Some(BranchKind::Conditional),
                target: Some(0x2004),
                file: None,
                line: None,
                ..row(0x2008, "jne 0x2004")
            },
        ];
        let found = unpacked(&packed(Some(&all(vec![function(&rows, &[1])]))));
        assert_eq!(found["per"], "transaction");
        assert_eq!(found["rungs"], serde_json::json!([[64, 10.0]]));
        let walk = &found["functions"][0];
        assert_eq!(walk["costs"], serde_json::json!([[2.0, 1.0, 1.0, 0.0, 3]]));
        let shown = &walk["regions"][0]["rows"];
        assert_eq!(
            shown[0],
            serde_json::json!([0x2000, "push rbp", 1, 7, 0, 0, null, null, []])
        );
        let marks = WAITS | TARGET | LOCKED | READS | WRITES;
        assert_eq!(shown[1][5], marks);
        assert_eq!(shown[1][7], 0x9040);
        assert_eq!(shown[1][8], serde_json::json!([[0, 2.0, 1.0, 0.0, 3]]));
        assert_eq!(found["strings"], serde_json::json!(["row/walk.cc", "look > peek"]));
        assert_eq!((&shown[1][4], &shown[2][2]), (&2.into(), &0.into()));
        assert_eq!((&shown[2][5], &shown[2][6]), (&BRANCHES.into(), &0x2004.into()));
    }

    #[test]
    fn of_a_long_function_only_what_stands_around_its_samples_is_shown_and_the_gaps_are_counted() {
        let rows: Vec<InstructionRow> = (0..1000).map(|place| row(0x2000 + 4 * place, "nop")).collect();
        let found = unpacked(&packed(Some(&all(vec![function(&rows, &[10, 40, 600])]))));
        let regions = found["functions"][0]["regions"].as_array().expect("a list");
        let shape: Vec<(u64, usize)> = regions
            .iter()
            .map(|region| {
                let rows = region["rows"].as_array().map_or(0, Vec::len);
                (region["omitted"].as_u64().unwrap_or(u64::MAX), rows)
            })
            .collect();
        // 10 and 40 overlap: 0 to 64; then 576 to 624.
        assert_eq!(shape, [(0, 65), (511, 49)]);
        assert_eq!(found["functions"][0]["instructions"], 1000);
    }

    #[test]
    fn a_page_has_room_for_so_many_instructions_and_the_functions_beyond_are_counted() {
        let rows: Vec<InstructionRow> = (0..300).map(|place| row(0x2000 + 4 * place, "nop")).collect();
        let functions = (0..60).map(|_| function(&rows, &[1])).collect();
        let found = unpacked(&packed(Some(&all(functions))));
        assert_eq!(found["functions"].as_array().map(Vec::len), Some(MOST / 300));
        assert_eq!(found["omitted"], 60 - MOST / 300);
        assert_eq!(packed(None), "");
        assert_eq!(packed(Some(&all(Vec::new()))), "");
    }
}
