//! The instructions that wait for a cache line, also one on the heap that no variable names: those of the finding
//! `cache_line_sharing`, by the same test.

use crate::annotate::choose;
use crate::findings::{LEAST, SharedLine, shared_lines, uniform_slowdown_of};
use crate::instruction_costs::{CodeAddress, InstructionCosts, Spent};
use crate::machine_code::MachineCode;
use crate::rung_instructions::RungInstructions;
use std::collections::{BTreeMap, HashMap};

/// An instruction that got dearer with more connections where the rest of its function did not.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingInstruction {
    /// Where threads stand; the one before it may be what takes the time.
    pub at: CodeAddress,
    /// The innermost function that it belongs to.
    pub function: String,
    /// Source file and line.
    pub source: Option<String>,
    /// CPU seconds of a transaction there, at the rung that is compared with and at the one that is looked at.
    pub seconds: [f64; 2],
    /// In the rest of its function.
    pub rest_seconds: [f64; 2],
}

/// Those between the two rungs that [`choose`] takes, the worst first. `code` gives the machine code that is known.
pub fn waiting_instructions(rungs: &[RungInstructions], code: impl FnOnce() -> MachineCode) -> Vec<WaitingInstruction> {
    let Ok(chosen) = choose(rungs, None, None) else {
        return Vec::new();
    };
    let (Some(base), last) = (chosen.base, chosen.rung) else {
        return Vec::new();
    };
    let cost = last.costs.all().unwrap_or(0.0);
    let found = shared_lines(
        &base.costs,
        &last.costs,
        uniform_slowdown(&base.costs, &last.costs),
        LEAST * cost,
        code,
    );
    found.into_iter().map(WaitingInstruction::of).collect()
}

impl WaitingInstruction {
    fn of(line: SharedLine) -> WaitingInstruction {
        let (seconds, rest_seconds) = line.seconds();
        WaitingInstruction {
            function: line.function().to_owned(),
            at: line.at,
            source: line.source,
            seconds,
            rest_seconds,
        }
    }
}

/// What got dearer everywhere, at least 1.
fn uniform_slowdown(base: &InstructionCosts, last: &InstructionCosts) -> f64 {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut by_function = |costs: &InstructionCosts| {
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        for (id, instruction) in costs.instructions() {
            let Some(function) = instruction.source.first().and_then(|place| place.function.clone()) else {
                continue;
            };
            let next = numbers.len();
            let number = *numbers.entry(function).or_insert(next);
            *sums.entry(number).or_default() += costs.seconds(id, Spent::Running);
        }
        sums
    };
    let (before, after) = (by_function(base), by_function(last));
    uniform_slowdown_of(&before, &after).map_or(1.0, |middle| middle.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_lines::tests::rung;

    #[test]
    fn the_one_instruction_that_got_dearer_is_told_with_the_rest_of_its_function() {
        let before = [(0x100, 10.0), (0x104, 10.0), (0x108, 10.0), (0x10c, 10.0)];
        let after = [(0x100, 10.0), (0x104, 80.0), (0x108, 10.0), (0x10c, 10.0)];
        // More samples than one a second: an address may be named more than once.
        let many = |at: &[(u64, f64)]| {
            at.repeat(4)
                .into_iter()
                .map(|(at, time)| (at, time / 4.0))
                .collect::<Vec<_>>()
        };
        let rungs = [rung(4, &many(&before), false), rung(64, &many(&after), false)];
        let found = waiting_instructions(&rungs, MachineCode::default);
        assert_eq!(found.len(), 1, "{found:?}");
        let one = &found[0];
        assert_eq!((one.at.address, one.function.as_str()), (0x104, "f"));
        // 10 and 80 ms a second of 100 transactions.
        assert!(
            (one.seconds[0] - 1e-4).abs() < 1e-9 && (one.seconds[1] - 8e-4).abs() < 1e-9,
            "{one:?}"
        );
        assert!((one.rest_seconds[0] - 3e-4).abs() < 1e-9 && (one.rest_seconds[1] - 3e-4).abs() < 1e-9);
    }

    #[test]
    fn where_all_of_a_function_got_dearer_nothing_waits_for_a_line() {
        let rungs = [
            rung(4, &[(0x100, 10.0), (0x104, 10.0)], false),
            rung(64, &[(0x100, 80.0), (0x104, 80.0)], false),
        ];
        assert_eq!(waiting_instructions(&rungs, MachineCode::default), []);
        assert_eq!(waiting_instructions(&rungs[1..], MachineCode::default), []);
        assert_eq!(waiting_instructions(&[], MachineCode::default), []);
    }
}
