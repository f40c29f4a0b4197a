//! Columns beside one another, lines broken at words, colours where they are wanted.

use super::columns::Column;
use scaleprof_bundle::RungSummary;

const GAP: usize = 2;

/// How a row stands out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowInk {
    Plain,
    Peak,
    Doubtful,
}

/// Colours, or none.
pub(super) struct Ink {
    colour: bool,
}

impl Ink {
    pub(super) fn new(colour: bool) -> Self {
        Ink { colour }
    }

    pub(super) fn bold(&self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.paint(text, "2")
    }

    pub(super) fn yellow(&self, text: &str) -> String {
        self.paint(text, "33")
    }

    fn paint(&self, text: &str, code: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Characters across all the columns.
pub(super) fn width(columns: &[Column]) -> usize {
    columns.iter().map(Column::width).sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

/// The columns that fit, in their narrow form where they must, and those that do not.
pub(super) fn fit(columns: Vec<Column>, room: Option<usize>) -> (Vec<Column>, Vec<Column>) {
    let mut shown = columns;
    let mut hidden = Vec::new();
    let Some(room) = room else {
        return (shown, hidden);
    };
    if width(&shown) > room {
        for column in &mut shown {
            if let Some((heading, cells)) = column.narrow.take() {
                (column.heading, column.cells) = (heading, cells);
            }
        }
    }
    while width(&shown) > room {
        let least = shown
            .iter()
            .enumerate()
            .filter_map(|(at, column)| Some((column.worth?, at)))
            .min();
        match least {
            Some((_, at)) => hidden.push(shown.remove(at)),
            None => break,
        }
    }
    (shown, hidden)
}

/// A heading and a line for each rung.
pub(super) fn grid(
    columns: &[Column],
    rungs: &[RungSummary],
    ink: &Ink,
    row_ink: impl Fn(&RungSummary) -> RowInk,
) -> String {
    let line = |cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| {
                let (text, width) = (cell(column), column.width());
                if column.right {
                    format!("{text:>width$}")
                } else {
                    format!("{text:<width$}")
                }
            })
            .collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let mut out = ink.dim(&line(&|column| column.heading.to_owned()));
    out.push('\n');
    for (at, rung) in rungs.iter().enumerate() {
        let text = line(&|column| match column.cells[at].as_str() {
            "" if column.right => "–".into(),
            cell => cell.into(),
        });
        out.push_str(&match row_ink(rung) {
            RowInk::Plain => text,
            RowInk::Peak => ink.bold(&text),
            RowInk::Doubtful => ink.yellow(&text),
        });
        out.push('\n');
    }
    out
}

/// Breaks text at its spaces so that no line is wider than `width`; lines after the first begin with `indent`.
pub(super) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width && !line.trim().is_empty() {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_words() {
        assert_eq!(wrap("one two three four", 9, "  "), "one two\n  three\n  four");
        assert_eq!(wrap("", 9, "  "), "");
        assert_eq!(wrap("unbreakably", 5, ""), "unbreakably");
    }
}
