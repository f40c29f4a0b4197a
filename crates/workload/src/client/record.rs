//! What happened in one second.

use super::thread_times::ThreadTimes;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Longest latency that is told apart, nanoseconds: one hour. Longer ones count as this.
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Shortest that is told apart.
const LOWEST_NS: u64 = 1_000;

/// Everything about one second of one rung, over all connections.
#[derive(Debug, Clone)]
pub struct SecondRecord {
    /// Second of the measurement, from 0.
    pub second: u32,
    /// Transactions that ended well.
    pub transactions: u64,
    /// Statements answered, errors included.
    pub queries: u64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed at least one row.
    pub writes: u64,
    /// Transactions that were begun again after a deadlock or lock wait timeout.
    pub retries: u64,
    /// Errors by number and kind of statement.
    pub errors: BTreeMap<(u16, u16), u64>,
    /// Sum of the service times, nanoseconds.
    pub service_sum_ns: u64,
    /// Sum of the response times, nanoseconds.
    pub response_sum_ns: u64,
    /// Time that connections spent inside transactions in this second, whether or not these ended in it, nanoseconds.
    pub in_transaction_ns: u64,
    /// Service time of transactions that were given up when time was up.
    pub(crate) given_up_ns: u64,
    /// Time from the first send to the last reply of a transaction, nanoseconds.
    pub service: Histogram<u32>,
    /// Time from when it was due; in the open loop only.
    pub response: Option<Histogram<u32>>,
    /// Service time of each kind of statement; for scripts only.
    pub statements: Vec<Histogram<u32>>,
    /// Service time of each kind of transaction, by [`crate::Program::transaction_names`]; empty where there is one kind.
    pub kinds: Vec<Histogram<u32>>,
    /// Time from when a reply was known to be there until it was served, nanoseconds: the client's own delay.
    pub lag: Histogram<u32>,
    /// Transactions that were due and had not begun at the end of the second; in the open loop only.
    pub backlog: u64,
    /// What the load threads did with this second. None where the kernel does not tell.
    pub load_threads: Option<ThreadTimes>,
}

/// Three digits: an error of at most 0.1 %.
fn histogram(digits: u8) -> Histogram<u32> {
    // The bounds are constants that the constructor accepts; auto-resizing stays off so that recording never allocates.
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, digits).unwrap_or_else(|_| unreachable!("constant bounds"))
}

impl SecondRecord {
    /// An empty record.
    pub(crate) fn new(second: u32, open_loop: bool, timed_statements: usize, kinds: usize) -> Self {
        SecondRecord {
            second,
            transactions: 0,
            queries: 0,
            reads: 0,
            writes: 0,
            retries: 0,
            errors: BTreeMap::new(),
            service_sum_ns: 0,
            response_sum_ns: 0,
            in_transaction_ns: 0,
            given_up_ns: 0,
            service: histogram(3),
            response: open_loop.then(|| histogram(3)),
            statements: vec![histogram(2); timed_statements],
            kinds: vec![histogram(2); kinds],
            lag: histogram(2),
            backlog: 0,
            load_threads: None,
        }
    }

    /// An empty record of the same shape.
    pub(crate) fn like(other: &SecondRecord, second: u32) -> Self {
        SecondRecord::new(
            second,
            other.response.is_some(),
            other.statements.len(),
            other.kinds.len(),
        )
    }

    /// Adds what another worker saw in the same second.
    pub(crate) fn merge(&mut self, other: &SecondRecord) {
        self.transactions += other.transactions;
        self.queries += other.queries;
        self.reads += other.reads;
        self.writes += other.writes;
        self.retries += other.retries;
        for (key, count) in &other.errors {
            *self.errors.entry(*key).or_default() += count;
        }
        self.service_sum_ns += other.service_sum_ns;
        self.response_sum_ns += other.response_sum_ns;
        self.in_transaction_ns += other.in_transaction_ns;
        self.given_up_ns += other.given_up_ns;
        self.backlog += other.backlog;
        let both = self.load_threads.zip(other.load_threads);
        self.load_threads = both.map(|(mine, theirs)| mine.plus(theirs));
        add(&mut self.service, &other.service);
        add(&mut self.lag, &other.lag);
        if let (Some(mine), Some(theirs)) = (&mut self.response, &other.response) {
            add(mine, theirs);
        }
        let statements = self.statements.iter_mut().zip(&other.statements);
        for (mine, theirs) in statements.chain(self.kinds.iter_mut().zip(&other.kinds)) {
            add(mine, theirs);
        }
    }

    /// Errors of all kinds.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

fn add(to: &mut Histogram<u32>, from: &Histogram<u32>) {
    // Histograms of the same bounds always fit.
    let fits = to.add(from);
    debug_assert!(fits.is_ok());
}
