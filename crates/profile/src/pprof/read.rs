//! Reads pprof's format.

mod code;
mod value_type;

use super::field;
use crate::import::{ImportError, ReadOptions, RecordedProgram, RecordedThread, Recording, RecordingFormat, Weights};
use crate::legible::LONGEST;
use crate::named_stacks::{MOST_NAMED_FRAMES, NamedSample, NamedStacks};
use crate::protobuf::{Fields, Malformed, Value};
use crate::{FrameId, StackId};
use code::Code;
use scaleprof_vocabulary::ThreadState;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use value_type::{ValueType, chosen};

/// A file describes at most as many frames of distinct call paths as it has bytes, and so many besides: each takes a byte at
/// least, but for functions built into others.
const FRAMES_OF_A_SMALL_FILE: usize = 10_000;
/// What a count stands for that is no time.
const NANOSECONDS_A_COUNT: f64 = 1000.0;

/// Reads a profile that is not compressed any more.
///
/// Of its values the one that the options name is taken; else a time, and of several the plain one. The labels `state`, `lock` and
/// `thread`, which this program's own exports have, are understood, as are `thread_name`, `thread_id` and `tid`.
///
/// # Errors
/// [`ImportError::Broken`] with the byte at which it breaks, [`ImportError::NoSuchEvent`] and [`ImportError::NoSamples`].
pub fn read(bytes: &[u8], options: &ReadOptions) -> Result<Recording, ImportError> {
    let tables = Tables::of(bytes)?;
    let types = tables.types()?;
    let value = chosen(&types, tables.default_type(), options.event.as_deref())?;
    if let (None, Some(what)) = (&options.event, value.other_than_time()) {
        return Err(ImportError::Unsupported { what });
    }
    let mut reader = Reader {
        frames_left: bytes.len() + FRAMES_OF_A_SMALL_FILE,
        code: Code::of(&tables)?,
        tables: &tables,
        value: value.place,
        state: value.state(),
        weight_ns: value.nanoseconds.unwrap_or(NANOSECONDS_A_COUNT),
        stacks: NamedStacks::default(),
        children: HashMap::new(),
        frames: HashMap::new(),
        threads: BTreeMap::new(),
        thread_numbers: HashMap::new(),
        without_stack: 0,
        too_deep: 0,
    };
    for sample in &tables.samples {
        reader.add(sample)?;
    }
    reader.finished(value)
}

/// Whether bytes are a profile, whatever the order of its fields: all that is there are fields of one, of their kinds, and what its
/// samples are is among them. One that is cut off is a profile too.
pub(crate) fn looks_like_it(bytes: &[u8]) -> bool {
    let mut tells_samples = false;
    for (fields, entry) in Fields::of(bytes).enumerate() {
        let Ok((number, value)) = entry else {
            // Other files have a few such fields by chance.
            return tells_samples && fields >= FIELDS_OF_A_CUT_PROFILE;
        };
        let fits = match number {
            1..=6 | 11 => matches!(value, Value::Bytes(_)),
            7..=10 | 12 | 14 | 15 => matches!(value, Value::Number(_)),
            // Numbers may be packed or not (profile.proto); later versions and others may add fields.
            field::COMMENT | 16..=1000 => true,
            _ => false,
        };
        if !fits {
            return false;
        }
        tells_samples |= number == field::SAMPLE_TYPE;
    }
    tells_samples
}

/// So many fields in a row are no chance.
const FIELDS_OF_A_CUT_PROFILE: usize = 8;

/// The parts of a profile, not looked into yet.
pub(super) struct Tables<'a> {
    sample_types: Vec<&'a [u8]>,
    samples: Vec<&'a [u8]>,
    pub(super) mappings: Vec<&'a [u8]>,
    pub(super) locations: Vec<&'a [u8]>,
    pub(super) functions: Vec<&'a [u8]>,
    strings: Vec<&'a [u8]>,
    duration_ns: u64,
    default_type: u64,
}

impl<'a> Tables<'a> {
    fn of(bytes: &'a [u8]) -> Result<Tables<'a>, ImportError> {
        let mut tables = Tables {
            sample_types: Vec::new(),
            samples: Vec::new(),
            mappings: Vec::new(),
            locations: Vec::new(),
            functions: Vec::new(),
            strings: Vec::new(),
            duration_ns: 0,
            default_type: 0,
        };
        for entry in Fields::of(bytes) {
            let (number, value) = entry.map_err(|Malformed { bytes_left }| ImportError::Broken {
                what: format!(
                    "it is cut off or damaged at byte {} of {}",
                    bytes.len() - bytes_left,
                    bytes.len()
                ),
            })?;
            match number {
                field::SAMPLE_TYPE => tables.sample_types.push(value.bytes()),
                field::SAMPLE => tables.samples.push(value.bytes()),
                field::MAPPING => tables.mappings.push(value.bytes()),
                field::LOCATION => tables.locations.push(value.bytes()),
                field::FUNCTION => tables.functions.push(value.bytes()),
                field::STRING_TABLE => tables.strings.push(value.bytes()),
                field::DURATION_NANOS => tables.duration_ns = value.number(),
                field::DEFAULT_SAMPLE_TYPE => tables.default_type = value.number(),
                _ => {}
            }
        }
        Ok(tables)
    }

    /// A text by its number.
    pub(super) fn text(&self, number: u64) -> Result<std::borrow::Cow<'a, str>, ImportError> {
        let text = usize::try_from(number).ok().and_then(|number| self.strings.get(number));
        // A file without texts has none for 0 either.
        match text {
            // A file may give everything in it one text without end.
            Some(text) => Ok(String::from_utf8_lossy(text.get(..LONGEST).unwrap_or(text))),
            None if number == 0 => Ok("".into()),
            None => Err(broken(format!("it names text {number} and has {}", self.strings.len()))),
        }
    }

    fn types(&self) -> Result<Vec<ValueType>, ImportError> {
        let types = self.sample_types.iter().enumerate();
        types
            .map(|(place, message)| {
                let [name, unit] = numbers_of(message, [1, 2])?;
                Ok(ValueType::new(place, &self.text(name)?, &self.text(unit)?))
            })
            .collect()
    }

    fn default_type(&self) -> Option<String> {
        let name = Some(self.default_type).filter(|number| *number > 0)?;
        Some(self.text(name).ok()?.into_owned())
    }
}

/// The numbers of some fields of a message; 0 for those that it lacks.
pub(super) fn numbers_of<const N: usize>(message: &[u8], wanted: [u32; N]) -> Result<[u64; N], ImportError> {
    let mut numbers = [0; N];
    for entry in Fields::of(message) {
        let (field, value) = entry.map_err(damaged)?;
        if let Some(place) = wanted.iter().position(|wanted| *wanted == field) {
            numbers[place] = value.number();
        }
    }
    Ok(numbers)
}

pub(super) fn broken(what: String) -> ImportError {
    ImportError::Broken { what }
}

/// A message within the profile ends in the middle.
pub(super) fn damaged(_: Malformed) -> ImportError {
    broken("an entry of its tables is damaged".to_owned())
}

struct Reader<'a, 'b> {
    tables: &'b Tables<'a>,
    code: Code,
    /// Which value of a sample counts, and nanoseconds that one of it is.
    value: usize,
    weight_ns: f64,
    /// What threads do in samples that do not say it themselves.
    state: ThreadState,
    stacks: NamedStacks,
    /// Stack by the one outside of it and the location.
    children: HashMap<(Option<StackId>, u64), StackId>,
    /// Frames by location, outermost first.
    frames: HashMap<u64, Rc<[FrameId]>>,
    /// Frames that a file of this size can still describe.
    frames_left: usize,
    threads: BTreeMap<u32, RecordedThread>,
    thread_numbers: HashMap<String, u32>,
    without_stack: usize,
    too_deep: usize,
}

/// What the labels of a sample say.
#[derive(Default)]
struct Labels {
    state: Option<ThreadState>,
    lock: Option<String>,
    thread: Option<String>,
    thread_number: Option<u32>,
}

impl Reader<'_, '_> {
    fn add(&mut self, sample: &[u8]) -> Result<(), ImportError> {
        let mut locations: Vec<Value<'_>> = Vec::new();
        let mut values = 0;
        let mut weight = 0i64;
        let mut labels = Labels::default();
        for entry in Fields::of(sample) {
            let (field, value) = entry.map_err(damaged)?;
            match field {
                1 => locations.push(value),
                2 => {
                    for number in value.numbers() {
                        if values == self.value {
                            weight = number as i64;
                        }
                        values += 1;
                    }
                }
                3 => self.label(value.bytes(), &mut labels)?,
                _ => {}
            }
        }
        // A difference of two profiles has negative ones; time that was not spent is no time.
        if weight <= 0 {
            return Ok(());
        }
        let mut innermost_first: Vec<u64> = locations.into_iter().flat_map(Value::numbers).collect();
        innermost_first.reverse();
        let Some(stack) = self.stack(&innermost_first)? else {
            self.without_stack += 1;
            return Ok(());
        };
        let sample = NamedSample {
            time_ns: 0,
            thread: self.thread(&labels),
            cpu: 0,
            state: labels.state.unwrap_or(self.state),
            weight_ns: weight as f64 * self.weight_ns,
            lock: labels.lock.as_deref(),
        };
        self.stacks.add(stack, sample);
        Ok(())
    }

    /// The stack of these locations, outermost first.
    fn stack(&mut self, locations: &[u64]) -> Result<Option<StackId>, ImportError> {
        let mut stack = None;
        for location in locations {
            if stack.is_some_and(|stack| self.stacks.depth(stack) >= MOST_NAMED_FRAMES) {
                self.too_deep += 1;
                break;
            }
            if let Some(known) = self.children.get(&(stack, *location)) {
                stack = Some(*known);
                continue;
            }
            let outer = stack;
            let frames = self.frames(*location)?;
            self.frames_left = self
                .frames_left
                .checked_sub(frames.len())
                .ok_or_else(|| broken("it describes more call paths than a good file of its size can".to_owned()))?;
            for frame in frames.iter() {
                stack = Some(self.stacks.child(stack, *frame));
            }
            if let Some(stack) = stack {
                self.children.insert((outer, *location), stack);
            }
        }
        Ok(stack)
    }

    fn frames(&mut self, location: u64) -> Result<Rc<[FrameId]>, ImportError> {
        if let Some(known) = self.frames.get(&location) {
            return Ok(Rc::clone(known));
        }
        let frames = self.code.frames(location, self.tables, MOST_NAMED_FRAMES)?;
        let frames: Rc<[FrameId]> = frames.into_iter().map(|frame| self.stacks.frame(frame)).collect();
        self.frames.insert(location, Rc::clone(&frames));
        Ok(frames)
    }

    fn label(&self, label: &[u8], labels: &mut Labels) -> Result<(), ImportError> {
        let [key, text, number] = numbers_of(label, [1, 2, 3])?;
        let text = || self.tables.text(text);
        match &*self.tables.text(key)? {
            "state" => labels.state = ThreadState::parse(&text()?).ok(),
            "lock" => labels.lock = Some(text()?.into_owned()).filter(|name| !name.is_empty()),
            "thread" | "thread_name" => labels.thread = Some(text()?.into_owned()).filter(|name| !name.is_empty()),
            "thread_id" | "tid" => {
                labels.thread_number = u32::try_from(number)
                    .ok()
                    .filter(|number| *number > 0)
                    .or(text()?.parse().ok());
            }
            _ => {}
        }
        Ok(())
    }

    /// The thread's own number, or one for each name: the threads of a name are one.
    fn thread(&mut self, labels: &Labels) -> u32 {
        let name = labels.thread.as_deref().unwrap_or_default();
        let number = match labels.thread_number {
            Some(number) => number,
            None if name.is_empty() => return 0,
            None => {
                // Behind those that the kernel gives.
                let next = u32::MAX - self.thread_numbers.len() as u32;
                *self.thread_numbers.entry(name.to_owned()).or_insert(next)
            }
        };
        let thread = self.threads.entry(number).or_default();
        if thread.name.is_empty() {
            name.clone_into(&mut thread.name);
        }
        number
    }

    fn finished(self, value: &ValueType) -> Result<Recording, ImportError> {
        if self.stacks.sample_count() == 0 {
            return Err(ImportError::NoSamples {
                of: format!(" with {} and a stack", value.name),
                why: format!(
                    "{} of its {} samples have no stack",
                    self.without_stack,
                    self.tables.samples.len()
                ),
            });
        }
        let weights = match value.nanoseconds {
            Some(_) => Weights::Nanoseconds,
            None => Weights::Counts,
        };
        let cut = self.stacks.warning();
        let mut recording = Recording::new(RecordingFormat::Pprof, self.stacks.into_profile(), weights);
        recording.samples_of_unknown_rate = value.counts_samples.then(|| {
            let samples = recording.profile.samples.iter();
            samples.map(|sample| sample.weight_ns / NANOSECONDS_A_COUNT).sum()
        });
        recording.event = Some(value.name.clone());
        recording.threads = self.threads;
        recording.program = self.code.program().map(|(name, build_id)| RecordedProgram {
            process: 0,
            name,
            build_id,
        });
        // Its samples have no times; that they lie at the start does not matter to sums.
        recording.span = Some(self.tables.duration_ns)
            .filter(|duration| *duration > 0)
            .map(|duration| 0..duration);
        recording.warnings.extend(cut);
        for (count, what) in [
            (self.without_stack, "have no stack and were left out"),
            (
                self.too_deep,
                "are deeper than 1024 frames; what is innermost was left out",
            ),
        ] {
            if count > 0 {
                recording.warnings.push(format!("{count} samples {what}"));
            }
        }
        Ok(recording)
    }
}

#[cfg(test)]
mod tests;
