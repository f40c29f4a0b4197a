//! What makes the figures of a recording under a known load doubtful, in words; none where nothing does.

use super::KnownLoad;
use scaleprof_analysis::numbers::counted;
use scaleprof_profile::import::{CallPaths, Recording, RecordingFormat, Weights};

/// Fewer threads than connections: the number may be another recording's.
pub(super) fn few_threads(recording: &Recording, load: KnownLoad) -> Option<String> {
    let (threads, connections) = (recording.threads.len(), load.connections);
    // Other formats may have put threads together.
    let tells_threads = [RecordingFormat::PerfData, RecordingFormat::PerfScript].contains(&recording.format);
    (tells_threads && threads > 0 && threads < connections as usize).then(|| {
        format!(
            "it has samples of {}, but --connections says {}: they share threads (a thread pool), the number is \
             wrong, or many were idle",
            counted(threads as u32, "thread"),
            counted(connections, "connection")
        )
    })
}

/// Many more threads that served clients than connections.
pub(super) fn many_clients(clients: usize, load: KnownLoad) -> Option<String> {
    (clients > 2 * load.connections as usize).then(|| {
        format!(
            "it has samples of {} that served clients, but --connections says {}: the others count too, or the \
             number is wrong",
            counted(clients as u32, "thread"),
            counted(load.connections, "connection")
        )
    })
}

/// A format that does not tell the load's threads from the others.
pub(super) fn no_threads(recording: &Recording) -> Option<String> {
    (recording.format == RecordingFormat::Folded).then(|| {
        "folded stacks do not tell threads apart: what the server does in the background counts as part of the load"
            .to_owned()
    })
}

/// Times without the kernel's.
pub(super) fn no_kernel(recording: &Recording) -> Option<String> {
    recording.without_kernel.then(|| {
        "it has no kernel samples (an event such as cycles:u, or a perf without the privilege): all its CPU time is \
         user space"
            .to_owned()
    })
}

/// More threads that run at once than any server has: what was taken for numbers of samples is none.
pub(super) fn no_samples(recording: &Recording, load: Option<KnownLoad>) -> Option<String> {
    /// Behind the connections' threads.
    const MOST_OTHERS: f64 = 100.0;
    const MOST_WITHOUT_LOAD: f64 = 4096.0;
    let span = recording.span.as_ref().filter(|span| span.end > span.start)?;
    let by_frequency = recording.weights == Weights::Nanoseconds && recording.samples_of_unknown_rate.is_some();
    if !by_frequency {
        return None;
    }
    let weights = recording.profile.samples.iter().map(|sample| sample.weight_ns);
    let threads = weights.sum::<f64>() / (span.end - span.start) as f64;
    let most = load.map_or(MOST_WITHOUT_LOAD, |load| f64::from(load.connections) + MOST_OTHERS);
    (threads > most).then(|| {
        format!(
            "impossible: it is the time of {threads:.0} threads at once. If its counts are nanoseconds, give \
             --frequency 1000000000"
        )
    })
}

/// Call paths that were taken in another way than those of the recording of that number: they differ in their outer callers, whatever the server
/// did.
pub(super) fn other_call_paths(here: CallPaths, (before, number): (CallPaths, i32)) -> Option<String> {
    (here != before).then(|| {
        format!(
            "its call paths come from {here}, those of recording {number} from {before}, so growth between them may \
             be an artefact. Use one unwinding method"
        )
    })
}
