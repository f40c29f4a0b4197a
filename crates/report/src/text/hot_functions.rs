//! The functions that cost a transaction most CPU time.

use super::Style;
use super::costs::{Unit, cell, shortened, value, whole};
use super::layout::Ink;
use scaleprof_analysis::Per;
use scaleprof_analysis::annotate::{Compared, FunctionCost};
use scaleprof_analysis::numbers::percent;
use scaleprof_bundle::Estimate;

/// The functions that cost most, at most so many of them; ends with a newline. `functions` as
/// [`catalogue`](scaleprof_analysis::annotate::catalogue) gives them.
pub fn hot_functions(compared: &Compared<'_>, functions: &[FunctionCost], most: usize, style: Style) -> String {
    let ink = Ink::new(style.colour);
    let all = compared.rung.costs.all();
    let unit = Unit::of(functions.iter().map(|one| value(one.compared)).fold(0.0, f64::max));
    let per = compared.rung.per();
    let has_base = compared.base.is_some();
    let at = |connections: Option<u32>| match connections {
        Some(connections) => format!("at {connections}"),
        None => "watched".to_owned(),
    };
    let mut heads = vec![at(compared.rung.connections)];
    if let Some(base) = compared.base {
        heads.insert(0, at(base.connections));
        heads.push("growth".to_owned());
    }
    let mut out = format!(
        "CPU time {} in each function itself, without what it calls and without the kernel, {} {}\n\n",
        whole(per),
        unit.name,
        match per {
            Per::Transaction => "a transaction",
            Per::Second => "a second, of all threads that serve clients together",
        }
    );
    let head: String = heads.into_iter().map(cell).collect();
    out.push_str(&ink.dim(&format!("{head} of all  waiting  function")));
    out.push('\n');
    for function in functions.iter().take(most) {
        let mut line = String::new();
        let number = |estimate: Option<Estimate>| match value(estimate) {
            seconds if seconds > 0.0 => unit.number(seconds),
            _ => String::new(),
        };
        if has_base {
            line.push_str(&cell(number(function.base)));
        }
        line.push_str(&cell(number(function.compared)));
        if has_base {
            line.push_str(&cell(unit.growth(function.growth)));
        }
        let share = all.map_or(String::new(), |all| percent(value(function.compared) / all));
        let waiting = match function.waiting_share {
            share if share > 0.0 => percent(share),
            _ => String::new(),
        };
        line.push_str(&format!(
            "{share:>7}  {waiting:>7}  {}  {}",
            function.function, function.module
        ));
        out.push_str(&shortened(&line, style.width));
        out.push('\n');
    }
    let left = functions.len().saturating_sub(most);
    if left > 0 {
        out.push_str(&ink.dim(&format!("and {left} more (--json has them all)")));
        out.push('\n');
    }
    if has_base {
        out.push_str("\n? may be chance\n");
    }
    out
}

/// Functions to choose from, one a line, with what they cost a transaction, or a second of a watch; at most so many, and how many there are besides.
pub fn candidates(functions: &[&FunctionCost], most: usize) -> String {
    let unit = Unit::of(functions.iter().map(|one| value(one.compared)).fold(0.0, f64::max));
    let mut lines: Vec<String> = functions
        .iter()
        .take(most)
        .map(|one| {
            let cost = match value(one.compared) {
                seconds if seconds > 0.0 => format!("{} {}", unit.number(seconds), unit.name),
                _ => "-".to_owned(),
            };
            format!("  {cost:>14}  {}!{}", one.module, one.function)
        })
        .collect();
    if functions.len() > most {
        lines.push(format!("  and {} more", functions.len() - most));
    }
    lines.join("\n")
}
