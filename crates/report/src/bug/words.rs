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

/// Columns beside one another: the first to the left, all others to the right but for those in `left`.
pub(super) fn grid(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if left.contains(&at) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_cannot_be_left() {
        assert_eq!(block("a\n```\n# b").matches("```").count(), 2);
    }
}
