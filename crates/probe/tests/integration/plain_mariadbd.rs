//! Watching a real MariaDB without BPF: nearly all stacks must be whole, and every thread in a state that it can be in.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scaleprof_probe::plain::{PlainOptions, PlainReading, PlainWatch};

const SERVER: &str = "/usr/sbin/mariadbd";

/// A server of this test alone, and clients that keep it busy.
struct Server {
    server: Child,
    clients: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Server {
    /// Nothing, aloud, where MariaDB is not installed; continuous integration must have it.
    fn start() -> Option<Self> {
        if !Path::new(SERVER).exists() {
            testing::skip!("there is no {SERVER}: apt-get install mariadb-server");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let user = if rustix::process::geteuid().is_root() {
            "--user=root"
        } else {
            "--skip-symbolic-links"
        };
        let mut install = Command::new("mariadb-install-db");
        install.args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            user,
        ]);
        let done = install
            .arg(format!("--datadir={}", data.display()))
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let server = Command::new(SERVER)
            .args([
                "--no-defaults",
                "--skip-networking",
                "--skip-grant-tables",
                "--innodb-buffer-pool-size=64M",
                user,
            ])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket(folder.path()).display()))
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let clients = Vec::new();
        let server = Self {
            server,
            clients,
            folder,
        };
        let begun = Instant::now();
        while !socket(server.folder.path()).exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        server.run(
            "CREATE DATABASE d; USE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, k INT, KEY (k)) ENGINE=InnoDB; \
                    INSERT INTO d.t (k) SELECT seq * 7919 % 50000 FROM seq_1_to_50000;",
        );
        Some(server)
    }

    fn client(&self) -> Command {
        let mut client = Command::new("mariadb");
        client
            .arg("--no-defaults")
            .arg(format!("--socket={}", socket(self.folder.path()).display()));
        client.stdin(Stdio::piped()).stdout(Stdio::null());
        client
    }

    fn run(&self, statements: &str) {
        let mut client = self.client().spawn().expect("it starts");
        let mut input = client.stdin.take().expect("piped");
        input.write_all(statements.as_bytes()).expect("it reads");
        drop(input);
        assert!(client.wait().expect("it ends").success());
    }

    /// Lets clients read and write until the end of the test; one more is connected and asks nothing.
    fn load(&mut self) {
        let statements = "SELECT SUM(k) FROM d.t WHERE k BETWEEN 100 AND 900; UPDATE d.t SET k = k + 1 WHERE id = 77; \
                          SELECT COUNT(*) FROM d.t a JOIN d.t b ON a.k = b.k WHERE a.id < 2000 AND a.k LIKE '%7%';\n";
        for _ in 0..4 {
            let mut client = self.client().spawn().expect("it starts");
            let mut input = client.stdin.take().expect("piped");
            std::thread::spawn(move || while input.write_all(statements.as_bytes()).is_ok() {});
            self.clients.push(client);
        }
        self.clients.push(self.client().spawn().expect("it starts"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in self.clients.iter_mut().chain([&mut self.server]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

fn show(reading: &PlainReading, watch: &PlainWatch) {
    let mut by_name: BTreeMap<&str, (u32, [f64; 8])> = BTreeMap::new();
    for thread in &reading.threads {
        let (count, seconds) = by_name.entry(&thread.name).or_default();
        *count += 1;
        *seconds = std::array::from_fn(|state| seconds[state] + thread.nanoseconds[state] as f64 * 1e-9);
    }
    let names: Vec<&str> = ThreadState::in_kernel().map(ThreadState::name).collect();
    println!("{:18} {:>5} {names:>8?}", "thread", "count");
    for (name, (count, seconds)) in by_name {
        println!("{name:18} {count:5} {seconds:8.3?}");
    }
    let mut endings: BTreeMap<UnwindStatus, usize> = BTreeMap::new();
    for sample in &reading.samples {
        *endings.entry(sample.stack.ending).or_default() += 1;
    }
    let depth: usize = reading.samples.iter().map(|sample| sample.stack.user.len()).sum();
    println!(
        "{} samples, mean depth {:.1}, complete {:?}, endings {endings:?}, lost {}, throttled {}",
        reading.samples.len(),
        depth as f64 / reading.samples.len().max(1) as f64,
        reading.complete_share(),
        reading.lost,
        reading.throttled
    );
    for sample in reading
        .samples
        .iter()
        .filter(|sample| sample.stack.ending != UnwindStatus::Complete)
        .take(8)
    {
        println!("{:?} {:x?}", sample.stack.ending, sample.stack.user);
    }
    println!("{:#?}", watch.missing());
}

#[test]
fn nearly_all_stacks_of_a_mariadb_are_whole() {
    let Some(mut server) = Server::start() else { return };
    server.load();
    let options = PlainOptions {
        frequency_hz: 499,
        switches: true,
        ..PlainOptions::default()
    };
    let before = Instant::now();
    let mut watch = PlainWatch::start(server.server.id(), options).expect("our own server can be watched");
    let began = Instant::now();
    std::thread::sleep(Duration::from_secs(3));
    let least = began.elapsed();
    let reading = watch.read();
    let most = before.elapsed();
    show(&reading, &watch);
    if reading.samples.is_empty() {
        testing::skip!("{:?}", watch.missing());
        return;
    }
    assert!(reading.samples.len() > 100);
    let complete = reading.complete_share().expect("there are samples");
    assert!(complete > 0.99, "{complete}: {:?}", watch.missing());
    // The client that asks nothing: its thread waits for it and does nothing else.
    let idle = reading
        .threads
        .iter()
        .filter(|thread| thread.nanoseconds[ThreadState::Net as usize] as f64 > 0.99 * thread.lifetime_ns as f64);
    assert!(idle.count() >= 1, "{:#?}", reading.threads);
    // A reading that waits for a CPU tells of a moment somewhere in it.
    for thread in reading.threads.iter().filter(|thread| !thread.ended) {
        assert_eq!(thread.nanoseconds.iter().sum::<u64>(), thread.lifetime_ns, "{thread:?}");
    }
    let throughout = reading.threads.iter().filter(|thread| {
        let lived = thread.lifetime_ns as f64;
        lived > 0.9 * least.as_nanos() as f64 && lived < 1.1 * most.as_nanos() as f64
    });
    // It is idle but for its clients: threads come and go with these only.
    let throughout = throughout.count();
    assert!(throughout >= 10, "{throughout} of {:#?}", reading.threads);
}

/// Not a test but a way to look at any server: SCALEPROF_WATCH_PID=... SCALEPROF_WATCH_SECONDS=...
#[test]
#[ignore = "needs a process to watch in SCALEPROF_WATCH_PID"]
fn watch_this_process() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let pid = number("SCALEPROF_WATCH_PID").expect("SCALEPROF_WATCH_PID");
    let usual = PlainOptions::default();
    let options = PlainOptions {
        frequency_hz: number("SCALEPROF_WATCH_HZ").unwrap_or(usual.frequency_hz),
        switches: number("SCALEPROF_WATCH_SWITCHES").map_or(usual.switches, |yes| yes != 0),
        ..usual
    };
    let mut watch = PlainWatch::start(pid, options).expect("it can be watched");
    let usage = || rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let before = usage();
    std::thread::sleep(Duration::from_secs(
        number("SCALEPROF_WATCH_SECONDS").unwrap_or(10).into(),
    ));
    let after = usage();
    show(&watch.read(), &watch);
    let cost = (after.tv_sec - before.tv_sec) as f64 + (after.tv_nsec - before.tv_nsec) as f64 * 1e-9;
    println!("watching took {cost:.3} s of CPU time");
}
