//! The list of servers for people.

use crate::output::{Unwritten, put, say};
use scaleprof_builds::{Build, Shelf};

const HEAD: [&str; 6] = ["name", "server", "build-id", "symbols", "size", "path"];
/// As many digits of a build-id as tell builds apart; --json has all.
const DIGITS: usize = 12;

pub(crate) fn print(shelf: &Shelf, servers: &[Build]) -> Result<(), Unwritten> {
    if servers.is_empty() {
        say!(
            "no builds in {} and no server installed. `scaleprof servers fetch --help` lists the sources",
            shelf.path().display()
        );
        return Ok(());
    }
    let rows: Vec<[String; 6]> = servers.iter().map(row).collect();
    let width = |column: usize| {
        let texts = rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
        let longest = texts
            .chain(HEAD.get(column).copied())
            .map(|text| text.chars().count())
            .max();
        longest.unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    put!("{}", lines(&HEAD.map(str::to_owned), &widths));
    for (row, server) in rows.iter().zip(servers) {
        put!("{}", lines(row, &widths));
        if let Some(problem) = &server.problem {
            say!("    does not run here: {problem}");
        }
    }
    Ok(())
}

fn lines(row: &[String; 6], widths: &[usize]) -> String {
    const SIZE: usize = 4;
    let cell = |(column, text): (usize, &String)| {
        let width = widths.get(column).copied().unwrap_or(0);
        match column {
            SIZE => format!("{text:>width$}"),
            _ => format!("{text:width$}"),
        }
    };
    let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
    format!("{}\n", cells.join("  ").trim_end())
}

fn row(build: &Build) -> [String; 6] {
    let unknown = || "-".to_owned();
    let server = match (&build.flavour, &build.version) {
        (Some(flavour), Some(version)) => format!("{flavour} {version}"),
        _ => unknown(),
    };
    let symbols = build.symbols.map(|symbols| match build.named_code {
        Some(share) if share < 0.995 => format!("{}, {:.0} % of code", symbols.words(), share * 100.0),
        _ => symbols.words().to_owned(),
    });
    let digits = build.build_id.as_deref();
    [
        build.name.clone().unwrap_or_else(|| "(installed)".to_owned()),
        server,
        digits.map_or_else(unknown, |id| id.get(..DIGITS).unwrap_or(id).to_owned()),
        symbols.unwrap_or_else(unknown),
        build.bytes.map_or_else(unknown, |bytes| format!("{} MiB", bytes >> 20)),
        build.path.display().to_string(),
    ]
}
