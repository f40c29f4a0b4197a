//! What could not be had, honestly.

/// Something that is missing from what was seen, and what would give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is missing.
    pub what: String,
    /// Why.
    pub why: String,
    /// The one command that would give it, where there is one.
    pub command: Option<String>,
}
