//! Writes pprof's format.

use super::field;
use crate::protobuf::Message;
use crate::running_total::RunningTotal;
use crate::{Amount, CostProfile, Frame, FrameId, StackId, Unit};
use flate2::{Compression, write::GzEncoder};
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;

/// Addresses of one module, so that those of two are never alike. The first module has its addresses as they are in its file.
const ROOM_OF_A_MODULE: u64 = 1 << 40;

/// The profile with the labels `state`, `role`, `thread` and `lock`, and the values `samples`, `time` and, where it is known what
/// to divide by, `time_per_1000_transactions` or `time_per_second`; the last of them is the one that is shown unless another is
/// asked for. So a base that is taken off (`-diff_base`) leaves what a transaction became dearer.
///
/// Functions go by their [names](Frame::function_name), with those of the symbol tables as system names. Addresses are those in
/// the files, each module's behind those of another; of the kernel they are offsets in its functions.
///
/// # Errors
/// Those of the compressor, which writes into memory and has none.
pub fn write(profile: &CostProfile) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&Writer::of(profile).message(profile).into_bytes())?;
    encoder.finish()
}

/// What is written of a profile, each thing once.
#[derive(Debug, Default)]
struct Writer {
    strings: Strings,
    /// By module and build-id.
    mappings: HashMap<(Arc<str>, Option<Arc<str>>), usize>,
    extents: Vec<Mapping>,
    /// By name, name in the symbol table and file.
    functions: HashMap<(String, String, String), u64>,
    function_list: Vec<(u64, u64, u64)>,
    /// By the frame with those built into it, outermost first.
    locations: HashMap<Vec<FrameId>, u64>,
    location_list: Vec<Location>,
    /// Locations by stack, innermost first.
    stacks: HashMap<StackId, Vec<u64>>,
}

/// The texts, by their numbers; the first is the empty one.
#[derive(Debug, Default)]
struct Strings {
    numbers: HashMap<String, u64>,
    list: Vec<String>,
}

/// A module.
#[derive(Debug, Default)]
struct Mapping {
    name: u64,
    build_id: u64,
    highest: u64,
    has_files: bool,
    has_lines: bool,
    has_inlined: bool,
}

/// An instruction.
#[derive(Debug)]
struct Location {
    mapping: usize,
    address: u64,
    /// Function and line, what is built in first.
    lines: Vec<(u64, i32)>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = self.list.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.list.push(text.to_owned());
        number
    }
}

impl Writer {
    fn of(profile: &CostProfile) -> Writer {
        let mut writer = Writer::default();
        writer.strings.number("");
        // The first is taken for the program.
        let program = profile.about.program.as_deref();
        let of_program = |(_, frame): &(FrameId, &Frame)| Some(&*frame.module) == program;
        if let Some((_, frame)) = profile.frames.iter().find(of_program) {
            writer.mapping(frame);
        }
        for cost in &profile.costs {
            if !writer.stacks.contains_key(&cost.stack) {
                let locations = writer.locations_of(profile, cost.stack);
                writer.stacks.insert(cost.stack, locations);
            }
        }
        writer
    }

    /// The locations of a stack, innermost first.
    fn locations_of(&mut self, profile: &CostProfile, stack: StackId) -> Vec<u64> {
        let frames = profile.stacks.frames(stack);
        let known = |id: &FrameId| Some((*id, profile.frames.get(*id)?));
        let frames: Vec<(FrameId, &Frame)> = frames.iter().filter_map(known).collect();
        let instructions = frames.chunk_by(|_, (_, inner)| inner.inlined);
        let mut locations: Vec<u64> = instructions.map(|frames| self.location(frames)).collect();
        locations.reverse();
        locations
    }

    /// The number of an instruction, by the function that it is in and those that are built into it there.
    fn location(&mut self, frames: &[(FrameId, &Frame)]) -> u64 {
        let key: Vec<FrameId> = frames.iter().map(|(id, _)| *id).collect();
        if let Some(known) = self.locations.get(&key) {
            return *known;
        }
        let outer = frames.first().map(|(_, frame)| *frame);
        let mapping = outer.map_or(0, |frame| self.mapping(frame));
        let address = outer.map_or(0, |frame| frame.address);
        let address = u64::try_from(address).unwrap_or(0).min(ROOM_OF_A_MODULE - 1);
        let mut lines = Vec::new();
        for (_, frame) in frames.iter().rev() {
            let extent = &mut self.extents[mapping];
            extent.has_files |= frame.file.is_some();
            extent.has_lines |= frame.line.is_some();
            extent.has_inlined |= frame.inlined;
            lines.push((self.function(frame), frame.line.unwrap_or(0)));
        }
        let extent = &mut self.extents[mapping];
        extent.highest = extent.highest.max(address);
        self.location_list.push(Location {
            mapping,
            address,
            lines,
        });
        let number = self.location_list.len() as u64;
        self.locations.insert(key, number);
        number
    }

    fn mapping(&mut self, frame: &Frame) -> usize {
        let key = (frame.module.clone(), frame.build_id.clone());
        let place = *self.mappings.entry(key).or_insert(self.extents.len());
        if place == self.extents.len() {
            self.extents.push(Mapping {
                name: self.strings.number(&frame.module),
                build_id: self.strings.number(frame.build_id.as_deref().unwrap_or("")),
                ..Mapping::default()
            });
        }
        place
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let name = frame.function_name();
        let system_name = frame.function.as_deref().map_or_else(|| name.clone(), str::to_owned);
        let file = frame.file.as_deref().unwrap_or_default().to_owned();
        let key = (name, system_name, file);
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let strings = &mut self.strings;
        let written = (strings.number(&key.0), strings.number(&key.1), strings.number(&key.2));
        self.function_list.push(written);
        let number = self.function_list.len() as u64;
        self.functions.insert(key, number);
        number
    }

    fn message(mut self, profile: &CostProfile) -> Message {
        let about = &profile.about;
        let nanoseconds = about.amount.factor(Unit::PerAmount) * 1e9;
        let shared = match about.amount {
            Amount::Transactions(_) => Some("time_per_1000_transactions"),
            Amount::Seconds(_) => Some("time_per_second"),
            Amount::Unknown => None,
        };
        let mut message = Message::default();
        let types = [("samples", "count"), ("time", "nanoseconds")].into_iter();
        for (name, unit) in types.chain(shared.map(|name| (name, "nanoseconds"))) {
            let mut value_type = Message::default();
            value_type.number(1, self.strings.number(name));
            value_type.number(2, self.strings.number(unit));
            message.message(field::SAMPLE_TYPE, &value_type);
        }
        let labels = ["state", "role", "thread", "lock"].map(|key| self.strings.number(key));
        let mut totals = [RunningTotal::default(); 2];
        for cost in &profile.costs {
            let mut sample = Message::default();
            let locations = self.stacks.get(&cost.stack);
            sample.numbers(1, locations.into_iter().flatten().copied());
            let time = totals[0].next(cost.thread_seconds * 1e9) as u64;
            let share = totals[1].next(cost.thread_seconds * nanoseconds) as u64;
            let values = [cost.samples, time].into_iter().chain(shared.map(|_| share));
            sample.numbers(2, values);
            let name = |place: Option<usize>| profile.names.get(place?).map(String::as_str);
            let texts = [
                Some(cost.state.name()),
                Some(cost.role.name()),
                name(cost.thread),
                name(cost.lock),
            ];
            for (key, text) in labels.iter().zip(texts) {
                if let Some(text) = text {
                    let mut label = Message::default();
                    label.number(1, *key);
                    label.number(2, self.strings.number(text));
                    sample.message(3, &label);
                }
            }
            message.message(field::SAMPLE, &sample);
        }
        self.add_code(&mut message);
        let comments = [about.title.as_str(), about.amount.words(Unit::PerAmount)];
        let comments = comments.map(|text| self.strings.number(text));
        let default = self.strings.number(shared.unwrap_or("time"));
        for text in &self.strings.list {
            message.text(field::STRING_TABLE, text);
        }
        if let Some(started_at) = about.started_at_ns {
            message.number(field::TIME_NANOS, started_at as u64);
        }
        if let Some(seconds) = about.seconds {
            message.number(field::DURATION_NANOS, (seconds * 1e9) as u64);
        }
        message.numbers(field::COMMENT, comments);
        message.number(field::DEFAULT_SAMPLE_TYPE, default);
        message
    }

    /// Modules, instructions and functions.
    fn add_code(&self, message: &mut Message) {
        let start = |mapping: usize| mapping as u64 * ROOM_OF_A_MODULE;
        for (place, extent) in self.extents.iter().enumerate() {
            let mut mapping = Message::default();
            mapping.number(1, place as u64 + 1);
            mapping.number(2, start(place));
            // Two exports of one server are merged only if its length is the same in both.
            let length = (extent.highest + 1).next_power_of_two().max(0x1000);
            mapping.number(3, start(place) + length);
            mapping.number(5, extent.name);
            mapping.number(6, extent.build_id);
            mapping.truth(7, true);
            mapping.truth(8, extent.has_files);
            mapping.truth(9, extent.has_lines);
            mapping.truth(10, extent.has_inlined);
            message.message(field::MAPPING, &mapping);
        }
        for (place, known) in self.location_list.iter().enumerate() {
            let mut location = Message::default();
            location.number(1, place as u64 + 1);
            location.number(2, known.mapping as u64 + 1);
            location.number(3, start(known.mapping) + known.address);
            for (function, number) in &known.lines {
                let mut line = Message::default();
                line.number(1, *function);
                line.number(2, i64::from(*number) as u64);
                location.message(4, &line);
            }
            message.message(field::LOCATION, &location);
        }
        for (place, (name, system_name, file)) in self.function_list.iter().enumerate() {
            let mut function = Message::default();
            function.number(1, place as u64 + 1);
            function.number(2, *name);
            function.number(3, *system_name);
            function.number(4, *file);
            message.message(field::FUNCTION, &function);
        }
    }
}
