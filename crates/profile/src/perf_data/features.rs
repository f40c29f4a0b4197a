//! What the header of a recording tells beside the events (tools/perf/Documentation/perf.data-file-format.txt).
//!
//! The names of host and user, and the command line, are not read: they have no place in a bundle.

use super::attribute::Attribute;
use super::cursor::{Cursor, until_zero};
use crate::import::RecordedMachine;
use std::collections::HashMap;

const TRACING_DATA: u64 = 1;
const BUILD_ID: u64 = 2;
const OS_RELEASE: u64 = 4;
const ARCHITECTURE: u64 = 6;
const CPU_COUNTS: u64 = 7;
const CPU_MODEL: u64 = 8;
const MEMORY: u64 = 10;
const EVENTS: u64 = 12;

/// Largest number of events, or of numbers of one, that is believed.
const MOST_EVENTS: u32 = 1 << 16;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Features<'a> {
    pub(super) machine: RecordedMachine,
    /// Build-ids in hexadecimal, by the path of the file.
    pub(super) build_ids: HashMap<String, String>,
    /// Events with their names.
    pub(super) events: Vec<Attribute>,
    /// The layouts of tracepoints.
    pub(super) tracing: &'a [u8],
}

impl<'a> Features<'a> {
    /// Takes in one feature; what cannot be read of it is left out.
    pub(super) fn add(&mut self, number: u64, bytes: &'a [u8]) {
        let mut cursor = Cursor::new(bytes);
        match number {
            TRACING_DATA => self.tracing = bytes,
            BUILD_ID => self.add_build_ids(bytes),
            OS_RELEASE => self.machine.kernel = cursor.string(),
            ARCHITECTURE => self.machine.architecture = cursor.string(),
            CPU_COUNTS => {
                let _available = cursor.u32();
                self.machine.cpus = cursor.u32();
            }
            CPU_MODEL => self.machine.cpu_model = cursor.string(),
            MEMORY => self.machine.memory_bytes = cursor.u64().and_then(|kibibytes| kibibytes.checked_mul(1024)),
            EVENTS => self.add_events(cursor),
            _ => {}
        }
    }

    fn add_events(&mut self, mut cursor: Cursor<'_>) {
        let (Some(count), Some(length)) = (cursor.u32(), cursor.u32()) else {
            return;
        };
        for _ in 0..count.min(MOST_EVENTS) {
            let mut one = || {
                let mut event = Attribute::read(&mut cursor, length as usize)?;
                let ids = cursor.u32()?.min(MOST_EVENTS);
                event.name = cursor.string().filter(|name| !name.is_empty());
                event.ids = cursor.words(u64::from(ids))?.iter().collect();
                Some(event)
            };
            match one() {
                Some(event) => self.events.push(event),
                None => return,
            }
        }
    }

    fn add_build_ids(&mut self, mut bytes: &[u8]) {
        while let Some((header, rest)) = bytes.split_first_chunk::<8>() {
            let length = usize::from(u16::from_le_bytes([header[6], header[7]]));
            let misc = u16::from_le_bytes([header[4], header[5]]);
            let Some((body, next)) = length.checked_sub(8).and_then(|length| rest.split_at_checked(length)) else {
                return;
            };
            self.add_build_id(misc, body);
            bytes = next;
        }
    }

    /// Takes in the body of a record of a build-id, which a pipe has too.
    pub(super) fn add_build_id(&mut self, misc: u16, body: &[u8]) {
        /// The length of the build-id is told.
        const WITH_SIZE: u16 = 1 << 15;
        let mut cursor = Cursor::new(body);
        let mut one = || {
            let _process = cursor.u32()?;
            let id = cursor.take(24)?;
            let length = match misc & WITH_SIZE {
                0 => 20,
                _ => usize::from(id[20]).min(20),
            };
            Some((until_zero(cursor.rest()), hexadecimal(&id[..length])))
        };
        if let Some((path, id)) = one()
            && !id.is_empty()
        {
            self.build_ids.insert(path, id);
        }
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
