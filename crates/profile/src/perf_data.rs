//! Recordings of `perf record`.
//!
//! The file is read once: [`container`] finds events and records and puts these by time, [`passed`] goes through them and follows with
//! [`timeline`] what every process has mapped. Then nothing depends on order any more, and stacks are walked ([`stacks`]) and named
//! ([`resolve`]) on all CPUs. Every number in the file may be wrong: what is read is bounded by the file's length, and a broken
//! part ends what is read of it.

mod address_space;
mod attribute;
mod beginnings;
mod blocked;
mod branches;
mod compressed;
mod container;
mod copied_stack;
mod cursor;
mod endings;
mod features;
mod file_search;
mod files;
mod futexes;
mod hardware_trace;
mod hot_lines;
mod jumps;
mod kernel;
mod letting_go;
mod met_stacks;
mod passed;
mod record;
mod recorded_lock;
mod resolve;
mod sample;
mod selection;
mod stacks;
mod summed_waits;
mod switches;
mod symbols_ahead;
mod time_order;
mod timeline;
mod tracepoint_format;
mod walked;
mod weights;

use crate::beside;
use crate::import::{ImportError, ReadOptions, Recording};
use container::Container;
use files::Files;
use kernel::RecordedKernel;
use letting_go::Behind;
use passed::Passed;
use scaleprof_binary::mapped_file::Bytes;
use scaleprof_binary::unfolded::UnfoldedBytes;
use selection::Selection;
use tracepoint_format::TracepointFormats;
use walked::Told;

/// Reads a recording of `perf record`, from a file or a pipe. The bytes are let go of when all stacks are walked: while places are named where
/// debug information takes room for that, else while samples are made.
///
/// # Errors
/// Nothing can be had of it. A recording that is cut or broken behind its beginning gives what was before, with a warning.
pub fn read(bytes: impl Bytes, options: &ReadOptions) -> Result<Recording, ImportError> {
    let mut expanded: Vec<UnfoldedBytes> = Vec::new();
    let further = bytes.further();
    let let_go = |part: &[u8]| bytes.let_go(part);
    let behind = Behind::new(&bytes, options.kept_in_memory, &let_go);
    let mut container = Container::open(&bytes, &behind)?;
    let mut files = Files::new(options, std::mem::take(&mut container.features.build_ids));
    // The kernel's list takes as long to read as all records to go through.
    let (mut kernel, ended) = RecordedKernel::begin(&files, container.may_be_in_kernel());
    files.read_ahead(container.mapped_first(), ended);
    let source = bytes.file().filter(|_| !behind.is_kept());
    let beginnings = match source {
        Some(file) => container.beginnings(file)?,
        None => None,
    };
    container.read_all(beginnings.as_ref())?;
    // What each thread of perf wrote was compressed by itself.
    expanded.extend(container.expand());
    for part in &further {
        container.add_records(part);
        expanded.extend(container.expand());
    }
    for records in &expanded {
        container.add_records(records);
    }
    let timed = container.in_order();
    behind.is_over();
    let Container {
        events,
        mut features,
        problems,
        ..
    } = container;
    let machine = std::mem::take(&mut features.machine);
    let selection = Selection::of(&events, options)?;
    files.add_build_ids(std::mem::take(&mut features.build_ids));
    let formats = TracepointFormats::of(features.tracing);
    // A pipe tells of its kernel among the records.
    if !kernel.has_begun() {
        let mut records = timed.records.iter();
        (kernel, _) = RecordedKernel::begin(&files, records.any(|(_, record)| stacks::is_sample_of_kernel(record)));
    }
    let mut passed = Passed::through(&timed, kernel, &selection, options, (&mut files, &formats));
    behind.is_over();
    if options.inlines {
        behind.make_room();
    }
    let twice = passed.end_waits(&timed, &selection);
    passed.check(&selection, options, &problems)?;
    let left_out = passed.leave_out_others(&files, options);
    let has_others = passed.has_others();
    let walked = passed.walk((&timed, source), &selection, &files, (&machine, options.inlines));
    drop(timed);
    drop((beginnings, expanded, behind, further));
    // Of a large file that takes a while. Debug information takes the room; without it all CPUs are busy now, and one idles later.
    let (at_once, later) = match options.inlines {
        true => (Some(bytes), None),
        false => (None, Some(bytes)),
    };
    let name = || walked.named((&files, &machine), options.inlines);
    let (_, named) = beside(at_once.map(|bytes| || let_go_of(bytes)), name);
    let convert = || named.into_recording(&selection, &files, Told { machine, problems });
    let (_, mut recording) = beside(later.map(|bytes| || let_go_of(bytes)), convert);
    if has_others && recording.samples_lost.is_some_and(|lost| lost > 0) {
        recording.samples_lost = None;
        let why = "the recording counts what was lost of all its processes together";
        recording.lacks.push(("samples_lost".to_owned(), why.to_owned()));
    }
    recording.warnings.extend(twice.into_iter().chain(left_out));
    recording.leftovers.keep(files);
    Ok(recording)
}

/// Lets go of the bytes of a recording, of a file piece by piece: who asks for memory meanwhile waits for one of them, and not for all.
fn let_go_of(bytes: impl Bytes) {
    const AT_ONCE: usize = 2 << 20;
    for piece in bytes.chunks(AT_ONCE) {
        bytes.let_go(piece);
    }
}
