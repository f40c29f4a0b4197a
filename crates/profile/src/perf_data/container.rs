//! The parts of a recording: header, events, and records by time.
//!
//! tools/perf/Documentation/perf.data-file-format.txt of the kernel. A file has a header that says where all stands; in a pipe the
//! same comes as records, each when perf knew it.

use super::attribute::{Attribute, field};
use super::beginnings::Beginnings;
use super::compressed::{self, Expanded};
use super::cursor::{Cursor, Words, until_zero};
use super::features::Features;
use super::hardware_trace::HardwareTrace;
use super::letting_go::Behind;
use super::record::{KERNEL_PROCESS, Mapped, Record, Records, kind};
use super::sample::{Sampled, time_at_end};
use super::time_order::sort_by_time;
use crate::import::ImportError;
use scaleprof_binary::unfolded::UnfoldedBytes;
use std::collections::HashMap;
use std::fs::File;

/// Length of a file's header.
const HEADER: u64 = 104;
/// Length of that of a pipe.
const PIPE_HEADER: u64 = 16;
/// Feature bits that a header has room for.
const FEATURES: u64 = 256;
/// Largest attribute that is believed; today's have 136 bytes.
const LARGEST_ATTRIBUTE: u64 = 4096;
/// Most events of one recording.
const MOST_EVENTS: usize = 10_000;

/// What a recording holds, before its records are put in order.
#[derive(Default)]
pub(super) struct Container<'a> {
    pub(super) events: Vec<Attribute>,
    pub(super) features: Features<'a>,
    /// Each with its time, or with room for it where the events came later.
    records: Vec<(u64, Record<'a>)>,
    /// The events, where they were known before the records: a file has them in front, and its records are gone through once less.
    ids: Option<EventIds>,
    /// Samples of events that nothing describes.
    unknown: usize,
    /// Contents of the records that are compressed.
    compressed: Vec<&'a [u8]>,
    /// Names that came for the event with a number.
    renamed: Vec<(u64, String)>,
    /// Numbers of events that are still believed: a file cannot hold more than one in 8 bytes, however often it points to them.
    ids_left: usize,
    /// Length of all that was read.
    bytes: usize,
    /// How far it was gone through.
    behind: Option<&'a Behind<'a>>,
    /// Records that were not looked at yet.
    to_come: Option<ToCome<'a>>,
    /// What is wrong with the file, in words.
    pub(super) problems: Vec<String>,
}

/// Records that were not looked at yet.
#[derive(Clone, Copy)]
struct ToCome<'a> {
    bytes: &'a [u8],
    /// Where in the file they begin.
    place: usize,
    is_pipe: bool,
}

impl<'a> Container<'a> {
    /// Finds the parts of a recording and reads its header.
    ///
    /// # Errors
    /// Its header is broken.
    pub(super) fn open(bytes: &'a [u8], behind: &'a Behind<'a>) -> Result<Container<'a>, ImportError> {
        let broken = |what: &str| ImportError::Broken { what: what.to_owned() };
        let mut cursor = Cursor::new(bytes);
        let _magic = cursor.u64();
        let length = cursor.u64().ok_or_else(|| broken("its header is cut"))?;
        let mut container = Container {
            ids_left: bytes.len() / 8,
            behind: Some(behind),
            ..Container::default()
        };
        if length == PIPE_HEADER {
            let place = PIPE_HEADER as usize;
            container.to_come = bytes.get(place..).map(|bytes| ToCome {
                bytes,
                place,
                is_pipe: true,
            });
        } else if length < HEADER {
            return Err(broken(&format!(
                "its header claims to have {length} bytes; perf's have {HEADER}"
            )));
        } else {
            container
                .read_file(bytes, cursor)
                .ok_or_else(|| broken("it ends inside of its header"))?;
        }
        Ok(container)
    }

    /// Whether something may have been recorded in the kernel, as far as the header tells.
    pub(super) fn may_be_in_kernel(&self) -> bool {
        self.events.iter().any(|event| !event.without_kernel)
    }

    /// What is mapped before the first sample: of a program that ran already, all of its files.
    pub(super) fn mapped_first(&self) -> Vec<Mapped> {
        // Behind the last of these stands what is no record.
        let ends_beginning = |kind| {
            matches!(
                kind,
                kind::SAMPLE | kind::COMPRESSED | kind::COMPRESSED2 | kind::TRACING_DATA
            )
        };
        /// A process has some hundreds.
        const MOST_RECORDS: usize = 1 << 14;
        let records = Records::of(self.to_come.map_or(&[], |to_come| to_come.bytes));
        let before = records
            .take(MOST_RECORDS)
            .take_while(|record| !ends_beginning(record.kind));
        let mapped = before.filter(|record| matches!(record.kind, kind::MMAP | kind::MMAP2));
        let mapped = mapped.filter_map(|record| Mapped::of(&record));
        mapped.filter(|mapped| mapped.process != KERNEL_PROCESS).collect()
    }

    /// Reads its records without the copies of stacks, from the file that it is; none where it has no copies, or it would not pay.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn beginnings(&self, file: &File) -> Result<Option<Beginnings>, ImportError> {
        let has_copies = self.events.iter().any(|event| event.has(field::STACK_USER));
        let (Some(ids), Some(to_come)) = (&self.ids, self.to_come.filter(|_| has_copies)) else {
            return Ok(None);
        };
        let copy_in = |beginning: &Record<'_>, whole: usize| {
            let event = ids.of_record(beginning)?;
            let copy = Sampled::copy_in(beginning.body(), whole, self.events.get(event)?)?;
            // Where one event has a number and another none, its place may lie within the copy.
            (ids.of_record(&beginning.first(copy)) == Some(event)).then_some(copy)
        };
        let part = to_come.place..to_come.place + to_come.bytes.len();
        Beginnings::of(file, part, copy_in).map_err(|error| ImportError::Broken {
            what: format!("it cannot be read to its end: {error}"),
        })
    }

    /// Reads its records, or takes those that were.
    ///
    /// # Errors
    /// It holds no event.
    pub(super) fn read_all(&mut self, beginnings: Option<&'a Beginnings>) -> Result<(), ImportError> {
        match (self.to_come.take(), beginnings) {
            (Some(to_come), Some(beginnings)) => {
                self.bytes += to_come.bytes.len();
                self.behind = None;
                for record in beginnings.records() {
                    self.take(record);
                }
                self.note_left(beginnings.left());
            }
            (Some(to_come), None) => self.read_records(to_come.bytes, to_come.is_pipe),
            (None, _) => {}
        }
        self.name_events();
        match self.events.is_empty() {
            true => Err(ImportError::Broken {
                what: "it describes no event".to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn read_file(&mut self, bytes: &'a [u8], mut header: Cursor<'a>) -> Option<()> {
        let attribute_length = header.u64()?;
        let attributes = header.section(bytes)?;
        let data = header.section(bytes)?;
        let _event_types = header.section(bytes)?;
        let bits: Words<'a> = header.words(FEATURES / 64)?;
        self.read_attributes(attributes.bytes, attribute_length, bytes);
        self.ids = (!self.events.is_empty()).then(|| EventIds::of(&self.events));
        // The features' places stand behind the data; perf writes them when it ends.
        if data.missing == 0 {
            let mut places = Cursor::new(bytes.get(data.offset + data.bytes.len()..)?);
            for number in (0..FEATURES).filter(|bit| has_bit(&bits, *bit)) {
                let Some(section) = places.section(bytes) else {
                    self.problems.push("the end of its header is cut".to_owned());
                    break;
                };
                self.features.add(number, section.bytes);
            }
        }
        // A perf that was killed has not written how much there is.
        let unfinished = data.bytes.is_empty() && data.missing == 0;
        let (place, records) = match unfinished {
            true => {
                let place = data.offset.max(HEADER as usize);
                (place, bytes.get(place..)?)
            }
            false => (data.offset, data.bytes),
        };
        if unfinished {
            self.problems.push(
                "perf was killed before it had finished the file: its header does not say what is in it".to_owned(),
            );
        }
        if data.missing > 0 {
            self.problems.push(format!(
                "the file is cut: {} bytes are missing at its end",
                data.missing
            ));
        }
        self.to_come = Some(ToCome {
            bytes: records,
            place,
            is_pipe: false,
        });
        Some(())
    }

    fn read_attributes(&mut self, section: &'a [u8], length: u64, bytes: &'a [u8]) {
        let Some(own) = length.checked_sub(16).filter(|_| length <= LARGEST_ATTRIBUTE) else {
            return;
        };
        for entry in section.chunks_exact(length as usize).take(MOST_EVENTS) {
            let mut cursor = Cursor::new(entry);
            let Some(mut event) = Attribute::read(&mut cursor, own as usize) else {
                continue;
            };
            if let Some(ids) = cursor.section(bytes) {
                event.ids = self.ids(ids.bytes);
            }
            self.events.push(event);
        }
    }

    fn read_records(&mut self, bytes: &'a [u8], pipe: bool) {
        self.bytes += bytes.len();
        let mut records = Records::of(bytes);
        while let Some(record) = records.next() {
            self.is_at(&record);
            record.prefetch();
            match record.kind {
                kind::TRACING_DATA if pipe => {
                    let length = u64::from(Cursor::new(record.body()).u32().unwrap_or(0));
                    self.features.tracing = records.pass_over(length.next_multiple_of(8));
                }
                kind::HEADER_ATTR if pipe => self.add_event(record.body()),
                _ => self.take(record),
            }
        }
        self.note_left(records.left());
    }

    /// Takes in what a record tells that any file may have.
    fn take(&mut self, record: Record<'a>) {
        let mut cursor = Cursor::new(record.body());
        match record.kind {
            kind::COMPRESSED => self.compressed.push(record.body()),
            kind::COMPRESSED2 => {
                let length = cursor.u64().and_then(|length| usize::try_from(length).ok());
                let content = length.and_then(|length| cursor.take(length));
                self.compressed.extend(content);
            }
            kind::EVENT_UPDATE => self.rename_event(record.body()),
            kind::AUXTRACE_INFO => {
                let trace = cursor.u32().map(HardwareTrace::of);
                self.problems.extend(trace.map(HardwareTrace::in_words));
            }
            kind::BUILD_ID => self.features.add_build_id(record.misc, record.body()),
            kind::HEADER_FEATURE => {
                if let Some(number) = cursor.u64() {
                    self.features.add(number, cursor.rest());
                }
            }
            kind if kind >= kind::FIRST_OF_PERF => {}
            _ => self.add(record),
        }
    }

    fn note_left(&mut self, left: usize) {
        if left > 0 {
            self.problems
                .push(format!("{left} bytes at its end are no whole record and were left out"));
        }
    }

    fn add(&mut self, record: Record<'a>) {
        let time = match &self.ids {
            None => Some(0),
            Some(ids) => time(&record, ids, &self.events),
        };
        match time {
            Some(time) => self.records.push((time, record)),
            None => self.unknown += 1,
        }
    }

    fn is_at(&self, record: &Record<'_>) {
        if let Some(behind) = self.behind {
            behind.is_at(record.body());
        }
    }

    fn ids(&mut self, bytes: &[u8]) -> Vec<u64> {
        let count = (bytes.len() / 8).min(self.ids_left);
        self.ids_left -= count;
        let words = Cursor::new(bytes).words(count as u64);
        words.map(|ids| ids.iter().collect()).unwrap_or_default()
    }

    fn add_event(&mut self, body: &[u8]) {
        let length = body.get(4..8).and_then(|size| Cursor::new(size).u32()).unwrap_or(0);
        let mut cursor = Cursor::new(body);
        if self.events.len() < MOST_EVENTS
            && let Some(mut event) = Attribute::read(&mut cursor, length as usize)
        {
            event.ids = self.ids(cursor.rest());
            self.events.push(event);
        }
    }

    fn rename_event(&mut self, body: &[u8]) {
        const NAME: u64 = 2;
        let mut cursor = Cursor::new(body);
        if let (Some(NAME), Some(id)) = (cursor.u64(), cursor.u64()) {
            self.renamed.push((id, until_zero(cursor.rest())));
        }
    }

    /// The names stand apart from the events.
    fn name_events(&mut self) {
        let described = std::mem::take(&mut self.features.events);
        if self.events.is_empty() {
            self.events = described;
            return;
        }
        let of_description = described.iter().enumerate();
        let described_at: HashMap<u64, usize> = of_description
            .flat_map(|(at, event)| event.ids.iter().map(move |id| (*id, at)))
            .collect();
        let renamed: HashMap<u64, String> = std::mem::take(&mut self.renamed).into_iter().collect();
        for (place, event) in self.events.iter_mut().enumerate() {
            let new_name = event.ids.iter().find_map(|id| renamed.get(id));
            let by_id = event.ids.iter().find_map(|id| described.get(*described_at.get(id)?));
            let in_place = described.get(place).filter(|other| other.config == event.config);
            event.name = new_name
                .or(by_id.or(in_place).and_then(|other| other.name.as_ref()))
                .cloned();
        }
    }

    /// The records that were compressed since the last time, expanded; none where none were.
    pub(super) fn expand(&mut self) -> Option<UnfoldedBytes> {
        let compressed = std::mem::take(&mut self.compressed);
        if compressed.is_empty() {
            return None;
        }
        let Expanded { bytes, problem } = compressed::expand(&compressed);
        self.problems.extend(problem);
        Some(bytes)
    }

    /// Takes in records that stand elsewhere: they were compressed, or another thread of perf wrote them.
    pub(super) fn add_records(&mut self, bytes: &'a [u8]) {
        self.read_records(bytes, false);
    }

    /// All records by time; those of one time in the order of the file.
    pub(super) fn in_order(&mut self) -> Timed<'a> {
        let mut records = std::mem::take(&mut self.records);
        let behind = self.behind.inspect(|behind| behind.is_over());
        let ids = self.ids.take().unwrap_or_else(|| {
            let ids = EventIds::of(&self.events);
            let before = records.len();
            records.retain_mut(|(place, record)| {
                if let Some(behind) = behind {
                    behind.is_at(record.body());
                }
                let found = time(record, &ids, &self.events);
                *place = found.unwrap_or_default();
                found.is_some()
            });
            self.unknown += before - records.len();
            ids
        });
        let unknown = self.unknown;
        if unknown > 0 {
            self.problems.push(format!(
                "{unknown} samples are of events that the file does not describe"
            ));
        }
        sort_by_time(&mut records);
        Timed {
            records,
            ids,
            bytes: self.bytes,
            behind,
        }
    }
}

/// Records by time.
pub(super) struct Timed<'a> {
    pub(super) records: Vec<(u64, Record<'a>)>,
    pub(super) ids: EventIds,
    /// Length of all that was read.
    pub(super) bytes: usize,
    /// How far it was gone through.
    pub(super) behind: Option<&'a Behind<'a>>,
}

/// Which event a sample is of.
#[derive(Debug, Clone)]
pub(super) struct EventIds {
    by_id: HashMap<u64, usize>,
    /// Where the number stands in a sample.
    place: Option<usize>,
    events: usize,
}

impl EventIds {
    fn of(events: &[Attribute]) -> EventIds {
        let numbered = events.iter().enumerate();
        EventIds {
            by_id: numbered
                .flat_map(|(place, event)| event.ids.iter().map(move |id| (*id, place)))
                .collect(),
            // perf gives all events of a recording the same place, or it could not tell them apart itself.
            place: events.iter().find_map(Attribute::place_of_id),
            events: events.len(),
        }
    }

    /// The place of the event in the list of events; for a record that is no sample the first.
    pub(super) fn of_record(&self, record: &Record<'_>) -> Option<usize> {
        if self.events == 1 || record.kind != kind::SAMPLE {
            return Some(0);
        }
        let Some(place) = self.place else { return Some(0) };
        let mut cursor = Cursor::new(record.body());
        cursor.take(place * 8)?;
        self.by_id.get(&cursor.u64()?).copied()
    }
}

/// When a record was written, 0 where it does not tell; none for one of an event that nothing describes.
fn time(record: &Record<'_>, ids: &EventIds, events: &[Attribute]) -> Option<u64> {
    let event = events.get(ids.of_record(record)?)?;
    let told = match record.kind {
        kind::SAMPLE => time_of_sample(record.body(), event),
        _ => time_at_end(record.body(), event),
    };
    Some(told.unwrap_or(0))
}

fn time_of_sample(body: &[u8], event: &Attribute) -> Option<u64> {
    if !event.has(field::TIME) {
        return None;
    }
    let before = [field::IDENTIFIER, field::IP, field::TID];
    let before = before.iter().filter(|field| event.has(**field)).count();
    let mut cursor = Cursor::new(body);
    cursor.take(before * 8)?;
    cursor.u64()
}

fn has_bit(words: &Words<'_>, bit: u64) -> bool {
    let word = words.get((bit / 64) as usize).unwrap_or(0);
    word >> (bit % 64) & 1 == 1
}

#[cfg(test)]
mod tests;
