//! Servers beside the one under test: such as follow it, and such as bear a load of their own.

use crate::error::RunError;
use scaleprof_analysis::numbers::counted;
use scaleprof_server::{CpuSet, PreparedData, Replicas, Replication, ReplicationMethod, Sandbox, SandboxBuilder};
use std::sync::atomic::{AtomicBool, Ordering};

/// Which servers run beside the one under test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Company {
    /// None.
    #[default]
    Alone,
    /// Such as follow it.
    Replicas(Replication),
    /// Others like it, on copies of the same data: each bears the same load at the same time.
    Neighbours(u32),
}

/// The most neighbours of a server.
pub const MOST_NEIGHBOURS: u32 = 15;

impl Company {
    /// Servers in all, with the one under test.
    pub fn servers(&self) -> u32 {
        match self {
            Company::Alone => 1,
            Company::Replicas(replication) => replication.servers(),
            Company::Neighbours(neighbours) => neighbours + 1,
        }
    }

    /// Servers that bear the load.
    pub fn loaded_servers(&self) -> u32 {
        match self {
            Company::Neighbours(neighbours) => neighbours + 1,
            Company::Alone | Company::Replicas(_) => 1,
        }
    }

    /// Whether every table has to have a primary key: clusters know rows by it.
    pub fn needs_keys(&self) -> bool {
        use ReplicationMethod::{Galera, Group};
        matches!(self, Company::Replicas(replication) if [Group, Galera].contains(&replication.method))
    }

    /// In words, such as `group, 2 replicas`; none where there is none.
    pub fn words(&self) -> Option<String> {
        match self {
            Company::Alone => None,
            Company::Replicas(replication) => Some(replication.to_string()),
            Company::Neighbours(count) => Some(format!("{} under the same load", counted(*count, "neighbour"))),
        }
    }
}

/// The servers beside one that runs.
#[derive(Debug, Default)]
pub(crate) enum Beside {
    /// None, or of somebody else's server none that we know.
    #[default]
    Nobody,
    Replicas(Replicas),
    Neighbours(Vec<Sandbox>),
}

impl Beside {
    /// Starts a server with its company, all on copies of the same data.
    pub(crate) fn start(
        builder: &SandboxBuilder,
        data: &PreparedData,
        company: &Company,
        cpus: Option<&CpuSet>,
        stop: &AtomicBool,
    ) -> Result<(Sandbox, Beside), RunError> {
        let one = || builder.clone();
        Ok(match company {
            Company::Alone => (one().start_from(data)?, Beside::Nobody),
            Company::Replicas(replication) => {
                let (source, replicas) = one().start_replicated(data, *replication, cpus, stop)?;
                (source, Beside::Replicas(replicas))
            }
            Company::Neighbours(count) => {
                builder.check_memory_of(count + 1)?;
                let first = one().start_from(data)?;
                let another = |_| match stop.load(Ordering::Relaxed) {
                    true => Err(RunError::Stopped),
                    false => Ok(one().on_cpus(cpus).start_from(data)?),
                };
                let others: Result<Vec<Sandbox>, RunError> = (0..*count).map(another).collect();
                (first, Beside::Neighbours(others?))
            }
        })
    }

    /// All of them.
    pub(crate) fn servers(&self) -> &[Sandbox] {
        match self {
            Beside::Nobody => &[],
            Beside::Replicas(replicas) => replicas.servers(),
            Beside::Neighbours(neighbours) => neighbours,
        }
    }

    /// Those that bear the same load.
    pub(crate) fn neighbours(&self) -> &[Sandbox] {
        match self {
            Beside::Neighbours(neighbours) => neighbours,
            Beside::Nobody | Beside::Replicas(_) => &[],
        }
    }

    /// Kills them, so that their memory is free.
    pub(crate) fn kill(&mut self) {
        match self {
            Beside::Nobody => {}
            Beside::Replicas(replicas) => replicas.kill(),
            Beside::Neighbours(neighbours) => {
                for neighbour in neighbours {
                    neighbour.kill();
                }
            }
        }
    }
}
