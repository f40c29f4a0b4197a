//! The report as one page that works offline.
//!
//! The page itself is built from TypeScript in `web/` and kept in `assets/page.html`, so that cargo needs no npm. It
//! carries its own style and script, both named by hash in a content security policy that allows nothing else. This
//! module only puts the data of a run into it.

mod code;
mod lines;
mod measurements;
mod packed;
mod page;
mod profile;
mod quality;
mod statements;
mod waits;

pub(crate) use profile::packed as packed_profile;

use crate::text;
use page::Page;
use scaleprof_analysis::annotate::every_rung;
use scaleprof_analysis::cache_lines::lines_of_bundle;
use scaleprof_analysis::flame::flame;
use scaleprof_analysis::rung_instructions::by_rung;
use scaleprof_bundle::{Bundle, Manifest, Summary};
use scaleprof_vocabulary::WorkloadName;

/// The built page, with `@@TITLE@@`, `@@NOSCRIPT@@`, `@@DATA@@`, `@@PROFILE@@`, `@@CODE@@` and
/// `@@LINES@@` where the run goes.
const TEMPLATE: &str = include_str!("../assets/page.html");

/// The page for a bundle and what the analysis made of it.
pub fn render(bundle: &Bundle, summary: &Summary) -> String {
    let title = format!("{} · scaleprof", subject(&bundle.manifest));
    let data = serde_json::to_string(&Page::new(bundle, summary))
        .unwrap_or_else(|error| serde_json::json!({ "unreadable": error.to_string() }).to_string());
    let (code, lines) = code_of(bundle);
    let plain = text::table(summary, text::Style::plain());
    fill(
        TEMPLATE,
        &[
            ("@@TITLE@@", &for_markup(&title)),
            ("@@NOSCRIPT@@", &for_markup(&plain)),
            ("@@DATA@@", &for_script(&data)),
            ("@@PROFILE@@", &profile::packed(flame(bundle).as_ref())),
            ("@@CODE@@", &code),
            ("@@LINES@@", &lines),
        ],
    )
}

/// The machine code that the bundle keeps with its costs, and the cache lines that it touches; empty where it keeps none.
fn code_of(bundle: &Bundle) -> (String, String) {
    // A damaged table takes its view with it, not the page.
    let instructions = bundle.instructions().unwrap_or_default();
    let accesses = bundle.data_accesses().unwrap_or_default();
    if instructions.is_empty() && accesses.is_none() {
        return <_>::default();
    }
    let rungs = by_rung(bundle);
    let code = code::packed(every_rung(&rungs, &instructions).as_ref());
    let lines = accesses.map(|rows| lines::packed(&lines_of_bundle(&rows, &rungs), &rungs, &instructions));
    (code, lines.unwrap_or_default())
}

/// What was run or watched, in a few words.
fn subject(manifest: &Manifest) -> String {
    let server = &manifest.server;
    match manifest.workload.name {
        WorkloadName::Watch => match manifest.workload.imported() {
            Some(_) => format!("{}, recorded", server.named()),
            None => format!("{}, watched", server.named()),
        },
        _ => format!("{}, {}", server.named(), manifest.workload.title()),
    }
}

/// Puts each value where its mark stands. What was put in is not looked at again: data may hold a mark.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut rest = template;
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>());
    while let Some((at, mark, value)) = values
        .iter()
        .filter_map(|(mark, value)| rest.find(mark).map(|at| (at, *mark, *value)))
        .min()
    {
        out.push_str(&rest[..at]);
        out.push_str(value);
        rest = &rest[at + mark.len()..];
    }
    out.push_str(rest);
    out
}

/// JSON that may stand inside a script element: nothing in it can end the element, begin a comment or break a line.
pub(crate) fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Text that may stand between tags or in an attribute.
pub(crate) fn for_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_leave_its_element() {
        let escaped = for_script("{\"a\":\"</script><!-- & \u{2028}\u{2029}\"}");
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
        let back: serde_json::Value = serde_json::from_str(&escaped).expect("still JSON");
        assert_eq!(back["a"], "</script><!-- & \u{2028}\u{2029}");
    }

    #[test]
    fn the_template_has_each_mark_once() {
        for mark in [
            "@@TITLE@@",
            "@@NOSCRIPT@@",
            "@@DATA@@",
            "@@PROFILE@@",
            "@@CODE@@",
            "@@LINES@@",
        ] {
            assert_eq!(TEMPLATE.matches(mark).count(), 1, "{mark}");
        }
    }

    #[test]
    fn a_mark_in_the_data_stays_data() {
        let page = fill(
            TEMPLATE,
            &[
                ("@@TITLE@@", "@@DATA@@"),
                ("@@NOSCRIPT@@", ""),
                ("@@DATA@@", "{}"),
                ("@@PROFILE@@", ""),
                ("@@CODE@@", ""),
                ("@@LINES@@", ""),
            ],
        );
        assert!(page.contains("<title>@@DATA@@</title>"));
        assert!(page.contains("type=\"application/json\">{}</script>"));
    }
}
