//! Options of every command.

use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::sync::OnceLock;

/// What is printed beside the result, and how.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArguments {
    /// Show no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", global = true)]
    pub(crate) color: ColorChoice,
}

/// When the result has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Decided once, as the environment is.
static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

impl ColorChoice {
    /// Holds for all that is printed from here on.
    pub(crate) fn decide(self) {
        let _ = CHOICE.set(self);
    }

    /// Whether what is printed has colours.
    fn has_colours(self, on_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
        match self {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let asked_for_none = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
                let is_dumb = variable("TERM").as_deref() == Some("dumb");
                on_terminal && !asked_for_none && !is_dumb
            }
        }
    }
}

/// Whether the standard output is to have colours.
pub(crate) fn has_colours() -> bool {
    let choice = CHOICE.get().copied().unwrap_or(ColorChoice::Auto);
    choice.has_colours(std::io::stdout().is_terminal(), |name| std::env::var(name).ok())
}

#[cfg(test)]
mod tests {
    use super::ColorChoice;

    #[test]
    fn colours_are_for_terminals_that_may_have_them() {
        let with = |choice: ColorChoice, on_terminal: bool, set: &[(&str, &str)]| {
            choice.has_colours(on_terminal, |name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(with(ColorChoice::Auto, true, &[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!with(ColorChoice::Auto, false, &[]));
        assert!(!with(ColorChoice::Auto, true, &[("NO_COLOR", "1")]));
        assert!(!with(ColorChoice::Auto, true, &[("TERM", "dumb")]));
        assert!(with(ColorChoice::Always, false, &[("NO_COLOR", "1")]));
        assert!(!with(ColorChoice::Never, true, &[]));
    }
}
