//! What a terminal shows of an experiment.

use scaleprof_analysis::trials::{
    Change, Compared, ComparisonTold, DesignTold, ExperimentState, Outcome, RungCompared, SessionQuality, VariantRung,
    VariantTold,
};
use scaleprof_bundle::Estimate;
use scaleprof_report::experiment_page::render;
use scaleprof_report::text::Style;
use scaleprof_report::text::experiment::table;
use scaleprof_vocabulary::ExperimentVerdict;

fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate {
        value,
        low: Some(low),
        high: Some(high),
    }
}

fn compared(ratio: Estimate, p: f64, verdict: ExperimentVerdict) -> Compared {
    Compared {
        pairs: 8,
        ratio,
        p: Some(p / 2.0),
        adjusted_p: Some(p),
        sign_flip_p: Some(0.0078),
        margin: 0.013,
        verdict,
    }
}

fn rung(connections: u32, throughput: Compared) -> RungCompared {
    RungCompared {
        connections,
        throughput: Some(throughput),
        cpu_seconds_per_txn: Some(estimate(0.79, 0.75, 0.83)),
        switches_per_txn: None,
        p50: None,
        p99: Some(estimate(0.7, 0.6, 0.8)),
        change: Some(Change {
            throughput: 0.26,
            utilisation: 0.02,
            cpu_seconds: 0.2357,
            clock: None,
            instructions: None,
            cycles_per_instruction: None,
            residual: 0.0043,
        }),
        client_limited: false,
    }
}

fn variant(name: &str, base: bool, out: Option<&str>) -> VariantTold {
    VariantTold {
        name: name.to_owned(),
        base,
        differs_by: Vec::new(),
        server: None,
        workload: None,
        replicates: 8,
        dropped_reason: out.map(str::to_owned),
        rungs: match out {
            Some(_) => Vec::new(),
            None => vec![VariantRung {
                connections: 16,
                throughput: estimate(12_300.0, 12_000.0, 12_600.0),
                cpu_seconds_per_txn: Some(0.000_152),
                switches_per_txn: None,
                p50_ms: Some(1.25),
                p99_ms: Some(4.5),
                replicas: Vec::new(),
                combined_throughput: None,
            }],
        },
    }
}

fn outcome() -> Outcome {
    Outcome {
        schema: 2,
        scaleprof: "0.1.0".to_owned(),
        name: "sync-array-size".to_owned(),
        question: Some("Does it help?".to_owned()),
        state: ExperimentState::Interrupted,
        problem: Some("stopped by the user".to_owned()),
        started_at: None,
        design: DesignTold {
            slice_seconds: Some(0.25),
            connections: vec![16, 512],
            seconds: 10,
            max_pairs: 8,
            rounds: 8,
            target_half_width: None,
            margin: 0.01,
            indicative: false,
            seed: 1,
        },
        workload: None,
        machine: None,
        variants: vec![
            variant("size 1", true, None),
            variant("size 64", false, None),
            variant(
                "broken",
                false,
                Some("the server refused a setting and said: unknown variable\nCorrect or drop it"),
            ),
        ],
        session: SessionQuality {
            reliable: Some(false),
            aa_pairs: 4,
            aa_interval: Some(estimate(1.002, 0.99, 1.014)),
            drift: Some(estimate(0.9, 0.88, 0.92)),
            margin: 0.013,
            caveats: vec!["throughput changed".to_owned()],
        },
        comparisons: vec![ComparisonTold {
            base: "size 1".to_owned(),
            variant: "size 64".to_owned(),
            same_work: true,
            open_loop: false,
            sentence: "size 64 is faster than size 1.".to_owned(),
            overall: Some(compared(estimate(1.13, 1.1, 1.16), 0.0004, ExperimentVerdict::Faster)),
            overall_rungs: vec![16, 512],
            scales: Some("better"),
            scaling_ratio: None,
            rungs: vec![
                rung(
                    16,
                    compared(estimate(0.999, 0.99, 1.008), 0.8, ExperimentVerdict::NoDifference),
                ),
                RungCompared {
                    client_limited: true,
                    change: None,
                    ..rung(
                        512,
                        compared(estimate(1.28, 1.2, 1.36), 0.002, ExperimentVerdict::Faster),
                    )
                },
            ],
            watched: None,
            not_watched: Some("the plan has watch = false".to_owned()),
        }],
        warnings: vec!["the server shares its CPUs with the client".to_owned()],
    }
}

#[test]
fn ratios_verdicts_parts_and_doubts_are_all_there() {
    let text = table(&outcome(), Style::plain());
    let line = |part: &str| {
        let found = text.lines().find(|line| line.contains(part));
        found
            .unwrap_or_else(|| panic!("no line has {part}:\n{text}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        line("no difference above"),
        "16 \u{2212}0.1 % \u{2212}1.0 % to +0.8 % 0.800 no difference above 1.3 % \u{2212}21.0 % \u{2013} \u{2212}30.0 %"
    );
    assert_eq!(
        line("whole ladder"),
        "whole ladder +13.0 % +10.0 % to +16.0 % <0.001 faster"
    );
    // By the iron law; each part as a factor of throughput.
    assert_eq!(line("+26.6 %"), "16 +29.7 % +2.0 % +26.6 % +0.4 %");
    assert!(line("size 1 ").ends_with("16 12 300 12 000 \u{2013} 12 600 152 \u{2013} 1.25 4.50"));
    assert!(
        text.contains(
            "8 of at most 8 pairs (interrupted); 10 s at each rung of a start, side by side in turns of 0.25 s"
        ),
        "{text}"
    );
    assert!(line("broken takes no part").contains("unknown variable"));
    assert!(text.contains("At 512 connections the client was the limit"), "{text}");
    assert!(
        text.contains("Where the time goes is not compared: the plan has watch = false."),
        "{text}"
    );
    assert!(
        text.contains("4 A/A pairs differ by +0.2 % (\u{2212}1.0 % to +1.4 %)"),
        "{text}"
    );
    assert!(text.contains("Unreliable session: throughput changed."), "{text}");
    assert!(text.ends_with("size 64 is faster than size 1.\n"));
    assert!(!text.contains('\x1b'));
}

#[test]
fn the_page_has_the_curves_the_ratios_and_the_tables_and_no_script() {
    let mut told = outcome();
    told.question = Some("Is 1 < 2 & so on?".to_owned());
    let page = render(&told);
    assert_eq!(page.matches("<polyline").count(), 2);
    assert!(page.contains("size 64</li>") && !page.contains("broken</li>"), "{page}");
    assert!(
        page.contains("Is 1 &lt; 2 &amp; so on?") && page.contains("+28.0 %, faster"),
        "{page}"
    );
    assert!(page.contains("Unreliable session: throughput changed."), "{page}");
    assert!(
        page.contains("whole ladder") && page.contains("not explained"),
        "{page}"
    );
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
    told.comparisons.clear();
    told.variants.clear();
    assert!(!render(&told).contains("<polyline"));
}

#[test]
fn an_experiment_of_which_nothing_was_measured_is_shown_too() {
    let mut empty = outcome();
    empty.comparisons.clear();
    empty.variants.clear();
    empty.session = SessionQuality {
        reliable: None,
        aa_pairs: 0,
        aa_interval: None,
        drift: None,
        margin: 0.01,
        caveats: Vec::new(),
    };
    let style = Style {
        colour: true,
        width: Some(40),
    };
    let text = table(&empty, style);
    assert!(text.contains("so the error"), "{text}");
    // A sequence that makes a colour ends with an m and takes no column.
    let letters = |part: &str| part.split_once('m').map_or(0, |(_, shown)| shown.chars().count());
    let columns = |line: &str| format!("m{line}").split('\u{1b}').map(letters).sum::<usize>();
    assert!(text.lines().all(|line| columns(line) <= 40), "{text}");
}
