//! The page of a comparison holds what was compared, whatever the two runs lack.

use crate::two_runs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scaleprof_analysis::comparison::{Choice, Comparison, compare, compare_with_runs};
use scaleprof_bundle::Bundle;
use scaleprof_report::diff_page::{Compared, render};
use scaleprof_report::text::{Style, comparison};
use serde_json::Value;
use std::io::Read;

fn page_of([a, b]: &[Bundle; 2], names: [&str; 2]) -> (String, Comparison) {
    let (comparison, runs) = compare_with_runs(a, b, Choice::default()).expect("two runs that can be compared");
    let page = render(&Compared {
        bundles: [a, b],
        names,
        comparison: &comparison,
        runs: &runs,
        connections: None,
    });
    (page, comparison)
}

fn page(name: &str) -> (String, Comparison) {
    page_of(&two_runs::named(name).expect("a pair"), ["before", "after"])
}

const DATA: &str = "<script id=\"data\" type=\"application/json\">";

/// What an element of the page holds.
fn element<'a>(page: &'a str, begin: &str) -> &'a str {
    let from = page.find(begin).expect("the element") + begin.len();
    let length = page[from..].find("</script>").expect("its end");
    &page[from..from + length]
}

fn data(page: &str) -> Value {
    serde_json::from_str(element(page, DATA)).expect("JSON")
}

/// The header of the packed samples.
fn profile(page: &str) -> Value {
    let packed = element(page, "<script id=\"profile\" type=\"text/plain\">");
    let deflated = STANDARD.decode(packed).expect("base64");
    let mut plain = Vec::new();
    let mut inflating = flate2::read::DeflateDecoder::new(deflated.as_slice());
    inflating.read_to_end(&mut plain).expect("deflated");
    let length = u32::from_le_bytes(plain[..4].try_into().expect("four bytes")) as usize;
    serde_json::from_slice(&plain[4..4 + length]).expect("JSON")
}

/// Side and connections of every rung of the graph.
fn sides(profile: &Value) -> Vec<(String, u64)> {
    let rungs = profile["rungs"].as_array().expect("rungs").iter();
    rungs
        .map(|rung| {
            let side = rung["side"].as_str().expect("a side").to_owned();
            (side, rung["connections"].as_u64().expect("connections"))
        })
        .collect()
}

#[test]
fn it_holds_the_comparison_both_curves_and_the_stacks_of_both() {
    let (page, comparison) = page("diff");
    let data = data(&page);
    let json = serde_json::to_string(&comparison).expect("JSON");
    assert!(element(&page, DATA).contains(&json), "the same as --json prints");
    assert!(comparison.paths.len() >= 6, "{:?}", comparison.paths);
    let names: Vec<_> = (0..2).map(|side| data["runs"][side]["name"].as_str()).collect();
    assert_eq!(names, [Some("before"), Some("after")]);
    let of = |side: usize| -> Vec<u64> {
        let rungs = data["runs"][side]["rungs"].as_array().expect("rungs").iter();
        rungs.filter_map(|rung| rung["connections"].as_u64()).collect()
    };
    assert_eq!((of(0), of(1)), (vec![1, 4, 16, 64, 256], vec![4, 16, 64, 256, 512]));
    for rung in (0..2)
        .filter_map(|side| data["runs"][side]["rungs"].as_array())
        .flatten()
    {
        assert_eq!(rung["measurements"].as_array().map(Vec::len), Some(3));
        let figure = |name: &str| rung["throughput"][name].as_f64().expect("a figure");
        assert!(figure("low") < figure("value") && figure("value") < figure("high"));
    }
    let profile = profile(&page);
    let (of_a, of_b): (Vec<_>, Vec<_>) = sides(&profile).into_iter().partition(|(side, _)| side == "a");
    let numbers = |of: &[(String, u64)]| of.iter().map(|(_, connections)| *connections).collect::<Vec<_>>();
    assert_eq!((numbers(&of_a), numbers(&of_b)), (of(0), of(1)));
    let functions = profile["functions"].as_array().expect("functions");
    for name in ["old_dictionary", "new_dictionary", "latch"] {
        let found = functions.iter().filter(|function| *function == name).count();
        assert_eq!(found, 1, "{name}: one function, whichever run it is of");
    }
}

#[test]
fn it_says_the_same_as_json_and_the_terminal() {
    let [a, b] = two_runs::named("diff").expect("a pair");
    let names = ["before", "after"];
    let (page, _) = page_of(&[a.clone(), b.clone()], names);
    let found = compare(&a, &b, Choice::default()).expect("a comparison");
    let json = serde_json::to_string(&found).expect("JSON");
    assert!(element(&page, DATA).contains(&json), "the same as --json prints");
    let noscript = page
        .split("<noscript>")
        .nth(1)
        .and_then(|rest| rest.split("</noscript>").next());
    let noscript = noscript.expect("figures for a reader without JavaScript");
    let told = comparison::table(&found, names, Style::plain());
    assert!(told.contains("scales worse") && told.contains("latch"), "{told}");
    let written = told.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert!(noscript.contains(&written), "{noscript}\n{written}");
}

#[test]
fn what_is_lacking_has_its_reason() {
    let (bare, _) = page("diff-bare");
    let found = data(&bare);
    let sampled = |side: usize| found["runs"][side]["sampled"].as_array().map(Vec::len);
    assert_eq!((sampled(0), sampled(1)), (Some(0), Some(5)));
    assert_eq!(found["runs"][0]["missing"][0]["reason"], two_runs::NOT_WATCHED);
    let profile = profile(&bare);
    assert_eq!(sides(&profile).iter().filter(|(side, _)| side == "b").count(), 5);
    for (rung, (side, connections)) in profile["rungs"].as_array().expect("rungs").iter().zip(sides(&profile)) {
        let measurements = rung["measurements"].as_array().expect("measurements").iter();
        let samples = measurements
            .filter_map(|measurement| measurement["samples"][0].as_u64())
            .sum::<u64>();
        assert_eq!(samples > 0, side == "b", "{side} at {connections}");
    }

    let (products, comparison) = page("diff-products");
    assert_eq!(data(&products)["paired"], false);
    assert!(!comparison.rungs.is_empty() && comparison.rungs.iter().all(|rung| !rung.code_kinds.is_empty()));
}

#[test]
fn nothing_of_the_runs_leaves_its_element_or_says_where_they_were_made() {
    let pair = two_runs::named("diff").expect("a pair");
    let (page, _) = page_of(&pair, ["</title><script>alert(1)</script>", "\u{2028}"]);
    assert_eq!(
        page.matches("<script").count(),
        3,
        "the data, the profile and the page's own"
    );
    assert!(!page.contains("alert(1)</script>"));
    assert!(!page.contains("geheim"), "a command is no part of a comparison");
    for outside in ["src=\"http", "href=\"http", "url(", "@import", "connect-src"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}
