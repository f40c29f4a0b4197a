//! An error in words, each of its causes once.

use crate::legible::legible;

/// The error and its causes. Many errors tell their cause in their own words already: what was said is not said again.
pub(crate) fn of(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words.push_str(": ");
            words.push_str(&cause);
        }
    }
    legible(&words)
}

#[cfg(test)]
mod tests {
    use super::of;
    use anyhow::Context;

    #[test]
    fn a_cause_is_told_once() {
        let io = || std::io::Error::other("no space");
        let told: anyhow::Result<()> = Err(io()).context("cannot write x: no space; free some");
        assert_eq!(of(&told.unwrap_err()), "cannot write x: no space; free some");
        let untold: anyhow::Result<()> = Err(io()).context("cannot write x");
        assert_eq!(of(&untold.unwrap_err()), "cannot write x: no space");
    }
}
