//! Starting a server under test: its folders, its option file, its data.

use super::Sandbox;
use crate::capabilities::Capabilities;
use crate::cpu_set::CpuSet;
use crate::data_folder::{Cache, PreparedData, bring_back_hot_pages};
use crate::error::Error;
use crate::file_copy::{copy_folder, disk_usage};
use crate::free_port::FreePort;
use crate::identify::Installation;
use crate::initialise::initialise;
use crate::janitor::Janitor;
use crate::memory;
use crate::option_file::Places;
use crate::placement::Placement;
use crate::process::{Launch, ServerProcess};
use crate::setting::Setting;
use crate::settings::Settings;
use crate::surroundings::Surroundings;
use crate::user::ServerUser;
use crate::work_folder::{RunFolder, WorkFolder, check_space};
use scaleprof_wire::Endpoint;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    pub(crate) fn replica(mut self, cpus: Option<&CpuSet>) -> Self {
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

    /// The same without a binary log: with data that others start on it would be another server's past.
    pub fn without_binary_log(mut self) -> Self {
        self.settings = self.settings.without_binary_log();
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
        let needed = self.settings.redo_log(&prepared.capabilities).saturating_add(512 << 20);
        self.make_room(prepared.run.path(), needed, "an empty data folder with its redo log")?;
        let data = prepared.run.path().join("data");
        make_private(&data, self.user.as_ref())?;
        let mut pid = 0;
        initialise(&how, &prepared.launch, |started| {
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
        self.make_room(
            prepared.run.path(),
            data.entry().bytes_of_copy(),
            "a copy of the prepared data",
        )?;
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
        let needed = disk_usage(stopped)?;
        self.make_room(prepared.run.path(), needed, "a copy of the data for a replica")?;
        copy_folder(stopped, &own, self.user.as_ref())?;
        change(&own)?;
        Ok(NotYetStarted {
            builder: self,
            prepared,
        })
    }

    /// Drops prepared data that nobody uses where the disk has too little room, or says that it would be full.
    fn make_room(&self, place: &Path, needed: u64, what: &str) -> Result<(), Error> {
        match Cache::existing(&self.work_folder) {
            Some(cache) => cache.room_at(place, needed, what),
            None => check_space(place, needed, what),
        }
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
        self.settings.check_plugins(self.installation.plugins.as_deref())?;
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
                nice: placement.and_then(|placement| placement.server_nice()),
                surroundings: self.surroundings.clone(),
            },
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
    socket: PathBuf,
    port: Option<u16>,
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
