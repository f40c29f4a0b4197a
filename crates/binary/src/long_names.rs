//! How long names may be. Those that a file gives are its own business, but each is kept for every place that it names: one of 100 KB
//! for ten thousand functions would take a gigabyte.

use std::fmt;

/// Most bytes of a function's name as linkers know it: those of C++ and Rust spell out all types.
pub(crate) const LINKAGE: usize = 16 << 10;
/// The same of a variable's.
pub(crate) const VARIABLE: usize = 4096;
/// Most bytes of a name that is shown, of a function, a variable, a member or a file.
pub(crate) const SHOWN: usize = 1024;

/// The beginning of a name, of so many bytes at most.
pub(crate) fn cut(name: &str, most: usize) -> &str {
    if name.len() <= most {
        return name;
    }
    let end = (0..=most).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// The same of an owned one.
pub(crate) fn cut_owned(mut name: String, most: usize) -> String {
    let length = cut(&name, most).len();
    name.truncate(length);
    name
}

/// Text that is given up when it becomes longer than anybody's: few bytes of a mangled name can stand for as much as there is memory.
#[derive(Debug, Default)]
pub(crate) struct BoundedText(pub(crate) String);

/// Most bytes of what a mangled name stands for, before arguments are left out.
const TEXT: usize = 32 << 10;

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > TEXT {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc");
        assert_eq!(cut("a\u{e9}b", 2), "a");
        assert_eq!(cut_owned("\u{e9}\u{e9}".to_owned(), 3), "\u{e9}");
    }

    #[test]
    fn text_without_end_is_given_up() {
        let mut text = BoundedText::default();
        assert!(text.write_str(&"x".repeat(TEXT)).is_ok());
        assert!(text.write_str("x").is_err());
        assert_eq!(text.0.len(), TEXT);
    }
}
