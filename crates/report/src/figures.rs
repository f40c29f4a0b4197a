//! Figures as people read them: thousands set apart, as many digits as the figure deserves.

/// A number with about three significant digits and its thousands set apart: `13 300`, `412`, `4.07`, `0.0312`.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let size = value.abs();
    let decimals = match size {
        s if s >= 99.95 || s == 0.0 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        s if s >= 0.09995 => 3,
        s if s >= 0.009995 => 4,
        _ => 5,
    };
    with_thousands(&format!("{:.decimals$}", to_significant(value, 4)))
}

/// Rounds to a number of significant digits where it has more before the point: 13 287.6 becomes 13 290 for 4.
fn to_significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let unit = 10f64.powi(value.abs().log10().floor() as i32 + 1 - digits);
    if unit <= 1.0 {
        value
    } else {
        (value / unit).round() * unit
    }
}

/// A count, every digit of it.
pub(crate) fn whole(count: u64) -> String {
    with_thousands(&count.to_string())
}

/// A large count with its SI prefix: `310 k`, `1.24 M`.
pub(crate) fn si(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let size = value.abs();
    let (divisor, prefix) = match size {
        s if s >= 999.5e6 => (1e9, " G"),
        s if s >= 999.5e3 => (1e6, " M"),
        s if s >= 9999.5 => (1e3, " k"),
        _ => (1.0, ""),
    };
    format!("{}{prefix}", number(value / divisor))
}

/// A share as a percentage: `97.1 %`.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".into();
    }
    format!("{:.1} %", share * 100.0)
}

fn with_thousands(digits: &str) -> String {
    let (sign, rest) = match digits.strip_prefix('-') {
        Some(rest) if rest.chars().any(|c| c.is_ascii_digit() && c != '0') => ("−", rest),
        Some(rest) => ("", rest),
        None => ("", digits),
    };
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_size() {
        assert_eq!(number(13_287.6), "13 290");
        assert_eq!(number(1_234_567.0), "1 235 000");
        assert_eq!(number(412.3), "412");
        assert_eq!(number(99.97), "100");
        assert_eq!(number(4.067), "4.07");
        assert_eq!(number(0.0312), "0.0312");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(-1500.0), "−1 500");
        assert_eq!(number(-0.000001), "0.00000");
        assert_eq!(number(f64::NAN), "–");
    }

    #[test]
    fn prefixes_and_percent() {
        assert_eq!(si(310_000.0), "310 k");
        assert_eq!(si(1_240_000.0), "1.24 M");
        assert_eq!(si(999_900.0), "1.00 M");
        assert_eq!(percent(0.9712), "97.1 %");
    }
}
