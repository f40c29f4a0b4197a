//! Parquet's mix of repeated and bit-packed numbers: how levels and places in a dictionary are kept
//! (<https://parquet.apache.org/docs/file-format/data-pages/encodings/>, RLE = 3).

use parquet::errors::{ParquetError, Result};

/// The widest number that a place in a dictionary has.
const WIDEST: u8 = 32;

/// Appends the first `count` numbers of `width` bits to `into`.
///
/// # Errors
/// The bytes end before that, or `width` is above 32.
pub(crate) fn decode_hybrid(mut bytes: &[u8], width: u8, count: usize, into: &mut Vec<u32>) -> Result<()> {
    if width > WIDEST {
        return Err(ParquetError::General(format!("numbers of {width} bits")));
    }
    let end = into.len() + count;
    while into.len() < end {
        let header = take_varint(&mut bytes)?;
        let left = end - into.len();
        match header & 1 {
            0 => {
                let value = take_value(&mut bytes, width)?;
                let times = usize::try_from(header >> 1).map_or(left, |times| times.min(left));
                if times == 0 {
                    return Err(ParquetError::General("a run of no numbers".into()));
                }
                into.resize(into.len() + times, value);
            }
            _ => {
                let groups = usize::try_from(header >> 1).unwrap_or(usize::MAX);
                let length = groups.saturating_mul(usize::from(width)).min(bytes.len());
                let (packed, rest) = bytes.split_at(length);
                bytes = rest;
                unpack(packed, width, groups.saturating_mul(8).min(left), into)?;
            }
        }
    }
    Ok(())
}

/// Numbers that stand bit by bit one behind the other, the lowest bits first.
fn unpack(packed: &[u8], width: u8, count: usize, into: &mut Vec<u32>) -> Result<()> {
    let width = usize::from(width);
    if count == 0 || count.saturating_mul(width) > packed.len() * 8 {
        return Err(ParquetError::General("the numbers end too early".into()));
    }
    let mask = (1_u64 << width) - 1;
    // Eight bytes can be looked at everywhere then.
    let padded = [packed, &[0; 8]].concat();
    into.extend((0..count).map(|number| {
        let bit = number * width;
        let word = padded
            .get(bit / 8..)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        ((word >> (bit % 8)) & mask) as u32
    }));
    Ok(())
}

fn take_value(bytes: &mut &[u8], width: u8) -> Result<u32> {
    let length = usize::from(width.div_ceil(8));
    let (value, rest) = bytes.split_at_checked(length).ok_or_else(ends)?;
    *bytes = rest;
    Ok(value
        .iter()
        .rev()
        .fold(0, |number, byte| (number << 8) | u32::from(*byte)))
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(ends)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ParquetError::General("a length of more than 32 bits".into()))
}

fn ends() -> ParquetError {
    ParquetError::General("the page ends too early".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes runs of equal numbers as such, and the others packed, as the format's page describes it.
    fn encode(runs: &[(bool, Vec<u32>)], width: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let varint = |bytes: &mut Vec<u8>, mut number: usize| {
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
        };
        for (repeated, numbers) in runs {
            if *repeated {
                varint(&mut bytes, numbers.len() << 1);
                bytes.extend(&numbers[0].to_le_bytes()[..usize::from(width.div_ceil(8))]);
                continue;
            }
            varint(&mut bytes, (numbers.len() / 8) << 1 | 1);
            let mut bits: Vec<bool> = Vec::new();
            for number in numbers {
                bits.extend((0..width).map(|bit| number >> bit & 1 == 1));
            }
            bytes.extend(
                bits.chunks(8)
                    .map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit))),
            );
        }
        bytes
    }

    fn runs() -> impl Strategy<Value = (u8, Vec<(bool, Vec<u32>)>)> {
        (0..=32_u8).prop_flat_map(|width| {
            let number = move || any::<u32>().prop_map(move |n| (u64::from(n) & ((1_u64 << width) - 1)) as u32);
            let repeated = (number(), 1..70_usize).prop_map(|(n, times)| (true, vec![n; times]));
            let packed = (1..5_usize)
                .prop_flat_map(move |groups| prop::collection::vec(number(), groups * 8))
                .prop_map(|numbers| (false, numbers));
            (Just(width), prop::collection::vec(prop_oneof![repeated, packed], 1..6))
        })
    }

    proptest! {
        #[test]
        fn numbers_come_back_as_they_were((width, runs) in runs(), cut in 0..8_usize) {
            let expected: Vec<u32> = runs.iter().flat_map(|(_, numbers)| numbers.iter().copied()).collect();
            // The last group of a page may hold more than the page has.
            let expected = &expected[..expected.len() - cut.min(expected.len() - 1)];
            let mut found = vec![7];
            decode_hybrid(&encode(&runs, width), width, expected.len(), &mut found).unwrap();
            prop_assert_eq!(&found[1..], expected);
        }

        #[test]
        fn any_bytes_give_numbers_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40), width in any::<u8>(), count in 0..5000_usize) {
            let mut found = Vec::new();
            if decode_hybrid(&bytes, width, count, &mut found).is_ok() {
                prop_assert_eq!(found.len(), count);
            }
        }
    }
}
