//! A function's machine code with what every instruction costs.

use super::Style;
use super::costs::{NUMBER, Unit, cell, heading, is_unsure, short, shortened, value, whole};
use super::layout::{Ink, wrap};
use scaleprof_analysis::annotate::{AnnotatedInstruction, Annotation, InstructionCost, Jumps, RungCost};
use scaleprof_analysis::numbers::{factor, grouped, percent};
use scaleprof_vocabulary::BranchKind;

/// A line with so much of the function's cost stands out, and with so much a little.
const MUCH: f64 = 0.2;
const SOME: f64 = 0.05;
/// A figure before an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Base,
    Compared,
    Growth,
    Kernel,
    Taken,
    Mispredicted,
}

/// Room for marks, an address and a short instruction.
const INSTRUCTION: usize = 40;

/// The columns that a listing has figures for, as many as there is room for.
fn columns(found: &Annotation, width: Option<usize>) -> Vec<Column> {
    let any = |has: fn(&AnnotatedInstruction) -> bool| found.instructions.iter().any(has);
    let share = |one: &AnnotatedInstruction| one.branch_stats.as_ref().and_then(Jumps::mispredicted_share).is_some();
    let mut columns = Vec::new();
    for (column, is_there) in [
        (Column::Base, found.base.is_some()),
        (Column::Compared, found.compared.is_some()),
        (Column::Growth, found.base.is_some()),
        (Column::Kernel, any(|one| kernel(one) > 0.0)),
        (Column::Taken, any(|one| one.branch_stats.is_some())),
        (Column::Mispredicted, any(share)),
    ] {
        if is_there {
            columns.push(column);
        }
    }
    for least in [
        Column::Kernel,
        Column::Base,
        Column::Taken,
        Column::Growth,
        Column::Mispredicted,
    ] {
        let room = columns.len() * (NUMBER + 1) + INSTRUCTION;
        if width.is_some_and(|width| room > width) {
            columns.retain(|column| *column != least);
        }
    }
    columns
}

/// The listing of a function; ends with a newline.
pub fn annotation(found: &Annotation, style: Style) -> String {
    let ink = Ink::new(style.colour);
    let cost_of = |rung: &Option<RungCost>| value(rung.as_ref().and_then(|rung| rung.seconds_per_txn));
    let sheet = Sheet {
        found,
        unit: Unit::of(cost_of(&found.base).max(cost_of(&found.compared))),
        ink: &ink,
        style,
        columns: columns(found, style.width),
        whole: cost_of(&found.compared).max(f64::MIN_POSITIVE),
    };
    let mut out = sheet.head();
    out.push('\n');
    out.push_str(&sheet.headings());
    let mut source = None;
    for instruction in &found.instructions {
        let here = (&instruction.file, instruction.line, &instruction.inlined);
        if source != Some(here) {
            source = Some(here);
            out.push_str(&sheet.source(instruction));
        }
        out.push_str(&sheet.line(instruction));
    }
    out.push_str(&sheet.foot());
    out
}

/// How many there are: few to the last one.
fn number(count: i64) -> String {
    match count {
        ..100 => count.to_string(),
        _ => grouped(count as f64),
    }
}

fn kernel(instruction: &AnnotatedInstruction) -> f64 {
    instruction.compared.map_or(0.0, |cost| cost.kernel_seconds_per_txn)
}

/// Where a jump led mostly that does not name its target.
fn led_to(instruction: &AnnotatedInstruction) -> Option<String> {
    // Where a return leads is told by the function's callers.
    let is_open =
        matches!(instruction.branch, Some(BranchKind::Jump | BranchKind::Call)) && instruction.target.is_none();
    let jumps = instruction.branch_stats.as_ref().filter(|_| is_open)?;
    let most = jumps.targets.first()?;
    let name = most.function.as_deref()?;
    Some(format!(
        "  -> {name} {}",
        percent(most.taken as f64 / jumps.taken as f64)
    ))
}

/// What all lines of a listing share.
struct Sheet<'a> {
    found: &'a Annotation,
    unit: Unit,
    ink: &'a Ink,
    style: Style,
    columns: Vec<Column>,
    /// The function's cost at the rung that is looked at.
    whole: f64,
}

fn place(rung: &RungCost) -> String {
    match rung.connections {
        Some(connections) => format!("at {connections} connections"),
        None => "while it was watched".to_owned(),
    }
}

impl Sheet<'_> {
    fn head(&self) -> String {
        let found = self.found;
        let build = found
            .build_id
            .as_ref()
            .map_or("no build-id".to_owned(), |id| format!("build-id {id}"));
        let title = format!("{}  in {}, {build}", found.function, found.module);
        let mut out = self.painted(&title, |ink, text| ink.bold(text));
        for rung in [&found.base, &found.compared].into_iter().flatten() {
            out.push_str(&self.cut(&self.rung(rung)));
        }
        if let Some(growth) = found.growth {
            let unsure = if is_unsure(growth) { ", which may be chance" } else { "" };
            let times = self.times().map_or(String::new(), |times| format!(", {times} times"));
            out.push_str(&self.cut(&format!(
                "  growth {}{}{times}{unsure}",
                if growth.value >= 0.0 { "+" } else { "" },
                self.unit.estimate(growth)
            )));
        }
        if found.compared.is_none() {
            out.push_str("  nothing was measured: name a bundle instead of the file for what its instructions cost\n");
        }
        out
    }

    fn rung(&self, rung: &RungCost) -> String {
        let place = match rung.connections {
            Some(connections) => format!("at {connections:>4} connections"),
            None => place(rung),
        };
        let of_what = whole(self.found.per);
        let Some(seconds) = rung.seconds_per_txn else {
            return format!("  {place} {}", self.not_seen(rung));
        };
        let share = rung
            .all_seconds_per_txn
            .map(|all| format!(", {} of its CPU time", percent(seconds.value / all)));
        let kernel = self.in_kernel(rung);
        format!(
            "  {place} {} {of_what}{}; {} samples{kernel}",
            self.unit.estimate(seconds),
            share.unwrap_or_default(),
            rung.samples
        )
    }

    fn in_kernel(&self, rung: &RungCost) -> String {
        match rung.kernel_seconds_per_txn {
            kernel if kernel > 0.0 => format!(
                "; {} {} more in the kernel from here",
                self.unit.number(kernel),
                self.unit.name
            ),
            _ => String::new(),
        }
    }

    /// Nobody was seen: it is not known to cost nothing, only less than what would be seen.
    fn not_seen(&self, rung: &RungCost) -> String {
        let samples = grouped(rung.all_samples as f64);
        let kernel = self.in_kernel(rung);
        match rung.least_seen_seconds_per_txn {
            Some(least) => {
                let unit = Unit::of(least);
                let below = format!("below {} {} {}", unit.number(least), unit.name, whole(self.found.per));
                format!("not seen in {samples} samples, {below} (95 % sure){kernel}")
            }
            None => format!("not seen: there are no samples{kernel}"),
        }
    }

    /// What an empty cell means.
    fn gaps(&self) -> Option<String> {
        let rungs = [&self.found.base, &self.found.compared].into_iter().flatten();
        let below = |rung: &RungCost| {
            let least = rung.least_seen_seconds_per_txn?;
            let unit = Unit::of(least);
            Some(format!(
                "below {} {} {} ({} samples)",
                unit.number(least),
                unit.name,
                place(rung),
                grouped(rung.all_samples as f64)
            ))
        };
        let below: Vec<String> = rungs.filter_map(below).collect();
        (!below.is_empty()).then(|| format!("empty: not seen, {}", below.join(", ")))
    }

    fn times(&self) -> Option<String> {
        let cost = |rung: &Option<RungCost>| Some(rung.as_ref()?.seconds_per_txn?.value);
        let ratio = cost(&self.found.compared)? / cost(&self.found.base)?;
        (ratio.is_finite() && ratio > 0.0).then(|| factor(ratio))
    }

    /// The width of the cells before the address.
    fn room(&self) -> usize {
        self.columns.len() * (NUMBER + 1)
    }

    fn headings(&self) -> String {
        if self.columns.is_empty() {
            return String::new();
        }
        let connections =
            |rung: &Option<RungCost>| rung.as_ref().map_or(String::new(), |rung| heading(rung.connections));
        let names = self.columns.iter().map(|column| match column {
            Column::Base => connections(&self.found.base),
            Column::Compared => connections(&self.found.compared),
            Column::Growth => "growth".to_owned(),
            Column::Kernel => "in kernel".to_owned(),
            Column::Taken => "taken".to_owned(),
            Column::Mispredicted => "predicted".to_owned(),
        });
        let names: String = names.map(cell).collect();
        let units = self.columns.iter().map(|column| match column {
            Column::Taken => "jumps".to_owned(),
            Column::Mispredicted => "wrongly".to_owned(),
            _ => format!("{}/{}", self.unit.name, short(self.found.per)),
        });
        let units: String = units.map(cell).collect();
        let dim = |text: &str| self.painted(text.trim_end(), |ink, text| ink.dim(text));
        dim(&names) + &dim(&format!("{units}{:>14}  instruction", "address"))
    }

    fn source(&self, instruction: &AnnotatedInstruction) -> String {
        let line = match (&instruction.file, instruction.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) if instruction.inlined.is_empty() => return String::new(),
            (None, _) => String::new(),
        };
        let built_in = match instruction.inlined.is_empty() {
            true => String::new(),
            false => format!("  built in: {}", instruction.inlined.join(" > ")),
        };
        let text = format!("{}{line}{built_in}", " ".repeat(self.room() + 5));
        self.painted(&text, |ink, text| ink.dim(text))
    }

    /// What stands in a column of an instruction; nothing where nobody was seen.
    fn figure(&self, column: Column, instruction: &AnnotatedInstruction) -> String {
        let seconds = |cost: Option<InstructionCost>| {
            let shown = cost.filter(|cost| cost.seconds_per_txn.value > 0.0);
            shown.map_or(String::new(), |cost| self.unit.number(cost.seconds_per_txn.value))
        };
        match column {
            Column::Base => seconds(instruction.base),
            Column::Compared => seconds(instruction.compared),
            Column::Growth => self
                .unit
                .growth(instruction.growth.filter(|growth| growth.value != 0.0)),
            Column::Kernel => match kernel(instruction) {
                kernel if kernel > 0.0 => self.unit.number(kernel),
                _ => String::new(),
            },
            Column::Taken => instruction
                .branch_stats
                .as_ref()
                .map_or(String::new(), |jumps| number(jumps.taken)),
            Column::Mispredicted => {
                let share = instruction.branch_stats.as_ref().and_then(Jumps::mispredicted_share);
                share.map_or(String::new(), percent)
            }
        }
    }

    fn line(&self, instruction: &AnnotatedInstruction) -> String {
        let figures = self
            .columns
            .iter()
            .map(|column| cell(self.figure(*column, instruction)));
        let mut text: String = figures.collect();
        let waits = if instruction.in_spin_loop { '~' } else { ' ' };
        let target = if instruction.is_branch_target { '>' } else { ' ' };
        let leads_to = led_to(instruction).unwrap_or_default();
        text.push_str(&format!(
            "{waits}{target}{:>12x}  {}{leads_to}",
            instruction.address, instruction.text
        ));
        let share = instruction.compared.map_or(0.0, |cost| cost.seconds_per_txn.value) / self.whole;
        self.painted(&text, |ink, text| match share {
            share if share >= MUCH => ink.bold(&ink.yellow(text)),
            share if share >= SOME => ink.yellow(text),
            _ => text.to_owned(),
        })
    }

    fn foot(&self) -> String {
        let any = |has: fn(&AnnotatedInstruction) -> bool| self.found.instructions.iter().any(has);
        let mut legend = Vec::new();
        if any(|one| one.in_spin_loop) {
            legend.push("~ in a loop that waits for another thread");
        }
        if any(|one| one.is_branch_target) {
            legend.push("> a branch goes here");
        }
        if any(|one| {
            one.growth
                .is_some_and(|growth| growth.value != 0.0 && is_unsure(growth))
        }) {
            legend.push("? may be chance");
        }
        if any(|one| led_to(one).is_some()) {
            legend.push("-> where it led mostly");
        }
        let mut out = String::from("\n");
        if !legend.is_empty() {
            out.push_str(&self.cut(&legend.join("   ")));
        }
        if let Some(gaps) = self.gaps() {
            out.push_str(&self.cut(&gaps));
        }
        let wrap_at = self.style.width.unwrap_or(super::USUAL_WIDTH).max(20);
        for note in &self.found.notes {
            out.push_str(&wrap(&format!("Note: {note}"), wrap_at, "  "));
            out.push('\n');
        }
        out
    }

    /// A line that is no wider than the terminal.
    fn cut(&self, text: &str) -> String {
        self.painted(text, |_, text| text.to_owned())
    }

    fn painted(&self, text: &str, paint: impl Fn(&Ink, &str) -> String) -> String {
        format!("{}\n", paint(self.ink, &shortened(text, self.style.width)))
    }
}
