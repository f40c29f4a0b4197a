//! A closed loop with CPUs, a mutex, a disk and a client, simulated event by event: the truth of its thread ledger is known.

use crate::totals::{Amount, Window};
use scaleprof_bundle::StateRow;
use scaleprof_vocabulary::{Role, ThreadState};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Work of one transaction outside of the mutex, nanoseconds.
pub const CPU_NS: u64 = 400_000;
/// Work inside it.
pub const LOCKED_NS: u64 = 250_000;
/// Its wait for the disk.
pub const IO_NS: u64 = 3_000_000;
/// The client's time between two transactions.
pub const NET_NS: u64 = 50_000;

pub struct Run {
    pub states: Vec<StateRow>,
    transactions: Vec<u64>,
}

impl Run {
    /// Its seconds from `warmup` on.
    pub fn window(&self, warmup: usize) -> Window {
        let amount = |transactions: u64| Amount {
            seconds: 1.0,
            transactions: transactions as f64,
        };
        Window {
            measurement: 0,
            seconds: (warmup..self.transactions.len())
                .map(|second| (second as i32, amount(self.transactions[second])))
                .collect(),
            whole: Amount {
                seconds: self.transactions.len() as f64,
                transactions: self.transactions.iter().sum::<u64>() as f64,
            },
        }
    }
}

/// What a thread does next; each step but the waits has a length.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Cpu,
    Locked,
    Io,
    Net,
}

struct Simulation {
    free_cpus: usize,
    run_queue: VecDeque<(usize, Step)>,
    mutex_free: bool,
    waiters: VecDeque<usize>,
    /// Ends of steps, earliest first.
    events: BinaryHeap<(std::cmp::Reverse<u64>, usize)>,
    /// State of each thread and since when.
    doing: Vec<(ThreadState, u64, Step)>,
    times: BTreeMap<(i32, ThreadState), u64>,
}

impl Simulation {
    /// The thread leaves its state at `now` for another; its time goes to the seconds that it spans.
    fn turn(&mut self, thread: usize, now: u64, state: ThreadState, step: Step) {
        let (before, since, _) = self.doing[thread];
        self.charge(before, since, now);
        self.doing[thread] = (state, now, step);
    }

    fn charge(&mut self, state: ThreadState, mut from: u64, to: u64) {
        while from < to {
            let second = from / 1_000_000_000;
            let end = to.min((second + 1) * 1_000_000_000);
            *self.times.entry((second as i32, state)).or_default() += end - from;
            from = end;
        }
    }

    fn blocked(&mut self, thread: usize, now: u64, state: ThreadState, step: Step, length: u64) {
        self.turn(thread, now, state, step);
        self.events.push((std::cmp::Reverse(now + length), thread));
    }

    fn wants_cpu(&mut self, thread: usize, now: u64, step: Step) {
        self.turn(thread, now, ThreadState::RunQueue, step);
        self.run_queue.push_back((thread, step));
        self.dispatch(now);
    }

    fn dispatch(&mut self, now: u64) {
        while self.free_cpus > 0 {
            let Some((thread, step)) = self.run_queue.pop_front() else {
                return;
            };
            self.free_cpus -= 1;
            self.turn(thread, now, ThreadState::Cpu, step);
            let length = if step == Step::Locked { LOCKED_NS } else { CPU_NS };
            self.events.push((std::cmp::Reverse(now + length), thread));
        }
    }
}

/// `connections` threads on `cpus` CPUs for `seconds`: the client, work, the mutex, the disk, and again.
pub fn closed_loop(connections: u32, cpus: usize, seconds: u64) -> Run {
    let threads = connections as usize;
    let mut sim = Simulation {
        free_cpus: cpus,
        run_queue: VecDeque::new(),
        mutex_free: true,
        waiters: VecDeque::new(),
        events: BinaryHeap::new(),
        doing: vec![(ThreadState::Net, 0, Step::Net); threads],
        times: BTreeMap::new(),
    };
    for thread in 0..threads {
        sim.blocked(thread, 0, ThreadState::Net, Step::Net, NET_NS);
    }
    let end = seconds * 1_000_000_000;
    let mut transactions = vec![0; seconds as usize];
    while let Some((std::cmp::Reverse(now), thread)) = sim.events.pop() {
        if now >= end {
            break;
        }
        match sim.doing[thread].2 {
            Step::Net => sim.wants_cpu(thread, now, Step::Cpu),
            Step::Cpu => {
                sim.free_cpus += 1;
                if std::mem::take(&mut sim.mutex_free) {
                    sim.wants_cpu(thread, now, Step::Locked);
                } else {
                    sim.turn(thread, now, ThreadState::Lock, Step::Locked);
                    sim.waiters.push_back(thread);
                }
                sim.dispatch(now);
            }
            Step::Locked => {
                sim.free_cpus += 1;
                match sim.waiters.pop_front() {
                    Some(next) => sim.wants_cpu(next, now, Step::Locked),
                    None => sim.mutex_free = true,
                }
                sim.blocked(thread, now, ThreadState::Io, Step::Io, IO_NS);
                sim.dispatch(now);
            }
            Step::Io => {
                transactions[(now / 1_000_000_000) as usize] += 1;
                sim.blocked(thread, now, ThreadState::Net, Step::Net, NET_NS);
            }
        }
    }
    for thread in 0..threads {
        let (state, since, _) = sim.doing[thread];
        sim.charge(state, since, end);
    }
    let row = |second: i32, state: ThreadState, nanoseconds: u64| StateRow {
        measurement: 0,
        second: Some(second),
        role: Role::Connection,
        state,
        nanoseconds: nanoseconds as i64,
        thread: None,
        name: None,
        lifetime_ns: None,
    };
    let mut states: Vec<StateRow> = sim
        .times
        .iter()
        .map(|((second, state), ns)| row(*second, *state, *ns))
        .collect();
    states.extend((0..seconds).map(|second| StateRow {
        lifetime_ns: Some(i64::from(connections) * 1_000_000_000),
        ..row(second as i32, ThreadState::Cpu, 0)
    }));
    Run { states, transactions }
}
