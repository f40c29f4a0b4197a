//! Options that say which servers run beside the one under test.

use clap::Args;
use scaleprof_experiment::{Company, MOST_NEIGHBOURS};
use scaleprof_server::replication::MOST_REPLICAS;
use scaleprof_server::{CpuSet, Replication, ReplicationMethod};

/// Servers beside the one under test.
#[derive(Debug, Args)]
pub(crate) struct CompanyArguments {
    /// Replicas follow the server: asynchronous, semi-synchronous, group (MySQL), galera (MariaDB). What they replay and how far they are
    /// behind is measured
    #[arg(long, value_name = "METHOD", help_heading = "Server", conflicts_with = "neighbours")]
    pub(crate) replication: Option<ReplicationMethod>,
    /// How many replicas
    #[arg(long, value_name = "N", default_value_t = 1, requires = "replication", help_heading = "Server",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPLICAS)))]
    pub(crate) replicas: u32,
    /// So many servers like it bear the same load at the same time
    #[arg(long, value_name = "N", help_heading = "Server",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_NEIGHBOURS)))]
    pub(crate) neighbours: Option<u32>,
    /// CPUs of the replicas or neighbours [default: those of the server]
    #[arg(long, value_name = "CPUS", help_heading = "Server")]
    pub(crate) cpus_company: Option<CpuSet>,
}

impl CompanyArguments {
    /// What was asked for.
    pub(crate) fn choice(&self) -> anyhow::Result<Company> {
        Ok(match (self.replication, self.neighbours) {
            (Some(method), _) => {
                Company::Replicas(Replication::new(method, self.replicas).map_err(anyhow::Error::msg)?)
            }
            (None, Some(count)) => Company::Neighbours(count),
            (None, None) if self.cpus_company.is_some() => {
                anyhow::bail!(
                    "--cpus-company goes with --replication or --neighbours: without them there is no server beside it"
                )
            }
            (None, None) => Company::Alone,
        })
    }
}
