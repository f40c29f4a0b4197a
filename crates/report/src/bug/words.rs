//! Words, tables and blocks of Markdown.

/// A block whose text is shown as it is.
pub(super) fn block(text: &str) -> String {
    format!("```\n{}\n```\n", text.trim_end().replace("```", "'''"))
}

/// One line of a list. Template arguments would be taken for markup.
pub(super) fn item(text: &str) -> String {
    let ends_line = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    format!("- {}\n", text.replace(ends_line, " ").replace('<', "\\<"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_cannot_be_left() {
        assert_eq!(block("a\n```\n# b").matches("```").count(), 2);
    }
}
