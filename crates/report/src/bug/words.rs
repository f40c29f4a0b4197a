//! Words, tables and blocks of Markdown.

/// A block whose text is shown as it is.
pub(super) fn block(text: &str) -> String {
    format!("```\n{}\n```\n", text.trim_end().replace("```", "'''"))
}

/// Text within a line. Template arguments would be taken for markup.
pub(super) fn inline(text: &str) -> String {
    let ends_line = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.replace(ends_line, " ").replace('<', "\\<")
}

/// One line of a list.
pub(super) fn item(text: &str) -> String {
    format!("- {}\n", inline(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_cannot_be_left() {
        assert_eq!(block("a\n```\n# b").matches("```").count(), 2);
    }
}
