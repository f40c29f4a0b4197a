//! Servers that follow the one under test on the same machine, so that what replication costs it can be measured, and how fast they
//! follow.
//!
//! All start on the same bytes: replicas are given fresh copies of the prepared data, and nothing has to be transferred before they
//! can follow. They listen on 127.0.0.1 only and go with the server that they follow.
//!
//! Sources: the chapters "Replication" and "Group Replication" of the MySQL 5.6 to 9 reference manuals; MariaDB's knowledge base,
//! "Semisynchronous Replication" and "Galera Cluster"; codership's wsrep API for state transfer scripts.

mod handover;
mod linking;
mod node;
mod position;
mod replicas;

pub use position::Position;
pub use replicas::Replicas;

use crate::capabilities::{Capabilities, Feature};
use crate::error::Error;
use crate::identify::Installation;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How replicas follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicationMethod {
    /// They read the binary log; nobody waits for them.
    Asynchronous,
    /// A commit waits until one replica has received it.
    SemiSynchronous,
    /// MySQL's Group Replication with one primary: a commit waits until the group agrees on its order.
    Group,
    /// MariaDB's Galera Cluster: a commit waits until all nodes have received and certified it.
    Galera,
}

impl ReplicationMethod {
    /// All of them.
    pub const ALL: [ReplicationMethod; 4] = [
        ReplicationMethod::Asynchronous,
        ReplicationMethod::SemiSynchronous,
        ReplicationMethod::Group,
        ReplicationMethod::Galera,
    ];

    /// Whether replicas read the source's binary log, each for itself.
    fn reads_binary_log(self) -> bool {
        matches!(
            self,
            ReplicationMethod::Asynchronous | ReplicationMethod::SemiSynchronous
        )
    }
}

impl fmt::Display for ReplicationMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplicationMethod::Asynchronous => "asynchronous",
            ReplicationMethod::SemiSynchronous => "semi-synchronous",
            ReplicationMethod::Group => "group",
            ReplicationMethod::Galera => "galera",
        })
    }
}

impl FromStr for ReplicationMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let same = |method: &&ReplicationMethod| method.to_string() == text;
        ReplicationMethod::ALL.iter().find(same).copied().ok_or_else(|| {
            let all = ReplicationMethod::ALL.map(|method| method.to_string());
            format!("'{text}' is no way to replicate: {}", all.join(", "))
        })
    }
}

/// The most replicas of one server; a group of MySQL has nine members at most.
pub const MOST_REPLICAS: u32 = 8;

/// Replicas beside a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replication {
    /// How they follow.
    pub method: ReplicationMethod,
    /// How many.
    pub replicas: u32,
}

impl Replication {
    /// Replicas of this number.
    ///
    /// # Errors
    /// None, or more than [`MOST_REPLICAS`], in words.
    pub fn new(method: ReplicationMethod, replicas: u32) -> Result<Self, String> {
        match (1..=MOST_REPLICAS).contains(&replicas) {
            true => Ok(Replication { method, replicas }),
            false => Err(format!("{replicas} replicas; write 1 to {MOST_REPLICAS}")),
        }
    }

    /// Servers in all, with the one that they follow.
    pub fn servers(&self) -> u32 {
        self.replicas + 1
    }

    /// What these servers need for it beside themselves.
    ///
    /// # Errors
    /// The product, the version or the package cannot do it, with what would.
    pub(crate) fn means(&self, installation: &Installation) -> Result<Means, Error> {
        let capabilities = Capabilities::of(installation.product, installation.version);
        let lack = |reason: String| Error::ReplicationUnsupported {
            method: self.method.to_string(),
            product: installation.product,
            version: installation.version_text.clone(),
            reason,
        };
        let plugin = |name: &str| {
            let folder = installation.plugins.as_deref();
            match folder.is_some_and(|folder| folder.join(name).is_file()) {
                true => Ok(name.to_owned()),
                false => Err(lack(format!("its plugin folder has no {name}"))),
            }
        };
        let mut means = Means {
            capabilities,
            plugins: Vec::new(),
            provider: None,
        };
        match self.method {
            ReplicationMethod::Asynchronous | ReplicationMethod::SemiSynchronous
                if !capabilities.has(Feature::GlobalTransactionIds) =>
            {
                return Err(lack("it needs MySQL 5.6.10 or MariaDB 10.0.2, or newer".to_owned()));
            }
            ReplicationMethod::Asynchronous => {}
            ReplicationMethod::SemiSynchronous if capabilities.has(Feature::SemiSyncBuiltIn) => {}
            ReplicationMethod::SemiSynchronous => {
                let names = linking::SemiSyncWords::of(&capabilities);
                means.plugins = vec![plugin(names.source_plugin)?, plugin(names.replica_plugin)?];
            }
            ReplicationMethod::Group if !capabilities.has(Feature::GroupReplication) => {
                return Err(lack("it needs MySQL 8.0.23 or newer".to_owned()));
            }
            ReplicationMethod::Group => means.plugins = vec![plugin("group_replication.so")?],
            ReplicationMethod::Galera if !capabilities.has(Feature::Galera) => {
                return Err(lack("it needs MariaDB 10.4 or newer".to_owned()));
            }
            ReplicationMethod::Galera => {
                let found = galera_provider(&installation.basedir);
                means.provider = Some(found.ok_or_else(|| {
                    lack(format!(
                        "there is no {GALERA} under {}, /usr/lib or /usr/lib64: install it (apt-get install galera-4)",
                        installation.basedir.display()
                    ))
                })?);
            }
        }
        Ok(means)
    }
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replicas = match self.replicas {
            1 => "1 replica".to_owned(),
            count => format!("{count} replicas"),
        };
        write!(f, "{}, {replicas}", self.method)
    }
}

/// What a server needs for a way to replicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Means {
    pub(crate) capabilities: Capabilities,
    /// Files in its plugin folder.
    pub(crate) plugins: Vec<String>,
    /// Galera's library.
    pub(crate) provider: Option<PathBuf>,
}

const GALERA: &str = "libgalera_smm.so";

fn galera_provider(basedir: &Path) -> Option<PathBuf> {
    let folders = ["lib/galera", "lib64/galera-4", "lib64/galera", "lib"];
    let roots = [basedir.to_owned(), basedir.join("usr"), PathBuf::from("/usr")];
    let places = roots
        .iter()
        .flat_map(|root| folders.map(|folder| root.join(folder).join(GALERA)));
    places.into_iter().find(|place| place.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_written_as_it_is_read() {
        for method in ReplicationMethod::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        let error = "sync".parse::<ReplicationMethod>().unwrap_err();
        assert!(
            error.contains("'sync'") && error.contains("semi-synchronous"),
            "{error}"
        );
    }

    #[test]
    fn a_group_has_nine_members_at_most() {
        assert!(Replication::new(ReplicationMethod::Group, 0).is_err());
        assert!(Replication::new(ReplicationMethod::Group, 9).is_err());
        let replication = Replication::new(ReplicationMethod::Group, 8).unwrap();
        assert_eq!(
            (replication.servers(), replication.to_string().as_str()),
            (9, "group, 8 replicas")
        );
    }
}
