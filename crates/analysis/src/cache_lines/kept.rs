//! Which places a bundle keeps, as rows of its table `data_accesses`, and back.
//!
//! Kept are whole pairs of lines (128 bytes), for the prediction on longer lines needs both. What the rows cannot say by
//! themselves, because it follows from the whole program (what is a lock, what runs at the start only), is written into them.

use super::facts::{CodeFunction, Place, PlaceAccess};
use super::judge::{judge, lines_of};
use super::judged::LineKind;
use super::roles::{Program, writes};
use scaleprof_bundle::{DataAccessRow, in_parallel};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The lines of most CPUs, and two of them, bytes.
pub(super) const LINE: u64 = 64;
pub(super) const PAIR: u64 = 128;

/// Something in a line that nobody is known to touch: its name, its address, its bytes.
pub type Untouched = (String, u64, u64);

/// What a bundle keeps of one binary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    /// The rows; `module` and `build_id` are left for who knows them.
    pub rows: Vec<DataAccessRow>,
    /// Pairs of lines that there was no room for.
    pub left_out: usize,
}

/// The rows of all lines in which somebody may take something from somebody else, and in which threads were seen: at an
/// instruction that touches the line, or at the one behind it. `seen` counts samples by address; `untouched` tells what else lies
/// in a range of addresses. Lines with most samples come first, and no more than `most` rows are kept.
pub fn rows_to_keep(
    places: &[Place],
    functions: &[CodeFunction],
    seen: &HashMap<u64, u64>,
    untouched: impl Fn(Range<u64>) -> Vec<Untouched>,
    most: usize,
) -> Kept {
    let program = Program::of(places, functions);
    let mut of_pairs: BTreeMap<u64, Vec<&Place>> = BTreeMap::new();
    let lines = in_parallel([LINE, PAIR].to_vec(), |bytes| judge(places, functions, bytes, None));
    let judged: BTreeSet<u64> = lines
        .iter()
        .flatten()
        .filter(|line| line.bytes == LINE || line.kind == LineKind::LongerLinesOnly)
        .map(|line| line.address / PAIR)
        .collect();
    for place in places {
        let (first, last) = lines_of(place, PAIR).into_inner();
        for pair in judged.range(first..=last) {
            of_pairs.entry(*pair).or_default().push(place);
        }
    }
    let samples = |inside: &[&Place]| -> u64 {
        let running = inside
            .iter()
            .flat_map(|place| place.accesses.iter().filter(|access| program.runs(place, access)));
        let addresses: BTreeSet<u64> = running
            .flat_map(|access| [access.instruction, access.sampled_at[0], access.sampled_at[1]])
            .collect();
        addresses.iter().filter_map(|address| seen.get(address)).sum()
    };
    let mut ranked: Vec<(u64, u64)> = of_pairs
        .iter()
        .map(|(pair, inside)| (samples(inside), *pair))
        .filter(|(samples, _)| *samples > 0)
        .collect();
    ranked.sort_by_key(|(samples, pair)| (std::cmp::Reverse(*samples), *pair));
    let mut kept = Kept::default();
    for (_, pair) in ranked {
        let start = pair * PAIR;
        let inside = of_pairs.get(&pair).map_or(&[][..], Vec::as_slice);
        let mut rows: Vec<DataAccessRow> = inside
            .iter()
            .flat_map(|place| rows_of(place, functions, &program))
            .collect();
        let is_told = |name: &str| {
            let mut names = inside.iter().map(|place| place.name.as_str());
            names.any(|told| name.starts_with(told) || told.starts_with(name))
        };
        let others = untouched(start..start + PAIR)
            .into_iter()
            .filter(|(name, ..)| !is_told(name));
        rows.extend(others.map(untouched_row));
        if kept.rows.len() + rows.len() > most {
            kept.left_out += 1;
            continue;
        }
        for row in &mut rows {
            row.line_pair_address = start as i64;
        }
        kept.rows.append(&mut rows);
    }
    kept
}

fn untouched_row((place, address, size): Untouched) -> DataAccessRow {
    DataAccessRow {
        variable: place,
        variable_address: address as i64,
        variable_size: i64::try_from(size).unwrap_or(i64::MAX),
        ..DataAccessRow::default()
    }
}

fn rows_of(place: &Place, functions: &[CodeFunction], program: &Program<'_>) -> Vec<DataAccessRow> {
    let is_lock = program.is_of_lock(place);
    let rows = place.accesses.iter().filter_map(|access| {
        let seldom = !program.runs(place, access);
        let function = functions.get(access.function)?;
        // Who only reads while the server starts says nothing of a line.
        (!seldom || writes(access.kind)).then(|| DataAccessRow {
            is_lock,
            function: Some(function.name.clone()),
            call_sites: i32::try_from(function.calls).ok(),
            rarely_run: seldom,
            instruction: Some(access.instruction as i64),
            sampled_at: Some(access.sampled_at[0] as i64),
            sampled_after: Some(access.sampled_at[1] as i64),
            access: Some(access.kind),
            locked: access.locked,
            in_loop: access.in_loop,
            in_spin_loop: access.in_spin_loop,
            callee: access.callee.clone(),
            ..untouched_row((place.name.clone(), place.address, place.size))
        })
    });
    let rows: Vec<DataAccessRow> = rows.collect();
    match rows.is_empty() {
        true => Vec::from([DataAccessRow {
            is_lock,
            ..untouched_row((place.name.clone(), place.address, place.size))
        }]),
        false => rows,
    }
}

/// The places of one pair of lines, with the functions that touch them. Rows without an instruction are places without accesses.
pub(super) fn facts_of(rows: &[&DataAccessRow]) -> (Vec<Place>, Vec<CodeFunction>) {
    let mut numbers: HashMap<(&str, Option<i32>), usize> = HashMap::new();
    let mut functions = Vec::new();
    let mut places: BTreeMap<(i64, &str), Place> = BTreeMap::new();
    for row in rows {
        let place = places
            .entry((row.variable_address, &row.variable))
            .or_insert_with(|| Place {
                name: row.variable.clone(),
                address: row.variable_address as u64,
                size: u64::try_from(row.variable_size).unwrap_or(0),
                is_known_lock: row.is_lock,
                accesses: Vec::new(),
            });
        let (Some(function), Some(instruction)) = (&row.function, row.instruction) else {
            continue;
        };
        let Some(what) = row.access else {
            continue;
        };
        let number = *numbers.entry((function, row.call_sites)).or_insert_with(|| {
            functions.push(CodeFunction {
                name: function.clone(),
                is_start_or_stop: false,
                calls: row.call_sites.and_then(|calls| u32::try_from(calls).ok()).unwrap_or(0),
            });
            functions.len() - 1
        });
        let seen_at = row.sampled_at.unwrap_or(instruction);
        place.accesses.push(PlaceAccess {
            function: number,
            kind: what,
            locked: row.locked,
            in_loop: row.in_loop,
            in_spin_loop: row.in_spin_loop,
            is_rarely_run: row.rarely_run,
            instruction: instruction as u64,
            sampled_at: [seen_at as u64, row.sampled_after.unwrap_or(seen_at) as u64],
            callee: row.callee.clone(),
        });
    }
    (places.into_values().collect(), functions)
}
