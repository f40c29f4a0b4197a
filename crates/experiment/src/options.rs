//! What was asked for.

use crate::company::Company;
use crate::target::Attach;
use scaleprof_probe::WatchOptions;
use scaleprof_server::{CpuSet, ServerSettings, Surroundings};
use scaleprof_workload::tpcc::TpccOptions;
use scaleprof_workload::{LoopKind, OltpOptions, OltpWorkloadKind, Repetition, TransportChoice};
use std::path::PathBuf;

/// A whole run, as a person asks for it.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The server.
    pub server: ServerChoice,
    /// The load.
    pub load: LoadOptions,
    /// Rungs, rising.
    pub connections: Vec<u32>,
    /// Whether to add rungs around the peak and the fall-over.
    pub refine: bool,
    /// Measurements a rung.
    pub repeats: u32,
    /// Seed of the order of the measurements.
    pub order_seed: u64,
    /// Seconds a measurement.
    pub seconds: u32,
    /// How the server's threads are watched; not at all where there is none.
    pub watch: Option<WatchOptions>,
    /// Where the bundle goes.
    pub output: PathBuf,
    /// The command line that repeats it, without passwords and paths.
    pub command: Vec<String>,
}

impl RunOptions {
    /// The most connections that are open at one time, idle ones among them.
    pub(crate) fn most_connections(&self) -> u32 {
        self.load.most_connections(&self.connections)
    }
}

/// The server under test.
#[derive(Debug, Clone)]
pub enum ServerChoice {
    /// One of our own.
    Private {
        /// A BASEDIR or BINARY; the distribution's server where there is none.
        path: Option<PathBuf>,
        /// Its settings.
        settings: Box<ServerSettings>,
        /// What it is started with beside them.
        surroundings: Surroundings,
        /// CPUs of the server.
        cpus_server: Option<CpuSet>,
        /// CPUs of the client.
        cpus_client: Option<CpuSet>,
        /// Servers beside it.
        company: Company,
        /// Their CPUs; the server's where there are none.
        cpus_company: Option<CpuSet>,
        /// Where its files go; the usual place where there is none.
        work_folder: Option<PathBuf>,
        /// Whether a prepared data folder may be used and kept, and how many bytes of such folders; what was not used for longest goes.
        cache_size: Option<u64>,
        /// Whether it is shut down at the end; it is killed otherwise, as nothing of it is kept.
        shut_down: bool,
    },
    /// One that runs already.
    Attached(Attach),
}

impl ServerChoice {
    /// The servers beside it; of somebody else's server none that are ours.
    pub(crate) fn company(&self) -> &Company {
        match self {
            ServerChoice::Private { company, .. } => company,
            ServerChoice::Attached(_) => &Company::Alone,
        }
    }
}

/// The load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// What the connections run.
    pub workload: WorkloadChoice,
    /// Tables and statements; for a script, the tables that it may use.
    pub oltp: OltpOptions,
    /// Connections that idle beside the working ones.
    pub idle_connections: u32,
    /// Closed or open loop.
    pub loop_kind: LoopKind,
    /// Isolation level, such as `READ COMMITTED`; the server's where there is none.
    pub isolation: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Threads of the client; chosen by the CPUs where there is none.
    pub threads: Option<u32>,
    /// Which system calls carry the packets.
    pub transport: TransportChoice,
    /// Whether the tables are read into memory before the first rung. Without, a server begins as cold as it starts.
    pub reads_tables_first: bool,
}

/// What the connections run.
#[derive(Debug, Clone)]
pub enum WorkloadChoice {
    /// One of sysbench's workloads.
    Oltp(OltpWorkloadKind),
    /// TPC-C.
    Tpcc(TpccOptions),
    /// The user's own statements.
    Script {
        /// The statements.
        text: String,
        /// Statements that one connection runs first, in the load's schema.
        setup: Option<String>,
        /// Whether connections run it again and again.
        repetition: Repetition,
        /// Whether the tables of the OLTP workloads are made too.
        with_tables: bool,
    },
}

impl LoadOptions {
    /// Puts a primary key on every table that is ours, as clusters ask for.
    pub fn put_keys_on_all_tables(&mut self) {
        if let WorkloadChoice::Tpcc(tpcc) = &mut self.workload {
            tpcc.history_key = true;
        }
    }

    /// Why the load does not go with the servers beside the one under test, and what would; none where it does.
    pub fn refuses(&self, company: &Company) -> Option<(&'static str, &'static str)> {
        if company.needs_keys() && self.with_tables() && self.oltp.secondary {
            let why = "clusters need a primary key on every table, and with secondary = true the tables have none";
            return Some((why, "leave secondary out, or replicate asynchronously"));
        }
        (company.loaded_servers() > 1 && self.runs_once()).then_some((
            "a load that runs once on each server is not at the same time on all of them",
            "leave --once or the neighbours out",
        ))
    }

    /// The most connections that are open at one time on this ladder, idle ones among them.
    pub(crate) fn most_connections(&self, ladder: &[u32]) -> u32 {
        ladder.iter().max().copied().unwrap_or(1) + self.idle_connections
    }

    /// Whether a measurement ends when every connection has run its script once.
    pub(crate) fn runs_once(&self) -> bool {
        matches!(
            self.workload,
            WorkloadChoice::Script {
                repetition: Repetition::Once,
                ..
            }
        )
    }

    /// Whether a rung leaves the tables so different that the next must not start on them.
    pub(crate) fn needs_fresh_data(&self) -> bool {
        matches!(
            self.workload,
            WorkloadChoice::Oltp(OltpWorkloadKind::Insert | OltpWorkloadKind::Delete)
        )
    }

    /// What a transaction is and how often it is asked for, in words: equal words, equal work, whichever rows it meets.
    pub(crate) fn work(&self) -> String {
        let work = match &self.workload {
            WorkloadChoice::Oltp(kind) => {
                let anywhere = OltpOptions::default();
                let statements = OltpOptions {
                    tables: anywhere.tables,
                    table_size: anywhere.table_size,
                    distribution: anywhere.distribution,
                    protocol: anywhere.protocol,
                    ..self.oltp.clone()
                };
                format!("{kind:?} {statements:?}")
            }
            WorkloadChoice::Tpcc(tpcc) => format!("tpcc {:?} {:?}", tpcc.mix, tpcc.pauses),
            WorkloadChoice::Script { text, .. } => text.clone(),
        };
        format!("{work} {:?}", self.loop_kind)
    }

    /// Whether the tables of the OLTP workloads are needed.
    pub(crate) fn with_tables(&self) -> bool {
        match &self.workload {
            WorkloadChoice::Oltp(_) => true,
            WorkloadChoice::Tpcc(_) => false,
            WorkloadChoice::Script { with_tables, .. } => *with_tables,
        }
    }

    /// What the tables hold, in words: equal words, equal tables.
    pub(crate) fn data_description(&self) -> String {
        let o = &self.oltp;
        if let WorkloadChoice::Tpcc(tpcc) = &self.workload {
            return tpcc.data_description();
        }
        if !self.with_tables() {
            return "no tables".to_owned();
        }
        let empty = matches!(self.workload, WorkloadChoice::Oltp(OltpWorkloadKind::Insert)) && !o.auto_inc;
        format!(
            "oltp 1: tables {} rows {} distribution {} auto_inc {} secondary {} create_secondary {} seed {}",
            o.tables,
            if empty { 0 } else { o.table_size },
            o.distribution,
            o.auto_inc,
            o.secondary,
            o.create_secondary,
            self.seed
        )
    }

    /// About how large the tables get, bytes: 189 of a row's 200-odd bytes are its columns; pages are 15/16 full and
    /// the index on `k` adds a tenth.
    pub(crate) fn data_bytes(&self) -> u64 {
        match &self.workload {
            WorkloadChoice::Tpcc(tpcc) => tpcc.data_bytes(),
            _ if self.with_tables() => u64::from(self.oltp.tables) * u64::from(self.oltp.table_size) * 245,
            _ => 0,
        }
    }
}
