//! Where the fields of a tracepoint stand in what it says.

use std::ops::Range;

/// Largest place of a field that is believed.
const LARGEST_OFFSET: usize = 4096;

/// The formats of the tracepoints that a recording keeps (`/sys/kernel/tracing/events/*/*/format`).
#[derive(Debug, Default)]
pub(super) struct TracepointFormats(String);

impl TracepointFormats {
    pub(super) fn of(tracing: &[u8]) -> TracepointFormats {
        TracepointFormats(String::from_utf8_lossy(tracing).into_owned())
    }

    /// The place of a field of at most eight bytes; none where the recording does not tell.
    pub(super) fn field(&self, event: &str, name: &str) -> Option<Range<usize>> {
        let (_, own) = self.0.split_once(&format!("name: {event}\n"))?;
        let own = own.split("print fmt").next()?;
        let line = own.lines().find(|line| line.contains(&format!(" {name};")))?;
        let number = |key: &str| line.split(key).nth(1)?.split(';').next()?.trim().parse::<usize>().ok();
        let (offset, size) = (number("offset:")?, number("size:")?);
        (offset < LARGEST_OFFSET && size <= 8).then_some(offset..offset + size)
    }
}

/// A field as a number; none where the record is cut.
pub(super) fn number(raw: &[u8], at: &Range<usize>) -> Option<u64> {
    let mut bytes = [0; 8];
    let field = raw.get(at.clone())?;
    bytes.get_mut(..field.len())?.copy_from_slice(field);
    Some(u64::from_le_bytes(bytes))
}
