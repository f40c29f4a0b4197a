//! The options of the load, which `run` and `experiment` share, and of the ladder and the result.

use crate::choice::{
    ARRIVALS, DISTRIBUTIONS, HOME_WAREHOUSES, ISOLATION_LEVELS, PROTOCOLS, TRANSPORTS, listed, one_of,
};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::TypedValueParser;
use scaleprof_experiment::trials::{LoadText, Value};
use scaleprof_experiment::{LoadOptions, WorkloadChoice, parse_connections};
use scaleprof_workload::tpcc::{self, HomeWarehouse, Mix, Tpcc, TpccOptions};
use scaleprof_workload::{
    Arrivals, Distribution, LoopKind, OltpOptions, OltpWorkloadKind, Protocol, Repetition, TransportChoice,
};
use std::path::{Path, PathBuf};

/// What is not given has the default of [`LoadOptions`], or that of an experiment's plan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArguments {
    /// What every connection runs: one of sysbench's OLTP workloads (oltp_read_write, oltp_read_only, oltp_write_only,
    /// oltp_point_select, oltp_update_index, oltp_update_non_index, oltp_insert, oltp_delete, select_random_points,
    /// select_random_ranges), tpcc, or a FILE.sql [default: oltp_read_write]
    #[arg(long, value_name = "NAME|FILE.sql")]
    pub(crate) workload: Option<String>,
    /// Tables of the OLTP workloads [default: 4; 1 for the select_random workloads; none for a FILE.sql]
    #[arg(long, value_name = "N")]
    tables: Option<u32>,
    /// Rows of each table [default: 50000]
    #[arg(long, value_name = "N")]
    rows: Option<u32>,
    /// Distribution of the rows; the first five are sysbench's [default: uniform]
    #[arg(long, value_name = "NAME", value_parser = one_of::<Distribution>(DISTRIBUTIONS))]
    distribution: Option<Distribution>,
    /// Prepared statements (binary) or whole texts (text) [default: binary]
    #[arg(long, value_name = "NAME", value_parser = one_of::<Protocol>(PROTOCOLS))]
    protocol: Option<Protocol>,
    /// A further option of sysbench's workloads, such as point_selects=1 or skip_trx=on; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    workload_option: Vec<String>,
    /// Statements that one connection runs before a FILE.sql
    #[arg(long, value_name = "FILE.sql")]
    setup: Option<PathBuf>,
    /// Run a FILE.sql once on every connection instead of in a loop
    #[arg(long, conflicts_with = "rate")]
    once: bool,
    /// Warehouses of tpcc, about 100 MB each. Ten connections per warehouse are its terminals; more share their districts
    /// [default: 1]
    #[arg(long, value_name = "N")]
    warehouses: Option<u32>,
    /// Cards in a deck of tpcc: New-Order, Payment, Order-Status, Delivery and Stock-Level. Shuffled decks are dealt to
    /// their end, so the mix is exact [default: 10,10,1,1,1]
    #[arg(long, value_name = "CARDS")]
    mix: Option<Mix>,
    /// Home of a terminal of tpcc: one warehouse, by the specification (fixed), or drawn for every transaction (random;
    /// terminalWarehouseFixed=false of other kits) [default: fixed]
    #[arg(long, value_name = "HOW", value_parser = one_of::<HomeWarehouse>(HOME_WAREHOUSES))]
    home_warehouse: Option<HomeWarehouse>,
    /// Keying and think times of tpcc, times FACTOR. With 1 and ten connections per warehouse, throughput is limited as for
    /// tpmC [default: none]
    #[arg(long, value_name = "FACTOR", conflicts_with = "rate")]
    think_times: Option<f64>,
    /// Isolation level of the connections [default: the server's]
    #[arg(long, value_name = "LEVEL", value_parser = isolation(), ignore_case = true)]
    isolation: Option<String>,
    /// Offer TX/S transactions per second (open loop); the default is a closed loop without pauses
    #[arg(long, value_name = "TX/S")]
    rate: Option<f64>,
    /// Arrivals of transactions in an open loop [default: poisson]
    #[arg(long, value_name = "NAME", requires = "rate", value_parser = one_of::<Arrivals>(ARRIVALS))]
    arrivals: Option<Arrivals>,
    /// Idle connections, besides those that work [default: 0]
    #[arg(long, value_name = "N")]
    idle_connections: Option<u32>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads of the client [default: by its CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    client_threads: Option<u32>,
    /// System calls that carry the packets; encrypted ones use epoll [default: auto]
    #[arg(long, value_name = "NAME", value_parser = one_of::<TransportChoice>(TRANSPORTS))]
    transport: Option<TransportChoice>,
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

/// What every connection runs where nothing else is said.
const WORKLOAD: &str = "oltp_read_write";

impl LoadArguments {
    /// The workload's name or file.
    pub(crate) fn workload_name(&self) -> &str {
        self.workload.as_deref().unwrap_or(WORKLOAD)
    }

    /// The load of a run.
    pub(crate) fn options(&self) -> anyhow::Result<LoadOptions> {
        let workload = self.workload()?;
        let one_table = matches!(
            workload,
            WorkloadChoice::Oltp(OltpWorkloadKind::RandomPoints | OltpWorkloadKind::RandomRanges)
        );
        let mut oltp = OltpOptions {
            tables: self.tables.unwrap_or(if one_table { 1 } else { 4 }),
            table_size: self.rows.unwrap_or(50_000),
            distribution: self.distribution.unwrap_or_default(),
            protocol: self.protocol.unwrap_or_default(),
            ..OltpOptions::default()
        };
        for (name, value) in self.workload_options()? {
            oltp.set(name, value)?;
        }
        Ok(LoadOptions {
            workload,
            oltp,
            idle_connections: self.idle_connections.unwrap_or(0),
            loop_kind: self.loop_kind()?,
            isolation: self.isolation.clone(),
            seed: self.seed.unwrap_or(1),
            threads: self.client_threads,
            transport: self.transport.unwrap_or(TransportChoice::Auto),
            reads_tables_first: true,
        })
    }

    /// The load as a plan writes it down: what is given alone. Files are found from the current folder.
    pub(crate) fn text(&self) -> anyhow::Result<LoadText> {
        if self.once {
            bail!("--once is not possible in an experiment: its windows have a fixed length");
        }
        fn word<T: ToString>(given: Option<&T>) -> Option<String> {
            given.map(ToString::to_string)
        }
        let from_here = |path: &Path| -> anyhow::Result<String> {
            let path = std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?;
            Ok(path.to_string_lossy().into_owned())
        };
        let workload = match self.workload.as_deref() {
            Some(file) if file.ends_with(".sql") => Some(from_here(Path::new(file))?),
            other => other.map(str::to_owned),
        };
        let options = self.workload_options()?.into_iter();
        Ok(LoadText {
            workload,
            tables: self.tables,
            rows: self.rows,
            distribution: word(self.distribution.as_ref()),
            protocol: word(self.protocol.as_ref()),
            options: options
                .map(|(name, value)| (name.to_owned(), Value::Text(value.to_owned())))
                .collect(),
            setup: self.setup.as_deref().map(from_here).transpose()?,
            warehouses: self.warehouses,
            mix: word(self.mix.as_ref()),
            home_warehouse: word(self.home_warehouse.as_ref()),
            think_times: self.think_times,
            read_tables: None,
            isolation: self.isolation.clone(),
            rate: self.rate,
            arrivals: word(self.arrivals.as_ref()),
            idle_connections: self.idle_connections,
            seed: self.seed,
            client_threads: self.client_threads,
            transport: word(self.transport.as_ref()),
        })
    }

    /// The further options of sysbench's workloads.
    fn workload_options(&self) -> anyhow::Result<Vec<(&str, &str)>> {
        let pairs = self.workload_option.iter().map(|option| {
            option
                .split_once('=')
                .with_context(|| format!("--workload-option {option}: NAME=VALUE required, such as point_selects=1"))
        });
        pairs.collect()
    }

    fn loop_kind(&self) -> anyhow::Result<LoopKind> {
        let Some(rate) = self.rate else {
            return Ok(LoopKind::Closed);
        };
        if !(rate.is_finite() && (0.001..=1e8).contains(&rate)) {
            bail!("--rate {rate} is not possible\nfix: use transactions per second above 0.001");
        }
        Ok(LoopKind::Open {
            rate,
            arrivals: self.arrivals.unwrap_or(Arrivals::Poisson),
        })
    }

    /// TPC-C; options of other workloads are refused, as those of TPC-C are without it.
    fn tpcc(&self) -> anyhow::Result<WorkloadChoice> {
        let foreign = [
            ("--tables", self.tables.is_some()),
            ("--workload-option", !self.workload_option.is_empty()),
            ("--protocol text", self.protocol == Some(Protocol::Text)),
            ("--once and --setup", self.once || self.setup.is_some()),
        ];
        if let Some((name, _)) = foreign.into_iter().find(|(_, given)| *given) {
            bail!(
                "{name} is not possible with tpcc, whose statements are always prepared\nfix: use --warehouses for \
                 its size"
            );
        }
        let defaults = TpccOptions::default();
        let options = TpccOptions {
            warehouses: self.warehouses.unwrap_or(defaults.warehouses),
            mix: self.mix.unwrap_or(defaults.mix),
            home: self.home_warehouse.unwrap_or(defaults.home),
            pauses: self.think_times,
            data_seed: self.seed.unwrap_or(1),
            history_key: defaults.history_key,
        };
        // Errors of the options end the command before anything is started.
        Tpcc::new(options.clone())?;
        Ok(WorkloadChoice::Tpcc(options))
    }

    fn workload(&self) -> anyhow::Result<WorkloadChoice> {
        let workload = self.workload_name();
        if workload == tpcc::NAME {
            return self.tpcc();
        }
        let of_tpcc = [
            ("--warehouses", self.warehouses.is_some()),
            ("--mix", self.mix.is_some()),
            ("--home-warehouse", self.home_warehouse.is_some()),
            ("--think-times", self.think_times.is_some()),
        ];
        if let Some((name, _)) = of_tpcc.into_iter().find(|(_, given)| *given) {
            bail!("{name} requires --workload tpcc, but the workload is {workload}");
        }
        if !workload.ends_with(".sql") {
            if self.once || self.setup.is_some() {
                bail!("--once and --setup require a FILE.sql, but the workload is {workload}");
            }
            let kind = workload.parse().map_err(anyhow::Error::msg)?;
            return Ok(WorkloadChoice::Oltp(kind));
        }
        let read = |path: &Path| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read the statements in {}", path.display()))
        };
        Ok(WorkloadChoice::Script {
            text: read(Path::new(workload))?,
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
