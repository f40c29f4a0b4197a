//! Amounts and rates of the tables as whole numbers: a transaction must not lose a cent to binary fractions.

use std::io::Write as _;

/// An amount in cents; DECIMAL(m,2) in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Cents(pub(super) i64);

impl Cents {
    /// Reads a DECIMAL of at most two places, as the server writes it.
    pub(super) fn parse(text: &[u8]) -> Option<Cents> {
        fixed(text, 2).map(Cents)
    }

    /// Appends it as a decimal number.
    pub(super) fn push(self, out: &mut Vec<u8>) {
        push_fixed(self.0, 2, out);
    }
}

/// A tax or discount in ten-thousandths; DECIMAL(4,4) in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rate(pub(super) i64);

impl Rate {
    /// Reads a DECIMAL of at most four places.
    pub(super) fn parse(text: &[u8]) -> Option<Rate> {
        fixed(text, 4).map(Rate)
    }

    /// Appends it as a decimal number.
    pub(super) fn push(self, out: &mut Vec<u8>) {
        push_fixed(self.0, 4, out);
    }
}

/// A decimal number times 10^`places`; none where it has more places or is no number.
fn fixed(text: &[u8], places: usize) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = digits.splitn(2, |&byte| byte == b'.');
    let whole = parts.next()?;
    let fraction = parts.next().unwrap_or_default();
    if whole.is_empty() || fraction.len() > places {
        return None;
    }
    let padding = std::iter::repeat_n(&b'0', places - fraction.len());
    let mut value: i64 = 0;
    for digit in whole.iter().chain(fraction).chain(padding) {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(if negative { -value } else { value })
}

fn push_fixed(value: i64, places: usize, out: &mut Vec<u8>) {
    let scale = 10_u64.pow(places as u32);
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{sign}{}.{:0places$}", value / scale, value % scale);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in -1_000_000_000_000_i64..1_000_000_000_000) {
            let mut out = Vec::new();
            Cents(value).push(&mut out);
            prop_assert_eq!(Cents::parse(&out), Some(Cents(value)));
            out.clear();
            Rate(value).push(&mut out);
            prop_assert_eq!(Rate::parse(&out), Some(Rate(value)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..30)) {
            let _ = (Cents::parse(&text), Rate::parse(&text));
        }
    }

    #[test]
    fn decimals_are_read_as_the_server_writes_them() {
        assert_eq!(Cents::parse(b"-10.00"), Some(Cents(-1000)));
        assert_eq!(Cents::parse(b"7"), Some(Cents(700)));
        assert_eq!(Cents::parse(b"0.5"), Some(Cents(50)));
        assert_eq!(Rate::parse(b"0.1234"), Some(Rate(1234)));
        for wrong in [&b"1.234"[..], b"", b".", b"1x", b"99999999999999999999"] {
            assert_eq!(Cents::parse(wrong), None);
        }
    }
}
