//! `scaleprof annotate`.

use crate::arguments::AnnotateArguments;
use crate::output;
use crate::same_build::must_have_run;
use crate::show;
use anyhow::{Context, anyhow, bail};
use scaleprof_analysis::Per;
use scaleprof_analysis::annotate::{
    Annotation, Compared, FunctionCost, Selection, annotate, catalogue, choose, select,
};
use scaleprof_analysis::instruction_costs::is_of_kernel;
use scaleprof_analysis::rung_instructions::by_rung;
use scaleprof_bundle::{Bundle, InstructionRow};
use scaleprof_experiment::instruction_rows;
use scaleprof_probe::disassembly::Disassembler;
use scaleprof_probe::spin::SpinLoops;
use scaleprof_probe::symbol_search;
use scaleprof_probe::symbols::SymbolFile;
use scaleprof_report::text;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

/// Functions that are listed on a terminal, and those that an error names.
const MOST_LISTED: usize = 40;
const MOST_NAMED: usize = 12;

/// The list of functions as `--json` gives it.
#[derive(Debug, Serialize)]
struct Listing<'a> {
    /// What times are given for: of a server that was only watched, wherever a transaction is written, a second.
    per: Per,
    base_connections: Option<u32>,
    connections: Option<u32>,
    /// CPU seconds of a transaction altogether, at the rung that is compared with and at the one that is looked at.
    base_seconds_per_txn: Option<f64>,
    seconds_per_txn: Option<f64>,
    functions: &'a [FunctionCost],
}

pub(crate) fn execute(arguments: &AnnotateArguments) -> anyhow::Result<ExitCode> {
    let subject = &arguments.subject;
    if !subject.exists() {
        bail!(
            "{} does not exist\nfix: name the folder of a bundle or a binary first, then the function",
            subject.display()
        );
    }
    let annotation = match (subject.is_dir(), &arguments.function) {
        (true, function) => {
            let bundle = show::opened(subject)?;
            let binary = arguments.binary.as_deref().map(Binary::open).transpose()?;
            if let (Some(binary), Some(path)) = (&binary, &arguments.binary) {
                must_have_run(&bundle, path, (&binary.name, binary.symbols.build_id().as_deref()))?;
            }
            let rows = bundle.instructions()?;
            let rungs = by_rung(&bundle);
            let compared = choose(&rungs, arguments.base_rung, arguments.rung).map_err(|problem| anyhow!(problem))?;
            let functions = catalogue(&compared, &rows);
            let Some(function) = function else {
                return list(&compared, &functions, arguments.json);
            };
            let mut found = match &binary {
                Some(binary) => measured_from_binary(binary, &compared, &functions, function),
                None => measured((&bundle, &rows), &compared, &functions, function),
            }
            .map_err(|problem| kernel_function(&bundle, &functions, function).unwrap_or(problem))?;
            if let Some(branches) = bundle.branches()? {
                found.add_jumps(&bundle.measurements, &branches);
            }
            found
        }
        (false, _) if arguments.binary.is_some() || arguments.rung.is_some() || arguments.base_rung.is_some() => bail!(
            "--binary, --rung and --base-rung require a bundle, and {} is not one: name a folder that scaleprof run \
             wrote",
            subject.display()
        ),
        (false, Some(function)) => unmeasured(&Binary::open(subject)?, function)?,
        (false, None) => bail!(
            "the function is missing\nfix: name a function of {} after the file; for a bundle, the hottest are listed",
            subject.display()
        ),
    };
    match arguments.json {
        true => output::print(&(serde_json::to_string_pretty(&annotation)? + "\n"))?,
        false => output::print(text::annotation(&annotation, show::style()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(compared: &Compared<'_>, functions: &[FunctionCost], json: bool) -> anyhow::Result<ExitCode> {
    let measured = functions.iter().take_while(|one| one.samples > 0).count();
    let functions = &functions[..measured];
    if json {
        let listing = Listing {
            per: compared.rung.per(),
            base_connections: compared.base.and_then(|rung| rung.connections),
            connections: compared.rung.connections,
            base_seconds_per_txn: compared.base.and_then(|rung| rung.costs.all()),
            seconds_per_txn: compared.rung.costs.all(),
            functions,
        };
        output::print(&(serde_json::to_string_pretty(&listing)? + "\n"))?;
    } else {
        output::print(text::hot_functions(compared, functions, MOST_LISTED, show::style()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A function of the bundle with the machine code that the bundle keeps.
fn measured(
    (bundle, rows): (&Bundle, &[InstructionRow]),
    compared: &Compared<'_>,
    functions: &[FunctionCost],
    wanted: &str,
) -> anyhow::Result<Annotation> {
    let function = the_one(select(functions, wanted), wanted, functions)?;
    annotate(function, rows, Some(compared)).ok_or_else(|| match rows.is_empty() {
        true => {
            let missing = bundle.manifest.missing.iter().find(|one| one.figure == "instructions");
            anyhow!(
                "the bundle has no machine code ({})\nfix: name the server's file with --binary, {} for {}",
                missing.map_or("the run was killed", |one| &one.reason),
                function.module,
                function.function
            )
        }
        false => anyhow!(
            "the bundle has no machine code of {} (too few samples)\nfix: name {} with --binary",
            function.function,
            function.module
        ),
    })
}

/// A function of the bundle with its machine code from a file, which must be the one that ran.
fn measured_from_binary(
    binary: &Binary,
    compared: &Compared<'_>,
    functions: &[FunctionCost],
    wanted: &str,
) -> anyhow::Result<Annotation> {
    let selection = select(functions, wanted);
    if selection == Selection::Unknown {
        // No thread was seen in it, but the file may have it.
        let unseen = binary.functions(wanted);
        if let Selection::One(function) = select(&unseen, wanted) {
            let rows = binary.rows(function);
            return annotate(function, &rows, Some(compared)).with_context(|| binary.lacks(wanted));
        }
    }
    let function = the_one(selection, wanted, functions)?;
    binary.must_be_of(function)?;
    let mut rows = binary.rows(function);
    for row in &mut rows {
        // The file may have another name here.
        row.module.clone_from(&function.module);
    }
    let mut found = annotate(function, &rows, Some(compared)).with_context(|| binary.lacks(&function.function))?;
    if function.build_id.is_none() {
        found.notes.push(format!(
            "neither {} nor what ran has a build-id: that they are the same file is taken from their names",
            binary.name
        ));
    }
    Ok(found)
}

/// A function of a file of which nothing was measured.
fn unmeasured(binary: &Binary, wanted: &str) -> anyhow::Result<Annotation> {
    let functions = binary.functions(wanted);
    let function = match select(&functions, wanted) {
        Selection::One(function) => function,
        Selection::Several(several) => return Err(ambiguous(wanted, &several)),
        Selection::BuiltInto(_) | Selection::Unknown => bail!(binary.lacks(wanted)),
    };
    annotate(function, &binary.rows(function), None).with_context(|| binary.lacks(wanted))
}

fn the_one<'a>(
    selection: Selection<'a>,
    wanted: &str,
    functions: &'a [FunctionCost],
) -> anyhow::Result<&'a FunctionCost> {
    match selection {
        Selection::One(function) => Ok(function),
        Selection::Several(several) => Err(ambiguous(wanted, &several)),
        Selection::BuiltInto(holders) => bail!(
            "{wanted} is inlined in these functions; name one of them:\n{}",
            text::candidates(&holders, MOST_NAMED)
        ),
        Selection::Unknown => bail!(
            "no sample is in a function with '{wanted}' in its name; the hottest are:\n{}",
            text::candidates(&functions.iter().collect::<Vec<_>>(), MOST_NAMED)
        ),
    }
}

/// Why a function of the kernel has no listing; none where no such function was seen, or where the server has one of that name.
fn kernel_function(bundle: &Bundle, functions: &[FunctionCost], wanted: &str) -> Option<anyhow::Error> {
    // Compilers split functions, as in finish_task_switch.isra.0.
    let is_wanted = |name: &str| {
        name.strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let of_kernel = bundle
        .frames
        .iter()
        .filter(|frame| is_of_kernel(frame))
        .find(|frame| frame.function.as_deref().is_some_and(is_wanted))?;
    let of_server = functions.iter().any(|one| one.function == wanted);
    (!of_server).then(|| {
        anyhow!(
            "{wanted} is a kernel function ({}), and only the server's machine code is listed. Kernel time is in the \
             column 'in kernel' of the instruction that entered it; for kernel code use `perf annotate` on that \
             machine",
            of_kernel.module
        )
    })
}

fn ambiguous(wanted: &str, several: &[&FunctionCost]) -> anyhow::Error {
    anyhow!(
        "{} functions have '{wanted}' in their names; name one of them:\n{}",
        several.len(),
        text::candidates(several, MOST_NAMED)
    )
}

/// A file of machine code.
struct Binary {
    name: String,
    bytes: Vec<u8>,
    symbols: SymbolFile,
    waiting: SpinLoops,
}

impl Binary {
    fn open(path: &Path) -> anyhow::Result<Binary> {
        let symbols = SymbolFile::open(path, &symbol_search())?;
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let waiting = SpinLoops::of(symbols.name(), &bytes, symbols.function_ranges())?;
        let binary = Binary {
            name: symbols.name().to_owned(),
            bytes,
            symbols,
            waiting,
        };
        if !binary.disassembler()?.knows_architecture() {
            bail!(
                "{} is for an architecture that is not known: x86-64 and aarch64 are",
                path.display()
            );
        }
        Ok(binary)
    }

    fn disassembler(&self) -> anyhow::Result<Disassembler<'_>> {
        Ok(Disassembler::of(&self.bytes, &self.symbols, &self.waiting)?)
    }

    /// Its functions with that in their names, each name once.
    fn functions(&self, wanted: &str) -> Vec<FunctionCost> {
        let wanted = wanted.strip_prefix(&format!("{}!", self.name)).unwrap_or(wanted);
        let mut starts: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for function in self.symbols.functions_with(wanted) {
            starts.entry(function.name).or_default().insert(function.start as i64);
        }
        let build_id = self.symbols.build_id();
        let functions = starts.into_iter().map(|(name, addresses)| FunctionCost {
            addresses,
            ..FunctionCost::unseen((&self.name, build_id.as_deref(), &name))
        });
        functions.collect()
    }

    /// The instructions of a function, by the addresses at which threads were seen in it, or at which it begins.
    fn rows(&self, function: &FunctionCost) -> Vec<InstructionRow> {
        let addresses: Vec<u64> = function.addresses.iter().map(|address| *address as u64).collect();
        let listings = self
            .disassembler()
            .map(|disassembler| disassembler.functions(&addresses));
        let listings = listings.unwrap_or_default();
        let build_id = self.symbols.build_id();
        let rows = listings
            .iter()
            .map(|listing| instruction_rows(&self.name, build_id.as_deref(), listing));
        rows.flatten().collect()
    }

    /// Addresses mean nothing in another build.
    fn must_be_of(&self, function: &FunctionCost) -> anyhow::Result<()> {
        let own = self.symbols.build_id();
        let is_same = match (&own, &function.build_id) {
            (None, None) => self.name == function.module,
            (own, other) => own == other,
        };
        let words = |build_id: &Option<String>| {
            build_id
                .as_ref()
                .map_or("no build-id".to_owned(), |id| format!("build-id {id}"))
        };
        if !is_same {
            bail!(
                "{} ran in {} ({}), and the file given is {} ({}): addresses of one mean nothing in the other; give the file that \
                 ran",
                function.function,
                function.module,
                words(&function.build_id),
                self.name,
                words(&own)
            );
        }
        Ok(())
    }

    fn lacks(&self, wanted: &str) -> String {
        format!(
            "{} has no function with '{wanted}' in its name, or none of its code",
            self.name
        )
    }
}
