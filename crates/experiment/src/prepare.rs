//! Getting a server ready: its process, its tables, its memory.

use crate::company::{Beside, Company};
use crate::error::RunError;
use crate::guest;
use crate::options::{LoadOptions, RunOptions, ServerChoice, WorkloadChoice};
use crate::progress::Progress;
use crate::target::{Access, Attach, Target, wire};
use scaleprof_server::{
    Cache, CpuSet, DataKey, Installation, Janitor, Placement, PreparedData, Sandbox, SandboxBuilder, ServerSettings,
    Settings, WorkFolder,
};
use scaleprof_wire::Client;
use scaleprof_workload::schema::{self, FillPlan, SCHEMA, SchemaState, Statistics};
use scaleprof_workload::tpcc::{self, TpccFillPlan, TpccOptions};
use scaleprof_workload::{LoadScheduling, OltpWorkloadKind, Script, Transport, TransportChoice};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Statements at the same time while the tables are filled.
const FILL_THREADS: u32 = 4;

/// A server that is ready for its first rung.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) target: Target,
    /// The servers beside it.
    pub(crate) beside: Beside,
    pub(crate) placement: Placement,
    /// How the load's threads are scheduled. Somebody else's server has clients of its own, which a load
    /// that goes first would hold up.
    pub(crate) scheduling: LoadScheduling,
    /// How to get the same server on untouched data again; for our own servers only.
    pub(crate) source: Option<Source>,
    /// The connection that holds the lock of the one load on somebody's server.
    pub(crate) guest_lock: Option<Client>,
    /// What the reader should know.
    pub(crate) warnings: Vec<String>,
}

/// What a private server is started from.
#[derive(Debug)]
pub(crate) struct Source {
    builder: SandboxBuilder,
    company: Company,
    cpus_company: Option<CpuSet>,
    prepared: PreparedData,
    cache: Cache,
    key: DataKey,
}

impl Source {
    /// A server on a fresh copy of the prepared data, with those beside it.
    pub(crate) fn start(&self, stop: &AtomicBool) -> Result<(Sandbox, Beside), RunError> {
        Beside::start(
            &self.builder,
            &self.prepared,
            &self.company,
            self.cpus_company.as_ref(),
            stop,
        )
    }

    /// Removes the prepared data.
    pub(crate) fn forget(self) -> Result<(), RunError> {
        drop(self.prepared);
        Ok(self.cache.remove(&self.key)?)
    }
}

/// Starts or finds the server and fills its tables.
pub(crate) fn prepare(options: &RunOptions, stop: &AtomicBool, progress: &mut dyn Progress) -> Result<Ready, RunError> {
    match &options.server {
        ServerChoice::Private {
            path,
            settings,
            surroundings,
            cpus_server,
            cpus_client,
            company,
            cpus_company,
            work_folder,
            cache_size,
            shut_down: _,
        } => {
            let mut placement = Placement::on_this_machine(cpus_server.clone(), cpus_client.clone())?;
            let scheduling = LoadScheduling::on_shared_cpus();
            if scheduling != LoadScheduling::First {
                placement = placement.with_server_that_yields();
            }
            // What is wrong with their CPUs is to be said as what is wrong with the server's.
            Placement::on_this_machine(cpus_company.clone(), None)?;
            let settings = ServerSettings {
                servers: company.servers(),
                ..(**settings).clone()
            };
            let mut parts = builder(options, path.as_deref(), &settings, work_folder.as_deref(), &placement)?;
            parts.company = (company.clone(), cpus_company.clone());
            if placement.shared {
                parts.scheduling = scheduling;
            }
            parts.builder = parts.builder.surroundings(surroundings.clone());
            private(&options.load, parts, placement, *cache_size, stop, progress)
        }
        ServerChoice::Attached(attach) => {
            let most = options.connections.iter().max().copied().unwrap_or(1);
            attached(&options.load, attach, most, stop, progress)
        }
    }
}

struct Parts {
    builder: SandboxBuilder,
    company: (Company, Option<CpuSet>),
    scheduling: LoadScheduling,
    work: WorkFolder,
    key: DataKey,
}

fn builder(
    options: &RunOptions,
    path: Option<&Path>,
    settings: &ServerSettings,
    work_folder: Option<&Path>,
    placement: &Placement,
) -> Result<Parts, RunError> {
    let installation = match path {
        Some(path) => Installation::at(path)?,
        None => Installation::distribution()?,
    };
    let most = options.connections.iter().max().copied().unwrap_or(1);
    let settings = Settings::new(ServerSettings {
        // The control connections come on top; the settings add a margin.
        connections: most + options.load.idle_connections,
        dataset: Some(options.load.data_bytes()).filter(|&bytes| bytes > 0),
        ..settings.clone()
    })?;
    let work = WorkFolder::open(
        work_folder
            .map_or_else(WorkFolder::default_path, Path::to_path_buf)
            .as_path(),
    )?;
    let key = DataKey::new(&installation, &settings, options.load.data_description())?;
    let builder = SandboxBuilder::new(installation, settings, work.clone())
        .placement(placement.clone())
        .janitor(Janitor::spawn()?);
    Ok(Parts {
        builder,
        company: (Company::Alone, None),
        scheduling: LoadScheduling::Usual,
        work,
        key,
    })
}

fn private(
    load: &LoadOptions,
    parts: Parts,
    placement: Placement,
    cache_size: Option<u64>,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Ready, RunError> {
    let Parts {
        builder,
        company: (company, cpus_company),
        scheduling,
        work,
        key,
    } = parts;
    let cache = Cache::open(&work)?;
    if cache_size.is_none() {
        cache.remove(&key)?;
    }
    let prepared = match cache.get(&key)? {
        Some(prepared) => prepared,
        None => {
            progress.stage("making a data folder");
            let sandbox = builder.clone().without_binary_log().start_fresh()?;
            sandbox.make_room_for(&cache, load.data_bytes())?;
            let target = Target::Private(Box::new(sandbox));
            make_tables(&target, load, stop, progress)?;
            progress.stage("shutting the server down to keep its data");
            let Target::Private(sandbox) = target else {
                unreachable!("made four lines above")
            };
            sandbox.into_prepared(&cache, &key)?
        }
    };
    if let Some(most) = cache_size {
        cache.keep_to(most)?;
    }
    // Copying the data and starting a server on them cannot be broken off.
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Stopped);
    }
    progress.stage(match company.servers() {
        1 => "starting the server",
        _ => "starting the servers",
    });
    let source = Source {
        builder,
        company,
        cpus_company,
        prepared,
        cache,
        key,
    };
    let (server, beside) = source.start(stop)?;
    let in_vain = server.set_in_vain()?;
    let target = Target::Private(Box::new(server));
    let mut warnings = warm_all(&target, &beside, load, stop, progress)?;
    warnings.extend(in_vain.iter().map(|name| {
        format!("{name} does nothing: this server only knows the name, so that old option files still work")
    }));
    Ok(Ready {
        warnings,
        target,
        beside,
        placement,
        scheduling,
        source: Some(source),
        guest_lock: None,
    })
}

fn attached(
    load: &LoadOptions,
    attach: &Attach,
    most_connections: u32,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Ready, RunError> {
    let target = Target::Attached(attach.clone());
    let all = CpuSet::allowed()?;
    let placement = Placement::on_this_machine(Some(all.clone()), Some(all))?;
    let mut client = target.connect()?;
    guest::check_room(&mut client, load, most_connections)?;
    guest::lock(&mut client)?;
    let mut load = load.clone();
    let with_keys = guest::asks_for_primary_keys(&mut client)?;
    if with_keys {
        load.put_keys_on_all_tables();
    }
    let load = &load;
    let wanted = load.data_description();
    match schema::state(&mut client)? {
        SchemaState::Filled(found) if found == wanted && !load.needs_fresh_data() => {}
        _ => make_tables(&target, load, stop, progress)?,
    }
    let mut warnings = warm(&target.access(), load, progress)?;
    if with_keys && matches!(load.workload, WorkloadChoice::Tpcc(_)) {
        warnings.push("the server refuses tables without a primary key, so TPC-C's HISTORY has one here".to_owned());
    }
    if guest::writes_binary_log(&mut client)? {
        warnings.push("the server writes a binary log: its replicas follow all that the load does".to_owned());
    }
    if let Some(version) = client.encryption() {
        let transport = match load.transport {
            TransportChoice::Only(Transport::Epoll) => "",
            TransportChoice::Auto | TransportChoice::Only(Transport::IoUring) => {
                ", and they go over epoll, as io_uring cannot carry them"
            }
        };
        warnings.push(format!(
            "the connections are encrypted ({version}): what that costs server and client is in all figures{transport}"
        ));
    }
    Ok(Ready {
        warnings,
        target,
        beside: Beside::Nobody,
        placement,
        scheduling: LoadScheduling::Usual,
        source: None,
        guest_lock: Some(client),
    })
}

/// Makes and fills the tables in the load's schema and runs the script's setup.
pub(crate) fn make_tables(
    target: &Target,
    load: &LoadOptions,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let mut client = target.connect_to_work()?;
    let tables = load.with_tables().then_some(&load.oltp);
    schema::create(&mut client, tables, &load.data_description())?;
    if let WorkloadChoice::Tpcc(options) = &load.workload {
        fill_tpcc(target, options, &mut client, stop, progress)?;
        check_consistency(target, load, "after the load", stop, progress)?;
    }
    if tables.is_some() {
        progress.stage("filling the tables");
        let plan = FillPlan {
            endpoint: target.endpoint().clone(),
            credentials: target.credentials(),
            options: load.oltp.clone(),
            kind: match load.workload {
                WorkloadChoice::Oltp(kind) => kind,
                WorkloadChoice::Tpcc(_) | WorkloadChoice::Script { .. } => OltpWorkloadKind::ReadWrite,
            },
            seed: load.seed,
            threads: FILL_THREADS,
            skip_binary_log: matches!(target, Target::Private(_)),
        };
        schema::fill(&plan, stop, &mut |done| progress.filling(done))?;
    }
    // On a server of ours nobody else finds them.
    if load.needs_fresh_data() && matches!(target, Target::Attached(_)) {
        schema::mark_used_up(&mut client)?;
    }
    Ok(())
}

fn fill_tpcc(
    target: &Target,
    options: &TpccOptions,
    client: &mut Client,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    tpcc::create_tables(client, options)?;
    progress.stage("filling TPC-C's tables");
    let plan = TpccFillPlan {
        endpoint: target.endpoint().clone(),
        credentials: target.credentials(),
        options: options.clone(),
        threads: FILL_THREADS,
        skip_binary_log: matches!(target, Target::Private(_)),
    };
    Ok(tpcc::fill(&plan, stop, &mut |done| progress.filling(done))?)
}

/// Checks TPC-C's consistency conditions, where it is the load.
pub(crate) fn check_consistency(
    target: &Target,
    load: &LoadOptions,
    when: &'static str,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    if !matches!(load.workload, WorkloadChoice::Tpcc(_)) {
        return Ok(());
    }
    progress.stage("checking TPC-C's twelve consistency conditions");
    let mut client = target.connect_to_work()?;
    let violations = tpcc::check_consistency(&mut client, SCHEMA, stop)?;
    client.quit();
    match violations.is_empty() {
        true => Ok(()),
        false => Err(RunError::Inconsistent { when, violations }),
    }
}

/// Makes a server ready for its load, and all those beside it: neighbours bear the same, replicas are to find the tables in memory too.
pub(crate) fn warm_all(
    target: &Target,
    beside: &Beside,
    load: &LoadOptions,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Vec<String>, RunError> {
    let warnings = warm(&target.access(), load, progress)?;
    for server in beside.servers() {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        let server = Access::of(server);
        match beside {
            Beside::Nobody => {}
            Beside::Neighbours(_) => {
                warm(&server, load, progress)?;
            }
            Beside::Replicas(_) => {
                read_tables(&mut server.connect_to_work()?, load, Statistics::AsTheyAre)?;
            }
        }
    }
    Ok(warnings)
}

/// Reads the tables into memory, where the load has some of ours and asks for it.
/// Gives which statistics all of them have now.
fn read_tables(client: &mut Client, load: &LoadOptions, mut statistics: Statistics) -> Result<Statistics, RunError> {
    if !load.reads_tables_first {
        return Ok(statistics);
    }
    if load.with_tables() {
        for table in 1..=load.oltp.tables {
            statistics = schema::warm(client, &load.oltp, table, statistics)?;
        }
    }
    if matches!(load.workload, WorkloadChoice::Tpcc(_)) {
        statistics = tpcc::warm(client, statistics)?;
    }
    Ok(statistics)
}

/// Reads the tables into memory, runs the script's setup, and says what would disturb the measurement.
fn warm(server: &Access, load: &LoadOptions, progress: &mut dyn Progress) -> Result<Vec<String>, RunError> {
    let mut client = server.connect_to_work()?;
    let mut warnings = Vec::new();
    let has_tables = load.with_tables() || matches!(load.workload, WorkloadChoice::Tpcc(_));
    if has_tables && load.reads_tables_first {
        progress.stage("reading the tables into memory");
        if read_tables(&mut client, load, Statistics::Anew)? == Statistics::AsTheyAre {
            warnings.push(
                "the server is read-only: the statistics of its optimiser for the load's tables are as they were"
                    .to_owned(),
            );
        }
        warnings.extend(too_large(&mut client)?);
    }
    if let WorkloadChoice::Script { setup: Some(setup), .. } = &load.workload {
        progress.stage("running the script's setup");
        run_setup(server, setup)?;
    }
    Ok(warnings)
}

/// A warning when the data do not fit into the buffer pool.
fn too_large(client: &mut Client) -> Result<Option<String>, RunError> {
    let data = schema::data_bytes(client)?;
    let pool: Option<u64> = client
        .query_value("SELECT @@innodb_buffer_pool_size")
        .map_err(wire("asking for the size of the buffer pool"))?
        .and_then(|text| text.parse().ok());
    Ok(match (data, pool) {
        (Some(data), Some(pool)) if data > pool => Some(format!(
            "the tables ({} MiB) are larger than the buffer pool ({} MiB): pages are read from disk all the time",
            data >> 20,
            pool >> 20
        )),
        _ => None,
    })
}

fn run_setup(server: &Access, setup: &str) -> Result<(), RunError> {
    let in_schema = Access {
        credentials: server.credentials.in_database(SCHEMA),
        ..server.clone()
    };
    let mut client = in_schema.connect_to_work()?;
    for statement in Script::split(setup)? {
        client.execute(statement).map_err(wire("running the script's setup"))?;
    }
    client.quit();
    Ok(())
}
