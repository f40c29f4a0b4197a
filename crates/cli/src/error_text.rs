//! What is printed of an error: one sentence, and what to do about it on a line of its own.

use crate::sanitized::sanitized;

/// A line of an error's text that says what to do begins so.
const FIX: &str = "fix: ";

/// `error: ` with the sentences of the error and its causes, then each fix on a line of its own. A cause that
/// the sentence already holds is omitted.
pub(crate) fn of(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    let mut fixes: Vec<String> = Vec::new();
    for text in error.chain().map(ToString::to_string) {
        let (mut own_fixes, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with(FIX));
        let own = lines.join("\n");
        if sentence.is_empty() {
            sentence = own;
        } else if !sentence.contains(&own) {
            sentence.push_str(": ");
            sentence.push_str(&own);
        }
        own_fixes.retain(|fix| !fixes.iter().any(|known| known == fix));
        fixes.extend(own_fixes.into_iter().map(str::to_owned));
    }
    let mut words = format!("error: {sentence}");
    for fix in fixes {
        words.push_str("\n  ");
        words.push_str(&fix);
    }
    sanitized(&words)
}

/// `warning: ` with the text, and its fix on a line of its own.
pub(crate) fn warning(text: &str) -> String {
    sanitized(&format!("warning: {}", text.replace("\nfix: ", "\n  fix: ")))
}

#[cfg(test)]
mod tests {
    use super::of;
    use anyhow::Context;

    fn no_space() -> std::io::Error {
        std::io::Error::other("no space")
    }

    #[test]
    fn a_cause_is_printed_once() {
        let held: anyhow::Result<()> = Err(no_space()).context("cannot write x: no space");
        assert_eq!(of(&held.unwrap_err()), "error: cannot write x: no space");
        let apart: anyhow::Result<()> = Err(no_space()).context("cannot write x");
        assert_eq!(of(&apart.unwrap_err()), "error: cannot write x: no space");
    }

    #[test]
    fn a_fix_is_the_last_line_wherever_in_the_chain_it_is() {
        let inner = anyhow::anyhow!("the server did not start; its log ends:\nline 1\nline 2\nfix: free space");
        let outer = inner.context("cannot run\nfix: name another folder");
        assert_eq!(
            of(&outer),
            "error: cannot run: the server did not start; its log ends:\nline 1\nline 2\n  fix: name another folder\n  fix: free space"
        );
    }
}
