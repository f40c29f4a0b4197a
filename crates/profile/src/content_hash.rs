//! Numbers that follow from what they stand for, the same in every process, on every machine and in every version.

/// 64-bit FNV-1a (draft-eastlake-fnv): three lines in any language, so that a reader of a bundle can compute it too.
///
/// Strings go in as their length in 8 bytes and their bytes, integers as 8 bytes, booleans as 1, little-endian; an optional
/// value as one byte 0, or 1 and the value. So no two lists of fields look the same.
#[derive(Debug, Clone, Copy)]
pub struct ContentHash(u64);

impl ContentHash {
    /// Of nothing yet.
    pub fn new() -> ContentHash {
        ContentHash(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Takes in an integer.
    pub fn integer(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Takes in a string.
    pub fn string(&mut self, value: &str) {
        self.integer(value.len() as i64);
        self.bytes(value.as_bytes());
    }

    /// Takes in a boolean.
    pub fn boolean(&mut self, value: bool) {
        self.bytes(&[u8::from(value)]);
    }

    /// Takes in a value that may be missing.
    pub fn optional<T>(&mut self, value: Option<T>, take: impl FnOnce(&mut Self, T)) {
        self.boolean(value.is_some());
        if let Some(value) = value {
            take(self, value);
        }
    }

    /// The hash as a signed number: tables hold no unsigned ones.
    pub fn number(self) -> i64 {
        self.0 as i64
    }
}

impl Default for ContentHash {
    fn default() -> Self {
        ContentHash::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_fnv_1a() {
        // Test vectors of draft-eastlake-fnv, appendix C.
        let of = |text: &str| {
            let mut hash = ContentHash::new();
            hash.bytes(text.as_bytes());
            hash.0
        };
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn fields_do_not_run_into_one_another() {
        let of = |parts: &[Option<&str>]| {
            let mut hash = ContentHash::new();
            for part in parts {
                hash.optional(*part, |hash, part| hash.string(part));
            }
            hash.number()
        };
        let all = [
            of(&[Some("ab"), Some("c")]),
            of(&[Some("a"), Some("bc")]),
            of(&[Some("abc"), None]),
            of(&[None, Some("abc")]),
            of(&[Some("abc")]),
            of(&[Some("abc"), Some("")]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one));
        }
    }
}
