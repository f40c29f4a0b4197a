//! All threads of a process and what each did since the last read-out.

use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

use super::account::{Account, Looks};
use super::record::Record;
use super::recorder::Told;
use super::thread_files::{Look, Stopped, ThreadFiles};
use super::watch::PlainThread;

/// The threads of one process.
#[derive(Debug)]
pub(super) struct ThreadTable {
    process: u32,
    threads: BTreeMap<u32, Thread>,
    /// Ended and not yet read out.
    ended: Vec<PlainThread>,
    /// When the last round was.
    round_ns: u64,
    /// Whether the kernel tells of threads that begin and end.
    told: bool,
    /// How many times the rings were emptied.
    drains: u64,
    /// Threads whose beginning nobody told of, and how many times the rings had been emptied when they were found.
    unannounced: BTreeMap<u32, u64>,
    /// What threads did whose beginning nobody told of yet, and how many times the rings had been emptied when they did.
    early: Vec<(u32, Step, u64)>,
    looks_by_name: BTreeMap<String, Looks>,
    sees_system_calls: bool,
}

#[derive(Debug)]
struct Thread {
    name: String,
    account: Account,
    files: Option<ThreadFiles>,
    /// On a CPU since its account was brought up to date, by its switches.
    switched_ns: u64,
    /// The same since its account began.
    all_switched_ns: u64,
    end: Option<End>,
}

/// What the rings tell of a thread.
#[derive(Debug, Clone, Copy)]
enum Step {
    OnCpu { from_ns: u64, to_ns: u64 },
    Ends { time_ns: u64 },
}

impl Step {
    /// When it was over.
    fn time_ns(self) -> u64 {
        match self {
            Step::OnCpu { to_ns, .. } => to_ns,
            Step::Ends { time_ns } => time_ns,
        }
    }
}

/// The end of a thread: its last switches may stand in a ring that was emptied before the one that told of the end, so
/// it is believed only when all rings were emptied once more.
#[derive(Debug, Clone, Copy)]
struct End {
    /// Nothing if only its files are gone.
    time_ns: Option<u64>,
    drains: u64,
}

impl ThreadTable {
    /// The threads as they are now; what they did before is not counted.
    pub(super) fn new(process: u32, told: bool) -> std::io::Result<Self> {
        let mut table = Self {
            process,
            threads: BTreeMap::new(),
            ended: Vec::new(),
            round_ns: now_ns(),
            told,
            drains: 0,
            unannounced: BTreeMap::new(),
            early: Vec::new(),
            looks_by_name: BTreeMap::new(),
            sees_system_calls: true,
        };
        for number in list(process)? {
            if let Ok(files) = ThreadFiles::open(process, number)
                && let Some(scheduled) = files.scheduled()
            {
                let account = Account::new(now_ns(), scheduled);
                let thread = Thread::new(files.name().unwrap_or_default(), account, Some(files));
                table.threads.insert(number, thread);
            }
        }
        Ok(table)
    }

    /// The numbers of the living.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.threads.keys().copied().collect()
    }

    /// Whether it may be read in which system calls threads are blocked.
    pub(super) fn sees_system_calls(&self) -> bool {
        self.sees_system_calls
    }

    /// From now on nobody tells of threads that begin and end: they are found or missed in `/proc`, and the last moments
    /// of those that end are lost.
    pub(super) fn rely_on_looks(&mut self) {
        self.told = false;
        self.unannounced.clear();
    }

    /// Takes what a ring says of threads.
    pub(super) fn take(&mut self, told: &Told<'_>) {
        if !self.told {
            return;
        }
        match told {
            Told::OnCpu { thread, from_ns, to_ns } => {
                let (from_ns, to_ns) = (*from_ns, *to_ns);
                self.tell(*thread, Step::OnCpu { from_ns, to_ns });
            }
            Told::Record(Record::Fork {
                process,
                thread,
                parent,
                time_ns,
            }) if *process == self.process => self.begin(*thread, *parent, *time_ns),
            Told::Record(Record::Exit {
                process,
                thread,
                time_ns,
            }) if *process == self.process => {
                self.tell(*thread, Step::Ends { time_ns: *time_ns });
            }
            Told::Record(Record::Name { process, thread, name }) if *process == self.process => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.name.clone_from(name);
                }
            }
            _ => {}
        }
    }

    /// Rings are emptied one after another: what a thread did on one CPU may come before the word, from the CPU of the thread that
    /// made it, that it began at all.
    fn tell(&mut self, number: u32, step: Step) {
        match self.threads.get_mut(&number) {
            Some(thread) => thread.take(step, self.drains),
            None => self.early.push((number, step, self.drains)),
        }
    }

    fn begin(&mut self, number: u32, parent: u32, time_ns: u64) {
        // Whoever is there was found in /proc just before, or had the number earlier.
        if self.unannounced.remove(&number).is_some()
            && let Some(thread) = self.threads.get_mut(&number)
        {
            thread.account.began(time_ns);
            take_early(&mut self.early, number, time_ns, thread);
            return;
        }
        // Two events may tell of it until one of them is found to be one too many (`followed_late.rs`).
        if self
            .threads
            .get(&number)
            .is_some_and(|thread| thread.began_just_before(time_ns))
        {
            return;
        }
        if let Some(earlier) = self.threads.remove(&number) {
            self.finish(number, earlier);
        }
        // A thread begins with the name of the one that made it.
        let name = self
            .threads
            .get(&parent)
            .map(|parent| parent.name.clone())
            .unwrap_or_default();
        let account = Account::new(time_ns, Default::default());
        let mut thread = Thread::new(name, account, None);
        take_early(&mut self.early, number, time_ns, &mut thread);
        self.threads.insert(number, thread);
    }

    /// All rings were emptied.
    pub(super) fn drained(&mut self) {
        self.drains += 1;
        let drains = self.drains;
        self.early.retain(|(_, _, before)| before + 1 >= drains);
        let over: Vec<u32> = self
            .threads
            .iter()
            .filter(|(_, thread)| thread.end.is_some_and(|end| end.drains + 1 < drains))
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            if let Some(thread) = self.threads.remove(&number) {
                self.finish(number, thread);
            }
        }
    }

    /// Looks at every thread, and gives those of whose beginning nobody told although it should have been told: they
    /// began before the thread that made them was followed, or just then, or the record was lost.
    pub(super) fn round(&mut self) -> Vec<u32> {
        let listed = list(self.process).unwrap_or_default();
        let stopped = Stopped::of(self.process);
        for number in listed {
            let found_ns = now_ns();
            if !self.threads.contains_key(&number) {
                // The kernel gives the time of a thread's beginning in ticks only; a round is hardly longer.
                let account = Account::new(self.round_ns.midpoint(found_ns), Default::default());
                self.threads.insert(number, Thread::new(String::new(), account, None));
                if self.told {
                    self.unannounced.insert(number, self.drains);
                }
            }
            if let Some(thread) = self.threads.get_mut(&number) {
                thread.look((self.process, number), stopped, self.drains);
                if let Some(files) = &thread.files {
                    self.sees_system_calls &= files.sees_system_calls();
                }
            }
        }
        let gone: Vec<u32> = self
            .threads
            .iter()
            .filter(|(_, thread)| thread.is_gone(now_ns()))
            .map(|(n, _)| *n)
            .collect();
        for number in gone {
            let drains = self.drains;
            if let Some(thread) = self.threads.get_mut(&number) {
                let time_ns = None;
                thread.end.get_or_insert(End { time_ns, drains });
            }
        }
        self.round_ns = now_ns();
        if !self.told {
            self.drained();
        }
        let unannounced = std::mem::take(&mut self.unannounced);
        let (late, early) = unannounced
            .into_iter()
            .partition(|(_, drains)| drains + 1 < self.drains);
        self.unannounced = early;
        late.into_keys().collect()
    }

    fn finish(&mut self, number: u32, mut thread: Thread) {
        if let Some(time_ns) = thread.end.and_then(|end| end.time_ns) {
            thread.account.end(time_ns, thread.switched_ns, thread.all_switched_ns);
        }
        let read_out = self.read_out_of(number, &mut thread, true);
        self.ended.push(read_out);
    }

    /// Takes out what every thread did since the last time.
    pub(super) fn read_out(&mut self) -> Vec<PlainThread> {
        let mut threads = std::mem::take(&mut self.threads);
        let mut read_out = std::mem::take(&mut self.ended);
        for thread in threads.values_mut() {
            if !self.told
                && let Some(name) = thread.files.as_ref().and_then(ThreadFiles::name)
            {
                thread.name = name;
            }
        }
        self.looks_by_name.clear();
        for thread in threads.values() {
            let looks = self.looks_by_name.entry(thread.name.clone()).or_default();
            let more = thread.account.all_looks();
            *looks = std::array::from_fn(|state| looks[state].saturating_add(more[state]));
        }
        read_out.extend(
            threads
                .iter_mut()
                .map(|(number, thread)| self.read_out_of(*number, thread, false)),
        );
        self.threads = threads;
        read_out
    }

    fn read_out_of(&self, number: u32, thread: &mut Thread, ended: bool) -> PlainThread {
        let others = self.looks_by_name.get(&thread.name).copied().unwrap_or_default();
        let divided = thread.account.read_out(&others);
        PlainThread {
            thread: number,
            name: thread.name.clone(),
            lifetime_ns: divided.lifetime_ns,
            nanoseconds: divided.nanoseconds,
            estimated: divided.estimated,
            ended,
        }
    }
}

impl Thread {
    fn new(name: String, account: Account, files: Option<ThreadFiles>) -> Self {
        Self {
            name,
            account,
            files,
            switched_ns: 0,
            all_switched_ns: 0,
            end: None,
        }
    }

    fn take(&mut self, step: Step, drains: u64) {
        match step {
            Step::OnCpu { from_ns, to_ns } => {
                let since = |time_ns: u64| to_ns.saturating_sub(time_ns.max(from_ns));
                self.switched_ns += since(self.account.until_ns());
                self.all_switched_ns += since(self.account.since_ns());
            }
            Step::Ends { time_ns } => {
                let time_ns = Some(time_ns);
                self.end = Some(End { time_ns, drains });
            }
        }
    }

    /// Numbers are not given again so soon.
    fn began_just_before(&self, time_ns: u64) -> bool {
        const MOMENT_NS: u64 = 1_000_000;
        time_ns.abs_diff(self.account.since_ns()) < MOMENT_NS
    }

    fn look(&mut self, (process, number): (u32, u32), stopped: Stopped, drains: u64) {
        if self.end.is_some() {
            return;
        }
        if self.files.is_none() {
            self.files = ThreadFiles::open(process, number).ok();
            if let Some(name) = self.files.as_ref().and_then(ThreadFiles::name) {
                self.name = name;
            }
        }
        let Some(files) = &mut self.files else {
            return;
        };
        let time_ns = now_ns();
        match (files.scheduled(), files.look()) {
            (Some(scheduled), look) => {
                self.account.advance(time_ns, scheduled);
                self.switched_ns = 0;
                if let Some(Look::Blocked(state)) = look {
                    let stopped = stopped.holds(process, number);
                    self.account.look(if stopped { ThreadState::Other } else { state });
                }
            }
            (None, _) => {
                let time_ns = None;
                self.end = Some(End { time_ns, drains });
            }
        }
    }

    /// Not seen in a round although there is no word of its end.
    fn is_gone(&self, now_ns: u64) -> bool {
        const LONG_NS: u64 = 5_000_000_000;
        self.end.is_none() && now_ns.saturating_sub(self.account.until_ns()) > LONG_NS
    }
}

/// What came before the word that the thread began.
fn take_early(early: &mut Vec<(u32, Step, u64)>, number: u32, began_ns: u64, thread: &mut Thread) {
    for (_, step, drains) in early.extract_if(.., |(early, ..)| *early == number) {
        if step.time_ns() >= began_ns {
            thread.take(step, drains);
        }
    }
}

/// The threads that live.
fn list(process: u32) -> std::io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task"))?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

/// CLOCK_MONOTONIC.
pub(super) fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
