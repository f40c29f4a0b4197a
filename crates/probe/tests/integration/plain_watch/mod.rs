//! Watching without BPF: a program of which is known what each thread does. Shares only; no time is asserted that a busy
//! machine could spoil.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use scaleprof_probe::plain::{PlainOptions, PlainReading, PlainThread, PlainWatch};
use scaleprof_profile::RawSample;

/// The program, compiled and running.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Where burn_inner, burn_middle, burn_outer and spins begin.
    functions: Vec<u64>,
    _folder: tempfile::TempDir,
}

impl Program {
    /// Nothing, aloud, where there is no compiler; continuous integration must have one.
    fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    fn start_with(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let program = compile(folder.path())?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says where its functions are");
        let functions = line
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).expect("an address"));
        Some(Self {
            functions: functions.collect(),
            child,
            output,
            _folder: folder,
        })
    }

    fn breed(&mut self) {
        self.tell("breed\n");
    }

    /// Each line begins a thread.
    fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        input.write_all(line.as_bytes()).expect("it listens");
    }

    fn watch(&self, options: PlainOptions) -> PlainWatch {
        PlainWatch::start(self.child.id(), options).expect("our own child can be watched")
    }

    /// All frames of the function, by its place in the program's text.
    fn is_in(&self, address: u64, function: usize) -> bool {
        (self.functions[function]..self.functions[function] + 400).contains(&address)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = self.output.read_line(&mut String::new());
    }
}

/// All of the time of every thread, whatever it costs.
fn everything() -> PlainOptions {
    PlainOptions {
        switches: true,
        ..PlainOptions::default()
    }
}

fn compile(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (folder.join("threads.c"), folder.join("threads"));
    std::fs::write(&source, include_str!("threads.c")).expect("written");
    let compiler = Command::new("cc")
        .args(["-O2", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .output();
    match compiler {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => skip(&format!("there is no C compiler: {error}; apt-get install gcc")),
    }
}

fn skip<T>(why: &str) -> Option<T> {
    testing::skip!("{why}");
    None
}

fn wait(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

fn thread<'a>(reading: &'a PlainReading, name: &str) -> &'a PlainThread {
    let found = reading.threads.iter().find(|thread| thread.name == name);
    found.unwrap_or_else(|| panic!("no thread {name} in {:#?}", reading.threads))
}

fn share(thread: &PlainThread, state: ThreadState) -> f64 {
    thread.nanoseconds[state as usize] as f64 / thread.lifetime_ns as f64
}

/// The host of a virtual machine takes some of a thread's time that is neither on a CPU nor queued then.
const NEARLY_ALL: f64 = 0.8;

fn ready(thread: &PlainThread) -> f64 {
    share(thread, ThreadState::Cpu) + share(thread, ThreadState::RunQueue)
}

fn samples_of<'a>(reading: &'a PlainReading, name: &str) -> Vec<&'a RawSample> {
    let number = thread(reading, name).thread;
    reading
        .samples
        .iter()
        .filter(|sample| sample.thread == number)
        .collect()
}

#[test]
fn every_thread_is_in_the_state_that_it_is_known_to_be_in() {
    let Some(program) = Program::start() else { return };
    let mut watch = program.watch(PlainOptions::default());
    // By then each has come to what it does.
    wait(500);
    watch.read();
    wait(1500);
    let reading = watch.read();
    let known = [
        ("sleeps", ThreadState::Sleep),
        ("holds", ThreadState::Sleep),
        ("polls_nothing", ThreadState::Sleep),
        ("waits_for_lock", ThreadState::Lock),
        ("polls_socket", ThreadState::Net),
        ("receives", ThreadState::Net),
        ("reads_pipe", ThreadState::Other),
    ];
    for (name, state) in known {
        let thread = thread(&reading, name);
        assert!(share(thread, state) > 0.99, "{thread:?}");
        assert!(thread.estimated && !thread.ended, "{thread:?}");
    }
    let spins = thread(&reading, "spins");
    assert!(ready(spins) > NEARLY_ALL, "{spins:?}");
    let alternates = thread(&reading, "alternates");
    // How long it waits for a CPU is the machine's affair; whenever it is blocked it sleeps.
    let ready = share(alternates, ThreadState::Cpu) + share(alternates, ThreadState::RunQueue);
    let asleep = share(alternates, ThreadState::Sleep) / (1.0 - ready);
    assert!(asleep > 0.95, "{alternates:?}");
    assert!(alternates.nanoseconds[ThreadState::Cpu as usize] > 0, "{alternates:?}");
}

#[test]
fn the_states_of_every_thread_add_up_to_its_life() {
    let Some(mut program) = Program::start() else { return };
    program.breed();
    let mut watch = program.watch(everything());
    // A reading that waits for a CPU tells of a moment somewhere in it.
    let now = std::time::Instant::now;
    let (mut before_last, _, mut after_last) = (now(), watch.read(), now());
    for _ in 0..4 {
        wait(400);
        let least = after_last.elapsed().as_nanos() as f64;
        let before = now();
        let reading = watch.read();
        let most = before_last.elapsed().as_nanos() as f64;
        (before_last, after_last) = (before, now());
        let mut throughout = 0;
        for thread in &reading.threads {
            let states = thread.nanoseconds.iter().sum::<u64>();
            assert_eq!(states, thread.lifetime_ns, "{thread:?}");
            assert!((states as f64) < 1.1 * most, "{thread:?} in {most} ns");
            // `breeds` begins others, which are brief: all but these were there from the beginning.
            if thread.name != "brief" && thread.name != "breeds" {
                assert!(states as f64 > 0.9 * least, "{thread:?} in {least} ns");
                throughout += 1;
            }
        }
        assert_eq!(throughout, 10, "{:#?}", reading.threads);
    }
}

#[test]
fn threads_that_live_throughout_are_seen_for_all_of_the_time() {
    let Some(program) = Program::start() else { return };
    let mut watch = program.watch(PlainOptions::default());
    // A reading that waits for a CPU tells of a moment somewhere in it.
    let before_first = std::time::Instant::now();
    watch.read();
    let after_first = std::time::Instant::now();
    wait(1000);
    let least = after_first.elapsed().as_nanos() as f64;
    let reading = watch.read();
    let most = before_first.elapsed().as_nanos() as f64;
    for thread in &reading.threads {
        let seen = thread.lifetime_ns as f64;
        assert!(
            (0.9 * least..1.1 * most).contains(&seen),
            "{thread:?} in {least} to {most} ns"
        );
    }
    assert_eq!(reading.threads.len(), 10, "{:#?}", reading.threads);
}

/// From switch to switch a thread holds its CPU also while the host takes that from this machine, which the process's clock leaves
/// out: by so much the watch may tell more.
#[test]
fn time_on_cpu_is_what_the_kernel_says_of_the_whole_process() {
    let Some(mut program) = Program::start() else { return };
    program.breed();
    let mut watch = program.watch(everything());
    wait(100);
    time_on_cpu_is_that_of_the_process(&mut watch, program.child.id());
}

/// Nanoseconds that the host of a virtual machine took from all CPUs since it was booted (proc_stat(5): user, nice, system, idle,
/// iowait, irq, softirq, steal).
fn stolen_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").expect("the kernel's counts");
    let ticks: f64 = text
        .split_whitespace()
        .nth(8)
        .and_then(|ticks| ticks.parse().ok())
        .expect("a count");
    ticks * 1e9 / rustix::param::clock_ticks_per_second() as f64
}

fn time_on_cpu_is_that_of_the_process(watch: &mut PlainWatch, pid: u32) {
    let clock = || scaleprof_probe::process_cpu_clock(pid).expect("it lives").as_nanos() as f64;
    // A reading looks at the threads while they run on, and on a busy machine it waits for a CPU itself: the moment of which it
    // tells lies somewhere between two looks at the clock.
    let stolen_before = stolen_ns();
    let before_first = clock();
    watch.read();
    let after_first = clock();
    wait(3000);
    let before_second = clock();
    let reading = watch.read();
    let after_second = clock();
    let stolen = stolen_ns() - stolen_before;
    let (least_theirs, most_theirs) = (before_second - after_first, after_second - before_first);
    let ours: u64 = reading
        .threads
        .iter()
        .map(|thread| thread.nanoseconds[ThreadState::Cpu as usize])
        .sum();
    let told = format!(
        "CPU time {:.4} s, {:.4} to {:.4} s by the kernel, {:.4} s taken by the host, of which {:.4} s in no thread; {} records lost",
        ours as f64 * 1e-9,
        least_theirs * 1e-9,
        most_theirs * 1e-9,
        stolen * 1e-9,
        reading.unseen_cpu_ns as f64 * 1e-9,
        reading.lost,
    );
    println!("{told}");
    // What a thread still runs for when the kernel has told of its end is in no thread, but in this sum.
    let all = ours as f64 + reading.unseen_cpu_ns as f64;
    let ours = ours as f64;
    let sees_all = sampling(watch) && reading.lost == 0;
    assert!(ours < 1.03 * most_theirs + stolen, "{told}");
    assert!(
        (0.97 * least_theirs..1.03 * most_theirs + stolen).contains(&all),
        "{told}"
    );
    if !sees_all {
        return;
    }
    assert!(
        (0.98 * least_theirs..1.02 * most_theirs + stolen).contains(&ours),
        "{told}"
    );
    // Each brief thread runs for 4 ms by its own clock; the first and the last may be cut.
    let ended = reading.threads.iter().filter(|thread| thread.ended);
    let times: Vec<u64> = ended
        .map(|thread| thread.nanoseconds[ThreadState::Cpu as usize])
        .collect();
    let short = times.iter().filter(|time| **time < 3_900_000).count();
    assert!(times.len() > 20 && short <= 2, "{short} of {times:?}");
}

/// Whether the kernel lets us have events at all (kernel.perf_event_paranoid may be 3).
fn sampling(watch: &PlainWatch) -> bool {
    let refused = watch.missing().into_iter().find(|lack| lack.what.contains("on CPU"));
    match refused {
        Some(lack) => skip::<()>(&format!("{lack:?}")).is_some(),
        None => true,
    }
}

#[test]
fn threads_that_end_are_read_out_once_and_with_their_time() {
    let Some(mut program) = Program::start() else { return };
    let mut watch = program.watch(everything());
    if !sampling(&watch) {
        return;
    }
    let pid = program.child.id();
    let clock = || scaleprof_probe::process_cpu_clock(pid).expect("it lives").as_nanos() as f64;
    let before = clock();
    watch.read();
    program.breed();
    let (mut brief, mut ours) = (Vec::new(), 0);
    for _ in 0..5 {
        wait(400);
        let threads = watch.read().threads;
        ours += threads.iter().map(|thread| thread.nanoseconds[0]).sum::<u64>();
        brief.extend(threads.into_iter().filter(|thread| thread.ended));
    }
    let theirs = clock() - before;
    assert!(brief.len() > 10, "{brief:#?}");
    let mut numbers: Vec<u32> = brief.iter().map(|thread| thread.thread).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), brief.len());
    // Each burns 4 ms of CPU time by its own clock. What its beginning and end take besides is the machine's affair, but all of them
    // together have not taken more than the process.
    let cpu: Vec<f64> = brief.iter().map(|thread| thread.nanoseconds[0] as f64 * 1e-6).collect();
    let mean = cpu.iter().sum::<f64>() / cpu.len() as f64;
    assert!(mean > 3.6, "{mean} ms: {cpu:?}");
    assert!((ours as f64) < 1.15 * theirs, "{ours} ns, {theirs} ns by the kernel");
    assert!(
        brief
            .iter()
            .all(|thread| thread.name == "brief" || thread.name == "breeds"),
        "{brief:#?}"
    );
}

#[test]
fn samples_show_the_way_to_where_a_thread_spins() {
    let Some(program) = Program::start() else { return };
    let options = PlainOptions {
        frequency_hz: 500,
        ..everything()
    };
    let mut watch = program.watch(options);
    if !sampling(&watch) {
        return;
    }
    wait(2000);
    let reading = watch.read();
    let samples = samples_of(&reading, "spins");
    assert!(samples.len() > 20, "{} samples", samples.len());
    let is_known = |sample: &&RawSample| {
        let from_burn = sample.stack.user.iter().position(|address| program.is_in(*address, 0));
        let callers = from_burn.map(|at| &sample.stack.user[at + 1..]);
        let callers = callers.is_some_and(|callers| {
            callers.len() > 3 && (1..=3).all(|function| program.is_in(callers[function - 1], function))
        });
        callers && sample.stack.ending == UnwindStatus::Complete
    };
    let known = samples.iter().filter(|sample| is_known(sample)).count();
    println!(
        "{known} of {} samples of the spinning thread have its whole call path",
        samples.len()
    );
    assert!(
        known as f64 > 0.99 * samples.len() as f64,
        "{known} of {}: {:x?}",
        samples.len(),
        samples[0]
    );
    assert!(reading.complete_share() > Some(0.99), "{:?}", reading.complete_share());
    // A ring holds 15 samples: on a busy machine some find no room, and that is said.
    assert!(
        (reading.lost as f64) < 0.5 * samples.len() as f64,
        "{} lost",
        reading.lost
    );
}

#[test]
fn samples_stand_for_the_time_on_cpu() {
    let Some(program) = Program::start() else { return };
    for switches in [true, false] {
        let options = PlainOptions {
            frequency_hz: 300,
            switches,
            ..PlainOptions::default()
        };
        let mut watch = program.watch(options);
        if !sampling(&watch) {
            return;
        }
        watch.read();
        wait(4000);
        let reading = watch.read();
        let spins = thread(&reading, "spins");
        let weight: f64 = samples_of(&reading, "spins")
            .iter()
            .map(|sample| sample.weight_ns)
            .sum();
        let ratio = weight / spins.nanoseconds[ThreadState::Cpu as usize] as f64;
        println!("switches {switches}: samples stand for {ratio:.3} of the CPU time");
        // The clock of perf also runs while the hypervisor has the CPU; a late timer gives one sample, not many. In four
        // bursts a neighbour may have had the CPU.
        let (least, most) = if switches { (0.6, 1.4) } else { (0.5, 1.6) };
        assert!((least..most).contains(&ratio), "{ratio}: {weight} for {spins:?}");
    }
}

#[test]
fn without_switches_the_time_of_threads_that_ended_is_known_in_sum() {
    let Some(mut program) = Program::start() else { return };
    program.breed();
    let mut watch = program.watch(PlainOptions::default());
    wait(100);
    let pid = program.child.id();
    let clock = || scaleprof_probe::process_cpu_clock(pid).expect("it lives").as_nanos() as f64;
    // A reading that waits for a CPU tells of a moment somewhere in it.
    let before_first = clock();
    watch.read();
    let after_first = clock();
    wait(2000);
    let least = clock() - after_first;
    let reading = watch.read();
    let most = clock() - before_first;
    let seen: u64 = reading
        .threads
        .iter()
        .map(|thread| thread.nanoseconds[ThreadState::Cpu as usize])
        .sum();
    let all = seen as f64 + reading.unseen_cpu_ns as f64;
    println!(
        "unseen {:.3} of the CPU time; with it {:.4} to {:.4}",
        reading.unseen_cpu_ns as f64 / least,
        all / most,
        all / least
    );
    assert!((0.95 * least..1.05 * most).contains(&all), "{all} of {least} to {most}");
}

#[test]
fn a_thread_that_begins_while_it_is_watched_is_sampled_once() {
    let Some(mut program) = Program::start() else { return };
    for switches in [true, false] {
        let options = PlainOptions {
            frequency_hz: 300,
            switches,
            ..PlainOptions::default()
        };
        let mut watch = program.watch(options);
        if !sampling(&watch) {
            return;
        }
        // Without switches one burst of samples in each second since the watch began stands for all of it:
        // a thread that begins in the middle of one has one to three bursts in two seconds.
        wait(1000);
        // It burns for as long as the watch goes on, and has the name of the one that is watched from the start.
        program.tell("spin\n");
        wait(3000);
        let reading = watch.read();
        let began = reading
            .threads
            .iter()
            .filter(|thread| thread.name == "spins")
            .max_by_key(|thread| thread.thread);
        let began = began.expect("it began");
        let samples = reading.samples.iter().filter(|sample| sample.thread == began.thread);
        let ratio = samples.map(|sample| sample.weight_ns).sum::<f64>() / began.nanoseconds[0] as f64;
        println!("switches {switches}: samples of a thread that began later stand for {ratio:.3} of its CPU time");
        assert!((0.6..1.5).contains(&ratio), "{ratio}: {began:?}");
    }
}

/// Its maker may be followed before it begins, after, or on one CPU of two.
#[test]
fn a_thread_that_begins_while_its_maker_is_being_followed_is_sampled_once() {
    const TRIES: u32 = 12;
    let Some(mut program) = Program::start() else { return };
    let began = std::time::Instant::now();
    let watch = program.watch(everything());
    let takes = began.elapsed();
    if !sampling(&watch) {
        return;
    }
    drop(watch);
    let mut told = 0;
    for number in 0..TRIES {
        let options = PlainOptions {
            frequency_hz: 1000,
            ..everything()
        };
        let reading = std::thread::scope(|scope| {
            let (pid, begins_after) = (program.child.id(), takes * number / TRIES);
            let watch = scope.spawn(move || {
                let watch = PlainWatch::start(pid, options).expect("our own child can be watched");
                wait(200);
                watch
            });
            std::thread::sleep(begins_after);
            program.tell("spin\n");
            let mut watch = watch.join().expect("it watches");
            watch.read();
            wait(200);
            watch.read()
        });
        let spins: Vec<&PlainThread> = reading.threads.iter().filter(|thread| thread.name == "spins").collect();
        assert_eq!(spins.len(), 2, "try {number}: {spins:?}");
        // A machine that is too busy to let us read loses some: that try tells nothing.
        if reading.lost == 0 {
            let latest = spins.into_iter().max_by_key(|thread| thread.thread).expect("two");
            let samples = reading.samples.iter().filter(|sample| sample.thread == latest.thread);
            let ratio = samples.map(|sample| sample.weight_ns).sum::<f64>() / latest.nanoseconds[0] as f64;
            assert!((0.5..1.5).contains(&ratio), "{ratio:.2} in try {number}: {latest:?}");
            told += 1;
        }
        drop(std::mem::replace(
            &mut program,
            Program::start().expect("it started before"),
        ));
    }
    println!("{told} of {TRIES} tries told something");
    assert!(told >= TRIES / 2, "{told} of {TRIES}");
}

#[test]
fn to_root_nothing_is_refused_and_users_read_why_something_is() {
    let Some(program) = Program::start() else { return };
    let watch = program.watch(PlainOptions::default());
    let missing = watch.missing();
    if rustix::process::geteuid().is_root() {
        assert_eq!(missing, [], "waits are not this watch's to see, so they are no refusal");
    } else {
        // From 2 on it keeps the kernel's part from users (Documentation/admin-guide/sysctl/kernel.rst).
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
        let hides_kernel = paranoid.trim().parse().map_or(true, |level: i32| level >= 2);
        assert_eq!(!missing.is_empty(), hides_kernel, "level {paranoid}: {missing:#?}");
        assert!(missing.iter().all(|lack| !lack.why.is_empty()), "{missing:#?}");
    }
}

#[test]
fn a_process_that_keeps_itself_closed_is_watched_as_far_as_it_lets() {
    let Some(program) = Program::start_with(&["closed"]) else {
        return;
    };
    let mut watch = program.watch(PlainOptions::default());
    wait(1000);
    let (reading, missing) = (watch.read(), watch.missing());
    let spins = thread(&reading, "spins");
    assert!(ready(spins) > NEARLY_ALL, "{spins:?}");
    let sleeps = thread(&reading, "sleeps");
    if rustix::process::geteuid().is_root() {
        assert!(share(sleeps, ThreadState::Sleep) > 0.99, "{sleeps:?}");
    } else {
        assert!(reading.samples.is_empty());
        assert!(share(sleeps, ThreadState::Other) > 0.99, "{sleeps:?}");
        let closed: Vec<_> = missing.iter().filter(|lack| lack.why.contains("--user")).collect();
        assert_eq!(closed.len(), 2, "{missing:#?}");
        assert!(
            closed
                .iter()
                .all(|lack| lack.command.as_deref() == Some("sudo scaleprof")),
            "{missing:#?}"
        );
    }
}

#[test]
fn a_process_that_ends_is_read_out_to_its_end() {
    let Some(program) = Program::start() else { return };
    let mut watch = program.watch(PlainOptions::default());
    wait(300);
    drop(program);
    wait(300);
    let first = watch.read();
    assert!(
        first.threads.iter().any(|thread| thread.name == "spins"),
        "{:#?}",
        first.threads
    );
    let second = watch.read();
    assert!(second.samples.is_empty(), "{second:#?}");
}

#[test]
fn a_process_that_does_not_exist_is_named() {
    let error = PlainWatch::start(u32::MAX / 2, PlainOptions::default())
        .err()
        .expect("no such process");
    assert!(error.to_string().contains("2147483647"), "{error}");
}

/// Root may do all of it anyway, so root lets nobody do it again.
#[test]
fn nobody_sees_the_same() {
    if !rustix::process::geteuid().is_root() {
        testing::skip!("what nobody sees, as it needs root");
        return;
    }
    // `./test --deep serial` lets nobody do all but this one; `./test` what sees states, what takes samples, and what is refused.
    let (filters, count): (&[&str], u32) = match testing::is_deep() {
        true => (&["plain_watch::"], 14),
        false => (
            &[
                "plain_watch::every_thread_is_in_the_state_that_it_is_known_to_be_in",
                "plain_watch::samples_stand_for_the_time_on_cpu",
                "plain_watch::to_root_nothing_is_refused_and_users_read_why_something_is",
                "plain_watch::a_process_that_keeps_itself_closed_is_watched_as_far_as_it_lets",
            ],
            4,
        ),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("tests");
    std::fs::copy(std::env::current_exe().expect("own path"), &program).expect("copied");
    open_to_all(folder.path());
    open_to_all(&program);
    let run = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(&program)
        .args(filters)
        .args(["--skip", "nobody_sees", "--test-threads=1", "--nocapture"])
        .env("TMPDIR", "/tmp")
        .current_dir("/")
        .output();
    match run {
        Ok(run) => {
            let told = String::from_utf8_lossy(&run.stdout);
            println!("{told}{}", String::from_utf8_lossy(&run.stderr));
            assert!(run.status.success());
            // With a filter that meets no test it ends well too.
            assert!(
                told.contains(&format!("test result: ok. {count} passed")),
                "{count} tests"
            );
        }
        Err(error) => {
            let _: Option<()> = skip(&format!("setpriv cannot be run: {error}; apt-get install util-linux"));
        }
    }
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}
