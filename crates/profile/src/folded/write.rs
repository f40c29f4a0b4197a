//! Writes folded stacks.

use crate::function_name::KERNEL_SUFFIX;
use crate::function_paths::FunctionPaths;
use crate::running_total::RunningTotal;
use crate::{CostProfile, Unit};

/// Microseconds in that unit, one column.
///
/// The numbers are whole, as not every reader takes others; the sum of a call path with all that is within it is off by at most
/// one. Paths that come to 0 are left out.
pub fn write(profile: &CostProfile, unit: Unit) -> String {
    columns(&[profile], unit)
}

/// Microseconds in that unit before and after, two columns, as flamegraph.pl draws a difference of.
pub fn write_difference(before: &CostProfile, after: &CostProfile, unit: Unit) -> String {
    columns(&[before, after], unit)
}

fn columns(profiles: &[&CostProfile], unit: Unit) -> String {
    let FunctionPaths { functions, paths } = FunctionPaths::of(profiles);
    let functions: Vec<String> = functions.iter().map(|name| written(name)).collect();
    let factors: Vec<f64> = profiles
        .iter()
        .map(|profile| profile.about.amount.factor(unit) * 1e6)
        .collect();
    let mut totals = vec![RunningTotal::default(); profiles.len()];
    let mut text = String::new();
    for (path, seconds) in &paths {
        let columns = totals.iter_mut().zip(seconds.iter().zip(&factors));
        let numbers: Vec<i64> = columns
            .map(|(total, (seconds, factor))| total.next(seconds * factor))
            .collect();
        if path.is_empty() || numbers.iter().all(|number| *number == 0) {
            continue;
        }
        for (at, function) in path.iter().enumerate() {
            if at > 0 {
                text.push(';');
            }
            text.push_str(&functions[*function as usize]);
        }
        for number in numbers {
            text.push_str(&format!(" {number}"));
        }
        text.push('\n');
    }
    text
}

/// A name with nothing in it that means something between names.
fn written(name: &str) -> String {
    let (name, ending) = match name.strip_suffix(KERNEL_SUFFIX) {
        Some(name) => (name, "_[k]"),
        None => (name, ""),
    };
    let name = name.replace(';', ":").replace(|c: char| c.is_control(), " ");
    name + ending
}
