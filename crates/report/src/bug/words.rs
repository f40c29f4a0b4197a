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

/// The text without folders: of a path only its last part stays. A bundle holds none; this is for those that others wrote.
pub(super) fn public(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | ']' | ',' | ';' | '<' | '>');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let begins = rest.starts_with('/') || rest.starts_with("~/");
        let stands_alone = before.is_whitespace() || matches!(before, '"' | '\'' | '`' | '(' | '=' | ':');
        if begins && stands_alone {
            let end = rest.find(ends).unwrap_or(rest.len());
            let path = &rest[..end];
            let last = path.rsplit('/').next().unwrap_or_default();
            if path.matches('/').count() > 1 && !last.is_empty() {
                out.push_str(".../");
                out.push_str(last);
                before = last.chars().next_back().unwrap_or(' ');
                rest = &rest[end..];
                continue;
            }
        }
        out.push(first);
        before = first;
        rest = &rest[first.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_left_out_and_all_else_stays() {
        for (text, shown) in [
            ("cannot read /home/alice/x.cnf, sorry", "cannot read .../x.cnf, sorry"),
            ("--output=/home/alice/run", "--output=.../run"),
            ("(~/secret/place)", "(.../place)"),
            (
                "13 300/s at 64, N/X, storage/innobase/ut.cc",
                "13 300/s at 64, N/X, storage/innobase/ut.cc",
            ),
            ("a / b", "a / b"),
            ("operator/(int)", "operator/(int)"),
            ("/tmp", "/tmp"),
        ] {
            assert_eq!(public(text), shown);
        }
    }

    #[test]
    fn a_block_cannot_be_left() {
        assert_eq!(block("a\n```\n# b").matches("```").count(), 2);
    }
}
