//! Judged lines in words.

use super::costs::MeasuredCosts;
use super::judged::{Evidence, JudgedLine, JudgedPlace, LadderStep, LineKind, PlaceCost, PlaceRole};
use crate::numbers::factor;

/// Longer names are cut in sentences.
const LONGEST_NAME: usize = 56;

/// The reading side of a line, the most read first: what is only read; where there is nothing of the kind, everything that is.
fn read_side(line: &JudgedLine) -> Vec<&JudgedPlace> {
    let mut places: Vec<&JudgedPlace> = of_role(line, PlaceRole::ReadMostly).collect();
    if places.is_empty() {
        places = line
            .variables
            .iter()
            .filter(|place| !place.readers.is_empty())
            .collect();
    }
    places.sort_by(|a, b| b.read_weight.total_cmp(&a.read_weight));
    places
}

fn of_role(line: &JudgedLine, role: PlaceRole) -> impl Iterator<Item = &JudgedPlace> {
    line.variables.iter().filter(move |place| place.role == role)
}

/// What is written, the most written first.
fn written_side(line: &JudgedLine) -> Vec<&JudgedPlace> {
    let writes = |place: &&JudgedPlace| matches!(place.role, PlaceRole::Written | PlaceRole::Lock);
    let mut places: Vec<&JudgedPlace> = line.variables.iter().filter(writes).collect();
    places.sort_by(|a, b| b.write_weight.total_cmp(&a.write_weight));
    places
}

/// The evidence, the weakest first.
pub(super) fn ladder(line: &JudgedLine, costs: Option<&MeasuredCosts<'_>>) -> Vec<LadderStep> {
    let step = |step, holds, words| LadderStep { step, holds, words };
    let mut ladder = vec![step(Evidence::Neighbours, Some(true), neighbours(line))];
    let (load, growth, store) = match costs {
        None => {
            let without = || "not measured: name a run of this binary with --bundle".to_owned();
            ((None, without()), (None, without()), (None, without()))
        }
        Some(costs) => {
            let connections = costs.connections();
            let read = hottest(
                read_side(line)
                    .into_iter()
                    .filter_map(|place| Some((place, place.read_cost?))),
            );
            let written = hottest(
                written_side(line)
                    .into_iter()
                    .filter_map(|place| Some((place, place.write_cost?))),
            );
            (load(read), growth(read, connections, costs.all()), store(written))
        }
    };
    ladder.push(step(Evidence::HotLoad, load.0, load.1));
    ladder.push(step(Evidence::GrowingCost, growth.0, growth.1));
    ladder.push(step(Evidence::HotStore, store.0, store.1));
    let hardware = "not measured: use `perf c2c record`, on hardware whose CPU samples addresses";
    ladder.push(step(Evidence::HardwareSample, None, hardware.to_owned()));
    ladder
}

type Costly<'a> = Option<(&'a JudgedPlace, PlaceCost)>;

fn hottest<'a>(places: impl Iterator<Item = (&'a JudgedPlace, PlaceCost)>) -> Costly<'a> {
    let touchers = |place: &JudgedPlace| place.readers.len() + place.writers.len();
    places.max_by(|a, b| {
        a.1.share
            .total_cmp(&b.1.share)
            .then_with(|| touchers(a.0).cmp(&touchers(b.0)))
    })
}

fn neighbours(line: &JudgedLine) -> String {
    let apart = match line.kind {
        LineKind::LongerLinesOnly => format!("together in {} bytes, apart in 64", line.bytes),
        _ => format!("in one line of {} bytes", line.bytes),
    };
    match line.kind {
        LineKind::TrueSharing => "the machine code of many functions writes it".to_owned(),
        _ => format!("{apart}, and the machine code reads and writes them"),
    }
}

fn micros(seconds: f64) -> String {
    format!("{:.3} µs", seconds * 1e6)
}

fn load(read: Costly<'_>) -> (Option<bool>, String) {
    let Some((place, cost)) = read else {
        return (None, "not measured: no instruction that reads it is known".to_owned());
    };
    if cost.samples[1] == 0 {
        let words = format!(
            "no sample fell on the loads of {}: they cost less than {} of a transaction's {} (95 % sure)",
            place.name,
            micros(cost.least_seen),
            micros(cost.all)
        );
        return (cost.is_hot(), words);
    }
    let words = format!(
        "loads of {} take {} of the CPU time per transaction ({} there, {} one instruction later: skid; {} samples)",
        place.name,
        cost.share_in_words(),
        micros(cost.itself.last.value),
        micros(cost.with_skid.last.value),
        cost.samples[1]
    );
    (cost.is_hot(), words)
}

fn growth(read: Costly<'_>, connections: [u32; 2], all: [f64; 2]) -> (Option<bool>, String) {
    let Some((place, cost)) = read else {
        return (None, "not measured: no instruction that reads it is known".to_owned());
    };
    let two = cost.with_skid;
    if cost.samples == [0, 0] {
        return (
            None,
            format!(
                "not measured: no sample fell on the loads of {} at either rung",
                place.name
            ),
        );
    }
    let words = format!(
        "the loads of {} cost {} a transaction at {} connections and {} at {} (everything together: {} times)",
        place.name,
        micros(two.base.value),
        connections[0],
        micros(two.last.value),
        connections[1],
        factor(all[1] / all[0])
    );
    match cost.grows() {
        Some(grows) => (Some(grows), words),
        None => (
            None,
            format!("{words}; too few samples or seconds to say whether it grows"),
        ),
    }
}

fn store(written: Costly<'_>) -> (Option<bool>, String) {
    match written {
        Some((place, cost)) if cost.samples[1] == 0 => {
            let words = format!(
                "no sample fell on the stores to {}; how often they run was not counted",
                place.name
            );
            (None, words)
        }
        Some((place, cost)) => {
            let words = format!(
                "the stores to {} take {} of a transaction's CPU time ({} samples); how often they run was not counted",
                place.name,
                cost.share_in_words(),
                cost.samples[1]
            );
            // A store waits elsewhere than at its instruction, so one that costs little may still run often.
            (cost.is_hot().filter(|is_hot| *is_hot), words)
        }
        None => (None, "not measured: no instruction that writes it is known".to_owned()),
    }
}

fn names(places: &[&JudgedPlace]) -> String {
    let mut names: Vec<String> = places.iter().take(3).map(|place| shortened(&place.name)).collect();
    if places.len() > 3 {
        names.push(format!("{} more", places.len() - 3));
    }
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// A name that does not fill the line.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}...", name.get(..end).unwrap_or(name)),
        None => name.to_owned(),
    }
}

/// What is wrong, in one sentence.
pub(super) fn sentence(line: &JudgedLine) -> String {
    let (read, written) = (read_side(line), written_side(line));
    let locks: Vec<&JudgedPlace> = of_role(line, PlaceRole::Lock).collect();
    let others: Vec<&JudgedPlace> = line
        .variables
        .iter()
        .filter(|place| matches!(place.role, PlaceRole::ReadMostly | PlaceRole::Written))
        .collect();
    match line.kind {
        LineKind::FalseSharing => format!(
            "each write to {} invalidates {} in the caches of all reading CPUs",
            names(&written),
            names(&read)
        ),
        LineKind::LockSharesLine => format!(
            "each acquisition of {} invalidates {} in the caches of all other CPUs",
            names(&locks),
            names(&others)
        ),
        LineKind::IndependentWriters => format!(
            "{} are written by different code, and each write invalidates the line for the others",
            names(&written)
        ),
        LineKind::TrueSharing => format!(
            "{} is written by many functions: the line moves between CPUs",
            names(&written)
        ),
        LineKind::LongerLinesOnly => format!(
            "with lines of {} bytes, or a CPU that fetches lines in pairs, {} would share a line",
            line.bytes,
            names(&others.into_iter().chain(locks).collect::<Vec<_>>())
        ),
    }
}

/// What helps.
pub(super) fn advice(line: &JudgedLine) -> Vec<String> {
    let (read, written) = (read_side(line), written_side(line));
    let bytes = line.bytes;
    let mut advice = Vec::new();
    match line.kind {
        LineKind::FalseSharing | LineKind::LongerLinesOnly => {
            if !written.is_empty() {
                advice.push(format!(
                    "alignas({bytes}) for {}, and nothing else in its line",
                    names(&written)
                ));
            }
            if !read.is_empty() && line.kind == LineKind::FalseSharing {
                advice.push(format!("or move {} to a section of read-only variables", names(&read)));
            }
        }
        LineKind::LockSharesLine => {
            advice.push(format!(
                "alignas({bytes}) for the lock; only what its holder writes may share its line"
            ));
        }
        LineKind::IndependentWriters => advice.push(format!(
            "alignas({bytes}) for each, unless the same thread writes all of them"
        )),
        LineKind::TrueSharing => {}
    }
    let is_counter = |place: &&&JudgedPlace| place.role == PlaceRole::Written;
    if let Some(counter) = written
        .iter()
        .find(is_counter)
        .filter(|_| line.kind != LineKind::LongerLinesOnly)
    {
        advice.push(format!(
            "if {} is a counter: keep one per thread and sum on read; if it is a flag: write only changes",
            counter.name
        ));
    }
    advice
}
