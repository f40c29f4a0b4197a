//! Names that somebody else's file gives, as they may be shown.

use std::borrow::Cow;

/// Most bytes of a name. The longest of C++ and Rust without their template arguments have some hundred.
pub(crate) const LONGEST: usize = 4096;

/// The name with what would steer the terminal that it is shown on replaced, and of a name that nobody can read its beginning: a
/// recording may come from anybody.
pub(crate) fn legible(name: Cow<'_, str>) -> Cow<'_, str> {
    let name = shortened(name);
    match name.contains(char::is_control) {
        true => Cow::Owned(name.replace(char::is_control, "\u{fffd}")),
        false => name,
    }
}

/// The beginning of a name that is too long, with a mark.
pub(crate) fn shortened(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return name;
    }
    let end = (0..=LONGEST).rev().find(|end| name.is_char_boundary(*end));
    Cow::Owned(format!("{}\u{2026}", &name[..end.unwrap_or(0)]))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, legible};

    #[test]
    fn of_a_name_without_end_the_beginning_is_kept() {
        let long = "\u{e9}".repeat(LONGEST);
        let shown = legible(long.as_str().into());
        assert!(shown.len() <= LONGEST + 3 && shown.ends_with("\u{e9}\u{2026}"));
        let longest = "f".repeat(LONGEST);
        assert_eq!(legible(longest.as_str().into()), longest);
    }

    #[test]
    fn names_steer_no_terminal_and_stay_otherwise() {
        assert_eq!(legible("caf\u{e9} (client)".into()), "caf\u{e9} (client)");
        assert_eq!(
            legible("\u{1b}]0;owned\u{7}\n".into()),
            "\u{fffd}]0;owned\u{fffd}\u{fffd}"
        );
    }
}
