//! Who makes a server, and its version.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The products whose servers we can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Product {
    /// MariaDB Server.
    MariaDb,
    /// MySQL, of Oracle or of a distribution.
    MySql,
    /// Percona Server for MySQL.
    Percona,
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Product::MariaDb => "MariaDB",
            Product::MySql => "MySQL",
            Product::Percona => "Percona Server",
        })
    }
}

/// The three numbers of a server's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// 10 of 10.11.6.
    pub major: u16,
    /// 11 of 10.11.6.
    pub minor: u16,
    /// 6 of 10.11.6.
    pub patch: u16,
}

impl Version {
    /// A version of its three numbers.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Version { major, minor, patch }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = ();

    /// Reads the leading `A.B.C` of strings such as `10.11.6-MariaDB-0+deb12u1-log`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, '.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse::<u16>().map_err(|_| ())
        });
        let mut next = || parts.next().unwrap_or(Err(()));
        Ok(Version::new(next()?, next()?, next()?))
    }
}
