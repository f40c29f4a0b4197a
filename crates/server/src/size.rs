//! Sizes as people write them.

/// Reads `4G`, `512M`, `64k` or a number of bytes.
///
/// # Errors
/// What is no such size, in words for whoever typed it.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wanted = || format!("'{text}' is no size: use bytes, or K, M or G behind the number");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(wanted()),
    };
    let number: u64 = digits.parse().map_err(|_| wanted())?;
    number.checked_mul(1 << shift).ok_or_else(wanted)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes as parse;

    #[test]
    fn sizes_have_the_usual_endings() {
        assert_eq!(parse("4G"), Ok(4 << 30));
        assert_eq!(parse("64k"), Ok(65_536));
        assert_eq!(parse("100"), Ok(100));
        assert!(parse("4X").is_err() && parse("").is_err() && parse("99999999999G").is_err());
    }
}
