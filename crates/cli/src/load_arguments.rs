//! The options of the load and of the ladder, which `run` and `attach` share.

use crate::choice::{
    ARRIVALS, DISTRIBUTIONS, HOME_WAREHOUSES, ISOLATION_LEVELS, PROTOCOLS, TRANSPORTS, listed, one_of,
};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::TypedValueParser;
use scaleprof_experiment::{LoadOptions, WorkloadChoice, parse_connections};
use scaleprof_workload::tpcc::{self, HomeWarehouse, Mix, Tpcc, TpccOptions};
use scaleprof_workload::{
    Arrivals, Distribution, LoopKind, OltpOptions, OltpWorkloadKind, Protocol, Repetition, TransportChoice,
};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArguments {
    /// What every connection runs: one of sysbench's OLTP workloads (oltp_read_write, oltp_read_only,
    /// oltp_write_only, oltp_point_select, oltp_update_index, oltp_update_non_index, oltp_insert, oltp_delete,
    /// select_random_points, select_random_ranges), tpcc, or a FILE.sql
    #[arg(long, value_name = "NAME|FILE.sql", default_value = "oltp_read_write")]
    pub(crate) workload: String,
    /// Tables of the OLTP workloads [default: 4; 1 for the select_random workloads; none for a FILE.sql]
    #[arg(long, value_name = "N")]
    pub(crate) tables: Option<u32>,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub(crate) rows: u32,
    /// Which rows. The first five are as sysbench's
    #[arg(long, value_name = "NAME", default_value = "uniform", value_parser = one_of::<Distribution>(DISTRIBUTIONS))]
    pub(crate) distribution: Distribution,
    /// Prepared statements (binary) or whole texts (text)
    #[arg(long, value_name = "NAME", default_value = "binary", value_parser = one_of::<Protocol>(PROTOCOLS))]
    pub(crate) protocol: Protocol,
    /// A further option of sysbench's workloads, such as point_selects=1 or skip_trx=on; can be given again
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) workload_option: Vec<String>,
    /// Statements that one connection runs before a FILE.sql
    #[arg(long, value_name = "FILE.sql")]
    pub(crate) setup: Option<PathBuf>,
    /// Run a FILE.sql once on every connection instead of in a loop
    #[arg(long)]
    pub(crate) once: bool,
    /// Warehouses of tpcc: about 100 MB each. Ten connections a warehouse are its terminals; more than these share their
    /// districts [default: 1]
    #[arg(long, value_name = "N", help_heading = "TPC-C")]
    pub(crate) warehouses: Option<u32>,
    /// Cards that a deck of tpcc has of New-Order, Payment, Order-Status, Delivery and Stock-Level; decks are shuffled and dealt to
    /// their end, so the mix is exact [default: 10,10,1,1,1]
    #[arg(long, value_name = "CARDS", help_heading = "TPC-C")]
    pub(crate) mix: Option<Mix>,
    /// Where the terminals of tpcc stand: each in one warehouse, by the specification (fixed), or drawn for every
    /// transaction (random; other kits call that terminalWarehouseFixed=false) [default: fixed]
    #[arg(long, value_name = "HOW", help_heading = "TPC-C", value_parser = one_of::<HomeWarehouse>(HOME_WAREHOUSES))]
    pub(crate) home_warehouse: Option<HomeWarehouse>,
    /// Let the users of tpcc type and read: the specification's keying and think times, times FACTOR. 1 is what tpmC of
    /// warehouses is about, at ten connections a warehouse [default: none]
    #[arg(long, value_name = "FACTOR", help_heading = "TPC-C")]
    pub(crate) think_times: Option<f64>,
    /// Isolation level of the connections [default: the server's]
    #[arg(long, value_name = "LEVEL", value_parser = isolation(), ignore_case = true)]
    pub(crate) isolation: Option<String>,
    /// Offer TX/S transactions per second (open loop); the default is a closed loop without pauses
    #[arg(long, value_name = "TX/S")]
    pub(crate) rate: Option<f64>,
    /// Arrivals of transactions in an open loop
    #[arg(long, value_name = "NAME", default_value = "poisson", value_parser = one_of::<Arrivals>(ARRIVALS))]
    pub(crate) arrivals: Arrivals,
    /// Idle connections, besides those that work
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) idle_connections: u32,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads of the client [default: by its CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) client_threads: Option<u32>,
    /// Which system calls carry the packets (encrypted ones always go over epoll)
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = one_of::<TransportChoice>(TRANSPORTS))]
    pub(crate) transport: TransportChoice,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Ladder")]
pub(crate) struct LadderArguments {
    /// Rungs: numbers and doubling ranges
    #[arg(long, value_name = "LADDER", default_value = "1,2,4..512")]
    pub(crate) connections: String,
    /// Seconds at each rung
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// How often each rung is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: u32,
    /// Do not add rungs around the peak and the fall-over
    #[arg(long)]
    pub(crate) no_refine: bool,
}

/// Where the result goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Result")]
pub(crate) struct ResultArguments {
    /// Folder of the bundle [default: scaleprof-runs/NAME-TIME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Print summary.json instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

impl LadderArguments {
    pub(crate) fn rungs(&self) -> anyhow::Result<Vec<u32>> {
        Ok(parse_connections(&self.connections)?)
    }
}

impl ResultArguments {
    /// The bundle's folder.
    pub(crate) fn output(&self, workload: &str) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let name = Path::new(workload)
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            Path::new("scaleprof-runs").join(format!("{name}-{}", crate::show::compact_time()))
        })
    }
}

impl LoadArguments {
    pub(crate) fn options(&self) -> anyhow::Result<LoadOptions> {
        let workload = self.workload()?;
        let one_table = matches!(
            workload,
            WorkloadChoice::Oltp(OltpWorkloadKind::RandomPoints | OltpWorkloadKind::RandomRanges)
        );
        let mut oltp = OltpOptions {
            tables: self.tables.unwrap_or(if one_table { 1 } else { 4 }),
            table_size: self.rows,
            distribution: self.distribution,
            protocol: self.protocol,
            ..OltpOptions::default()
        };
        for option in &self.workload_option {
            let (name, value) = option
                .split_once('=')
                .with_context(|| format!("--workload-option {option}: NAME=VALUE required, such as point_selects=1"))?;
            oltp.set(name, value)?;
        }
        Ok(LoadOptions {
            workload,
            oltp,
            idle_connections: self.idle_connections,
            loop_kind: self.loop_kind()?,
            isolation: self.isolation.clone(),
            seed: self.seed,
            threads: self.client_threads,
            transport: self.transport,
            reads_tables_first: true,
        })
    }

    fn loop_kind(&self) -> anyhow::Result<LoopKind> {
        let Some(rate) = self.rate else {
            return Ok(LoopKind::Closed);
        };
        if !(rate.is_finite() && (0.001..=1e8).contains(&rate)) {
            bail!("--rate {rate} is not possible: use transactions per second above 0.001");
        }
        if self.once {
            bail!(
                "--once and --rate contradict each other: --once ends after one run of the script, --rate never ends"
            );
        }
        Ok(LoopKind::Open {
            rate,
            arrivals: self.arrivals,
        })
    }

    /// TPC-C; options of other workloads are refused, as those of TPC-C are without it.
    fn tpcc(&self) -> anyhow::Result<WorkloadChoice> {
        let foreign = [
            ("--tables", self.tables.is_some()),
            ("--workload-option", !self.workload_option.is_empty()),
            ("--protocol text", self.protocol == Protocol::Text),
            ("--once and --setup", self.once || self.setup.is_some()),
        ];
        if let Some((name, _)) = foreign.into_iter().find(|(_, given)| *given) {
            bail!(
                "{name} is not possible with tpcc: use --warehouses for its size; its statements are always prepared"
            );
        }
        if self.think_times.is_some() && self.rate.is_some() {
            bail!("--rate and --think-times contradict each other: both set the start of transactions");
        }
        let defaults = TpccOptions::default();
        let options = TpccOptions {
            warehouses: self.warehouses.unwrap_or(defaults.warehouses),
            mix: self.mix.unwrap_or(defaults.mix),
            home: self.home_warehouse.unwrap_or(defaults.home),
            pauses: self.think_times,
            data_seed: self.seed,
            history_key: defaults.history_key,
        };
        // Errors of the options end the command before anything is started.
        Tpcc::new(options.clone())?;
        Ok(WorkloadChoice::Tpcc(options))
    }

    fn workload(&self) -> anyhow::Result<WorkloadChoice> {
        if self.workload == tpcc::NAME {
            return self.tpcc();
        }
        let of_tpcc = [
            ("--warehouses", self.warehouses.is_some()),
            ("--mix", self.mix.is_some()),
            ("--home-warehouse", self.home_warehouse.is_some()),
            ("--think-times", self.think_times.is_some()),
        ];
        if let Some((name, _)) = of_tpcc.into_iter().find(|(_, given)| *given) {
            bail!("{name} requires --workload tpcc, but the workload is {}", self.workload);
        }
        if !self.workload.ends_with(".sql") {
            if self.once || self.setup.is_some() {
                bail!(
                    "--once and --setup require a FILE.sql, but the workload is {}",
                    self.workload
                );
            }
            let kind = self.workload.parse().map_err(anyhow::Error::msg)?;
            return Ok(WorkloadChoice::Oltp(kind));
        }
        let read = |path: &Path| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read the statements in {}", path.display()))
        };
        Ok(WorkloadChoice::Script {
            text: read(Path::new(&self.workload))?,
            setup: self.setup.as_deref().map(read).transpose()?,
            repetition: if self.once { Repetition::Once } else { Repetition::Loop },
            with_tables: self.tables.is_some(),
        })
    }
}

/// A level as SQL has it.
fn isolation() -> impl TypedValueParser<Value = String> {
    listed(ISOLATION_LEVELS).map(|level| level.to_ascii_uppercase().replace(['-', '_'], " "))
}
