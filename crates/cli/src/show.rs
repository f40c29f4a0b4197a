//! Closing words: the table, the bundle's place, and times.

use crate::error_text;
use crate::global_arguments::has_colours;
use anyhow::Context;
use scaleprof_analysis::unfinished;
use scaleprof_bundle::{Bundle, Summary};
use scaleprof_report::{html, json, text};
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};

/// A bundle of which more than a summary is wanted; says on standard error what is not finished in it.
pub(crate) fn opened(path: &Path) -> anyhow::Result<Bundle> {
    let bundle = Bundle::open(path)?;
    for words in unfinished(&bundle) {
        eprintln!("{}", error_text::warning(&words));
    }
    Ok(bundle)
}

/// The table as wide as the terminal, in colours only on one.
pub(crate) fn table(summary: &Summary) -> String {
    text::table(summary, style())
}

/// As wide as the terminal, in colours only on one.
pub(crate) fn style() -> text::Style {
    let on_terminal = std::io::stdout().is_terminal();
    text::Style {
        colour: has_colours(),
        width: on_terminal
            .then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok())
            .flatten()
            .map(|size| usize::from(size.ws_col))
            .filter(|&columns| columns > 0),
    }
}

/// Writes report.html into the bundle and returns where it is.
pub(crate) fn write_page(bundle: &Bundle, summary: &Summary, folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("report.html");
    write_whole(&path, html::render(bundle, summary))?;
    Ok(path)
}

/// Writes a file so that it is never seen half written. What is no file, such as a pipe or `/dev/null`, is written to and not
/// replaced.
pub(crate) fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    // What /dev/stdout leads to may be a file; the name is not to be replaced all the same.
    let is_of_system = path.starts_with("/dev") || path.starts_with("/proc");
    let takes_bytes = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    let written = match is_of_system || std::fs::metadata(path).is_ok_and(takes_bytes) {
        true => std::fs::write(path, content),
        false => scaleprof_guard::replace(path, |file| file.write_all(content.as_ref())),
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// summary.json as it is printed.
pub(crate) fn summary_json(summary: &Summary) -> anyhow::Result<String> {
    json::summary(summary).context("the summary cannot be written as JSON")
}

/// The time in UTC as 20261121-043000.
pub(crate) fn compact_time() -> String {
    let now = time::OffsetDateTime::now_utc();
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second()
    )
}
