//! A server under test: one process on its own data, apart from everything else on the machine.

mod builder;

pub(crate) use builder::NotYetStarted;
pub use builder::SandboxBuilder;

use crate::capabilities::Capabilities;
use crate::data_folder::{Cache, DataKey, PreparedData};
use crate::death::Death;
use crate::error::Error;
use crate::error_log::Reason;
use crate::identify::Installation;
use crate::janitor::Janitor;
use crate::origins::{self, VariableOrigin};
use crate::pause::Pauser;
use crate::process::{Launch, ServerProcess};
use crate::setting::{Origin, Setting, base_name, one_spelling};
use crate::settings::Settings;
use crate::surroundings::Surroundings;
use crate::variables;
use crate::work_folder::{RunFolder, free_space};
use scaleprof_guard::replace;
use scaleprof_wire::{Client, Credentials, Endpoint};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A server that is starting answers within that or is asked again.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

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
    /// Who cleans up after us, should we be killed.
    pub fn janitor(&self) -> &Janitor {
        &self.janitor
    }

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
        let mut client = Client::connect(&self.endpoint, &self.credentials())
            .map_err(Error::wire("connect to the server under test"))?;
        // It is ours: whether it is well is seen from its process.
        client.set_patience(None);
        Ok(client)
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What stops it in the middle of its work and lets it go on. Who stopped it has to let it go on before it is asked to end.
    pub fn pauser(&self) -> Option<Pauser> {
        Pauser::of(self.pid())
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

    /// The settings of the user's that do nothing: MariaDB takes options that it has removed, so that old option files still work, and tells it
    /// in its error log alone.
    pub fn set_in_vain(&self) -> Result<Vec<String>, Error> {
        let log = fs::read(self.error_log()).map_err(Error::system("read", self.error_log()))?;
        let removed: Vec<String> = removed_options(&String::from_utf8_lossy(&log)).collect();
        let told = self.told();
        let of_user = told.iter().filter(|setting| setting.origin == Origin::User);
        let names = of_user.map(|setting| setting.name.clone());
        Ok(names
            .filter(|name| removed.iter().any(|removed| base_name(name) == base_name(removed)))
            .collect())
    }

    /// Copies the error log to a file that stays.
    pub fn keep_error_log(&self, destination: &Path) -> Result<(), Error> {
        // Read and written, not copied: the log's permissions are those of the server's user.
        let text = fs::read(self.error_log()).map_err(Error::system("read", self.error_log()))?;
        replace(destination, |file| file.write_all(&text)).map_err(Error::system("write", destination))
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

    /// Makes room in the cache for loading `bytes` more, or says that the disk would be full: they are written to the tables, and once
    /// more to the copy that a run starts on.
    pub fn make_room_for(&self, cache: &Cache, bytes: u64) -> Result<(), Error> {
        let needed = bytes.saturating_mul(2).saturating_add(256 << 20);
        cache.room_at(self.run.path(), needed, "loading")
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
            let answer = Client::connect(&self.endpoint, &self.credentials()).and_then(|mut client| {
                client.set_patience(Some(LONGEST_ANSWER));
                client.query("SELECT 1").map(|_| ())
            });
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

/// Options that a server knows no more, by its error log: `'innodb-sync-array-size' was removed. It does nothing now and ...`.
fn removed_options(log: &str) -> impl Iterator<Item = String> + '_ {
    log.lines().filter_map(|line| {
        let (before, _) = line.split_once("' was removed. It does nothing now")?;
        Some(one_spelling(before.rsplit('\'').next()?))
    })
}
