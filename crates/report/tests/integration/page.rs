//! The page holds what the bundle holds, whatever its shape.

#[allow(dead_code, missing_docs)]
use crate::fixture;

use fixture::{Shape, make};
use scaleprof_report::{html, json};
use serde_json::Value;

fn data(page: &str) -> Value {
    let begin = "<script id=\"data\" type=\"application/json\">";
    let from = page.find(begin).expect("the data's element") + begin.len();
    let length = page[from..].find("</script>").expect("its end");
    serde_json::from_str(&page[from..from + length]).expect("JSON")
}

#[test]
fn every_shape_is_rendered() {
    for name in ["usual", "vm", "open", "one", "bare", "failed", "empty"] {
        let (bundle, summary) = make(&Shape::named(name).expect("a shape"));
        let data = data(&html::render(&bundle, &summary));
        assert_eq!(
            data["measurements"].as_array().map(Vec::len),
            Some(bundle.measurements.len()),
            "{name}"
        );
        assert_eq!(
            data["summary"]["rungs"].as_array().map(Vec::len),
            Some(summary.rungs.len()),
            "{name}"
        );
    }
}

#[test]
fn measurements_carry_their_warm_up_seconds_and_counters() {
    let (bundle, summary) = make(&Shape::usual());
    let data = data(&html::render(&bundle, &summary));
    for measurement in data["measurements"].as_array().expect("measurements") {
        let seconds = measurement["seconds"]["second"].as_array().expect("seconds");
        assert_eq!(seconds.len(), 30);
        assert!(measurement["warmup_seconds"].is_u64());
        assert_eq!(
            measurement["counters"]["server.cpu_user_seconds"]
                .as_array()
                .map(Vec::len),
            Some(30)
        );
        assert!(
            measurement["counters"].get("status.Com_load").is_none(),
            "a counter that never moved is left out"
        );
    }
}

#[test]
fn hostile_values_stay_text() {
    let (mut bundle, mut summary) = make(&Shape::usual());
    bundle.manifest.server.version = "</title><script>alert(1)</script>".into();
    summary.warnings = vec!["</script><script>alert(1)</script> \u{2028}".into()];
    let page = html::render(&bundle, &summary);
    assert_eq!(
        page.matches("<script").count(),
        5,
        "the data, the profile, the machine code, the cache lines and the page's own"
    );
    assert!(!page.contains("alert(1)</script>"));
    assert_eq!(data(&page)["summary"]["warnings"][0], summary.warnings[0]);
}

#[test]
fn the_page_names_no_other_place() {
    let (bundle, summary) = make(&Shape::usual());
    let page = html::render(&bundle, &summary);
    for outside in ["src=\"http", "href=\"http", "url(", "@import", "connect-src"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_summary_reads_back() {
    let (_, summary) = make(&Shape::usual());
    let text = json::summary(&summary).expect("JSON");
    assert!(text.ends_with("}\n"));
    let back: scaleprof_bundle::Summary = serde_json::from_str(&text).expect("the summary");
    assert_eq!(back.rungs.len(), summary.rungs.len());
}

#[test]
fn who_waits_for_whom_is_there_and_no_more_than_a_reader_can_take_in() {
    let (bundle, summary) = make(&Shape::usual());
    let data = data(&html::render(&bundle, &summary));
    let waits = &data["waits"];
    let functions = waits["functions"].as_array().expect("functions").len() as u64;
    let rungs = waits["rungs"].as_array().expect("rungs");
    assert!(rungs.len() > 5, "{} rungs", rungs.len());
    let mut count = 0;
    for rung in rungs {
        let locks = rung["locks"].as_array().expect("locks");
        assert!((1..=15).contains(&locks.len()));
        let waiters = locks.iter().map(|lock| lock["waiters"].as_array().expect("waiters"));
        for waiter in waiters.flatten() {
            count += 1;
            let path = waiter["place"]["path"].as_array().expect("a path");
            assert!(!path.is_empty() && path.iter().all(|one| one.as_u64().is_some_and(|one| one < functions)));
        }
    }
    assert!(count > 0, "nobody waits");
    assert!(
        waits.to_string().len() < 40_000 * rungs.len(),
        "{} bytes",
        waits.to_string().len()
    );
}

#[test]
fn a_figure_of_data_quality_is_a_number_or_has_its_reason() {
    for name in ["usual", "bare", "empty"] {
        let (bundle, summary) = make(&Shape::named(name).expect("a shape"));
        let data = data(&html::render(&bundle, &summary));
        let rungs = data["quality"].as_array().expect("rungs");
        assert_eq!(rungs.len(), summary.rungs.len(), "{name}");
        let figures = || {
            rungs
                .iter()
                .flat_map(|rung| rung["figures"].as_array().expect("figures"))
        };
        assert_eq!(figures().count() > 0, name != "empty", "{name}");
        for figure in figures() {
            assert_ne!(
                figure["value"].is_null(),
                figure["reason"].is_null(),
                "{name}: {figure}"
            );
        }
    }
}
