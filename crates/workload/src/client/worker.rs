//! One thread of the client: what to do with a reply, whichever way it came.
//!
//! A worker owns its connections, its random numbers and its histograms: the threads share nothing while they run.

use super::clock::LoadClock;
use super::connection::{Connection, Phase};
use super::pacing::{Pauses, Schedule};
use super::record::SecondRecord;
use super::tally::Tally;
use super::thread_times::ThreadClock;
use crate::program::{Program, Repetition};
use scaleprof_wire::{Reply, ServerError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// What a worker tells the thread that drives the load.
#[derive(Debug)]
pub(crate) enum Message {
    /// A second is over.
    Second(Box<SecondRecord>),
    /// The worker has nothing more to do.
    Finished {
        /// Seconds that it told of.
        seconds: u32,
        /// Transactions that ended after the last second: they were under way when time was up.
        late: Box<SecondRecord>,
    },
    /// It could not go on.
    Failed(Failure),
}

/// Why a worker could not go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A statement failed with an error that is not retried.
    Statement {
        /// Kind of the statement.
        statement: u16,
        error: Box<ServerError>,
    },
    /// The server closed the connection, or it broke.
    Lost(std::io::Error),
    /// The server sent what we do not understand.
    Protocol(&'static str),
    /// Rows are not what they must be on the tables that the program filled.
    Unexpected(&'static str),
    /// A system call of ours failed.
    System(&'static str, std::io::Error),
}

/// What the transport has to do next for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait for more of the reply.
    Receive,
    /// Send [`Connection::unsent`].
    Send,
    /// Nothing until it is called again.
    Rest,
}

/// Errors after which a transaction is begun again: deadlock, lock wait timeout, record changed since last read
/// (as sysbench's `--mysql-ignore-errors`).
const RETRIED: [u16; 3] = [1213, 1205, 1020];

/// How long transactions under way may take after the end before they are given up.
const DRAIN_NS: u64 = 10 * SECOND_NS;

/// Length of a second, nanoseconds.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The state of one worker.
pub(crate) struct Worker {
    pub(crate) program: Arc<Program>,
    pub(crate) connections: Vec<Connection>,
    /// Connections that wait for a transaction to be due.
    resting: VecDeque<u32>,
    pub(crate) schedule: Option<Schedule>,
    /// Connections that rest for a time of their own.
    pauses: Pauses,
    current: SecondRecord,
    /// Of the thread that called [`Worker::start`].
    thread_clock: Option<ThreadClock>,
    start_ns: u64,
    end_ns: u64,
    /// Transactions under way.
    pub(crate) active: usize,
    /// Sum of the times at which they began: with `active` it gives how long they have been under way together.
    began_sum_ns: u64,
    /// How long that was when the current second began.
    under_way_at_start_ns: u64,
    stop: Arc<AtomicBool>,
    clock: LoadClock,
    tally: Tally,
    messages: Sender<Message>,
}

impl Worker {
    pub(crate) fn new(
        program: Arc<Program>,
        connections: Vec<Connection>,
        schedule: Option<Schedule>,
        (start_ns, end_ns): (u64, u64),
        (stop, clock, tally): (Arc<AtomicBool>, LoadClock, Tally),
        messages: Sender<Message>,
    ) -> Self {
        let timed = if program.times_statements() {
            program.statement_names().len()
        } else {
            0
        };
        Worker {
            current: SecondRecord::new(0, schedule.is_some(), timed, program.transaction_names().len()),
            thread_clock: None,
            pauses: Pauses::default(),
            resting: VecDeque::with_capacity(connections.len()),
            program,
            connections,
            schedule,
            start_ns,
            end_ns,
            active: 0,
            began_sum_ns: 0,
            under_way_at_start_ns: 0,
            stop,
            clock,
            tally,
            messages,
        }
    }

    /// The time by the load's clock, nanoseconds.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Waits for the load's turn where it has turns: between two waits for the server, so that a load that is due at a time of its own
    /// takes no CPU time from the one whose turn it is.
    #[inline]
    pub(crate) fn wait_for_its_turn(&self) {
        self.clock.wait_while_it_stands(&self.stop);
    }

    /// Begins: all connections at once in the closed loop, those that are due in the open one, and each after a pause where
    /// they have pauses.
    pub(crate) fn start(&mut self, now_ns: u64, to_send: &mut Vec<u32>) {
        self.thread_clock = Some(ThreadClock::of_this_thread());
        for index in 0..self.connections.len() as u32 {
            let pause_ns = self.connections[index as usize].pause_ns(&self.program);
            if self.schedule.is_some() {
                self.resting.push_back(index);
            } else if let Some(pause_ns) = pause_ns {
                self.pauses.rest(now_ns + pause_ns, index);
            } else {
                self.begin(index, now_ns, now_ns);
                to_send.push(index);
            }
        }
    }

    fn begin(&mut self, index: u32, due_ns: u64, now_ns: u64) {
        let connection = &mut self.connections[index as usize];
        connection.begin(&self.program);
        connection.due_ns = due_ns;
        connection.began_ns = now_ns;
        connection.statement_began_ns = now_ns;
        self.active += 1;
        self.began_sum_ns = self.began_sum_ns.wrapping_add(now_ns);
    }

    /// A transaction is over, well or not: it is no longer under way.
    #[inline]
    fn leave(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        connection.phase = Phase::Resting;
        self.active -= 1;
        self.began_sum_ns = self.began_sum_ns.wrapping_sub(connection.began_ns);
    }

    /// Closes the seconds that are over and begins the transactions that are due.
    pub(crate) fn tick(&mut self, now_ns: u64, to_send: &mut Vec<u32>) {
        while now_ns >= self.second_end_ns() && self.second_end_ns() <= self.end_ns {
            self.close_second(now_ns);
        }
        if self.is_over(now_ns) {
            return;
        }
        while let Some((rested_ns, index)) = self.pauses.take_over(now_ns) {
            self.begin(index, rested_ns, now_ns);
            to_send.push(index);
        }
        if let Some(schedule) = &mut self.schedule {
            let mut due = Vec::new();
            while due.len() < self.resting.len() {
                match schedule.take_due(now_ns) {
                    Some(at) => due.push(at),
                    None => break,
                }
            }
            for at in due {
                // The one that rested longest: all have their turn, whatever rows and warehouses are theirs.
                if let Some(index) = self.resting.pop_front() {
                    self.begin(index, at, now_ns);
                    to_send.push(index);
                }
            }
        }
    }

    fn close_second(&mut self, now_ns: u64) {
        let next = SecondRecord::like(&self.current, self.current.second + 1);
        let mut record = std::mem::replace(&mut self.current, next);
        // What ended in this second was inside it but for its part in earlier ones; what is under way was too.
        let under_way_ns = (self.active as u64)
            .wrapping_mul(now_ns)
            .wrapping_sub(self.began_sum_ns);
        let in_transaction_ns = record.service_sum_ns + record.given_up_ns + under_way_ns;
        record.in_transaction_ns = in_transaction_ns.saturating_sub(self.under_way_at_start_ns);
        self.under_way_at_start_ns = under_way_ns;
        if self.schedule.is_some() {
            record.backlog = self.backlog(now_ns);
        }
        record.load_threads = self.thread_clock.as_mut().and_then(ThreadClock::lap);
        // Nobody listens any more when the run was given up: the stop flag ends the loop.
        let _ = self.messages.send(Message::Second(Box::new(record)));
    }

    /// The worker leaves: tells what is not told yet. A program that runs once ends within a second, not with one.
    pub(crate) fn finish(&mut self) -> Message {
        let now_ns = self.now_ns();
        let once = self.program.repetition() == Repetition::Once;
        if once && now_ns < self.end_ns && self.current.queries > 0 {
            self.close_second(now_ns);
        }
        let next = SecondRecord::like(&self.current, self.current.second);
        Message::Finished {
            seconds: self.current.second,
            late: Box::new(std::mem::replace(&mut self.current, next)),
        }
    }

    fn backlog(&self, now_ns: u64) -> u64 {
        self.schedule.as_ref().map_or(0, |s| s.overdue(now_ns))
    }

    fn second_end_ns(&self) -> u64 {
        self.start_ns + (u64::from(self.current.second) + 1) * SECOND_NS
    }

    /// When what is still under way is given up at the latest, by the load's clock.
    pub(crate) fn gives_up_at_ns(&self) -> u64 {
        self.end_ns + DRAIN_NS
    }

    /// Whether what is under way is given up too.
    pub(crate) fn is_given_up(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether no new transaction may begin.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns || self.is_given_up()
    }

    /// Whether the worker may leave: the run was given up, time is up and nothing is under way, or everything ran
    /// once.
    pub(crate) fn is_done(&self, now_ns: u64) -> bool {
        self.is_given_up()
            || self.active == 0 && (self.is_over(now_ns) || self.program.repetition() == Repetition::Once)
    }

    /// How long the transport may sleep, nanoseconds. Bounded, so that the stop flag is seen.
    pub(crate) fn patience_ns(&self, now_ns: u64) -> u64 {
        const STOP_FLAG_NS: u64 = 100_000_000;
        let mut until = now_ns + STOP_FLAG_NS;
        // Past the last second none is closed any more, however long what is under way takes.
        if self.second_end_ns() <= self.end_ns {
            until = until.min(self.second_end_ns());
        }
        if let Some(schedule) = &self.schedule
            && !self.resting.is_empty()
            && !self.is_over(now_ns)
        {
            until = until.min(schedule.next_ns());
        }
        if let Some(rested_ns) = self.pauses.next_ns().filter(|_| !self.is_over(now_ns)) {
            until = until.min(rested_ns);
        }
        until.saturating_sub(now_ns)
    }

    /// Counts how long a reply lay there before it was served.
    #[inline]
    pub(crate) fn count_lag(&mut self, lag_ns: u64) {
        self.current.lag.saturating_record(lag_ns);
    }

    /// Takes bytes of a reply that came at `now_ns`.
    #[inline]
    pub(crate) fn received(&mut self, index: u32, bytes: &[u8], now_ns: u64) -> Result<Next, Failure> {
        let connection = &mut self.connections[index as usize];
        let (used, reply) = connection.scanner.feed(bytes).map_err(Failure::Protocol)?;
        let Some(reply) = reply else {
            connection.keep(bytes).map_err(Failure::Unexpected)?;
            return Ok(Next::Receive);
        };
        if used < bytes.len() || connection.phase == Phase::Resting {
            return Err(Failure::Protocol("more than one reply to a statement"));
        }
        match reply {
            Reply::Rows { .. } => {
                self.current.reads += 1;
                connection.read(bytes).map_err(Failure::Unexpected)?;
            }
            Reply::Done { affected_rows } => {
                self.current.writes += u64::from(affected_rows > 0);
                connection.forget();
            }
            Reply::LocalFile => return Err(Failure::Protocol("a request for a local file")),
            Reply::Failed(error) => return self.failed(index, error, now_ns),
        }
        let connection = &mut self.connections[index as usize];
        if connection.phase == Phase::RollingBack {
            // The latency goes on counting.
            connection.begin_again(&self.program);
            connection.statement_began_ns = now_ns;
            return Ok(Next::Send);
        }
        self.current.queries += 1;
        if !self.current.statements.is_empty() {
            let statement = usize::from(connection.statement(&self.program));
            self.current.statements[statement].saturating_record(now_ns.saturating_sub(connection.statement_began_ns));
        }
        connection.statement_began_ns = now_ns;
        if connection.advance(&self.program) {
            return Ok(Next::Send);
        }
        Ok(self.ended(index, now_ns))
    }

    /// A transaction ended well.
    #[inline]
    fn ended(&mut self, index: u32, now_ns: u64) -> Next {
        let connection = &mut self.connections[index as usize];
        let service_ns = now_ns.saturating_sub(connection.began_ns);
        let response_ns = now_ns.saturating_sub(connection.due_ns);
        self.current.transactions += 1;
        self.tally.add();
        self.current.service_sum_ns += service_ns;
        self.current.response_sum_ns += response_ns;
        self.current.service.saturating_record(service_ns);
        if let Some(histogram) = &mut self.current.response {
            histogram.saturating_record(response_ns);
        }
        if let Some(ending) = connection.ending()
            && let Some(histogram) = self.current.kinds.get_mut(ending.place())
        {
            histogram.saturating_record(service_ns);
        }
        self.leave(index);
        if self.is_over(now_ns) || self.program.repetition() == Repetition::Once {
            return Next::Rest;
        }
        if let Some(pause_ns) = self.connections[index as usize].pause_ns(&self.program) {
            self.pauses.rest(now_ns + pause_ns, index);
            return Next::Rest;
        }
        let due_ns = match &mut self.schedule {
            None => now_ns,
            // Where others rest it is their turn.
            Some(schedule) => match self.resting.is_empty().then(|| schedule.take_due(now_ns)).flatten() {
                Some(due_ns) => due_ns,
                None => {
                    self.resting.push_back(index);
                    return Next::Rest;
                }
            },
        };
        self.begin(index, due_ns, now_ns);
        Next::Send
    }

    #[cold]
    fn failed(&mut self, index: u32, error: Box<ServerError>, now_ns: u64) -> Result<Next, Failure> {
        let connection = &mut self.connections[index as usize];
        let statement = connection.statement(&self.program);
        if connection.phase == Phase::RollingBack || !RETRIED.contains(&error.number) {
            return Err(Failure::Statement { statement, error });
        }
        self.current.queries += 1;
        *self.current.errors.entry((error.number, statement)).or_default() += 1;
        if self.is_over(now_ns) {
            // No time to try again: what it did is rolled back when the connection closes.
            self.current.given_up_ns += now_ns.saturating_sub(self.connections[index as usize].began_ns);
            self.leave(index);
            return Ok(Next::Rest);
        }
        self.current.retries += 1;
        // After a lock wait timeout the server keeps what the transaction did so far: undo it before beginning again.
        let connection = &mut self.connections[index as usize];
        connection.forget();
        connection.roll_back();
        Ok(Next::Send)
    }
}
