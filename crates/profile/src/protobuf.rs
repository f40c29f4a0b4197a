//! The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), as far as pprof's profile.proto needs it.

/// A message that is being written. Fields that have their default value are left out, as in proto3.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

/// What follows a field's number.
const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    /// Adds a number.
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.tag(field, VARINT);
            varint(&mut self.bytes, value);
        }
    }

    /// Adds a truth.
    pub(crate) fn truth(&mut self, field: u32, value: bool) {
        self.number(field, u64::from(value));
    }

    /// Adds numbers in one field.
    pub(crate) fn numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Vec::new();
        for value in values {
            varint(&mut packed, value);
        }
        self.length_delimited(field, &packed);
    }

    /// Adds a text; an empty one too, as the place of a text in a repeated field counts.
    pub(crate) fn text(&mut self, field: u32, text: &str) {
        self.length_delimited(field, text.as_bytes());
    }

    /// Adds a message.
    pub(crate) fn message(&mut self, field: u32, message: &Message) {
        self.length_delimited(field, &message.bytes);
    }

    /// All of it.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn length_delimited(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, LENGTH_DELIMITED);
        varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn tag(&mut self, field: u32, kind: u64) {
        varint(&mut self.bytes, u64::from(field) << 3 | kind);
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that there are more.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
