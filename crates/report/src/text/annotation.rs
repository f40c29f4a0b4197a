//! A function's machine code with what every instruction costs, and the list of functions that cost most.

use super::Style;
use super::layout::{Ink, wrap};
use scaleprof_analysis::annotate::{AnnotatedInstruction, Annotation, Compared, FunctionCost, RungCost};
use scaleprof_analysis::numbers::{factor, grouped, percent};
use scaleprof_bundle::Estimate;

/// A line with so much of the function's cost stands out, and with so much a little.
const MUCH: f64 = 0.2;
const SOME: f64 = 0.05;
/// From here on costs are written in microseconds.
const MICROSECONDS_FROM: f64 = 10e-6;
/// Room for a number in a column.
const NUMBER: usize = 9;

/// In which unit the costs of a table are written.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    per_second: f64,
}

impl Unit {
    /// One that suits the largest of the costs.
    fn of(largest: f64) -> Unit {
        match largest {
            seconds if seconds >= MICROSECONDS_FROM => Unit {
                name: "\u{b5}s",
                per_second: 1e6,
            },
            _ => Unit {
                name: "ns",
                per_second: 1e9,
            },
        }
    }

    fn number(self, seconds: f64) -> String {
        grouped(seconds * self.per_second)
    }

    /// With its sign.
    fn change(self, seconds: f64) -> String {
        let number = self.number(seconds);
        if seconds >= 0.0 { format!("+{number}") } else { number }
    }

    /// With its interval.
    fn estimate(self, estimate: Estimate) -> String {
        let value = self.number(estimate.value);
        match estimate.low.zip(estimate.high) {
            Some((low, high)) => format!(
                "{value} {} ({} \u{2013} {})",
                self.name,
                self.number(low),
                self.number(high)
            ),
            None => format!("{value} {}", self.name),
        }
    }
}

fn value(estimate: Option<Estimate>) -> f64 {
    estimate.map_or(0.0, |estimate| estimate.value)
}

/// Whether a growth may be nothing but chance.
fn is_unsure(growth: Estimate) -> bool {
    growth.low.is_none_or(|low| low <= 0.0) && growth.high.is_none_or(|high| high >= 0.0)
}

/// The listing of a function; ends with a newline.
pub fn annotation(found: &Annotation, style: Style) -> String {
    let ink = Ink::new(style.colour);
    let cost_of = |rung: &Option<RungCost>| value(rung.as_ref().and_then(|rung| rung.seconds_per_txn));
    let largest = cost_of(&found.base).max(cost_of(&found.compared));
    let unit = Unit::of(largest);
    let sheet = Sheet {
        found,
        unit,
        ink: &ink,
        style,
        has_base: found.base.is_some(),
        has_costs: found.compared.is_some(),
        has_kernel: found.instructions.iter().any(|one| kernel(one) > 0.0),
        whole: cost_of(&found.compared).max(f64::MIN_POSITIVE),
    };
    let mut out = sheet.head();
    out.push('\n');
    out.push_str(&sheet.columns());
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

fn kernel(instruction: &AnnotatedInstruction) -> f64 {
    instruction.compared.map_or(0.0, |cost| cost.kernel_seconds_per_txn)
}

/// What all lines of a listing share.
struct Sheet<'a> {
    found: &'a Annotation,
    unit: Unit,
    ink: &'a Ink,
    style: Style,
    has_base: bool,
    has_costs: bool,
    has_kernel: bool,
    /// The function's cost at the rung that is looked at.
    whole: f64,
}

impl Sheet<'_> {
    fn head(&self) -> String {
        let found = self.found;
        let build = found
            .build_id
            .as_ref()
            .map_or("no build-id".to_owned(), |id| format!("build-id {id}"));
        let mut out = self.cut(&format!(
            "{}  in {}, {build}",
            self.ink.bold(&found.function),
            found.module
        ));
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
            out.push_str("  nothing was measured: --bundle adds what its instructions cost\n");
        }
        out
    }

    fn rung(&self, rung: &RungCost) -> String {
        let Some(seconds) = rung.seconds_per_txn else {
            return format!("  at {} connections nothing was measured", rung.connections);
        };
        let share = rung
            .all_seconds_per_txn
            .map(|all| format!(", {} of its CPU time", percent(seconds.value / all)));
        let kernel = match rung.kernel_seconds_per_txn {
            kernel if kernel > 0.0 => format!(
                "; {} {} more in the kernel from here",
                self.unit.number(kernel),
                self.unit.name
            ),
            _ => String::new(),
        };
        format!(
            "  at {:>4} connections {} of a transaction{}; {} samples{kernel}",
            rung.connections,
            self.unit.estimate(seconds),
            share.unwrap_or_default(),
            rung.samples
        )
    }

    fn times(&self) -> Option<String> {
        let cost = |rung: &Option<RungCost>| Some(rung.as_ref()?.seconds_per_txn?.value);
        let ratio = cost(&self.found.compared)? / cost(&self.found.base)?;
        ratio.is_finite().then(|| factor(ratio))
    }

    /// The widths of the cells before the address.
    fn room(&self) -> usize {
        let columns = usize::from(self.has_costs) + 2 * usize::from(self.has_base) + usize::from(self.has_kernel);
        columns * (NUMBER + 1)
    }

    fn columns(&self) -> String {
        if !self.has_costs {
            return String::new();
        }
        let connections =
            |rung: &Option<RungCost>| rung.as_ref().map_or(String::new(), |rung| rung.connections.to_string());
        let mut cells = Vec::new();
        if self.has_base {
            cells.push(connections(&self.found.base));
        }
        cells.push(connections(&self.found.compared));
        if self.has_base {
            cells.push("growth".to_owned());
        }
        if self.has_kernel {
            cells.push("in kernel".to_owned());
        }
        let line = |cells: &[String]| -> String { cells.iter().map(|cell| format!("{cell:>NUMBER$} ")).collect() };
        let units = vec![format!("{}/tx", self.unit.name); cells.len()];
        format!(
            "{}\n{}{:>14}  instruction\n",
            self.ink.dim(line(&cells).trim_end()),
            self.ink.dim(&line(&units)),
            self.ink.dim("address")
        )
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

    fn line(&self, instruction: &AnnotatedInstruction) -> String {
        let cell = |text: String| format!("{text:>NUMBER$} ");
        let seconds = |cost: Option<scaleprof_analysis::annotate::InstructionCost>| {
            let shown = cost.filter(|cost| cost.seconds_per_txn.value > 0.0);
            shown.map_or(String::new(), |cost| self.unit.number(cost.seconds_per_txn.value))
        };
        let mut text = String::new();
        if self.has_base {
            text.push_str(&cell(seconds(instruction.base)));
        }
        if self.has_costs {
            text.push_str(&cell(seconds(instruction.compared)));
        }
        if self.has_base {
            let growth = instruction.growth.filter(|growth| growth.value != 0.0);
            text.push_str(&cell(growth.map_or(String::new(), |growth| {
                let mark = if is_unsure(growth) { "?" } else { "" };
                format!("{}{mark}", self.unit.change(growth.value))
            })));
        }
        if self.has_kernel {
            let kernel = Some(kernel(instruction)).filter(|kernel| *kernel > 0.0);
            text.push_str(&cell(kernel.map_or(String::new(), |kernel| self.unit.number(kernel))));
        }
        let waits = if instruction.waits { '~' } else { ' ' };
        let target = if instruction.is_branch_target { '>' } else { ' ' };
        text.push_str(&format!(
            "{waits}{target}{:>12x}  {}",
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
        if any(|one| one.waits) {
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
        let mut out = String::from("\n");
        if !legend.is_empty() {
            out.push_str(&self.cut(&legend.join("   ")));
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

/// No longer than that, with an ellipsis where something was cut off.
fn shortened(text: &str, width: Option<usize>) -> String {
    let length = text.chars().count();
    match width.filter(|width| length > *width) {
        // Colours in the text would be cut: it has none but in its head, which is short.
        Some(width) if !text.contains('\u{1b}') => {
            let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
            short.push('\u{2026}');
            short
        }
        _ => text.to_owned(),
    }
}

/// The functions that cost most, at most so many of them; ends with a newline. `functions` as
/// [`catalogue`](scaleprof_analysis::annotate::catalogue) gives them.
pub fn hot_functions(compared: &Compared<'_>, functions: &[FunctionCost], most: usize, style: Style) -> String {
    let ink = Ink::new(style.colour);
    let all = compared.rung.costs.all().unwrap_or(0.0);
    let unit = Unit::of(functions.iter().map(|one| value(one.compared)).fold(0.0, f64::max));
    let cell = |text: String| format!("{text:>NUMBER$} ");
    let has_base = compared.base.is_some();
    let mut heads = vec![format!("at {}", compared.rung.connections)];
    if let Some(base) = compared.base {
        heads.insert(0, format!("at {}", base.connections));
        heads.push("growth".to_owned());
    }
    let mut out = format!(
        "CPU time of a transaction in each function itself, without what it calls and without the kernel, {} a transaction\n\n",
        unit.name
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
            line.push_str(&cell(function.growth.map_or(String::new(), |growth| {
                let mark = if is_unsure(growth) { "?" } else { "" };
                format!("{}{mark}", unit.change(growth.value))
            })));
        }
        let share = if all > 0.0 { value(function.compared) / all } else { 0.0 };
        let waiting = match function.waiting_share {
            share if share > 0.0 => percent(share),
            _ => String::new(),
        };
        line.push_str(&format!(
            "{:>7}  {waiting:>7}  {}  {}",
            percent(share),
            function.function,
            function.module
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

/// Functions to choose from, one a line, with what they cost a transaction; at most so many, and how many there are besides.
pub fn candidates(functions: &[&FunctionCost], most: usize) -> String {
    let unit = Unit::of(functions.iter().map(|one| value(one.compared)).fold(0.0, f64::max));
    let mut lines: Vec<String> = functions
        .iter()
        .take(most)
        .map(|one| {
            let cost = match value(one.compared) {
                seconds if seconds > 0.0 => format!("{} {}/tx", unit.number(seconds), unit.name),
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
