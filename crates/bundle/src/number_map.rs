//! Maps by numbers that are spread well already: content hashes, and places in a list.
//!
//! The standard hash resists somebody who chooses keys so that they collide. Who could choose them here also wrote the bundle,
//! and would only slow down his own reading; with a few hundred thousand stacks the difference is felt.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Multiplies by a large odd number (Knuth, The Art of Computer Programming, volume 3, section 6.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct NumberHasher(u64);

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // The high bits depend on all of the key, and a map looks at the low ones first.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(GOLDEN);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_and_multiples_spread_over_the_low_bits() {
        for step in [1_i64, 2, 1024, 1 << 32] {
            let low: std::collections::HashSet<u64> = (0..256)
                .map(|n| {
                    let mut hasher = NumberHasher::default();
                    hasher.write_i64(n * step);
                    hasher.finish() & 0xff
                })
                .collect();
            assert!(low.len() > 100, "{step}: {}", low.len());
        }
    }
}
