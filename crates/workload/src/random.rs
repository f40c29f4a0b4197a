//! Random numbers of one connection, and the strings of digits that sysbench's rows are made of.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of one connection. Runs with the same seed give every connection the same sequence.
#[derive(Debug, Clone)]
pub struct ConnectionRng(Xoshiro256PlusPlus);

impl ConnectionRng {
    /// The generator of the `stream`th connection of a run with this seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        // seed_from_u64 runs both through SplitMix64, so neighbouring streams have nothing in common.
        ConnectionRng(Xoshiro256PlusPlus::seed_from_u64(
            seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    /// Uniform in [0, 1), with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform whole number of `low..=high`.
    #[inline]
    pub fn uniform(&mut self, low: u32, high: u32) -> u32 {
        debug_assert!(low <= high);
        let width = u64::from(high - low) + 1;
        // Lemire's multiply-shift on 64 bits: the bias is below 2^-32 and not visible in any test of ours.
        low + ((u128::from(self.0.next_u64()) * u128::from(width)) >> 64) as u32
    }

    /// Appends `groups` groups of 11 random digits with '-' between them.
    #[inline]
    pub fn push_digit_groups(&mut self, groups: usize, out: &mut Vec<u8>) {
        for group in 0..groups {
            if group > 0 {
                out.push(b'-');
            }
            // 11 digits from 37 of 64 bits: the bias of this modulus is below 10^-8.
            let mut number = self.0.next_u64() % 100_000_000_000;
            let mut digits = [0_u8; 11];
            for pair in (0..5).rev() {
                let two = (number % 100) as usize;
                number /= 100;
                digits[pair * 2 + 1] = DIGIT_PAIRS[two][0];
                digits[pair * 2 + 2] = DIGIT_PAIRS[two][1];
            }
            digits[0] = b'0' + number as u8;
            out.extend_from_slice(&digits);
        }
    }
}

impl RngCore for ConnectionRng {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    fn fill_bytes(&mut self, dst: &mut [u8]) {
        self.0.fill_bytes(dst);
    }
}

/// "00" to "99".
const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digit_groups_have_sysbench_s_shape_and_every_digit_everywhere() {
        let mut rng = ConnectionRng::new(1, 0);
        let mut seen = [[false; 10]; 119];
        for _ in 0..2000 {
            let mut text = Vec::new();
            rng.push_digit_groups(10, &mut text);
            assert_eq!(text.len(), 119);
            for (i, &byte) in text.iter().enumerate() {
                if i % 12 == 11 {
                    assert_eq!(byte, b'-');
                } else {
                    seen[i][usize::from(byte - b'0')] = true;
                }
            }
        }
        let whole = |i: usize| i % 12 == 11 || seen[i].iter().all(|&s| s);
        assert!((0..119).all(whole), "a digit never came at some place");
    }

    #[test]
    fn the_same_seed_repeats_and_another_stream_does_not() {
        let draw = |seed, stream| -> Vec<u32> {
            let mut rng = ConnectionRng::new(seed, stream);
            (0..8).map(|_| rng.uniform(1, 1_000_000)).collect()
        };
        assert_eq!(draw(7, 3), draw(7, 3));
        assert_ne!(draw(7, 3), draw(7, 4));
        assert_ne!(draw(7, 3), draw(8, 3));
    }
}
