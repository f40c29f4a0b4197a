//! Names that somebody else's file gives, as they may be shown.

use std::borrow::Cow;

/// The name with what would steer the terminal that it is shown on replaced: a recording may come from anybody.
pub(crate) fn legible(name: Cow<'_, str>) -> Cow<'_, str> {
    match name.contains(char::is_control) {
        true => Cow::Owned(name.replace(char::is_control, "\u{fffd}")),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::legible;

    #[test]
    fn names_steer_no_terminal_and_stay_otherwise() {
        assert_eq!(legible("caf\u{e9} (client)".into()), "caf\u{e9} (client)");
        assert_eq!(
            legible("\u{1b}]0;owned\u{7}\n".into()),
            "\u{fffd}]0;owned\u{fffd}\u{fffd}"
        );
    }
}
