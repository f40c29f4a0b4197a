//! The servers that tests share, and loads on them.

use scaleprof_server::{Sandbox, ServerSettings, Settings};
use scaleprof_wire::{Client, Credentials, Endpoint};
use scaleprof_workload::*;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use testing::servers::{Server, TestFolder, distribution, fetched, start_empty, work_folder};

/// A running server and the folder that it lives in, dropped in this order.
pub struct Stage {
    sandbox: Sandbox,
    _folder: TestFolder,
}

impl std::ops::Deref for Stage {
    type Target = Sandbox;
    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl std::ops::DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }
}

/// Starts a server that a test has for itself.
pub fn start(server: &Server, connections: u32) -> Stage {
    let folder = work_folder();
    let asked = ServerSettings {
        connections,
        buffer_pool: Some(128 << 20),
        redo_log: 96 << 20,
        ..ServerSettings::default()
    };
    let settings = Settings::new(asked).expect("settings");
    let sandbox =
        start_empty(&server.installation, &settings, &folder).unwrap_or_else(|e| panic!("{}: {e}", server.name));
    Stage {
        sandbox,
        _folder: folder,
    }
}

/// A server that the tests use one after another. It runs as long as one of them uses it or waits for it.
struct Shared {
    running: Mutex<Weak<Stage>>,
    turn: Mutex<()>,
}

static DISTRIBUTION: Shared = Shared::new();
static MYSQL_5_6: Shared = Shared::new();

impl Shared {
    const fn new() -> Self {
        Shared {
            running: Mutex::new(Weak::new()),
            turn: Mutex::new(()),
        }
    }

    fn with(&self, server: Option<Server>, test: impl FnOnce(&Stage)) {
        let Some(server) = server else { return };
        let stage = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.upgrade().unwrap_or_else(|| {
                let stage = Arc::new(start(&server, 64));
                *running = Arc::downgrade(&stage);
                stage
            })
        };
        // The turn is given back before the server is: who waits for it finds it running.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = client(&stage);
        for sql in [
            "SET GLOBAL general_log = OFF",
            "SET GLOBAL local_infile = ON",
            "DROP DATABASE IF EXISTS scaleprof_load",
            "DROP DATABASE IF EXISTS other",
            "CREATE DATABASE other",
        ] {
            execute(&mut client, sql);
        }
        client.quit();
        test(&stage);
    }
}

/// Runs a test on the distribution's server, alone on it.
pub fn on_the_distribution_server(test: impl FnOnce(&Stage)) {
    DISTRIBUTION.with(distribution(), test);
}

/// Runs a test on MySQL 5.6.14, alone on it.
pub fn on_mysql_5_6(test: impl FnOnce(&Stage)) {
    MYSQL_5_6.with(fetched("mysql-5.6.14"), test);
}

pub fn client(sandbox: &Sandbox) -> Client {
    sandbox.connect().expect("a connection")
}

pub fn execute(client: &mut Client, sql: &str) {
    client.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub fn number(client: &mut Client, sql: &str) -> u64 {
    let value = client.query_value(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let value = value.unwrap_or_else(|| panic!("{sql}: no value"));
    value.parse().unwrap_or_else(|_| panic!("{sql}: {value}"))
}

/// Makes and fills the tables of a workload.
pub fn prepare(sandbox: &Sandbox, options: &OltpOptions, kind: OltpWorkloadKind) {
    schema::create(&mut client(sandbox), Some(options), "test").expect("tables");
    let plan = schema::FillPlan {
        endpoint: sandbox.endpoint().clone(),
        credentials: sandbox.credentials(),
        options: options.clone(),
        kind,
        seed: 1,
        threads: 2,
        skip_binary_log: true,
    };
    schema::fill(&plan, &AtomicBool::new(false), &mut |_| {}).expect("rows");
}

pub fn oltp(kind: OltpWorkloadKind, options: &OltpOptions) -> Program {
    Program::Oltp(OltpWorkload::new(kind, options.clone()).expect("a workload"))
}

pub fn script(text: &str, repetition: Repetition) -> Program {
    Program::Script(Script::parse(text, repetition).expect("a script"))
}

/// A plan for one thread, one connection and one second of a closed loop, to be changed as a test needs.
pub fn plan(sandbox: &Sandbox, program: Program) -> LoadPlan {
    plan_for(sandbox.endpoint().clone(), program)
}

/// The same for any server.
pub fn plan_for(endpoint: Endpoint, program: Program) -> LoadPlan {
    LoadPlan {
        endpoint,
        credentials: Credentials::user("root").in_database(match program {
            Program::Oltp(_) | Program::Tpcc(_) => schema::SCHEMA,
            Program::Script(_) => "other",
        }),
        program: Arc::new(program),
        connections: 1,
        idle_connections: 0,
        seconds: 1,
        loop_kind: LoopKind::Closed,
        threads: 1,
        cpus: vec![],
        scheduling: LoadScheduling::Usual,
        seed: 1,
        transport: TransportChoice::Auto.choose().expect("a way").transport,
        session_statements: vec![],
        clock: LoadClock::default(),
        tally: Tally::default(),
    }
}

/// What a load told while it ran, and how it ended.
pub struct Ran {
    pub records: Vec<SecondRecord>,
    pub result: Result<LoadOutcome, LoadError>,
    /// How long after the beginning each second was told of: later than it was cut, and that later than it was over.
    told_after: Vec<Duration>,
}

impl Ran {
    /// How late at most a second was cut, by this program's own clock.
    pub fn late(&self, second: usize) -> f64 {
        self.told_after[second].as_secs_f64() - (second as f64 + 1.0)
    }

    /// Asserts X·R = N from second `first` on: where connections are in transactions all the time, they spend so many times the time
    /// between two cuts in them. A cut may be late, by no more than its second was told of late.
    pub fn assert_all_at_work(&self, first: usize, connections: u32, what: &str) {
        let inside: u64 = self.records[first..]
            .iter()
            .map(|record| record.in_transaction_ns)
            .sum();
        let threads = inside as f64 / 1e9 / f64::from(connections);
        let seconds = (self.records.len() - first) as f64;
        let from = if first == 0 { 0.0 } else { self.late(first - 1) };
        let to = self.late(self.records.len() - 1);
        println!(
            "{what}: {threads:.4} s inside of transactions a connection in {seconds} s less {from:.4} and {to:.4} more"
        );
        // The clocks are the same; a thousandth is for connections whose first statement was sent after the others'.
        let (least, most) = ((seconds - from) * 0.999, (seconds + to) * 1.0001);
        assert!(
            (least..most).contains(&threads),
            "{what}: {threads} s inside of transactions a connection, which is not {least} to {most}"
        );
    }

    pub fn outcome(&self) -> &LoadOutcome {
        self.result.as_ref().unwrap_or_else(|e| panic!("the load failed: {e}"))
    }

    pub fn sum(&self, of: impl Fn(&SecondRecord) -> u64) -> u64 {
        self.records.iter().map(of).sum()
    }

    /// Transactions that ended well, those after the last second too.
    pub fn transactions(&self) -> u64 {
        self.sum(|r| r.transactions) + self.outcome().late_transactions
    }
}

/// Keeps the records, and calls a function at the end of every second.
struct Keeper<'a> {
    records: Vec<SecondRecord>,
    began: Option<Instant>,
    told_after: Vec<Duration>,
    at_second: &'a mut dyn FnMut(u32),
}

impl LoadObserver for Keeper<'_> {
    fn connected(&mut self, _: u32, _: u32) {}
    fn begins(&mut self) {
        self.began = Some(Instant::now());
    }
    fn second_ended(&mut self, second: u32) {
        (self.at_second)(second);
    }
    fn record(&mut self, record: SecondRecord) {
        assert_eq!(record.second as usize, self.records.len(), "seconds come in order");
        self.records.push(record);
        self.told_after.push(self.began.expect("it began").elapsed());
    }
}

/// Ticks a second in which /proc counts, on x86-64 and aarch64 (proc(5)).
const USER_HZ: f64 = 100.0;

/// Ticks of all CPUs by the clock, and of them those in which something ran or the host of a virtual machine took them. Only the idle
/// ticks of /proc/stat are measured; the others are looked at a hundred or a few hundred times a second, and a load with a rhythm of its
/// own is seen too often or too seldom: others then had -6 to 10 % of CPUs that nobody else used.
fn machine_ticks() -> [f64; 2] {
    let text = std::fs::read_to_string("/proc/stat").expect("the kernel's counts");
    let cpus = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
    let line = text.lines().next().expect("a line");
    let mut counts = line.split_whitespace().skip(1);
    // user, nice, system, idle, iowait.
    let mut count = |skipped| -> f64 { counts.nth(skipped).and_then(|n| n.parse().ok()).expect("a count") };
    let idle = count(3) + count(0);
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    let all = seconds * USER_HZ * cpus as f64;
    [all, all - idle]
}

/// Ticks that a process has run for.
fn ticks_of(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let mut fields = text.rsplit(") ").next().expect("fields").split(' ').skip(11);
    let mut ticks = || {
        fields
            .next()
            .and_then(|field| field.parse::<f64>().ok())
            .expect("ticks")
    };
    ticks() + ticks()
}

/// How often a load is measured that others disturb.
const MOST_MEASUREMENTS: usize = 3;
/// From this part of the CPUs on others disturb.
const DISTURBED: f64 = 0.04;
/// From so many seconds on the last second was cut late.
const LATE: f64 = 0.02;

/// Runs a load while nobody but this program and the server uses the CPUs, and no second's end is missed. Both are looked at before what
/// came of it is.
///
/// # Panics
/// It was disturbed each time, so that nothing is decided.
pub fn run_undisturbed(stage: &Stage, load: &LoadPlan, what: &str) -> Ran {
    let look = || {
        let [all, busy] = machine_ticks();
        [all, busy - ticks_of(std::process::id()) - ticks_of(stage.pid())]
    };
    let mut why = String::new();
    for number in 1..=MOST_MEASUREMENTS {
        let before = look();
        let ran = run(load);
        let after = look();
        let others = (after[1] - before[1]) / (after[0] - before[0]);
        let late = ran.late(ran.records.len() - 1);
        println!(
            "{what}: others had {:.1} % of the CPUs, the last cut was {late:.4} s late",
            others * 100.0
        );
        if others <= DISTURBED && late <= LATE {
            return ran;
        }
        why = format!(
            "others had {:.1} % of the CPUs, the last cut was {late:.3} s late",
            others * 100.0
        );
        if number < MOST_MEASUREMENTS {
            println!("REPEATED {what} after measurement {number}: {why}");
        }
    }
    panic!("{what}: not decided: disturbed: {why}");
}

pub fn run(plan: &LoadPlan) -> Ran {
    run_with(plan, &Arc::default(), &mut |_| {})
}

pub fn run_with(plan: &LoadPlan, stop: &Arc<AtomicBool>, at_second: &mut dyn FnMut(u32)) -> Ran {
    let mut keeper = Keeper {
        records: Vec::new(),
        began: None,
        told_after: Vec::new(),
        at_second,
    };
    let result = drive(plan, stop, &mut keeper);
    Ran {
        records: keeper.records,
        result,
        told_after: keeper.told_after,
    }
}

/// The transports of this kernel.
pub fn transports() -> Vec<Transport> {
    match TransportChoice::Only(Transport::IoUring).choose() {
        Ok(_) => vec![Transport::Epoll, Transport::IoUring],
        Err(unusable) => {
            testing::skip!("io_uring: {unusable}");
            vec![Transport::Epoll]
        }
    }
}
