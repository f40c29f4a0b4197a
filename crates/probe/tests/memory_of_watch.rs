//! The watch's own memory over a server with many threads. In a process of its own: nothing else takes memory here.

use std::time::Duration;

use scaleprof_probe::{Watch, WatchOptions};

#[path = "integration/watch/program.rs"]
#[expect(dead_code, reason = "the other tests of a watch want more of it")]
mod program;

use program::{Program, can_watch};

/// A figure of `/proc/self/status` in bytes.
fn own(figure: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("readable");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    1024 * kilobytes.expect("a figure")
}

/// What the BPF tables take in the kernel, in bytes (Documentation/bpf: fdinfo of a map).
fn of_tables() -> u64 {
    let folder = std::fs::read_dir("/proc/self/fdinfo").expect("readable");
    let texts = folder.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let of_maps = texts.filter(|text| text.contains("map_type:"));
    let mut by_number = std::collections::BTreeMap::new();
    for text in of_maps {
        let figure = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
        };
        // Two descriptors may lead to one table.
        by_number.insert(
            figure("map_id:").expect("a number"),
            figure("memlock:").expect("a size"),
        );
    }
    by_number.values().sum()
}

#[test]
fn a_watch_over_2000_threads_takes_less_than_200_megabytes() {
    if !can_watch() {
        return;
    }
    let program = Program::start("many");
    let mut watch = Watch::start(program.pid(), WatchOptions::default()).expect("it can be watched");
    std::thread::sleep(Duration::from_secs(6));
    let reading = watch.read().expect("readable");
    assert_eq!(reading.threads.len(), 2001);
    assert!(reading.samples.len() > 2000, "{}", reading.samples.len());
    let (memory, tables) = (own("RssAnon"), of_tables());
    assert!(tables > 1 << 20, "{tables} bytes of tables were found");
    let all = (memory + tables) as f64 / 1e6;
    println!("{} MB, of it {} MB of BPF tables", all, tables as f64 / 1e6);
    assert!(all < 200.0, "{all} MB: {memory} bytes here, {tables} bytes of tables");
}
