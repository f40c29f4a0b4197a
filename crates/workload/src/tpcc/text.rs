//! Random texts of the population: last names, a-strings, n-strings (clause 4.3.2).

use crate::random::ConnectionRng;
use rand_core::RngCore;

/// Clause 4.3.2.3: the last name of a number is the syllables of its three digits.
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// The last name of a number from 0 to 999.
pub(super) fn last_name(number: u32) -> String {
    [number / 100, number / 10, number]
        .map(|digits| SYLLABLES[(digits % 10) as usize])
        .concat()
}

const LETTERS_AND_DIGITS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Appends an a-string of `low..=high` letters and digits (clause 4.3.2.2).
pub(super) fn push_a_string(rng: &mut ConnectionRng, low: u32, high: u32, out: &mut Vec<u8>) {
    push_of(LETTERS_AND_DIGITS, rng, low, high, out);
}

/// Appends an n-string of `length` digits (clause 4.3.2.2).
pub(super) fn push_n_string(rng: &mut ConnectionRng, length: u32, out: &mut Vec<u8>) {
    push_of(b"0123456789", rng, length, length, out);
}

/// Four characters of every 64 random bits: by 16 bits each, whose bias is below 0.1 %.
fn push_of(alphabet: &[u8], rng: &mut ConnectionRng, low: u32, high: u32, out: &mut Vec<u8>) {
    let length = if low == high { low } else { rng.uniform(low, high) };
    let (mut bits, mut left) = (0, 0);
    for _ in 0..length {
        if left == 0 {
            (bits, left) = (rng.next_u64(), 4);
        }
        let place = ((bits & 0xffff) as usize * alphabet.len()) >> 16;
        out.push(alphabet[place]);
        bits >>= 16;
        left -= 1;
    }
}

/// What marks the goods of brands (clause 4.3.3.1, I_DATA and S_DATA).
pub(super) const ORIGINAL: &[u8] = b"ORIGINAL";

/// Appends an a-string of 26 to 50 characters, with `ORIGINAL` at a random place in one of ten (clause 4.3.3.1).
pub(super) fn push_data(rng: &mut ConnectionRng, out: &mut Vec<u8>) {
    let start = out.len();
    push_a_string(rng, 26, 50, out);
    if rng.uniform(1, 10) == 1 {
        let latest = out.len() - start - ORIGINAL.len();
        let at = start + rng.uniform(0, latest as u32) as usize;
        out[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

/// Whether goods are of a brand (clause 2.4.2.2, brand-generic).
pub(super) fn is_original(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len()).any(|window| window == ORIGINAL)
}

/// Appends a zip code: four digits and `11111` (clause 4.3.2.7).
pub(super) fn push_zip(rng: &mut ConnectionRng, out: &mut Vec<u8>) {
    push_n_string(rng, 4, out);
    out.extend_from_slice(b"11111");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_name_is_the_syllables_of_its_digits() {
        // The example of clause 4.3.2.3.
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(0), "BARBARBAR");
    }

    #[test]
    fn strings_have_their_lengths_and_use_all_characters() {
        let mut rng = ConnectionRng::new(1, 0);
        let (mut seen, mut lengths) = ([0_u32; 256], [0_u32; 60]);
        for _ in 0..5000 {
            let mut text = Vec::new();
            push_a_string(&mut rng, 26, 50, &mut text);
            lengths[text.len()] += 1;
            text.iter().for_each(|&byte| seen[usize::from(byte)] += 1);
        }
        assert_eq!(seen.iter().filter(|&&n| n > 0).count(), 62);
        assert!((26..=50).all(|n| lengths[n] > 0) && lengths.iter().sum::<u32>() == 5000);
        let mut zip = Vec::new();
        push_zip(&mut rng, &mut zip);
        assert_eq!(zip.len(), 9);
        assert!(zip.iter().all(u8::is_ascii_digit) && zip.ends_with(b"11111"));
    }

    #[test]
    fn one_of_ten_goods_is_of_a_brand() {
        let mut rng = ConnectionRng::new(2, 0);
        let originals = (0..20_000)
            .filter(|_| {
                let mut data = Vec::new();
                push_data(&mut rng, &mut data);
                assert!((26..=50).contains(&data.len()));
                is_original(&data)
            })
            .count();
        assert!((1800..=2200).contains(&originals), "{originals} of 20000");
        assert!(!is_original(b"ORIGINA"));
    }
}
