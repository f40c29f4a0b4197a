//! Writes the report of a made-up run: `cargo run -p scaleprof-report --example synthetic OUT.html [SHAPE]`, where
//! SHAPE is usual, vm, open, one, bare, failed, empty or big. Prints the closing table too.

#[path = "../tests/fixture/mod.rs"]
#[allow(missing_docs)]
mod fixture;

use scaleprof_report::{html, text};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("name the file to write");
        return ExitCode::FAILURE;
    };
    let name = arguments.next().unwrap_or_else(|| "usual".into());
    let Some(shape) = fixture::Shape::named(&name) else {
        eprintln!("no shape is called {name}");
        return ExitCode::FAILURE;
    };
    let (bundle, summary) = fixture::make(&shape);
    print!("{}", text::table(&summary, text::Style::plain()));
    match std::fs::write(&file, html::render(&bundle, &summary)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{file} could not be written: {error}");
            ExitCode::FAILURE
        }
    }
}
