//! A server under test: one process on its own data, apart from everything else on the machine.

use crate::capabilities::Capabilities;
use crate::cpu_set::CpuSet;
use crate::data_folder::{Cache, DataKey, PreparedData, bring_back_hot_pages};
use crate::death::Death;
use crate::error::Error;
use crate::error_log::Reason;
use crate::file_copy::{copy_folder, disk_usage};
use crate::free_port::FreePort;
use crate::identify::Installation;
use crate::initialise::initialise;
use crate::janitor::Janitor;
use crate::memory;
use crate::option_file::Places;
use crate::origins::{self, VariableOrigin};
use crate::placement::Placement;
use crate::process::{Launch, ServerProcess};
use crate::setting::Setting;
use crate::settings::Settings;
use crate::surroundings::Surroundings;
use crate::user::ServerUser;
use crate::variables;
use crate::work_folder::{RunFolder, WorkFolder, check_space, free_space};
use scaleprof_wire::{Client, Credentials, Endpoint};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How a server under test is to be run.
#[derive(Debug, Clone)]
pub struct SandboxBuilder {
    installation: Installation,
    settings: Settings,
    work_folder: WorkFolder,
    placement: Option<Placement>,
    janitor: Janitor,
    user: Option<ServerUser>,
    ready_within: Duration,
    surroundings: Surroundings,
    arguments: Vec<String>,
}

impl SandboxBuilder {
    /// A server of this installation with these settings, in a folder of its own under `work_folder`.
    pub fn new(installation: Installation, settings: Settings, work_folder: WorkFolder) -> Self {
        SandboxBuilder {
            installation,
            settings,
            work_folder,
            placement: None,
            janitor: Janitor::none(),
            user: ServerUser::for_this_process(),
            ready_within: Duration::from_secs(180),
            surroundings: Surroundings::default(),
            arguments: Vec::new(),
        }
    }

    /// What server it is.
    pub(crate) fn installation(&self) -> &Installation {
        &self.installation
    }

    /// A folder of its own, for what belongs to several servers; removed when the value is dropped.
    pub(crate) fn shared_folder(&self) -> Result<RunFolder, Error> {
        let folder = self.work_folder.new_run()?;
        self.janitor.remove_at_end(folder.path())?;
        Ok(folder)
    }

    /// What the user set of that name.
    pub(crate) fn users_setting(&self, name: &str) -> Option<&str> {
        self.settings.users(name)
    }

    /// The statements that are to be run as soon as it answers, which it is not told any more.
    pub(crate) fn take_statements(&mut self) -> Vec<String> {
        std::mem::take(&mut self.surroundings.statements)
    }

    /// An error where so many servers like it do not fit into the memory together. Each looks again when it starts, but those before it
    /// have not filled their memory then.
    ///
    /// # Errors
    /// Too little memory.
    pub fn check_memory_of(&self, servers: u32) -> Result<(), Error> {
        let asked = self.settings.asked();
        memory::check_all(servers, asked.connections, self.settings.buffer_pool(), asked.dataset)
    }

    /// The same at a place among other servers, as the settings say.
    pub(crate) fn at_place(mut self, settings: Vec<Setting>) -> Self {
        self.settings = self.settings.at_place(settings);
        self
    }

    /// Words behind its option file; it is given them whenever it starts.
    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|word| (*word).to_owned()));
        self
    }

    /// The same on these CPUs, where they are given.
    pub fn on_cpus(mut self, cpus: Option<&CpuSet>) -> Self {
        if let (Some(cpus), Some(placement)) = (cpus, &mut self.placement) {
            placement.server = cpus.clone();
            placement.memory_nodes = None;
        }
        self
    }

    /// The same as a replica of another: on these CPUs where they are given, and without the statements of the one that it follows.
    pub(crate) fn as_replica(mut self, cpus: Option<&CpuSet>) -> Self {
        self.surroundings.statements.clear();
        self.on_cpus(cpus)
    }

    /// The same with a folder among those in which it looks for programs.
    pub(crate) fn finding_programs_in(mut self, folder: &Path) -> Self {
        let path = self.surroundings.environment.get("PATH").cloned();
        let path = path.or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
        let path = format!("{}:{path}", folder.display());
        self.surroundings.environment.insert("PATH".to_owned(), path);
        self
    }

    /// What it is started with beside its options.
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// Where it runs; without it, wherever the kernel likes.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = Some(placement);
        self
    }

    /// Who cleans up if we are killed.
    pub fn janitor(mut self, janitor: Janitor) -> Self {
        self.janitor = janitor;
        self
    }

    /// How long it may take to answer. Default 180 s: 9.7 took 35 s on a machine under load 30.
    pub fn ready_within(mut self, longest: Duration) -> Self {
        self.ready_within = longest;
        self
    }

    /// Starts it on an empty data folder that has the system tables and an account root without password.
    ///
    /// Without wrapper and statements: this is for filling tables, which a wrapper that slows the server down would only delay.
    pub fn start_fresh(mut self) -> Result<Sandbox, Error> {
        self.surroundings = self.surroundings.for_making_data();
        self.settings = self.settings.for_making_data();
        let prepared = self.prepare()?;
        let how = prepared
            .capabilities
            .initialise(&self.installation)
            .map_err(|reason| Error::Unsupported {
                product: self.installation.product,
                version: self.installation.version_text.clone(),
                reason,
            })?;
        // System tables, and redo and undo logs at their first size.
        let needed = self.settings.asked().redo_log + (512 << 20);
        check_space(prepared.run.path(), needed, "an empty data folder with its redo log")?;
        let data = prepared.run.path().join("data");
        make_private(&data, self.user.as_ref())?;
        let mut pid = 0;
        initialise(&how, &prepared.launch, &prepared.scratch, |started| {
            pid = started;
            self.janitor.kill_at_end(started)
        })?;
        self.janitor.forget_process(pid)?;
        self.start(prepared)
    }

    /// Starts it on a fresh copy of a prepared data folder.
    pub fn start_from(self, data: &PreparedData) -> Result<Sandbox, Error> {
        let prepared = self.prepare()?;
        let own = prepared.run.path().join("data");
        data.fresh_copy(&own, self.user.as_ref())?;
        if self.settings.loads_hot_pages() {
            bring_back_hot_pages(&own)?;
        }
        self.start(prepared)
    }

    /// Makes all ready to start it on a copy of the data folder of a server that is shut down, with a change.
    pub(crate) fn on_copy_of(
        self,
        stopped: &Path,
        change: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<NotYetStarted, Error> {
        let prepared = self.prepare()?;
        let own = prepared.run.path().join("data");
        check_space(
            prepared.run.path(),
            disk_usage(stopped)?,
            "a copy of the data for a replica",
        )?;
        copy_folder(stopped, &own, self.user.as_ref())?;
        change(&own)?;
        Ok(NotYetStarted {
            builder: self,
            prepared,
        })
    }

    /// Everything but the data: checks, folders and the option file.
    fn prepare(&self) -> Result<Prepared, Error> {
        let capabilities = Capabilities::of(self.installation.product, self.installation.version);
        if !capabilities.is_supported() {
            return Err(Error::Unsupported {
                product: self.installation.product,
                version: self.installation.version_text.clone(),
                reason: "versions before 5.5 are not known here".to_owned(),
            });
        }
        let asked = self.settings.asked();
        memory::check(asked.connections, self.settings.buffer_pool(), asked.dataset)?;
        let run = self.work_folder.new_run()?;
        self.janitor.remove_at_end(run.path())?;
        if let Some(user) = &self.user {
            user.check_reach(run.path())?;
            user.check_reach(&self.installation.binary)?;
        }
        let place = |name: &str| run.path().join(name);
        let socket = run.socket()?;
        let scratch = place("tmp");
        make_private(&scratch, self.user.as_ref())?;
        make_private(&place("socket"), self.user.as_ref())?;
        let include = match self.settings.defaults_file() {
            None => None,
            Some(text) => {
                let path = place("user.cnf");
                write_private(&path, text, self.user.as_ref())?; // option files may hold passwords
                Some(path)
            }
        };
        let port = if asked.tcp {
            Some(FreePort::draw()?.number())
        } else {
            None
        };
        let (data, pid_file, error_log) = (place("data"), scratch.join("pid"), place("error.log"));
        let places = Places {
            installation: &self.installation,
            data: &data,
            temporary: &scratch,
            socket: &socket,
            pid_file: &pid_file,
            error_log: &error_log,
            include: include.as_deref(),
            port,
        };
        let option_file = place("my.cnf");
        write_private(
            &option_file,
            &self.settings.option_file(&capabilities, &places),
            self.user.as_ref(),
        )?;
        let placement = self.placement.as_ref();
        Ok(Prepared {
            capabilities,
            launch: Launch {
                binary: self.installation.binary.clone(),
                arguments: [
                    vec![format!("--defaults-file={}", option_file.display())],
                    self.arguments.clone(),
                ]
                .concat(),
                folder: run.path().to_owned(),
                input: None,
                error_log,
                user: self.user.clone(),
                cpus: placement.map(|placement| placement.server.clone()),
                memory_nodes: placement.and_then(|placement| placement.memory_nodes.clone()),
                surroundings: self.surroundings.clone(),
            },
            scratch,
            socket,
            port,
            run,
        })
    }

    fn start(self, prepared: Prepared) -> Result<Sandbox, Error> {
        let process = ServerProcess::start(&prepared.launch)?;
        self.janitor.kill_at_end(process.pid())?;
        let mut sandbox = Sandbox {
            process,
            launch: prepared.launch,
            run: prepared.run,
            endpoint: Endpoint::Unix(prepared.socket),
            port: prepared.port,
            capabilities: prepared.capabilities,
            settings: self.settings,
            installation: self.installation,
            janitor: self.janitor,
            ready_within: self.ready_within,
        };
        sandbox.wait_until_it_answers()?;
        self.surroundings.check(sandbox.pid(), &sandbox.installation.binary)?;
        sandbox.run_statements(&self.surroundings.statements)?;
        Ok(sandbox)
    }
}

/// A server with its data that only has to be started.
pub(crate) struct NotYetStarted {
    builder: SandboxBuilder,
    prepared: Prepared,
}

impl NotYetStarted {
    /// Starts it.
    pub(crate) fn start(self) -> Result<Sandbox, Error> {
        self.builder.start(self.prepared)
    }
}

/// A run folder with all but its data.
struct Prepared {
    run: RunFolder,
    capabilities: Capabilities,
    launch: Launch,
    scratch: PathBuf,
    socket: PathBuf,
    port: Option<u16>,
}

/// A running server under test. Dropping it kills the server and removes its folder.
#[derive(Debug)]
pub struct Sandbox {
    process: ServerProcess,
    launch: Launch,
    run: RunFolder,
    endpoint: Endpoint,
    port: Option<u16>,
    capabilities: Capabilities,
    settings: Settings,
    installation: Installation,
    janitor: Janitor,
    ready_within: Duration,
}

impl Sandbox {
    /// The server's socket.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its address on the loopback interface, if TCP was asked for.
    pub fn tcp_endpoint(&self) -> Option<Endpoint> {
        let host = "127.0.0.1".to_owned();
        self.port.map(|port| Endpoint::Tcp { host, port })
    }

    /// Its port on the loopback interface, if TCP was asked for.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    /// An account that may do everything.
    pub fn credentials(&self) -> Credentials {
        Credentials::user("root")
    }

    /// A new connection with that account.
    pub fn connect(&self) -> Result<Client, Error> {
        Client::connect(&self.endpoint, &self.credentials()).map_err(Error::wire("connect to the server under test"))
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What server it is.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// What it was started with beside its options.
    pub fn surroundings(&self) -> &Surroundings {
        &self.launch.surroundings
    }

    /// What it can do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Everything it was told but for places.
    pub fn told(&self) -> Vec<Setting> {
        self.settings.told(&self.capabilities)
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.run.path().join("data")
    }

    /// Its error log, which is removed with it.
    pub fn error_log(&self) -> &Path {
        &self.launch.error_log
    }

    /// Copies the error log to a file that stays.
    pub fn keep_error_log(&self, destination: &Path) -> Result<(), Error> {
        // Read and written, not copied: the log's permissions are those of the server's user.
        let text = fs::read(self.error_log()).map_err(Error::system("read", self.error_log()))?;
        fs::write(destination, text).map_err(Error::system("write", destination))
    }

    /// SHOW GLOBAL VARIABLES.
    pub fn variables(&self) -> Result<BTreeMap<String, String>, Error> {
        variables::global_variables(&mut self.connect()?)
    }

    /// Where the values of these variables come from.
    ///
    /// # Errors
    /// The connection broke.
    pub fn origins(&self, variables: &BTreeMap<String, String>) -> Result<BTreeMap<String, VariableOrigin>, Error> {
        let said = origins::origins(&mut self.connect()?)?;
        Ok(origins::origins_of_our_own(
            &said,
            variables,
            &self.settings,
            &self.capabilities,
        ))
    }

    /// SHOW GLOBAL STATUS.
    pub fn status(&self) -> Result<BTreeMap<String, String>, Error> {
        variables::global_status(&mut self.connect()?)
    }

    /// The values, as the server has them, of the variables that decide how it scales.
    pub fn settings_that_matter(&self) -> Result<BTreeMap<String, String>, Error> {
        Ok(variables::settings_that_matter(&self.variables()?, &self.capabilities))
    }

    /// Looks, without waiting, whether the server has died, and how.
    pub fn watch(&mut self) -> Option<Death> {
        self.process.watch().cloned()
    }

    /// Waits for the server's death, at most this long. A load that lost its connection asks this before it says why:
    /// a server that crashes closes its connections first and writes its stack trace then.
    pub fn wait_for_death(&mut self, longest: Duration) -> Option<Death> {
        self.process.wait(longest).cloned()
    }

    /// Whether it complains of a full disk. It may wait for room for ever, so a load that stands still asks this.
    pub fn complains_of_full_disk(&self) -> bool {
        self.process.complains_of_full_disk()
    }

    /// Bytes that its data may still grow by.
    pub fn free_space(&self) -> Result<u64, Error> {
        free_space(self.run.path())
    }

    /// An error when loading `bytes` more would fill the disk: they are written to the tables, and once more to the
    /// copy that a run starts on.
    pub fn check_space_for(&self, bytes: u64) -> Result<(), Error> {
        check_space(self.run.path(), bytes.saturating_mul(2) + (256 << 20), "loading")
    }

    /// Kills the server and removes all of it. The quick way for data that is thrown away.
    pub fn stop_hard(mut self) -> Death {
        self.process.stop_hard()
    }

    /// Kills the server, so that its memory is free for another; its folder goes when this is dropped.
    pub fn kill(&mut self) -> Death {
        self.process.stop_hard()
    }

    /// Shuts the server down cleanly and removes all of it.
    pub fn stop(mut self) -> Result<(), Error> {
        self.stop_cleanly()
    }

    /// Shuts the server down cleanly and keeps its data in the cache.
    pub fn into_prepared(mut self, cache: &Cache, key: &DataKey) -> Result<PreparedData, Error> {
        // A slow shutdown leaves nothing to purge or merge, which would otherwise go on in the next run.
        self.connect()?
            .execute("SET GLOBAL innodb_fast_shutdown = 0")
            .map_err(Error::wire("ask for a complete shutdown"))?;
        self.stop_cleanly()?;
        cache.store(key, &self.data())
    }

    /// Stops the server cleanly and starts it again on the same data.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop_cleanly()?;
        self.start_again()
    }

    /// Starts it again after [`Sandbox::stop_cleanly`].
    pub(crate) fn start_again(&mut self) -> Result<(), Error> {
        self.process = ServerProcess::start(&self.launch)?;
        self.janitor.kill_at_end(self.process.pid())?;
        self.wait_until_it_answers()
    }

    pub(crate) fn run_statements(&self, statements: &[String]) -> Result<(), Error> {
        if statements.is_empty() {
            return Ok(());
        }
        let mut client = self.connect()?;
        for (at, statement) in statements.iter().enumerate() {
            client
                .execute(statement)
                .map_err(|source| Error::StatementAfterStart { at: at + 1, source })?;
        }
        client.quit();
        Ok(())
    }

    pub(crate) fn stop_cleanly(&mut self) -> Result<(), Error> {
        let pid = self.process.pid();
        let death = self.process.stop(Duration::from_secs(300));
        self.janitor.forget_process(pid)?;
        match death.exit_code {
            Some(0) => Ok(()),
            _ => Err(Error::DidNotStop { death }),
        }
    }

    fn wait_until_it_answers(&mut self) -> Result<(), Error> {
        let binary = self.installation.binary.clone();
        let deadline = Instant::now() + self.ready_within;
        let mut next_look_at_log = Instant::now() + Duration::from_secs(1);
        loop {
            if let Some(death) = self.process.watch() {
                return Err(match &death.reason {
                    Some((Reason::Setting, line)) => Error::SettingRefused {
                        line: line.clone(),
                        binary,
                    },
                    _ => Error::DiedAtStart {
                        death: death.clone(),
                        binary,
                    },
                });
            }
            let answer = Client::connect(&self.endpoint, &self.credentials())
                .and_then(|mut client| client.query("SELECT 1").map(|_| ()));
            match answer {
                Ok(()) => return Ok(()),
                // Waiting does not make an account.
                Err(source @ scaleprof_wire::Error::Authentication { .. }) => {
                    return Err(Error::wire("log in to the server under test")(source));
                }
                Err(source) if matches!(source.number(), Some(1045 | 1698 | 1251)) => {
                    return Err(Error::wire("log in to the server under test")(source));
                }
                Err(last) if Instant::now() >= deadline => {
                    return Err(Error::NotReady {
                        binary,
                        seconds: self.ready_within.as_secs(),
                        last: last.to_string(),
                        log: self.process.log_end(),
                    });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
            if Instant::now() >= next_look_at_log {
                next_look_at_log = Instant::now() + Duration::from_secs(1);
                if self.process.complains_of_full_disk() {
                    self.process.stop_hard(); // it would wait for room; its death is reported above
                }
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if self.process.watch().is_none() {
            self.process.stop_hard();
        }
        // The folder goes with its field; should that be cut short, the janitor or the next start takes it up.
        let _ = self.janitor.forget_process(self.process.pid());
    }
}

/// A folder that only the server's user may enter.
fn make_private(path: &Path, user: Option<&ServerUser>) -> Result<(), Error> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(Error::system("make the folder", path))?;
    user.map_or(Ok(()), |user| user.own(path))
}

/// A file that only the server's user may read.
fn write_private(path: &Path, text: &str, user: Option<&ServerUser>) -> Result<(), Error> {
    use std::io::Write;
    fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Error::system("write", path))?;
    user.map_or(Ok(()), |user| user.own(path))
}
