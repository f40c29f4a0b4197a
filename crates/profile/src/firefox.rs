//! The processed profile format of the Firefox Profiler, as its `docs-developer/processed-profile-format.md` and
//! `src/types/profile.ts` describe it (github.com/firefox-devtools/profiler).
//!
//! It is written in version 60, the first in which all threads share their stacks; the profiler brings older versions up to its
//! own. The crate fxprof-processed-profile, which samply uses, has weights in whole milliseconds only, which is too coarse for
//! waits of microseconds.

mod columns;
mod tables;

use crate::{ThreadLine, Timeline};
use columns::{Category, Library, Markers, Meta, Processed, SampleUnits, Samples, Thread};
use scaleprof_vocabulary::ThreadState;
use tables::Tables;

/// The profile as JSON: a time line for each thread, with its state as the category and the time that a sample stands for as its
/// weight.
///
/// # Errors
/// Those of writing JSON, which goes into memory and has none.
pub fn write(timeline: &Timeline) -> serde_json::Result<Vec<u8>> {
    let about = &timeline.about;
    let mut tables = Tables::new(timeline);
    let process_name = about.program.as_deref().unwrap_or("server");
    let threads: Vec<Thread<'_>> = timeline
        .threads
        .iter()
        .map(|thread| Thread {
            process_type: "default",
            process_startup_time: 0.0,
            process_shutdown_time: None,
            register_time: 0.0,
            unregister_time: None,
            paused_ranges: [],
            name: thread.name.as_deref().unwrap_or(thread.role.name()),
            is_main_thread: false,
            process_name,
            pid: "0",
            tid: thread.number,
            samples: samples(thread, &mut tables),
            markers: Markers::default(),
        })
        .collect();
    let (shared, libraries) = tables.finished();
    serde_json::to_vec(&Processed {
        meta: Meta {
            interval: timeline.interval_ns.map_or(1.0, |interval| interval / 1e6),
            start_time: about.started_at_ns.map_or(0.0, |start| start as f64 / 1e6),
            process_type: 0,
            product: &about.title,
            imported_from: concat!("scaleprof ", env!("CARGO_PKG_VERSION")),
            stackwalk: 1,
            version: 24,
            preprocessed_profile_version: 60,
            symbolicated: true,
            uses_only_one_stack_type: true,
            source_code_is_not_on_searchfox: true,
            categories: CATEGORIES,
            marker_schema: [],
            sample_units: SampleUnits {
                time: "ms",
                event_delay: "ms",
                thread_cpu_delta: "ns",
            },
        },
        libs: libraries
            .iter()
            .map(|(name, build_id)| Library::of(name, build_id.as_deref()))
            .collect(),
        shared,
        threads,
    })
}

fn samples(thread: &ThreadLine, tables: &mut Tables<'_>) -> Samples {
    let mut samples = Samples {
        weight_type: "tracing-ms",
        ..Samples::default()
    };
    for moment in &thread.moments {
        samples.stack.push(tables.stack(moment.stack, moment.state));
        samples.time.push(moment.at_ns as f64 / 1e6);
        samples.weight.push(moment.thread_seconds * 1e3);
        samples.length += 1;
    }
    samples
}

/// The states, the first for what has none: it must be grey.
const CATEGORIES: [Category; ThreadState::ALL.len()] = [
    Category::new("Other waits", "grey"),
    Category::new("On a CPU", "green"),
    Category::new("Spinning", "red"),
    Category::new("Waiting for a CPU", "yellow"),
    Category::new("Waiting for a lock", "purple"),
    Category::new("Waiting for a disk", "blue"),
    Category::new("Waiting for the client", "lightblue"),
    Category::new("Asleep", "brown"),
    Category::new("Waiting for work", "grey"),
];

/// The place of a state in [`CATEGORIES`].
fn category(state: ThreadState) -> usize {
    match state {
        ThreadState::Other => 0,
        ThreadState::Cpu => 1,
        ThreadState::Spin => 2,
        ThreadState::RunQueue => 3,
        ThreadState::Lock => 4,
        ThreadState::Io => 5,
        ThreadState::Net => 6,
        ThreadState::Sleep => 7,
        ThreadState::Idle => 8,
    }
}
