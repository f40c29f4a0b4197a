//! Changes of inputs by a seed: bytes, numbers, cuts, repeated and moved pieces, pieces of another input.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Numbers at which parsers go wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    i64::MAX as u64,
    u64::MAX,
];
/// No longer than this, whatever is repeated.
const LONGEST: usize = 1 << 20;

/// Makes the same changes for the same seed.
pub(crate) struct Changer(Xoshiro256PlusPlus);

impl Changer {
    pub(crate) fn new(seed: u64) -> Changer {
        Changer(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number under `end`; 0 where that is 0.
    fn under(&mut self, end: usize) -> usize {
        match end {
            0 => 0,
            end => (self.0.next_u64() % end as u64) as usize,
        }
    }

    /// One of the inputs with one to eight changes.
    pub(crate) fn changed(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut input = inputs[self.under(inputs.len())].clone();
        for _ in 0..=self.under(8) {
            let other = &inputs[self.under(inputs.len())];
            self.change(&mut input, other);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        // Headers are at the beginning, and most of what is counted stands there.
        let reach = match self.under(4) {
            0 => input.len().min(256),
            _ => input.len(),
        };
        let at = self.under(reach);
        match self.under(8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.0.next_u64() as u8;
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.under(8);
                }
            }
            2 | 3 => {
                let width = [1, 2, 4, 8][self.under(4)];
                let number = EDGES[self.under(EDGES.len())];
                if let Some(place) = input.get_mut(at..at + width) {
                    place.copy_from_slice(&number.to_le_bytes()[..width]);
                }
            }
            4 => input.truncate(at),
            5 => {
                let end = (at + 1 + self.under(64)).min(input.len());
                input.drain(at.min(end)..end);
            }
            6 => {
                let piece = input[at..(at + 1 + self.under(256)).min(input.len()).max(at)].to_vec();
                let times = 1 + self.under(4);
                input.splice(at..at, piece.repeat(times));
            }
            _ => {
                let from = self.under(other.len());
                let piece = &other[from..(from + 1 + self.under(256)).min(other.len()).max(from)];
                let to = (at + piece.len() * self.under(2)).min(input.len());
                input.splice(at..to, piece.iter().copied());
            }
        }
    }
}
