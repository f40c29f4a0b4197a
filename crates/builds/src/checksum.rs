//! Checksums that are published beside a file, and those that a user gives.

use crate::error::Error;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::progress::Watcher;

/// A way to make checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Sha512,
    Sha256,
    Sha1,
}

impl Algorithm {
    /// The strongest first.
    pub(crate) const ALL: [Algorithm; 3] = [Algorithm::Sha512, Algorithm::Sha256, Algorithm::Sha1];

    /// As in an error.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Algorithm::Sha512 => "SHA-512",
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Sha1 => "SHA-1",
        }
    }

    /// The ending of the file that holds it.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Algorithm::Sha512 => "sha512",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha1 => "sha1",
        }
    }

    fn digits(self) -> usize {
        match self {
            Algorithm::Sha512 => 128,
            Algorithm::Sha256 => 64,
            Algorithm::Sha1 => 40,
        }
    }
}

/// A checksum that a file ought to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) algorithm: Algorithm,
    /// In lower case.
    pub(crate) digits: String,
    /// Who says so.
    pub(crate) by: String,
}

/// Reads a file that holds the checksum of `file`: the digits alone (Maven), or lines of digits and name (sha256sum), among
/// which that of `file` counts. None where it holds none, as a page that says "not found" does.
pub(crate) fn published(algorithm: Algorithm, text: &str, file: &str) -> Option<String> {
    let is_digits = |word: &str| word.len() == algorithm.digits() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // As `openssl dgst` and BSD's tools write it: SHA256 (FILE) = digits.
    let tagged = text.lines().find_map(|line| {
        let (name, digits) = line.trim().split_once('(')?.1.rsplit_once(')')?;
        names(name.trim(), file).then_some(digits.trim().strip_prefix('=')?.trim())
    });
    if let Some(digits) = tagged {
        return is_digits(digits).then(|| digits.to_ascii_lowercase());
    }
    let digits = if let (Some(only), None) = (lines.next(), lines.next()) {
        // One line is meant for this file, unless it names another.
        let mut words = only.split_whitespace();
        let digits = words.next()?;
        words.next().is_none_or(|name| names(name, file)).then_some(digits)?
    } else {
        text.lines().find_map(|line| {
            let (digits, name) = line.trim().split_once(char::is_whitespace)?;
            names(name.trim(), file).then_some(digits)
        })?
    };
    is_digits(digits).then(|| digits.to_ascii_lowercase())
}

/// Whether a text that lies where a file's checksum would looks like one, though none of `file` could be read from it: then there is
/// one to be held to, and nobody knows which.
pub(crate) fn seems_published(algorithm: Algorithm, text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let mut digits = words.filter(|word| word.bytes().all(|byte| byte.is_ascii_hexdigit()));
    digits.any(|word| word.len() == algorithm.digits())
}

/// `*FILE` (binary), `./FILE`, `FOLDER/FILE`.
fn names(name: &str, file: &str) -> bool {
    name.trim_start_matches('*').rsplit('/').next() == Some(file)
}

/// The checksum that a user gives.
///
/// # Errors
/// It is not 64 hexadecimal digits.
pub(crate) fn given(text: &str) -> Result<Checksum, Error> {
    let digits = published(Algorithm::Sha256, text, "").ok_or_else(|| Error::Source {
        text: text.to_owned(),
        reason: "a SHA-256 has 64 hexadecimal digits".to_owned(),
    })?;
    Ok(Checksum {
        algorithm: Algorithm::Sha256,
        digits,
        by: "--sha256".to_owned(),
    })
}

/// A few digits that tell one text from others.
pub(crate) fn short(text: &str) -> String {
    let digits = Sha256::digest(text);
    digits.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Compares; a file that has another checksum is left to the caller.
///
/// # Errors
/// It has another one, or cannot be read.
pub(crate) fn check(path: &Path, shown: &str, wanted: &Checksum, watcher: &mut Watcher<'_>) -> Result<(), Error> {
    let found = match wanted.algorithm {
        Algorithm::Sha512 => of_file::<Sha512>(path, watcher),
        Algorithm::Sha256 => of_file::<Sha256>(path, watcher),
        Algorithm::Sha1 => of_file::<Sha1>(path, watcher),
    }?;
    match found == wanted.digits {
        true => Ok(()),
        false => Err(Error::Checksum {
            file: shown.to_owned(),
            was_removed: false,
            algorithm: wanted.algorithm.name(),
            found,
            wanted: wanted.digits.clone(),
            wanted_by: wanted.by.clone(),
        }),
    }
}

fn of_file<D: Digest>(path: &Path, watcher: &mut Watcher<'_>) -> Result<String, Error> {
    let mut file = File::open(path).map_err(Error::system("open", path))?;
    let of = file.metadata().ok().map(|facts| facts.len());
    let mut hash = D::new();
    let mut buffer = vec![0; 1 << 17];
    let mut done = 0;
    loop {
        watcher.go_on()?;
        let count = file.read(&mut buffer).map_err(Error::system("read", path))?;
        if count == 0 {
            break;
        }
        hash.update(buffer.get(..count).unwrap_or_default());
        done += count as u64;
        watcher.progress.bytes(done, of);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_checksums_are_read_in_each_usual_form() {
        let one = "a".repeat(40);
        let other = "B".repeat(40);
        let of = |text: &str| published(Algorithm::Sha1, text, "x.tar.gz");
        assert_eq!(of(&one), Some(one.clone()));
        assert_eq!(of(&format!("{one}\n")), Some(one.clone()));
        assert_eq!(of(&format!("{one}  x.tar.gz\n")), Some(one.clone()));
        assert_eq!(of(&format!("{one} *./x.tar.gz")), Some(one.clone()));
        assert_eq!(
            of(&format!("{other}  y.tar.gz\n{one}  d/x.tar.gz\n")),
            Some(one.clone())
        );
        assert_eq!(
            of(&format!("{one}  y\n{other}  x.tar.gz\n")),
            Some(other.to_ascii_lowercase())
        );
        assert_eq!(of(&format!("{one}  y.tar.gz\n")), None, "it is another file's");
        assert_eq!(of("<html>\n<body>Not found</body>\n"), None);
        assert_eq!(of(""), None);
        assert_eq!(published(Algorithm::Sha256, &one, "x"), None, "it is too short");
    }
}
