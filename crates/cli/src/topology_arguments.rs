//! Options that say which servers run beside the one under test.

use crate::choice::{REPLICATION_METHODS, one_of};
use clap::Args;
use scaleprof_experiment::{Company, MOST_NEIGHBOURS};
use scaleprof_server::replication::MOST_REPLICAS;
use scaleprof_server::{CpuSet, Replication, ReplicationMethod};

/// Servers beside the one under test.
#[derive(Debug, Args)]
#[command(next_help_heading = "Private server (the default)")]
#[group(id = "topology", multiple = true, conflicts_with = "address")]
pub(crate) struct TopologyArguments {
    /// Replicas and how they follow the server; group is MySQL's, galera MariaDB's. Their replay rate
    /// and lag are measured
    #[arg(long, value_name = "METHOD", conflicts_with = "neighbours",
        value_parser = one_of::<ReplicationMethod>(REPLICATION_METHODS))]
    pub(crate) replication: Option<ReplicationMethod>,
    /// How many replicas
    #[arg(long, value_name = "N", default_value_t = 1, requires = "replication",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPLICAS)))]
    pub(crate) replicas: u32,
    /// Number of neighbours: identical servers under the same load at the same time
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_NEIGHBOURS)))]
    pub(crate) neighbours: Option<u32>,
    /// CPUs of the replicas or neighbours [default: those of the server]
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus_others: Option<CpuSet>,
}

impl TopologyArguments {
    /// What was asked for.
    pub(crate) fn choice(&self) -> anyhow::Result<Company> {
        Ok(match (self.replication, self.neighbours) {
            (Some(method), _) => {
                Company::Replicas(Replication::new(method, self.replicas).map_err(anyhow::Error::msg)?)
            }
            (None, Some(count)) => Company::Neighbours(count),
            (None, None) if self.cpus_others.is_some() => {
                anyhow::bail!(
                    "--cpus-others requires --replication or --neighbours: without them there is only one server"
                )
            }
            (None, None) => Company::Alone,
        })
    }
}
