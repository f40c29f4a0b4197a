//! The real servers that tests run on.

use crate::no_server;
use crate::servers_cache;
use rustix::fs::FlockOperation;
use scaleprof_server::{
    Cache, DataKey, Error, Installation, Sandbox, SandboxBuilder, ServerSettings, Settings, WorkFolder,
};
use std::fs::File;
use std::ops::Deref;
use std::path::PathBuf;

/// A server to test on.
pub struct Server {
    /// What the tests call it.
    pub name: &'static str,
    /// Where it is.
    pub installation: Installation,
}

const FETCHED: [&str; 3] = ["mysql-5.6.14", "mariadb-11.8", "mysql-9.7"];

fn found(name: &'static str, installation: Result<Installation, scaleprof_server::Error>) -> Option<Server> {
    match installation {
        Ok(installation) => Some(Server { name, installation }),
        Err(error) => {
            no_server(name, &error.to_string());
            None
        }
    }
}

/// The distribution's server.
pub fn distribution() -> Option<Server> {
    found("distribution", Installation::distribution())
}

/// One that was fetched.
pub fn fetched(name: &'static str) -> Option<Server> {
    found(name, Installation::at(&servers_cache().join(name)))
}

/// All there are.
pub fn each_server() -> Vec<Server> {
    distribution()
        .into_iter()
        .chain(FETCHED.into_iter().filter_map(fetched))
        .collect()
}

/// Those of a small server, with these of the test's.
pub fn settings(set: &[&str]) -> Settings {
    let asked = ServerSettings {
        connections: 64,
        buffer_pool: Some(128 << 20),
        redo_log: 96 << 20,
        set: set.iter().map(|text| (*text).to_owned()).collect(),
        ..ServerSettings::default()
    };
    Settings::new(asked).expect("settings")
}

/// A work folder that goes with the test.
pub struct TestFolder {
    work: WorkFolder,
    _folder: tempfile::TempDir,
}

impl Deref for TestFolder {
    type Target = WorkFolder;

    fn deref(&self) -> &WorkFolder {
        &self.work
    }
}

/// A work folder of this test alone, which the server's user can reach.
pub fn work_folder() -> TestFolder {
    let folder = tempfile::Builder::new()
        .prefix("scaleprof-test-")
        .tempdir_in(std::env::var_os("SCALEPROF_TEST_FOLDER").unwrap_or_else(|| "/var/tmp".into()))
        .expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("chmod");
    TestFolder {
        work: WorkFolder::open(&folder.path().join("w")).expect("a work folder"),
        _folder: folder,
    }
}

/// Starts a server without tables. Where `./test` names a folder for all tests, the first that asks with such settings makes the data
/// folder, which takes seconds, and each starts on a copy of it.
///
/// # Errors
/// As of [`SandboxBuilder::start_fresh`] and [`SandboxBuilder::start_from`].
pub fn start_empty(installation: &Installation, settings: &Settings, work: &WorkFolder) -> Result<Sandbox, Error> {
    let builder = |work: &WorkFolder| SandboxBuilder::new(installation.clone(), settings.clone(), work.clone());
    let Some(folder) = std::env::var_os("SCALEPROF_TEST_FOLDER") else {
        return builder(work).start_fresh();
    };
    let folder = PathBuf::from(folder);
    // Until it is made the others wait.
    let lock = File::create(folder.join("empty.lock")).expect("a file of all tests");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).expect("a lock");
    let shared = WorkFolder::open(&folder.join("empty"))?;
    // A binary log, for one, stands in the data too.
    let made_with = format!("nothing, {:?}", settings.asked().set);
    let (cache, key) = (Cache::open(&shared)?, DataKey::new(installation, settings, made_with)?);
    let data = match cache.get(&key)? {
        Some(data) => data,
        None => builder(&shared).start_fresh()?.into_prepared(&cache, &key)?,
    };
    drop(lock);
    builder(work).start_from(&data)
}

/// The folders of servers that are in a work folder.
pub fn runs(work: &WorkFolder) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(work.path()).expect("the work folder");
    let runs = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("run-"));
    runs.map(|entry| entry.path()).collect()
}
