//! Starting a server with its replicas, and seeing to it that they follow.

use super::linking::{self, Standing};
use super::node::{self, NodePorts};
use super::{Means, Position, Replication, ReplicationMethod, handover};
use crate::cpu_set::CpuSet;
use crate::data_folder::PreparedData;
use crate::error::Error;
use crate::sandbox::{NotYetStarted, Sandbox, SandboxBuilder};
use crate::work_folder::RunFolder;
use scaleprof_guard::Folder;
use scaleprof_wire::Client;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a replica may take until it follows.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(120);
/// How long a server may take to say how it goes.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The servers that follow one under test. Dropping them kills them and removes their folders.
#[derive(Debug)]
pub struct Replicas {
    replication: Replication,
    means: Means,
    servers: Vec<Sandbox>,
    /// What belongs to all of them.
    _shared: Option<RunFolder>,
}

impl SandboxBuilder {
    /// Starts a server with its replicas, each on a fresh copy of the same data. They follow when this returns. Replicas may use these
    /// CPUs, those of the server where there are none.
    ///
    /// # Errors
    /// What this server cannot do, and what a server alone can fail with; a replica that does not follow.
    pub fn start_replicated(
        self,
        data: &PreparedData,
        replication: Replication,
        cpus_replicas: Option<&CpuSet>,
        stop: &AtomicBool,
    ) -> Result<(Sandbox, Replicas), Error> {
        let means = replication.means(self.installation())?;
        self.check_memory_of(replication.servers())?;
        let users_provider_options = self
            .users_setting("wsrep_provider_options")
            .unwrap_or_default()
            .to_owned();
        let ports = NodePorts::of(replication.servers())?;
        let shared = match replication.method {
            ReplicationMethod::Galera => Some(self.with_handover_script()?),
            _ => None,
        };
        let node = |at: usize| {
            let settings = node::settings(&replication, &means, &ports, at, &users_provider_options);
            let node = self.clone().at_place(settings);
            let node = match at {
                0 => node,
                _ => node.replica(cpus_replicas),
            };
            match &shared {
                Some(folder) => node.finding_programs_in(folder.path()),
                None => node,
            }
        };
        let followers = 1..replication.servers() as usize;
        let (source, servers) = if replication.method == ReplicationMethod::Galera {
            start_cluster(node(0), followers.map(node), data, stop)?
        } else {
            let source = node(0).start_from(data)?;
            let servers: Result<Vec<Sandbox>, Error> = followers
                .map(|at| unless_stopped(stop, || node(at).start_from(data)))
                .collect();
            (source, servers?)
        };
        let mut replicas = Replicas {
            replication,
            means,
            servers,
            _shared: shared,
        };
        replicas.link(&source, stop)?;
        Ok((source, replicas))
    }

    fn with_handover_script(&self) -> Result<RunFolder, Error> {
        let folder = self.shared_folder()?;
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), everyone)
            .map_err(Error::system("open to the server's user", folder.path()))?;
        handover::write(folder.path())?;
        Ok(folder)
    }
}

/// Galera's nodes. The first one founds a cluster, and the others begin on copies of what it shut down with: only data with a position in
/// the cluster's history can be gone on from.
fn start_cluster(
    mut first: SandboxBuilder,
    others: impl Iterator<Item = SandboxBuilder>,
    data: &PreparedData,
    stop: &AtomicBool,
) -> Result<(Sandbox, Vec<Sandbox>), Error> {
    // They are for the server that is measured, not for the data that all begin with.
    let statements = first.take_statements();
    let mut first = first.arguments(&["--wsrep-new-cluster"]).start_from(data)?;
    first.stop_cleanly()?;
    let founded = first.data();
    let copies: Result<Vec<NotYetStarted>, Error> = others
        .map(|other| other.on_copy_of(&founded, forget_place_in_cluster))
        .collect();
    first.start_again()?;
    first.run_statements(&statements)?;
    let servers: Result<Vec<Sandbox>, Error> = copies?
        .into_iter()
        .map(|copy| unless_stopped(stop, || copy.start()))
        .collect();
    Ok((first, servers?))
}

/// Makes data that one node founded a cluster on those of a node that joins it.
fn forget_place_in_cluster(data: &Path) -> Result<(), Error> {
    for file in ["galera.cache", "gvwstate.dat"] {
        let file = data.join(file);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::system("remove", file)(error)),
            _ => {}
        }
    }
    let state = data.join("grastate.dat");
    let folder = Folder::open(data).map_err(Error::system("open", data))?;
    let opened = folder.file_to_change(OsStr::new("grastate.dat"));
    let mut file = opened.map_err(Error::system("open", &state))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(Error::system("read", &state))?;
    // Written over, so that it stays the server user's; the new text is as long.
    let text = text.replace("safe_to_bootstrap: 1", "safe_to_bootstrap: 0");
    file.write_all_at(text.as_bytes(), 0)
        .map_err(Error::system("write", &state))
}

impl Replicas {
    /// How they follow, and how many.
    pub fn replication(&self) -> Replication {
        self.replication
    }

    /// The servers, in order of their numbers.
    pub fn servers(&self) -> &[Sandbox] {
        &self.servers
    }

    /// How to ask the server that they follow how far it is, and how to ask them.
    pub fn positions(&self) -> [Position; 2] {
        [true, false].map(|is_source| Position::new(self.replication.method, &self.means.capabilities, is_source))
    }

    /// Kills them, so that their memory is free for others; their folders go when this is dropped.
    pub fn kill(&mut self) {
        for server in &mut self.servers {
            server.kill();
        }
    }

    /// Makes them follow.
    fn link(&mut self, source: &Sandbox, stop: &AtomicBool) -> Result<(), Error> {
        let Replication { method, .. } = self.replication;
        let capabilities = self.means.capabilities;
        if method == ReplicationMethod::Galera {
            return self.wait_until_all_follow(source, stop);
        }
        let password = linking::password()?;
        let mut client = source.connect()?;
        if method == ReplicationMethod::Group {
            execute(&mut client, linking::join_group(&password, true))?;
        } else {
            execute(&mut client, linking::account(&password))?;
        }
        let port = source.port().unwrap_or_default();
        for server in &self.servers {
            unless_stopped(stop, || Ok(()))?;
            let statements = match method {
                ReplicationMethod::Group => linking::join_group(&password, false),
                _ => linking::follow(method, &capabilities, port, &password),
            };
            execute(&mut server.connect()?, statements)?;
        }
        if method == ReplicationMethod::SemiSynchronous {
            self.wait_until_replicas_follow(stop)?;
            execute(&mut client, vec![linking::wait_for_replicas(&capabilities)])?;
        }
        client.quit();
        self.wait_until_all_follow(source, stop)
    }

    fn wait_until_replicas_follow(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let deadline = Instant::now() + FOLLOWS_WITHIN;
        for at in 0..self.servers.len() {
            while let Some(why) = self.not_following(at)? {
                if Instant::now() >= deadline {
                    let waited = format!("after {} s: {why}", FOLLOWS_WITHIN.as_secs());
                    return Err(self.problem(at, waited));
                }
                pause(stop)?;
            }
        }
        Ok(())
    }

    fn wait_until_all_follow(&mut self, source: &Sandbox, stop: &AtomicBool) -> Result<(), Error> {
        self.wait_until_replicas_follow(stop)?;
        let deadline = Instant::now() + FOLLOWS_WITHIN;
        while let Some(why) = self.not_waited_for(source)? {
            if Instant::now() >= deadline {
                return Err(self.problem(0, why));
            }
            pause(stop)?;
        }
        Ok(())
    }

    /// Checks that all of them live.
    ///
    /// # Errors
    /// The first one that died.
    pub fn check_alive(&mut self) -> Result<(), Error> {
        for at in 0..self.servers.len() {
            if let Some(death) = self.servers[at].watch() {
                let death = death.to_string();
                return Err(self.problem(at, death));
            }
        }
        Ok(())
    }

    /// Checks that all of them follow still.
    ///
    /// # Errors
    /// One that died or gave up, or for which a semi-synchronous source does not wait any more.
    pub fn check(&mut self, source: &Sandbox) -> Result<(), Error> {
        for at in 0..self.servers.len() {
            if let Some(why) = self.not_following(at)? {
                return Err(self.problem(at, why));
            }
        }
        match self.not_waited_for(source)? {
            Some(why) => Err(self.problem(0, why)),
            None => Ok(()),
        }
    }

    /// Why a replica does not follow at this moment; an error where it will not any more.
    fn not_following(&mut self, at: usize) -> Result<Option<String>, Error> {
        let server = &mut self.servers[at];
        if let Some(death) = server.watch() {
            return Err(self.problem(at, death.to_string()));
        }
        let Replication { method, .. } = self.replication;
        let servers = self.replication.servers();
        let standing = patient(server).and_then(|mut client| {
            let standing = linking::standing_of_replica(&mut client, method, &self.means.capabilities, servers)?;
            client.quit();
            Ok(standing)
        });
        let standing = match standing {
            // A node that joins a cluster ends the connections that it has.
            Err(lost @ Error::Wire { .. }) if method == ReplicationMethod::Galera => match server.watch() {
                Some(death) => return Err(self.problem(at, death.to_string())),
                None => Standing::NotYet(lost.to_string()),
            },
            standing => standing?,
        };
        match standing {
            Standing::Well => Ok(None),
            Standing::NotYet(why) => Ok(Some(why)),
            Standing::Ended(why) => Err(self.problem(at, why)),
        }
    }

    /// Why a semi-synchronous source does not wait for all of them.
    fn not_waited_for(&self, source: &Sandbox) -> Result<Option<String>, Error> {
        if self.replication.method != ReplicationMethod::SemiSynchronous {
            return Ok(None);
        }
        let mut client = patient(source)?;
        let standing = linking::standing_of_source(&mut client, &self.means.capabilities, self.replication.replicas)?;
        client.quit();
        Ok(match standing {
            Standing::Well => None,
            Standing::NotYet(why) => Some(why),
            Standing::Ended(why) => return Err(self.problem(0, why)),
        })
    }

    fn problem(&self, at: usize, reason: String) -> Error {
        Error::NotFollowing {
            method: self.replication.method.to_string(),
            replica: at + 1,
            reason,
        }
    }
}

/// A connection to a server that may have stood still.
fn patient(server: &Sandbox) -> Result<Client, Error> {
    let mut client = server.connect()?;
    client.set_patience(Some(ANSWERS_WITHIN));
    Ok(client)
}

/// The next step, but for when it was asked to stop.
fn unless_stopped<T>(stop: &AtomicBool, next: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::Stopped),
        false => next(),
    }
}

/// The time until it is asked again.
fn pause(stop: &AtomicBool) -> Result<(), Error> {
    unless_stopped(stop, || {
        std::thread::sleep(ASK_AGAIN_AFTER);
        Ok(())
    })
}

fn execute(client: &mut Client, statements: Vec<String>) -> Result<(), Error> {
    for statement in statements {
        client
            .execute(&statement)
            .map_err(Error::wire("make a replica follow"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_founders_data_joins_and_founds_nothing() {
        let data = tempfile::tempdir().expect("a folder");
        let state = data.path().join("grastate.dat");
        fs::write(&state, "uuid: 1\nseqno: 2\nsafe_to_bootstrap: 1\n").expect("written");
        fs::write(data.path().join("galera.cache"), "x").expect("written");
        forget_place_in_cluster(data.path()).expect("forgotten");
        let text = fs::read_to_string(&state).expect("read");
        assert_eq!(text, "uuid: 1\nseqno: 2\nsafe_to_bootstrap: 0\n");
        assert!(!data.path().join("galera.cache").exists());
    }
}
