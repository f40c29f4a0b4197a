//! Opening the connections: a few at a time, so that the server's listen queue does not overflow.

use super::connection::Connection;
use super::drive::{LoadError, LoadPlan};
use crate::program::Composer;
use crate::random::ConnectionRng;
use scaleprof_wire::{Client, Error, Session};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Connections that are being opened at the same time.
const AT_ONCE: u32 = 8;
/// "You have an error in your SQL syntax".
const SYNTAX: u16 = 1064;
/// How sysbench begins a transaction.
const BEGIN: &str = "BEGIN";
/// "This command is not supported in the prepared statement protocol yet".
const NOT_PREPARABLE: u16 = 1295;

/// Most that an answer may take while a connection is made ready.
const OPENING: Duration = Duration::from_secs(60);
/// A server may end connections that are silent for a minute; those that think or stay idle for us are meant to be.
const STAY_CONNECTED: &str = "SET SESSION wait_timeout = 31536000";

/// The open connections of a rung.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) working: Vec<Connection>,
    /// Held open and never used.
    pub(crate) idle: Vec<Session>,
}

/// Opens all connections of a plan; `progress` hears how many are open.
pub(crate) fn open_all(
    plan: &LoadPlan,
    stop: &AtomicBool,
    progress: &(dyn Fn(u32) + Sync),
) -> Result<Opened, LoadError> {
    let wanted = plan.connections + plan.idle_connections;
    let next = AtomicU32::new(0);
    let open = AtomicU32::new(0);
    let working: Mutex<Vec<(u32, Connection)>> = Mutex::new(Vec::new());
    let idle = Mutex::new(Vec::new());
    let failure: Mutex<Option<LoadError>> = Mutex::new(None);

    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(wanted) {
            scope.spawn(|| {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    if position >= wanted || stop.load(Ordering::Relaxed) || is_set(&failure) {
                        return;
                    }
                    let result = if position < plan.connections {
                        open_working(plan, position).map(|c| push(&working, (position, c)))
                    } else {
                        open_idle(plan).map(|session| push(&idle, session))
                    };
                    match result {
                        Ok(()) => progress(open.fetch_add(1, Ordering::Relaxed) + 1),
                        Err(source) => {
                            let error = LoadError::Open {
                                open: open.load(Ordering::Relaxed),
                                wanted,
                                source,
                            };
                            lock(&failure).get_or_insert(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    if stop.load(Ordering::Relaxed) {
        return Err(LoadError::Stopped);
    }
    let mut working = std::mem::take(&mut *lock(&working));
    working.sort_by_key(|(position, _)| *position);
    Ok(Opened {
        working: working.into_iter().map(|(_, c)| c).collect(),
        idle: std::mem::take(&mut *lock(&idle)),
    })
}

/// A thread that panicked while it held the lock has left nothing half done: the guarded values are whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn is_set(failure: &Mutex<Option<LoadError>>) -> bool {
    lock(failure).is_some()
}

fn push<T>(list: &Mutex<Vec<T>>, item: T) {
    lock(list).push(item);
}

fn connect(plan: &LoadPlan) -> Result<Client, Error> {
    let mut client = Client::connect(&plan.endpoint, &plan.credentials)?;
    // A server that stands still while connections are made ready is not waited for without end.
    client.set_patience(Some(OPENING));
    client.execute(STAY_CONNECTED)?;
    let own = plan.session_statements.iter().map(String::as_str);
    for statement in plan.program.session_statements().into_iter().chain(own) {
        client.execute(statement)?;
    }
    Ok(client)
}

fn open_idle(plan: &LoadPlan) -> Result<Session, Error> {
    connect(plan)?.into_session()
}

/// With `sql_mode = ORACLE` BEGIN begins a block of statements; what begins a transaction goes by another name.
fn prepare_begin_of_oracle(client: &mut Client) -> Result<u32, Error> {
    let prepared = client.prepare_all(["START TRANSACTION"])?.into_iter().next();
    let none = Err(Error::Protocol("no answer to PREPARE"));
    Ok(prepared.unwrap_or(none)?.id)
}

fn open_working(plan: &LoadPlan, position: u32) -> Result<Connection, Error> {
    let mut client = connect(plan)?;
    let texts = plan.program.prepared_sql();
    let mut statement_ids = Vec::with_capacity(texts.len());
    for prepared in client.prepare_all(texts.iter().map(String::as_str))? {
        match prepared {
            Ok(statement) => statement_ids.push(statement.id),
            // BEGIN on MySQL: it goes as text, as sysbench sends it then.
            Err(e) if e.number() == Some(NOT_PREPARABLE) => statement_ids.push(0),
            Err(e) if e.number() == Some(SYNTAX) && texts[statement_ids.len()] == BEGIN => {
                statement_ids.push(prepare_begin_of_oracle(&mut client)?);
            }
            Err(e) => return Err(e),
        }
    }
    let session = client.into_session()?;
    let composer = Composer {
        rng: ConnectionRng::new(plan.seed, u64::from(position)),
        position,
        of: plan.connections,
        types_sent: vec![false; statement_ids.len()].into(),
        statement_ids: statement_ids.into(),
    };
    Ok(Connection::new(session, composer, &plan.program))
}
