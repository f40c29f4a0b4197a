//! Numbers as people read them.

/// Three significant figures at least, thousands set apart by a space: 13 300, 980, 4.21.
pub fn grouped(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    if value.abs() < 99.95 {
        return if value.abs() < 9.995 {
            format!("{value:.2}")
        } else {
            format!("{value:.1}")
        };
    }
    let step = 10f64.powf((value.abs().log10().floor() - 2.0).max(0.0));
    let digits = format!("{:.0}", (value / step).round() * step);
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    format!("{sign}{out}")
}

/// A share as whole per cent: 49 %; under 10 % with one decimal.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() < 9.95 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// A count with what is counted: 1 connection, 16 connections.
pub fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A ratio with two figures: 2.1, 0.49, 13.
pub fn factor(ratio: f64) -> String {
    if ratio >= 9.95 {
        format!("{ratio:.0}")
    } else if ratio >= 0.995 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let found = [
            13_312., 6_523., 980.4, 99.95, 42.0, 4.214, 0.0, 1_234_567., 999.6, -13_312.,
        ]
        .map(grouped);
        assert_eq!(
            found,
            [
                "13 300",
                "6 520",
                "980",
                "100",
                "42.0",
                "4.21",
                "0.00",
                "1 230 000",
                "1 000",
                "-13 300"
            ]
        );
        assert_eq!(
            (
                percent(0.488),
                percent(0.031),
                factor(2.14),
                factor(0.488),
                factor(13.2)
            ),
            ("49 %".into(), "3.1 %".into(), "2.1".into(), "0.49".into(), "13".into())
        );
        assert_eq!(grouped(f64::NAN), "unknown");
    }

    proptest::proptest! {
        #[test]
        fn any_number_can_be_written(value in proptest::num::f64::ANY) {
            let _ = (percent(value), factor(value));
            let written = grouped(value);
            if !value.is_finite() {
                proptest::prop_assert_eq!(written, "unknown");
            } else if value.abs() < 1e300 {
                let read: f64 = written.replace(' ', "").parse().expect("a number");
                // Three figures or two decimals, whichever says less.
                let within = (0.00501 * value.abs()).max(0.00501);
                proptest::prop_assert!((read - value).abs() <= within, "{value}: {written}");
            }
        }
    }
}
