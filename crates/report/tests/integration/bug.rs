//! The bug report as it is pasted into a tracker.

use crate::fixture;
use scaleprof_vocabulary::{SettingSource, ThreadState};
use testing::planted;

use fixture::{Shape, make};
use scaleprof_bundle::{Bundle, Summary};
use scaleprof_report::bug::markdown;

fn made(shape: &str) -> (Bundle, Summary) {
    make(&Shape::named(shape).expect("a shape of the fixture"))
}

fn written(shape: &str) -> String {
    let (bundle, summary) = made(shape);
    markdown(&bundle, &summary)
}

#[test]
fn of_a_server_that_falls_over() {
    insta::assert_snapshot!(written("usual"));
}

#[test]
fn with_throughput_only() {
    insta::assert_snapshot!(written("bare"));
}

#[test]
fn with_one_rung_and_with_none() {
    insta::assert_snapshot!(written("one") + "\n---\n\n" + &written("empty"));
}

#[test]
fn settings_that_differ_stand_with_their_defaults_and_who_set_them() {
    let (mut bundle, summary) = made("one");
    for row in &mut bundle.settings {
        (row.set_by, row.default_value) = match row.name.as_str() {
            "innodb_sync_spin_loops" => (Some(SettingSource::User), Some("20".into())),
            "max_connections" => (Some(SettingSource::Pinned), None),
            // Set to what it is anyway.
            "log_bin" => (Some(SettingSource::OptionFile), Some("0".into())),
            _ => (Some(SettingSource::Default), None),
        };
    }
    let text = markdown(&bundle, &summary);
    let (_, settings) = text.split_once("## Settings").expect("a section");
    let (settings, _) = settings.split_once("\n## ").expect("a section after it");
    insta::assert_snapshot!(settings);
}

#[test]
fn no_folder_gets_out_whoever_wrote_the_bundle() {
    let (mut bundle, mut summary) = made("usual");
    summary
        .warnings
        .push("cannot read /home/alice/my.cnf: it is not there".into());
    bundle.manifest.command = ["scaleprof", "run", "--output", "/home/alice/out"]
        .map(str::to_owned)
        .into();
    summary.findings[0].evidence.push("see ~/alice/notes".into());
    let text = markdown(&bundle, &summary);
    assert!(!text.contains("alice"), "{text}");
    assert!(text.contains(".../my.cnf"));
}

#[test]
fn it_is_markdown_in_which_blocks_end() {
    for shape in ["usual", "vm", "open", "one", "bare", "failed", "empty", "big"] {
        let text = written(shape);
        let fences = text.lines().filter(|line| line.starts_with("```")).count();
        assert!(
            fences % 2 == 0 && text.starts_with("# ") && text.ends_with("\n"),
            "{shape}"
        );
        assert_eq!(text.lines().filter(|line| line.starts_with("# ")).count(), 1, "{shape}");
    }
}

#[test]
fn hot_functions_and_findings_of_a_run_that_was_analysed() {
    let work = planted::work();
    let waiting = ["start_thread", "do_command", "change", "latch", "spin_wait"];
    let rungs: Vec<planted::Rung<'_>> = [(16, 5.0), (256, 60.0)]
        .into_iter()
        .map(|(connections, spinning)| {
            let usual = work
                .iter()
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros));
            let costs = usual.chain([(ThreadState::Spin, &waiting[..], spinning)]).collect();
            (connections, 1.96e6 / (100.0 + spinning), costs)
        })
        .collect();
    let bundle = planted::run(&rungs, 3, 10, planted::USUAL, 1);
    let text = markdown(&bundle, &scaleprof_analysis::summarise(&bundle));
    let from = text.find("## Findings").expect("findings");
    let to = text.find("## Settings").expect("settings");
    insta::assert_snapshot!(&text[from..to]);
}
