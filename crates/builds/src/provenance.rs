//! What is kept beside a build: where it came from. Its file marks a folder as ours and as whole, being written last.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::SystemTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The file's name, in the top folder of a build.
pub const FILE: &str = ".scaleprof-server";

/// Where a build came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// As `servers fetch` takes it, without accounts and queries of URLs.
    pub source: Option<String>,
    /// When it was fetched, in UTC, as RFC 3339 has it.
    pub fetched: Option<String>,
    /// How it was checked, in words.
    pub checked: Option<String>,
    /// The packages that it was made of, with their versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
}

impl Provenance {
    /// Of what is fetched now.
    pub(crate) fn now(source: String, checked: String, packages: Vec<String>) -> Self {
        Provenance {
            source: Some(source),
            fetched: OffsetDateTime::from(SystemTime::now()).format(&Rfc3339).ok(),
            checked: Some(checked),
            packages,
        }
    }

    /// Reads it of a build; none where the folder is not ours or not whole.
    pub fn of(build: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(build.join(FILE)).ok()?;
        // Earlier versions kept the date alone.
        Some(serde_json::from_str(&text).unwrap_or_else(|_| Provenance {
            source: None,
            fetched: Some(text.trim().to_owned()).filter(|date| !date.is_empty()),
            checked: None,
            packages: Vec::new(),
        }))
    }

    /// Writes it: from now on the folder counts as a build.
    pub(crate) fn write(&self, build: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        std::fs::write(build.join(FILE), text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_written_and_the_date_of_earlier_versions() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Provenance::of(folder.path()), None);
        let written = Provenance::now("debian:sid/x".to_owned(), "signed".to_owned(), vec!["x=1".to_owned()]);
        written.write(folder.path()).expect("written");
        assert_eq!(Provenance::of(folder.path()), Some(written));
        std::fs::write(folder.path().join(FILE), "2026-11-21T11:57:06Z\n").expect("written");
        let old = Provenance::of(folder.path()).expect("ours");
        assert_eq!(
            (old.source, old.fetched.as_deref()),
            (None, Some("2026-11-21T11:57:06Z"))
        );
    }
}
