//! An experiment as one page that works offline: verdicts, the curves of all variants, their ratios, and every table.
//!
//! It has no script. The watched runs have pages of their own, with flame graphs.

mod curves;
mod ratios;

use crate::html::for_markup;
use crate::text::{Style, experiment};
use scaleprof_analysis::trials::Outcome;

const CSS: &str = include_str!("../assets/experiment.css");
/// Lines that can be told apart; further ones begin again.
const LINES: usize = 6;

/// The page. The same outcome gives the same page.
pub fn render(outcome: &Outcome) -> String {
    let name = for_markup(&outcome.name);
    let mut body = format!("<h1>{name}</h1>\n");
    if let Some(question) = &outcome.question {
        body.push_str(&format!("<p>{}</p>\n", for_markup(question)));
    }
    for comparison in &outcome.comparisons {
        body.push_str(&format!(
            "<p class=\"verdict\">{}</p>\n",
            for_markup(&comparison.sentence)
        ));
    }
    for doubt in &outcome.session.caveats {
        let words = for_markup(doubt);
        body.push_str(&format!("<p class=\"doubt\">Unreliable session: {words}.</p>\n"));
    }
    for variant in &outcome.variants {
        if let Some(why) = &variant.dropped_reason {
            let words = for_markup(&format!("{} takes no part: {why}", variant.name));
            body.push_str(&format!("<p class=\"doubt\">{words}</p>\n"));
        }
    }
    if let Some(curves) = curves::svg(outcome) {
        body.push_str("<h2>Throughput of all variants</h2>\n");
        body.push_str(&curves);
        body.push_str(
            "<p class=\"muted\">Geometric means over the replicates, with 95 % intervals that include the drift of \
             the session; the ratios below compare variants.</p>\n",
        );
    }
    for comparison in &outcome.comparisons {
        if let Some(ratios) = ratios::svg(comparison) {
            let heading = for_markup(&format!("{} over {}", comparison.variant, comparison.base));
            body.push_str(&format!("<h2>{heading}</h2>\n{ratios}"));
        }
    }
    let tables = for_markup(&experiment::table(outcome, Style::plain()));
    body.push_str(&format!("<h2>All figures</h2>\n<pre>{tables}</pre>\n"));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{name} · scaleprof</title>\n\
         <style>\n{CSS}</style>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}
