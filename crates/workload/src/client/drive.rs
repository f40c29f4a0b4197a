//! Running a program on all connections for a while.

use super::clock::LoadClock;
use super::connection::Phase;
use super::epoll;
use super::pacing::{LoopKind, Schedule};
use super::ramp::open_all;
use super::record::SecondRecord;
use super::scheduling::{LoadScheduling, ReadsInTime};
use super::tally::Tally;
use super::transport::Transport;
use super::uring;
use super::worker::{Failure, Message, SECOND_NS, Worker};
use crate::program::Program;
use crate::random::ConnectionRng;
use rustix::net::{SendFlags, send};
use scaleprof_wire::{Credentials, Encryption, Endpoint, Error, ServerError};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// One measurement of one rung.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The server.
    pub endpoint: Endpoint,
    /// The account, with the schema of the load.
    pub credentials: Credentials,
    /// What every connection runs.
    pub program: Arc<Program>,
    /// Connections that run it.
    pub connections: u32,
    /// Connections that are open beside them and do nothing.
    pub idle_connections: u32,
    /// Whole seconds to run for.
    pub seconds: u32,
    /// Closed or open loop.
    pub loop_kind: LoopKind,
    /// Threads of the client.
    pub threads: u32,
    /// CPUs that they may use; all where empty.
    pub cpus: Vec<usize>,
    /// How they are scheduled there.
    pub scheduling: LoadScheduling,
    /// Seed of every random choice. Measurements of one rung should have different ones.
    pub seed: u64,
    /// Which system calls carry the packets, as [`TransportChoice::choose`](super::TransportChoice::choose) says.
    pub transport: Transport,
    /// Statements that every connection runs first, such as SET SESSION TRANSACTION ISOLATION LEVEL.
    pub session_statements: Vec<String>,
    /// What it tells the time by.
    pub clock: LoadClock,
    /// Where its transactions are counted as they end.
    pub tally: Tally,
}

/// Who hears about a load as it goes.
pub trait LoadObserver {
    /// So many connections are open.
    fn connected(&mut self, open: u32, wanted: u32);
    /// All are open, the first transactions are being sent: second 0 begins.
    fn begins(&mut self);
    /// A second ended just now; its record may follow a little later.
    fn second_ended(&mut self, second: u32);
    /// The record of a second, complete, in order.
    fn record(&mut self, record: SecondRecord);
    /// The load is over and these connections, by the server's numbers, were given up in the middle of a transaction,
    /// which the server may go on with.
    fn left_unfinished(&mut self, _connection_ids: &[u32]) {}
}

/// What is known about a load that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadOutcome {
    /// How long opening the connections took, seconds.
    pub connect_seconds: f64,
    /// Seconds that were recorded.
    pub seconds: u32,
    /// Transport that was used.
    pub transport: Transport,
    /// Transactions that were under way when time was up and ended well after it; they are in no record.
    pub late_transactions: u64,
    /// Median of their service times, nanoseconds; none where there were none.
    pub late_median_ns: Option<u64>,
    /// Time from the first transaction to the last, nanoseconds; for programs that run once.
    pub ran_ns: u64,
}

/// Why a load could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A connection could not be opened.
    #[error("connection {} of {wanted} could not be opened: {source}{}", .open + 1, hint(source))]
    Open {
        /// How many were open.
        open: u32,
        /// How many were wanted.
        wanted: u32,
        /// Why.
        source: Error,
    },
    /// A statement failed with an error that is not retried.
    #[error(
        "statement '{statement}' failed: {error}; only deadlocks (1213), lock wait timeouts (1205) and changed \
         records (1020) are retried{}",
        hint_of_statement(.error.number)
    )]
    Statement {
        /// Kind of the statement.
        statement: String,
        /// What the server said.
        error: ServerError,
    },
    /// The server went away.
    #[error("lost a connection to the server: {0}")]
    Lost(io::Error),
    /// The server sent what we do not understand.
    #[error("the server sent {0}, which the protocol does not allow here")]
    Protocol(&'static str),
    /// The tables are not those that the program filled.
    #[error(
        "a transaction found {0}: another client changed the tables, or they are incomplete\nfix: create them again: run \
         --no-cache, or drop the schema scaleprof_load"
    )]
    Unexpected(&'static str),
    /// A system call failed.
    #[error("{0} failed: {1}")]
    System(&'static str, io::Error),
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}

/// What can be done about a statement that failed, where a setting of the server is behind it.
fn hint_of_statement(number: u16) -> &'static str {
    match number {
        1792 => {
            "; sessions are read-only (transaction_read_only; tx_read_only in MariaDB)\nfix: use a read-only \
             workload, such as oltp_read_only, or SET GLOBAL it to 0"
        }
        1290 => {
            "; the message names the setting that forbids it\nfix: on a replica (read_only, super_read_only), use a \
             read-only workload, such as oltp_read_only, or measure the source"
        }
        _ => "",
    }
}

/// What can be done about a connection that was refused.
fn hint(error: &Error) -> &'static str {
    match error.number() {
        Some(1040) => "\nfix: raise max_connections of the server",
        Some(1135) => {
            "\nfix: raise its limit of processes (ulimit -u, systemd's TasksMax) or give it memory, to start threads"
        }
        Some(1461) => "\nfix: raise max_prepared_stmt_count of the server",
        Some(1049 | 1146) => "; the load's tables do not exist",
        // A statement that writes is refused when it is prepared.
        Some(number) => hint_of_statement(number),
        None => "",
    }
}

/// Opens the connections, runs the plan, closes them. Blocks until it is over; `stop` ends it early.
///
/// Every second that ended is given to the observer, also of a load that fails.
///
/// # Errors
/// The connections could not be opened, the server went away, a statement failed for good, or `stop` was set.
pub fn drive(
    plan: &LoadPlan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn LoadObserver,
) -> Result<LoadOutcome, LoadError> {
    let began_ns = plan.clock.now_ns();
    let opened = open_with_progress(plan, stop, observer)?;
    let connect_seconds = (plan.clock.now_ns() - began_ns) as f64 / SECOND_NS as f64;
    // io_uring receives into buffers that all connections share, in the clear.
    let transport = match opened.working.iter().any(|connection| connection.encryption.is_some()) {
        true => Transport::Epoll,
        false => plan.transport,
    };

    let threads = plan.threads.clamp(1, plan.connections.max(1)) as usize;
    let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, connection) in opened.working.into_iter().enumerate() {
        shares[i % threads].push(connection);
    }

    let give_up = Arc::new(AtomicBool::new(false));
    let (messages, inbox) = channel();
    observer.begins();
    let start_ns = plan.clock.now_ns();
    let end_ns = start_ns + u64::from(plan.seconds) * SECOND_NS;
    let handles: Vec<_> = shares
        .into_iter()
        .enumerate()
        .map(|(number, connections)| {
            let schedule = match plan.loop_kind {
                LoopKind::Closed => None,
                LoopKind::Open { rate, arrivals } => Some(Schedule::new(
                    rate * connections.len() as f64 / f64::from(plan.connections),
                    arrivals,
                    start_ns,
                    ConnectionRng::new(plan.seed ^ 0x5eed, number as u64),
                )),
            };
            let mut worker = Worker::new(
                plan.program.clone(),
                connections,
                schedule,
                (start_ns, end_ns),
                (give_up.clone(), plan.clock.clone(), plan.tally.clone()),
                messages.clone(),
            );
            let (messages, cpus, scheduling) = (messages.clone(), plan.cpus.clone(), plan.scheduling);
            std::thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn(move || {
                    confine(&cpus);
                    // Where it is refused the load runs all the same: how many are at work is measured.
                    let _ = scheduling.apply();
                    let result = match transport {
                        Transport::IoUring => uring::run(&mut worker),
                        Transport::Epoll => epoll::run(&mut worker),
                    };
                    // Nobody listens any more when the load was given up.
                    let _ = messages.send(match result {
                        Ok(()) => worker.finish(),
                        Err(failure) => Message::Failed(failure),
                    });
                    leave(worker)
                })
                .map_err(|e| LoadError::System("starting a thread", e))
        })
        .collect::<Result<_, _>>()
        // Those that did start must not go on without us.
        .inspect_err(|_| give_up.store(true, Ordering::Relaxed))?;
    drop(messages);

    let mut collector = Collector::new(handles.len());
    let in_time = ReadsInTime::beside(plan.scheduling);
    let result = collector.collect(plan, (start_ns, stop), &inbox, observer);
    drop(in_time);
    give_up.store(true, Ordering::Relaxed);
    let ran_ns = plan.clock.now_ns() - start_ns;
    // A panic of a worker has been printed by the panic hook; its channel end tells the collector.
    let unfinished: Vec<u32> = handles
        .into_iter()
        .flat_map(|handle| handle.join().unwrap_or_default())
        .collect();
    for mut session in opened.idle {
        quit(&session.socket, session.encryption.as_mut());
    }
    if !unfinished.is_empty() {
        observer.left_unfinished(&unfinished);
    }
    result?;
    Ok(LoadOutcome {
        connect_seconds,
        seconds: collector.delivered,
        late_transactions: collector.late.as_ref().map_or(0, |late| late.transactions),
        late_median_ns: collector
            .late
            .as_ref()
            .filter(|late| !late.service.is_empty())
            .map(|late| late.service.value_at_quantile(0.5)),
        transport,
        ran_ns: ran_ns.min(end_ns - start_ns),
    })
}

/// Opens the connections on helper threads while this one tells the observer how far they are.
fn open_with_progress(
    plan: &LoadPlan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn LoadObserver,
) -> Result<super::ramp::Opened, LoadError> {
    let wanted = plan.connections + plan.idle_connections;
    let (sender, progress) = channel();
    std::thread::scope(|scope| {
        let opening = scope.spawn(move || {
            open_all(plan, stop, &move |open| {
                // The receiver outlives this thread's scope.
                let _ = sender.send(open);
            })
        });
        for open in progress {
            observer.connected(open, wanted);
        }
        opening
            .join()
            .unwrap_or(Err(LoadError::Protocol("what made a thread of ours panic")))
    })
}

/// Puts the records of all workers together.
struct Collector {
    running: usize,
    /// How many seconds each worker told of that has finished.
    finished: Vec<u32>,
    /// Records of seconds that not all workers have delivered; the first is second `delivered`.
    pending: Vec<(usize, Option<SecondRecord>)>,
    delivered: u32,
    /// What ended after the last second, of all workers.
    late: Option<SecondRecord>,
}

impl Collector {
    fn new(workers: usize) -> Self {
        Collector {
            running: workers,
            finished: Vec::new(),
            pending: Vec::new(),
            delivered: 0,
            late: None,
        }
    }

    fn collect(
        &mut self,
        plan: &LoadPlan,
        (start_ns, stop): (u64, &AtomicBool),
        inbox: &Receiver<Message>,
        observer: &mut dyn LoadObserver,
    ) -> Result<(), LoadError> {
        let mut ended = 0;
        while self.running > 0 {
            let boundary = start_ns + (u64::from(ended) + 1) * SECOND_NS;
            let now = plan.clock.now_ns();
            if now >= boundary && ended < plan.seconds {
                observer.second_ended(ended);
                ended += 1;
                continue;
            }
            let until = if ended < plan.seconds {
                boundary - now
            } else {
                SECOND_NS
            };
            match inbox.recv_timeout(Duration::from_nanos(until.min(SECOND_NS / 10))) {
                Ok(Message::Second(record)) => self.add(&record, observer),
                Ok(Message::Finished { seconds, late }) => {
                    self.running -= 1;
                    self.finished.push(seconds);
                    match &mut self.late {
                        Some(all) => all.merge(&late),
                        None => self.late = Some(*late),
                    }
                    self.deliver(observer);
                }
                Ok(Message::Failed(failure)) => return Err(load_error(failure, &plan.program)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(LoadError::Protocol("what made a thread of ours panic"));
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(LoadError::Stopped);
            }
        }
        Ok(())
    }

    fn add(&mut self, record: &SecondRecord, observer: &mut dyn LoadObserver) {
        let place = (record.second - self.delivered) as usize;
        while self.pending.len() <= place {
            self.pending.push((0, None));
        }
        let (count, sum) = &mut self.pending[place];
        *count += 1;
        match sum {
            Some(sum) => sum.merge(record),
            None => *sum = Some(record.clone()),
        }
        self.deliver(observer);
    }

    /// Gives on the seconds that every worker has told of, or has finished before.
    fn deliver(&mut self, observer: &mut dyn LoadObserver) {
        while let Some((count, _)) = self.pending.first() {
            let past = self
                .finished
                .iter()
                .filter(|&&seconds| seconds > self.delivered)
                .count();
            if *count < self.running + past {
                return;
            }
            if let (_, Some(whole)) = self.pending.remove(0) {
                observer.record(whole);
            }
            self.delivered += 1;
        }
    }
}

fn load_error(failure: Failure, program: &Program) -> LoadError {
    match failure {
        Failure::Statement { statement, error } => LoadError::Statement {
            statement: program
                .statement_names()
                .get(usize::from(statement))
                .cloned()
                .unwrap_or_default(),
            error: *error,
        },
        Failure::Lost(e) => LoadError::Lost(e),
        Failure::Protocol(what) => LoadError::Protocol(what),
        Failure::Unexpected(what) => LoadError::Unexpected(what),
        Failure::System(what, e) => LoadError::System(what, e),
    }
}

/// Keeps the calling thread on these CPUs. Where that is refused the load runs all the same: the placement is
/// checked and reported by who chose the CPUs.
fn confine(cpus: &[usize]) {
    if cpus.is_empty() {
        return;
    }
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// COM_QUIT, so that the server does not count aborted connections.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];

fn quit(socket: &OwnedFd, encryption: Option<&mut Encryption>) {
    match encryption {
        None => {
            let _ = send(socket, &QUIT, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        Some(encryption) => {
            let _ = encryption.send(socket, &QUIT).and_then(|()| encryption.close(socket));
        }
    }
}

/// Closes a worker's connections; gives the server's numbers of those with a transaction under way.
fn leave(worker: Worker) -> Vec<u32> {
    let mut unfinished = Vec::new();
    for mut connection in worker.connections {
        if connection.phase != Phase::Resting {
            unfinished.push(connection.id);
            // Half a packet may stand before the good-bye: closing says it too.
            continue;
        }
        quit(&connection.socket, connection.encryption.as_mut());
    }
    unfinished
}
