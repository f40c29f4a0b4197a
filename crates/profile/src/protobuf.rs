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

/// The fields of a message that is read, in their order. It takes no memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text, a message, or numbers in one field.
    Bytes(&'a [u8]),
}

/// The message ends in the middle of a field, or holds what no message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Bytes from its end.
    pub(crate) bytes_left: usize,
}

const FIXED_64: u64 = 1;
const FIXED_32: u64 = 5;

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = take_varint(&mut self.rest)?;
        let field = u32::try_from(tag >> 3).ok().filter(|field| *field > 0)?;
        let value = match tag & 7 {
            VARINT => Value::Number(take_varint(&mut self.rest)?),
            LENGTH_DELIMITED => {
                let length = usize::try_from(take_varint(&mut self.rest)?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            FIXED_64 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            FIXED_32 => Value::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((field, value))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes_left = self.rest.len();
        if bytes_left == 0 {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            // Nothing that follows has a meaning.
            self.rest = &[];
        }
        Some(field.ok_or(Malformed { bytes_left }))
    }
}

impl<'a> Value<'a> {
    /// The number; 0 for what is none.
    pub(crate) fn number(self) -> u64 {
        match self {
            Value::Number(number) => number,
            Value::Bytes(_) => 0,
        }
    }

    /// The bytes; none for a number.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Value::Number(_) => &[],
            Value::Bytes(bytes) => bytes,
        }
    }

    /// The numbers of a repeated field: one, or several in one field. Those behind one that is cut off are not among them.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u64> + use<'a> {
        let (one, mut packed) = match self {
            Value::Number(number) => (Some(number), &[][..]),
            Value::Bytes(bytes) => (None, bytes),
        };
        one.into_iter()
            .chain(std::iter::from_fn(move || take_varint(&mut packed)))
    }
}

/// At most ten bytes; none where there is no whole number.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * place as u32)?;
        if byte & 0x80 == 0 {
            *bytes = &bytes[place + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_those_of_the_specification() {
        // protobuf.dev/programming-guides/encoding: field 1 is 150; field 2 is "testing"; field 6 is 3, 270, 86942.
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.numbers(6, [3, 270, 86_942]);
        let expected = [
            &[0x08, 0x96, 0x01, 0x12, 0x07][..],
            b"testing",
            &[0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05],
        ];
        assert_eq!(message.into_bytes(), expected.concat());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<u64>(), text in ".{0,9}", numbers in vec(any::<u64>(), 0..9)) {
            let mut message = Message::default();
            message.number(1, number);
            message.text(2, &text);
            message.numbers(300_000, numbers.iter().copied());
            let bytes = message.into_bytes();
            let fields: Result<Vec<_>, _> = Fields::of(&bytes).collect();
            let fields = fields.unwrap();
            let first = fields.iter().find(|(field, _)| *field == 1).map_or(0, |(_, value)| value.number());
            prop_assert_eq!(first, number);
            let known = |wanted| fields.iter().find(|(field, _)| *field == wanted).unwrap().1;
            prop_assert_eq!(known(2).bytes(), text.as_bytes());
            prop_assert_eq!(known(300_000).numbers().collect::<Vec<_>>(), numbers);
        }

        #[test]
        fn any_bytes_end_and_say_where_they_broke(bytes in vec(any::<u8>(), 0..99)) {
            let fields: Vec<_> = Fields::of(&bytes).collect();
            prop_assert!(fields.len() <= bytes.len());
            for (at, field) in fields.iter().enumerate() {
                match field {
                    Ok((_, value)) => prop_assert!(value.numbers().count() <= bytes.len() + 1),
                    Err(Malformed { bytes_left }) => prop_assert!(at + 1 == fields.len() && *bytes_left <= bytes.len()),
                }
            }
        }
    }
}
