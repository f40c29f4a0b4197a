//! The user's own statements: a file of SQL, split as the `mysql` client splits it.

use crate::program::{Repetition, Step};
use scaleprof_wire::query_packet;

/// A script of statements that every connection runs.
#[derive(Debug)]
pub struct Script {
    packets: Vec<u8>,
    steps: Vec<Step>,
    names: Vec<String>,
    verbs: Vec<Option<&'static str>>,
    repetition: Repetition,
}

/// Why a text is no script.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScriptError {
    /// Nothing in it.
    #[error("there is no statement in it")]
    Empty,
    /// A quote or comment that is not closed.
    #[error("line {line}: this {what} is never closed")]
    NotClosed {
        /// Where it begins, from 1.
        line: usize,
        /// `quote` or `comment`.
        what: &'static str,
    },
    /// More than can be told apart.
    #[error("{0} statements are too many: at most {MAX_STATEMENTS} can be timed one by one")]
    TooMany(usize),
    /// `DELIMITER` without a delimiter.
    #[error("line {0}: DELIMITER wants the new delimiter behind it")]
    NoDelimiter(usize),
}

/// Statements that a script may have; each has a latency histogram of its own.
const MAX_STATEMENTS: usize = 1000;

impl Script {
    /// Splits a text into statements.
    ///
    /// # Errors
    /// No statement, too many, or a quote or comment that is not closed.
    pub fn parse(text: &str, repetition: Repetition) -> Result<Self, ScriptError> {
        let statements = split(text)?;
        match statements.len() {
            0 => return Err(ScriptError::Empty),
            n if n > MAX_STATEMENTS => return Err(ScriptError::TooMany(n)),
            _ => {}
        }
        let (mut packets, mut steps) = (Vec::new(), Vec::new());
        let (mut names, mut verbs) = (Vec::new(), Vec::new());
        for (i, statement) in statements.iter().enumerate() {
            packets.extend(query_packet(statement.as_bytes()));
            steps.push(Step {
                end: packets.len() as u32,
                kind: i as u16,
            });
            let verb = verb(statement);
            let in_brackets = verb.map_or_else(String::new, |verb| format!(" ({verb})"));
            names.push(format!("statement {}{in_brackets}", i + 1));
            verbs.push(verb);
        }
        Ok(Script {
            packets,
            steps,
            names,
            verbs,
            repetition,
        })
    }

    /// Splits a text into its statements, for running them one by one.
    ///
    /// # Errors
    /// A quote or comment that is not closed.
    pub fn split(text: &str) -> Result<Vec<&str>, ScriptError> {
        split(text)
    }

    pub(crate) fn packets(&self) -> (&[u8], &[Step]) {
        (&self.packets, &self.steps)
    }

    /// `statement 1 (SELECT)` and so on: no text of the statement but its verb.
    pub(crate) fn statement_names(&self) -> &[String] {
        &self.names
    }

    /// The verb of each statement.
    pub(crate) fn statement_verbs(&self) -> &[Option<&'static str>] {
        &self.verbs
    }

    pub(crate) fn repetition(&self) -> Repetition {
        self.repetition
    }
}

/// The statement's verb, where it is a well-known one: anything else might be private.
fn verb(statement: &str) -> Option<&'static str> {
    const KNOWN: [&str; 17] = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "BEGIN", "START", "COMMIT", "ROLLBACK", "CREATE", "DROP",
        "ALTER", "TRUNCATE", "CALL", "SET", "DO", "WITH",
    ];
    let word: String = statement
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect::<String>()
        .to_ascii_uppercase();
    KNOWN.into_iter().find(|known| *known == word)
}

/// Splits at the delimiter, outside quotes and comments. Comments stay in the statements (they may be hints), but
/// one between two statements does not make a statement.
fn split(text: &str) -> Result<Vec<&str>, ScriptError> {
    let bytes = text.as_bytes();
    let mut delimiter: &str = ";";
    let mut statements = Vec::new();
    let mut at = 0;
    // Where the first byte of the statement stands that is neither space nor comment.
    let mut content: Option<usize> = None;
    while at < bytes.len() {
        let rest = &text[at..];
        if content.is_none() && starts_with_word(rest, "DELIMITER") {
            let line_end = rest.find('\n').map_or(text.len(), |n| at + n);
            delimiter = text[at + "DELIMITER".len()..line_end]
                .split_whitespace()
                .next()
                .ok_or_else(|| ScriptError::NoDelimiter(line_of(text, at)))?;
            at = line_end;
        } else if rest.starts_with(delimiter) {
            if let Some(from) = content {
                statements.push(text[from..at].trim_end());
            }
            at += delimiter.len();
            content = None;
        } else if is_line_comment(rest) {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let length = comment.find("*/").ok_or_else(|| ScriptError::NotClosed {
                line: line_of(text, at),
                what: "comment",
            })? + 4;
            // /*! … */ and /*+ … */ are code.
            if rest.starts_with("/*!") || rest.starts_with("/*M!") || rest.starts_with("/*+") {
                content.get_or_insert(at);
            }
            at += length;
        } else if matches!(bytes[at], b'\'' | b'"' | b'`') {
            content.get_or_insert(at);
            at += quoted_length(&bytes[at..]).ok_or_else(|| ScriptError::NotClosed {
                line: line_of(text, at),
                what: "quote",
            })?;
        } else {
            if !bytes[at].is_ascii_whitespace() {
                content.get_or_insert(at);
            }
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    if let Some(from) = content {
        statements.push(text[from..].trim_end());
    }
    Ok(statements)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(word))
        && text[word.len()..].chars().next().is_none_or(char::is_whitespace)
}

/// `#`, or `--` with white space or a line's end behind it.
fn is_line_comment(text: &str) -> bool {
    text.starts_with('#')
        || text
            .strip_prefix("--")
            .is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace))
}

/// Length of a quoted text with its quotes; a doubled quote and, but in backquotes, a backslash do not end it.
fn quoted_length(bytes: &[u8]) -> Option<usize> {
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statements_end_at_semicolons_outside_quotes_and_comments() {
        let text =
            "SELECT ';', \"it's\", `a;b`; -- not; here\n# nor; here\n/* nor; here */ SELECT 'a\\';b', 'c'';d';;\nDO 1";
        assert_eq!(
            split(text).unwrap(),
            ["SELECT ';', \"it's\", `a;b`", "SELECT 'a\\';b', 'c'';d'", "DO 1"]
        );
    }

    #[test]
    fn a_delimiter_can_be_changed_as_in_the_mysql_client() {
        let text = "delimiter //\nCREATE PROCEDURE p() BEGIN DO 1; DO 2; END//\nDELIMITER ;\nCALL p();";
        assert_eq!(
            split(text).unwrap(),
            ["CREATE PROCEDURE p() BEGIN DO 1; DO 2; END", "CALL p()"]
        );
    }

    #[test]
    fn versioned_comments_are_statements() {
        assert_eq!(split("/*!40101 SET x=1 */;").unwrap(), ["/*!40101 SET x=1 */"]);
    }

    #[test]
    fn an_open_quote_is_said_with_its_line() {
        let error = split("DO 1;\nSELECT 'x").unwrap_err();
        assert_eq!(error.to_string(), "line 2: this quote is never closed");
        assert_eq!(
            Script::parse("-- nothing\n;;", Repetition::Loop).unwrap_err(),
            ScriptError::Empty
        );
    }

    #[test]
    fn names_tell_the_verb_and_nothing_else() {
        let script = Script::parse("select secret from t; frobnicate", Repetition::Once).unwrap();
        assert_eq!(script.statement_names(), ["statement 1 (SELECT)", "statement 2"]);
    }

    proptest! {
        #[test]
        fn any_text_is_split_or_refused(text in "\\PC*") {
            let _ = split(&text);
        }

        #[test]
        fn plain_statements_come_back(parts in prop::collection::vec("[a-z]{1,8}( [a-z0-9]{1,5}){0,3}", 1..8)) {
            prop_assume!(parts.iter().all(|p| !starts_with_word(p, "delimiter")));
            let text = parts.join(" ;\n");
            prop_assert_eq!(split(&text).unwrap(), parts);
        }
    }
}
