//! Words for the standard error, in which names from a recording or a server stand.

/// The words with what would steer a terminal replaced. Lines and columns stay, as errors have some; in names alone the reader of a
/// recording replaces these too.
pub(crate) fn sanitized(words: &str) -> String {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    words.replace(steers, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::sanitized;

    #[test]
    fn names_in_words_steer_no_terminal() {
        let words = "no event \u{1b}[31mx\u{7}:\n\tgive another";
        assert_eq!(sanitized(words), "no event \u{fffd}[31mx\u{fffd}:\n\tgive another");
    }
}
