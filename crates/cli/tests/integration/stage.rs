//! What the tests share: the program, a work folder with cached data, and what a run left.

use scaleprof_bundle::Bundle;
use scaleprof_server::capabilities::Capabilities;
use scaleprof_server::{Installation, Sandbox, ServerSettings, Settings, WorkFolder};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use testing::servers::start_empty;
use testing::{LIMIT, soon};

/// The program, with nothing of the tester's environment that changes what it says.
pub fn scaleprof() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scaleprof"));
    for name in ["COLUMNS", "NO_COLOR", "SCALEPROF_PASSWORD"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    testing::default_signals(&mut command);
    command
}

/// A run on a private server that is small and quick; the workload, the ladder and the output are the test's.
pub fn run(server: Option<&Installation>, output: &Path) -> Command {
    let mut command = scaleprof();
    command.args([
        "run",
        "--repeats",
        "1",
        "--no-refine",
        "--quiet",
        "--buffer-pool",
        "64M",
    ]);
    command.arg("--work-dir").arg(work_folder());
    command.arg("--output").arg(output);
    if let Some(server) = server {
        command.arg("--server").arg(&server.binary).args(small_redo_log(server));
    }
    command
}

/// Options for a redo log of 96 MB. A run's own is 1 GiB, which each copy of prepared data would take again.
pub fn small_redo_log(server: &Installation) -> Vec<String> {
    let settings = Capabilities::of(server.product, server.version).redo_log(96 << 20);
    settings
        .into_iter()
        .flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")])
        .collect()
}

/// One work folder for all tests, so that data are made once; it goes when the tests end. `./test` names one for all programs of tests.
pub fn work_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    extern "C" fn remove() {
        if let Some(ours) = FOLDER.get().and_then(|work| work.parent()) {
            let _ = std::fs::remove_dir_all(ours);
        }
    }
    FOLDER.get_or_init(|| {
        if let Some(shared) = std::env::var_os("SCALEPROF_TEST_FOLDER") {
            return PathBuf::from(shared).join("w");
        }
        let folder = tempfile::Builder::new()
            .prefix("scaleprof-cli-")
            .tempdir_in("/var/tmp")
            .expect("a folder")
            .keep();
        // The server's user has to reach what lies in it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&folder, open).expect("chmod");
        // SAFETY: the handler only removes a folder; statics are never dropped, so nothing else would.
        unsafe { libc::atexit(remove) };
        folder.join("w")
    })
}

/// A place for a test's bundles.
pub fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Standard output and standard error.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The output of a command that must succeed.
pub fn succeed(command: &mut Command) -> (String, String) {
    let output = command.output().expect("scaleprof starts");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    (out, err)
}

/// What a command that must fail with this code says on standard error.
pub fn fail(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("scaleprof starts");
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    err
}

/// A bundle that must be readable.
pub fn bundle(folder: &Path) -> Bundle {
    Bundle::open(folder).expect("a bundle")
}

/// Root is needed; in CI its lack is a failure.
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        testing::skip!("{what}: it needs root");
    }
    root
}

/// A server that runs already, for `attach`. It dies with the test.
pub fn running_server(installation: Installation) -> Sandbox {
    running_server_with(installation, Vec::new())
}

/// The same with settings of the test's.
pub fn running_server_with(installation: Installation, set: Vec<String>) -> Sandbox {
    let settings = Settings::new(ServerSettings {
        connections: 64,
        buffer_pool: Some(128 << 20),
        redo_log: 96 << 20,
        tcp: true,
        set,
        ..ServerSettings::default()
    })
    .expect("settings");
    let work = WorkFolder::open(work_folder()).expect("a work folder");
    start_empty(&installation, &settings, &work).expect("a server")
}

/// The socket of a server.
pub fn socket(server: &Sandbox) -> PathBuf {
    match server.endpoint() {
        scaleprof_wire::Endpoint::Unix(path) => path.clone(),
        other => panic!("{other} is no socket"),
    }
}

/// A scaleprof that is under way.
pub struct Running {
    child: Child,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("scaleprof starts");
        Running { child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its server, once that runs.
    pub fn server(&self) -> u32 {
        let mut found = None;
        soon("the server runs", || {
            found = children(self.pid())
                .into_iter()
                .find(|pid| command_line(*pid).contains("--defaults-file"));
            found.is_some()
        });
        found.expect("a server")
    }

    /// Waits until the first measurement has been written and the second is under way. Its
    /// measurements take four seconds: this is in the middle.
    pub fn wait_for_second_measurement(&mut self, output: &Path) {
        let first = output.join("measurements/measurement-00000.parquet");
        let deadline = Instant::now() + LIMIT;
        while !first.exists() {
            if self.child.try_wait().expect("its state").is_some() || Instant::now() > deadline {
                panic!("no measurement is written: {}", self.last_words());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(2));
    }

    /// Whether it has come to its end.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_some()
    }

    pub fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    /// Ends it if it has not ended yet: what it said until then, and how it ended.
    pub fn last_words(&mut self) -> String {
        let _ = self.child.kill();
        let state = self.child.wait().expect("its end");
        let mut said = String::new();
        if let Some(output) = &mut self.child.stdout {
            let _ = output.read_to_string(&mut said);
        }
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.read_to_string(&mut said);
        }
        format!("{state}\n{said}")
    }

    /// Waits for its end.
    pub fn end(self) -> Output {
        self.child.wait_with_output().expect("its end")
    }

    /// Waits for its end, and until nothing of it is left: no process and no folder of a run.
    pub fn end_and_leave_nothing(self, processes: &[u32]) -> Output {
        let pid = self.pid();
        let output = self.end();
        for process in processes {
            soon("its processes are gone", || is_gone(*process));
        }
        let runs = || {
            let entries = std::fs::read_dir(work_folder()).expect("the work folder");
            let prefix = format!("run-{pid}-");
            entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
                .count()
        };
        soon("its run folders are gone", || runs() == 0);
        output
    }
}

/// The children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    tasks
        .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

pub fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Sends a signal to a process that a test started.
pub fn kill(pid: u32, signal: i32) {
    // SAFETY: kill has no memory effects.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
}
