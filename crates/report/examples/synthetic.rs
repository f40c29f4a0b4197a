//! Writes the report of a made-up run: `cargo run -p scaleprof-report --example synthetic OUT.html [SHAPE]`, where
//! SHAPE is usual, vm, open, one, bare, failed, empty, big, dense (more samples than a page keeps) or stacks (100 000 call
//! paths); or the comparison of two runs: diff, diff-products, diff-bare, diff-apart or diff-once. Prints the closing table too.

#[path = "../tests/integration/fixture/mod.rs"]
#[allow(missing_docs)]
mod fixture;
mod machine_code;
#[path = "../tests/integration/two_runs/mod.rs"]
#[allow(missing_docs)]
mod two_runs;

use scaleprof_analysis::comparison::{Choice, compare_with_runs};
use scaleprof_bundle::Bundle;
use scaleprof_report::{diff_page, html, text};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("name the file to write");
        return ExitCode::FAILURE;
    };
    let name = arguments.next().unwrap_or_else(|| "usual".into());
    if let Some(pair) = two_runs::named(&name) {
        return write(&file, &comparison(&pair));
    }
    let Some(shape) = fixture::Shape::named(&name) else {
        eprintln!("no shape is called {name}");
        return ExitCode::FAILURE;
    };
    let (mut bundle, mut summary) = fixture::make(&shape);
    // Machine code is read when it is shown, from the bundle's folder.
    let folder = std::env::temp_dir().join(format!("scaleprof-synthetic-{}", std::process::id()));
    if shape.figures
        && !bundle.measurements.is_empty()
        && let Err(error) = machine_code::add(&mut bundle, &folder)
    {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    // The samples are made up, what the analysis says of them is not.
    let analysed = scaleprof_analysis::summarise(&bundle);
    for rung in &mut summary.rungs {
        let same = analysed
            .rungs
            .iter()
            .find(|other| other.connections == rung.connections);
        rung.paths = same.map_or(Vec::new(), |same| same.paths.clone());
    }
    print!("{}", text::table(&summary, text::Style::plain()));
    if let Some(flame) = scaleprof_analysis::flame::flame(&bundle) {
        let samples = || {
            flame
                .rungs
                .iter()
                .flat_map(|rung| &rung.measurements)
                .flat_map(|measurement| &measurement.samples)
        };
        let distinct: std::collections::HashSet<u32> = samples().map(|sample| sample.node).collect();
        println!(
            "{} samples of {} distinct stacks, {} frames of {} functions",
            samples().count(),
            distinct.len(),
            flame.nodes.len(),
            flame.functions.len()
        );
    }
    let page = html::render(&bundle, &summary);
    drop(std::fs::remove_dir_all(&folder));
    write(&file, &page)
}

/// The page of a comparison; what the terminal shows is printed.
fn comparison([a, b]: &[Bundle; 2]) -> String {
    let names = ["before", "after"];
    match compare_with_runs(a, b, Choice::default()) {
        Ok((comparison, runs)) => {
            print!("{}", text::comparison::table(&comparison, names, text::Style::plain()));
            diff_page::render(&diff_page::Compared {
                bundles: [a, b],
                names,
                comparison: &comparison,
                runs: &runs,
                connections: None,
            })
        }
        Err(refusal) => refusal.to_string(),
    }
}

fn write(file: &str, page: &str) -> ExitCode {
    match std::fs::write(file, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{file} could not be written: {error}");
            ExitCode::FAILURE
        }
    }
}
