//! The sampler's figures against independent sources: what a child says of itself with getrusage, and perf.
//!
//! Ratios of counts only; nothing here depends on how fast or how busy the machine is.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use scaleprof_probe::{Counter, Sample, Sampler, SamplerOptions, delta, missing};

/// This test binary started again as a child that works when told and then says what getrusage counted in between.
struct Worker {
    child: Child,
    answers: BufReader<ChildStdout>,
}

/// user seconds, system seconds, voluntary, involuntary switches, minor faults.
type Usage = [f64; 5];

impl Worker {
    fn start() -> Self {
        let program = std::env::current_exe().expect("own path");
        let mut child = Command::new(program)
            .args(["--exact", "counts_agree::worker", "--nocapture", "--ignored"])
            .env("SCALEPROF_PROBE_WORKER", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the worker starts");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut worker = Self { child, answers };
        worker.answer();
        worker
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it do `what` and gives what its getrusage counted meanwhile.
    fn work(&mut self, what: &str) -> Usage {
        let stdin = self.child.stdin.as_mut().expect("piped");
        writeln!(stdin, "{what}").expect("it listens");
        self.answer()
    }

    fn answer(&mut self) -> Usage {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.answers.read_line(&mut line).expect("it answers"),
                0,
                "the worker ended"
            );
            if let Some((_, figures)) = line.split_once("USAGE ") {
                let figures: Vec<f64> = figures
                    .split_whitespace()
                    .map(|f| f.parse().expect("a figure"))
                    .collect();
                return figures.try_into().expect("five figures");
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Not a test: the body of the worker, when started by [`Worker::start`].
#[test]
#[ignore = "started by the other tests as a process of its own"]
fn worker() {
    if std::env::var_os("SCALEPROF_PROBE_WORKER").is_none() {
        return;
    }
    say([0.0; 5]);
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let (what, number) = line.split_once(' ').expect("a job");
        let number: u64 = number.parse().expect("a number");
        let before = usage();
        match what {
            "burn" => burn(number),
            "burn-in-threads" => {
                let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(move || burn(number))).collect();
                threads.into_iter().for_each(|thread| thread.join().expect("ends"));
            }
            "sleep" => sleep(number),
            "sleep-in-threads" => {
                let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(move || sleep(number))).collect();
                threads.into_iter().for_each(|thread| thread.join().expect("ends"));
            }
            "threads" => {
                for _ in 0..number {
                    let idle = || std::thread::sleep(std::time::Duration::from_secs(3600));
                    std::thread::Builder::new()
                        .stack_size(64 << 10)
                        .spawn(idle)
                        .expect("a thread");
                }
            }
            "touch" => touch(number),
            "flush" => flush(number),
            _ => panic!("unknown job {what}"),
        }
        let after = usage();
        say(std::array::from_fn(|i| after[i] - before[i]));
    }
    std::process::exit(0);
}

fn say(figures: Usage) {
    let text: Vec<String> = figures.iter().map(f64::to_string).collect();
    println!("USAGE {}", text.join(" "));
}

fn usage() -> Usage {
    // SAFETY: all-zero bytes are a valid rusage and the pointer is valid for the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    let counts = [usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_minflt].map(|count| count as f64);
    [
        seconds(usage.ru_utime),
        seconds(usage.ru_stime),
        counts[0],
        counts[1],
        counts[2],
    ]
}

/// Burns this many milliseconds of the calling thread's CPU time.
fn burn(milliseconds: u64) {
    let clock = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
    };
    let end = clock() + milliseconds;
    while clock() < end {
        for i in 0..10_000u64 {
            std::hint::black_box(i);
        }
    }
}

fn sleep(times: u64) {
    (0..times).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(100)));
}

fn touch(pages: u64) {
    let page = rustix::param::page_size();
    let length = pages as usize * page;
    // SAFETY: a fresh private mapping of our own, written inside its bounds and unmapped once.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, length, libc::MADV_NOHUGEPAGE);
        for i in 0..pages as usize {
            memory.cast::<u8>().add(i * page).write_volatile(1);
        }
        libc::munmap(memory, length);
    }
}

/// What is built is seldom in memory, as /tmp may be.
const FOLDER_ON_DISK: &str = env!("CARGO_TARGET_TMPDIR");

fn flush(times: u64) {
    let mut file = tempfile::tempfile_in(FOLDER_ON_DISK).expect("a file");
    for _ in 0..times {
        file.write_all(&[7; 4096]).expect("written");
        file.sync_all().expect("flushed");
    }
}

fn counting_all() -> SamplerOptions {
    SamplerOptions {
        always_count_cgroup: true,
        ..SamplerOptions::default()
    }
}

fn sampler(worker: &Worker) -> Sampler {
    Sampler::start(worker.pid(), counting_all()).expect("the worker lives")
}

/// What the worker counted itself, and what the sampler counted meanwhile.
fn watch(what: &str) -> (Usage, Vec<Counter>, (Sample, Sample)) {
    let mut worker = Worker::start();
    let mut sampler = sampler(&worker);
    let before = sampler.sample_at_end_of_measurement();
    let usage = worker.work(what);
    let after = sampler.sample_at_end_of_measurement();
    println!(
        "{what}: getrusage {usage:?}\n{:#?}\n{:#?}",
        delta(&before, &after),
        missing(&before, &after)
    );
    (usage, delta(&before, &after), (before, after))
}

fn value(counters: &[Counter], name: &str) -> Option<f64> {
    counters.iter().find(|c| c.name == name).map(|c| c.value)
}

fn assert_near(what: &str, ours: f64, theirs: f64, share: f64, slack: f64) {
    let most = theirs.abs() * share + slack;
    assert!(
        (ours - theirs).abs() <= most,
        "{what}: {ours} against {theirs}, more than {most} apart"
    );
}

/// Whether the events that the kernel counts itself have to be there: to root they are.
fn may_have_events() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        testing::skip!("perf's events of a process: they need root");
    }
    is_root
}

/// perf's clock of a cgroup also runs while an interrupt or the hypervisor has the CPU, which the scheduler charges to
/// nobody: on a shared host it was seen 12 % ahead. It never lags.
fn assert_perf_clock(ours: f64, theirs: f64) {
    assert!(ours >= theirs * 0.98, "perf's clock: {ours} lags behind {theirs}");
    assert!(ours <= theirs * 1.5, "perf's clock: {ours} is far ahead of {theirs}");
}

#[test]
fn cpu_time_of_a_busy_process_is_what_it_says_itself() {
    let (usage, counters, _) = watch("burn 1500");
    let theirs = usage[0] + usage[1];
    let have = |name| value(&counters, name).expect(name);
    assert_near("scheduler", have("server.cpu_seconds_by_scheduler"), theirs, 0.02, 0.0);
    // Two figures, each rounded to ticks of 10 ms at both ends.
    let ticks = have("server.cpu_user_seconds") + have("server.cpu_system_seconds");
    assert_near("ticks", ticks, theirs, 0.02, 0.02);
    if may_have_events() {
        assert_perf_clock(have("hw.task_clock_seconds"), theirs);
    }
}

#[test]
fn cpu_time_of_threads_that_ended_is_counted() {
    let (usage, counters, _) = watch("burn-in-threads 400");
    let theirs = usage[0] + usage[1];
    assert!(theirs >= 1.6, "four threads burnt {theirs} s");
    let scheduler = value(&counters, "server.cpu_seconds_by_scheduler").expect("counted");
    assert_near("scheduler", scheduler, theirs, 0.02, 0.0);
    if may_have_events() {
        assert_perf_clock(value(&counters, "hw.task_clock_seconds").expect("counted"), theirs);
    }
}

#[test]
fn voluntary_switches_of_a_process_that_sleeps_are_counted() {
    let (usage, counters, _) = watch("sleep 3000");
    // A sleep whose timer fires before it has left its CPU is none.
    assert!(usage[2] >= 2500.0, "it slept {} times", usage[2]);
    let ours = value(&counters, "server.voluntary_switches").expect("counted");
    assert_near("voluntary", ours, usage[2], 0.02, 5.0);
    let ours = value(&counters, "server.involuntary_switches").expect("counted");
    assert_near("involuntary", ours, usage[3], 0.02, usage[2] * 0.02);
    if may_have_events() {
        let all = value(&counters, "server.context_switches").expect("counted");
        assert_near("all", all, usage[2] + usage[3], 0.02, 5.0);
    }
}

#[test]
fn switches_of_threads_that_ended_are_counted_or_confessed() {
    let (usage, counters, (before, after)) = watch("sleep-in-threads 500");
    assert!(usage[2] >= 4000.0, "{usage:?}");
    if may_have_events() {
        let all = value(&counters, "server.context_switches").expect("counted");
        assert_near("all", all, usage[2] + usage[3], 0.02, 30.0);
    }
    match value(&counters, "server.voluntary_switches") {
        Some(ours) => assert_near("voluntary", ours, usage[2], 0.03, 30.0),
        // Only root is told of threads that ended.
        None => {
            assert!(!rustix::process::geteuid().is_root(), "{:#?}", missing(&before, &after));
            assert!(
                missing(&before, &after)
                    .iter()
                    .any(|m| m.figure == "server.voluntary_switches")
            );
        }
    }
}

#[test]
fn page_faults_of_a_process_that_touches_pages_are_counted() {
    let (usage, counters, _) = watch("touch 5000");
    assert!(usage[4] >= 5000.0);
    assert_near(
        "faults",
        value(&counters, "server.minor_faults").expect("counted"),
        usage[4],
        0.01,
        10.0,
    );
}

#[test]
fn every_figure_is_either_there_or_missing_with_a_reason() {
    let (_, counters, (before, after)) = watch("burn 20");
    let missing = missing(&before, &after);
    assert_eq!(counters.len() + missing.len(), 34, "{counters:?} {missing:?}");
    assert!(missing.iter().all(|m| !m.reason.is_empty()));
    assert!(
        counters.iter().all(|c| c.value.is_finite() && c.value >= 0.0),
        "{counters:?}"
    );
}

#[test]
fn flushes_reach_the_disk_count_where_the_folder_has_a_disk() {
    let mut worker = Worker::start();
    let options = SamplerOptions {
        data_directory: Some(FOLDER_ON_DISK.into()),
        ..SamplerOptions::default()
    };
    let mut sampler = Sampler::start(worker.pid(), options).expect("the worker lives");
    let before = sampler.sample();
    worker.work("flush 20");
    let after = sampler.sample();
    let counters = delta(&before, &after);
    if let Some(lack) = missing(&before, &after).iter().find(|m| m.figure == "disk.write_bytes") {
        return testing::skip!("{FOLDER_ON_DISK} is on no disk that is counted: {}", lack.reason);
    }
    let written = value(&counters, "disk.write_bytes").expect("counted");
    assert!(written >= 20.0 * 4096.0, "{written} bytes");
    let flushes = value(&counters, "disk.flushes").expect("counted");
    if has_a_cache_to_flush(FOLDER_ON_DISK) {
        assert!(flushes >= 20.0, "{flushes} flushes of at least 20");
    } else {
        // The kernel ends them itself.
        assert_eq!(flushes, 0.0);
    }
}

/// Whether the kernel sends flushes to the disk of a folder. A partition has what its disk has.
fn has_a_cache_to_flush(folder: &str) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let device = std::fs::metadata(folder).expect("a folder").dev();
    let device = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let texts = ["queue/write_cache", "../queue/write_cache"]
        .into_iter()
        .filter_map(|name| std::fs::read_to_string(std::path::Path::new(&device).join(name)).ok());
    texts.take(1).any(|text| text.trim() == "write back")
}

#[test]
fn perf_counts_the_same_where_it_is_installed() {
    let perf_works = Command::new("perf").args(["stat", "-e", "task-clock", "true"]).output();
    if !perf_works.as_ref().is_ok_and(|output| output.status.success()) {
        return testing::skip!("perf stat: {perf_works:?}");
    }
    let mut worker = Worker::start();
    let mut sampler = sampler(&worker);
    let pid = worker.pid().to_string();
    let mut perf = Command::new("perf")
        .args([
            "stat",
            "-x;",
            "-e",
            "task-clock,context-switches",
            "-p",
            &pid,
            "--",
            "cat",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("perf starts");
    // perf counts from when `cat` runs, which its child is called from then on.
    let task = format!("/proc/{0}/task/{0}/children", perf.id());
    let is_cat =
        |child: &str| std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "cat");
    testing::soon("perf runs cat", || {
        let children = std::fs::read_to_string(&task).expect("perf lives");
        children.split_whitespace().any(is_cat)
    });
    worker.work("sleep 50");
    let before = sampler.sample();
    worker.work("sleep 3000");
    worker.work("burn 500");
    let after = sampler.sample();
    drop(perf.stdin.take());
    let output = perf.wait_with_output().expect("perf ends");
    let text = String::from_utf8_lossy(&output.stderr);
    let theirs = |event: &str| -> f64 {
        let line = text.lines().find(|line| line.contains(event));
        let count = line.and_then(|line| line.split(';').next()?.parse().ok());
        count.unwrap_or_else(|| panic!("no {event} in {text}"))
    };
    let counters = delta(&before, &after);
    let ours = |name| value(&counters, name).expect(name);
    // The two start and stop a moment apart.
    assert_perf_clock(ours("hw.task_clock_seconds") + 0.03, theirs("task-clock") / 1000.0);
    assert_near(
        "switches",
        ours("server.context_switches"),
        theirs("context-switches"),
        0.02,
        80.0,
    );
}

#[test]
fn nothing_is_left_behind_and_the_process_is_back_where_it_was() {
    let mut worker = Worker::start();
    let home = std::fs::read_to_string(format!("/proc/{}/cgroup", worker.pid())).expect("readable");
    let mut sampler = sampler(&worker);
    worker.work("burn 10");
    let _ = sampler.sample();
    drop(sampler);
    let now = std::fs::read_to_string(format!("/proc/{}/cgroup", worker.pid())).expect("readable");
    assert_eq!(now, home);
}

#[test]
fn a_process_that_ends_makes_figures_missing_and_never_zero() {
    let mut worker = Worker::start();
    let mut sampler = sampler(&worker);
    let before = sampler.sample();
    worker.work("burn 10");
    drop(worker);
    let after = sampler.sample();
    let missing = missing(&before, &after);
    for figure in [
        "server.cpu_user_seconds",
        "server.cpu_seconds_by_scheduler",
        "server.resident_bytes_level",
    ] {
        assert!(missing.iter().any(|m| m.figure == figure), "{figure} is not missing");
    }
    assert!(value(&delta(&before, &after), "machine.cpu_idle_seconds").is_some());
}

#[test]
fn counting_that_was_off_between_two_samples_is_said() {
    let mut worker = Worker::start();
    let mut sampler = sampler(&worker);
    let before = sampler.sample();
    sampler.suspend_counting();
    worker.work("burn 10");
    sampler.resume_counting();
    let after = sampler.sample();
    assert!(missing(&before, &after).iter().any(|m| m.figure == "server.migrations"));
    worker.work("burn 10");
    let later = sampler.sample();
    assert!(value(&delta(&after, &later), "server.cpu_seconds_by_scheduler").is_some());
}

#[test]
fn a_server_left_in_its_cgroup_still_gives_the_figures_that_need_none() {
    let mut worker = Worker::start();
    let options = SamplerOptions {
        leave_cgroup: true,
        ..SamplerOptions::default()
    };
    let mut sampler = Sampler::start(worker.pid(), options).expect("the worker lives");
    let before = sampler.sample_at_end_of_measurement();
    worker.work("sleep 200");
    let after = sampler.sample_at_end_of_measurement();
    let counters = delta(&before, &after);
    assert!(value(&counters, "server.voluntary_switches").is_some_and(|count| count >= 200.0));
    assert!(missing(&before, &after).iter().any(|m| m.figure == "server.migrations"));
}

#[test]
fn what_a_killed_run_left_is_removed_and_what_a_living_one_uses_is_not() {
    let worker = Worker::start();
    let first = match scaleprof_probe::ServerCgroup::hold(worker.pid()) {
        Ok(first) => first,
        Err(error) => return testing::skip!("a cgroup of its own: {error}"),
    };
    let parent = first.folder().parent().expect("a parent").to_path_buf();
    // No process has this start time, so its owner is gone; the kernel fills a new folder with files of its own.
    let stale = parent.join(format!("scaleprof-{}-1-0", std::process::id()));
    std::fs::create_dir(&stale).expect("made");
    let other = Worker::start();
    let second = scaleprof_probe::ServerCgroup::hold(other.pid()).expect("a cgroup beside the first");
    assert!(!stale.exists());
    assert!(first.folder().exists() && second.folder().exists());
    let refused = scaleprof_probe::ServerCgroup::hold(worker.pid()).expect_err("held already");
    assert!(
        refused.to_string().contains(&std::process::id().to_string()),
        "{refused}"
    );
    let folders = [first.folder().to_path_buf(), second.folder().to_path_buf()];
    drop((first, second));
    assert!(folders.iter().all(|folder| !folder.exists()));
}

/// The figures for the documentation: `cargo test -p scaleprof-probe --release -- --ignored --nocapture cost`.
#[test]
#[ignore = "prints a measurement"]
fn cost_of_a_sample_with_2000_threads() {
    for threads in [0, 2000] {
        let mut worker = Worker::start();
        worker.work(&format!("threads {threads}"));
        let mut sampler = sampler(&worker);
        let cost = scaleprof_probe::CounterCost::measure(&mut sampler, 50);
        println!("{threads} threads: {cost:?}");
        let options = SamplerOptions {
            leave_cgroup: true,
            ..SamplerOptions::default()
        };
        drop(sampler);
        let mut sampler = Sampler::start(worker.pid(), options).expect("the worker lives");
        println!(
            "{threads} threads, no cgroup: {:?}",
            scaleprof_probe::CounterCost::measure(&mut sampler, 50)
        );
    }
}

/// What counting adds to a context switch: pairs of `perf bench sched pipe` with and without the cgroup's events.
#[test]
#[ignore = "prints a measurement"]
fn cost_of_counting_on_context_switches() {
    for cpus in ["0", "0-1"] {
        let mut pairs = Vec::new();
        for _ in 0..7 {
            let [with, without] = [false, true].map(|suspended| {
                let mut child = Command::new("sh")
                    .args([
                        "-c",
                        &format!("read go; exec taskset -c {cpus} perf bench sched pipe -l 100000"),
                    ])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("a shell");
                let mut sampler = Sampler::start(child.id(), counting_all()).expect("it lives");
                if suspended {
                    sampler.suspend_counting();
                }
                writeln!(child.stdin.take().expect("piped"), "go").expect("it listens");
                let output = child.wait_with_output().expect("it ends");
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let line = text.lines().find(|line| line.contains("ops/sec")).expect("a result");
                line.split_whitespace()
                    .next()
                    .and_then(|f| f.parse::<f64>().ok())
                    .expect("a figure")
            });
            pairs.push((with, without));
        }
        println!("CPUs {cpus}: {:?} {pairs:?}", scaleprof_probe::counting_loss(&pairs));
    }
}

/// CPU time of a round trip between a server in its cgroup and a client outside of it, both on one CPU: here the events are
/// switched at every turn.
#[test]
#[ignore = "prints a measurement"]
fn cost_of_counting_where_client_and_server_share_a_cpu() {
    let mut one = rustix::thread::CpuSet::new();
    one.set(0);
    rustix::thread::sched_setaffinity(None, &one).expect("pinned");
    const TRIPS: u32 = 20_000;
    let mut worker = Worker::start();
    let mut sampler = sampler(&worker);
    for _ in 0..5 {
        for suspended in [false, true] {
            if suspended {
                sampler.suspend_counting();
            } else {
                sampler.resume_counting();
            }
            let pids = [std::process::id(), worker.pid()];
            let clock = || -> std::time::Duration {
                pids.iter()
                    .map(|pid| scaleprof_probe::process_cpu_clock(*pid).expect("lives"))
                    .sum()
            };
            let before = clock();
            for _ in 0..TRIPS {
                worker.work("sleep 0");
            }
            println!(
                "suspended {suspended}: {:?} of CPU a round trip",
                (clock() - before) / TRIPS
            );
        }
    }
}
