//! The server that a run measures: one of our own, or one that runs already.

use crate::error::RunError;
use crate::processes::{is_server, name_of};
use crate::turns::Player;
use scaleprof_probe::MachineRests;
use scaleprof_server::{CpuSet, Sandbox, VariableOrigin, origins, variables};
use scaleprof_wire::{Client, Credentials, Endpoint};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A server that runs already.
#[derive(Debug, Clone)]
pub struct Attach {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Our account.
    pub credentials: Credentials,
    /// Whether to drop the schema at the end.
    pub drop_schema: bool,
}

/// The server of a run.
#[derive(Debug)]
pub(crate) enum Target {
    /// Ours: gone with us.
    Private(Box<Sandbox>),
    /// Somebody's: left running.
    Attached(Attach),
}

/// How to reach a server, ours or somebody's.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) endpoint: Endpoint,
    pub(crate) credentials: Credentials,
}

impl Access {
    /// To a server of our own.
    pub(crate) fn of(sandbox: &Sandbox) -> Self {
        Access {
            endpoint: sandbox.endpoint().clone(),
            credentials: sandbox.credentials(),
        }
    }

    /// For statements that work through whole tables: each takes as long as it takes.
    pub(crate) fn connect_to_work(&self) -> Result<Client, RunError> {
        let mut client = self.connect()?;
        client.set_patience(None);
        Ok(client)
    }

    pub(crate) fn connect(&self) -> Result<Client, RunError> {
        // What a server sets for all its sessions is not made for this: ours may be silent for long, and what they change is to stay.
        let own = [
            "SET SESSION autocommit = 1, wait_timeout = 31536000",
            "SET SESSION TRANSACTION READ WRITE",
        ];
        Client::connect(&self.endpoint, &self.credentials)
            .and_then(|mut client| {
                own.iter().try_for_each(|set| client.execute(set).map(drop))?;
                Ok(client)
            })
            .map_err(wire("connecting to the server under test"))
    }
}

impl Target {
    pub(crate) fn access(&self) -> Access {
        Access {
            endpoint: self.endpoint().clone(),
            credentials: self.credentials(),
        }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        match self {
            Target::Private(sandbox) => sandbox.endpoint(),
            Target::Attached(attach) => &attach.endpoint,
        }
    }

    pub(crate) fn credentials(&self) -> Credentials {
        match self {
            Target::Private(sandbox) => sandbox.credentials(),
            Target::Attached(attach) => attach.credentials.clone(),
        }
    }

    pub(crate) fn connect(&self) -> Result<Client, RunError> {
        self.access().connect()
    }

    pub(crate) fn connect_to_work(&self) -> Result<Client, RunError> {
        self.access().connect_to_work()
    }

    /// The server's process id, where it runs on this machine.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Target::Private(sandbox) => Some(sandbox.pid()),
            Target::Attached(attach) => match &attach.endpoint {
                Endpoint::Unix(path) => peer_of(path),
                Endpoint::Tcp { .. } => None,
            },
        }
    }

    /// What lets it take turns with others; none of a server that is not ours to stop.
    pub(crate) fn player(&self, rests: Option<Arc<MachineRests>>) -> Option<Player> {
        match self {
            Target::Private(sandbox) => sandbox.pauser().map(|server| Player { server, rests }),
            Target::Attached(_) => None,
        }
    }

    /// Why there is no process id.
    pub(crate) fn why_no_pid(&self) -> &'static str {
        match self {
            Target::Attached(Attach {
                endpoint: Endpoint::Tcp { .. },
                ..
            }) => "the process of a server over TCP is unknown. On the server's machine, give --socket",
            _ => "the process behind the socket is no server that can be seen from here",
        }
    }

    /// The CPUs that the server's process may use, where it can be seen.
    pub(crate) fn cpus(&self) -> Option<CpuSet> {
        cpus_of(self.pid()?)
    }

    pub(crate) fn variables(&self) -> Result<BTreeMap<String, String>, RunError> {
        Ok(variables::global_variables(&mut self.connect()?)?)
    }

    /// Where the values of these variables come from, as far as anybody says.
    pub(crate) fn origins(
        &self,
        variables: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, VariableOrigin>, RunError> {
        Ok(match self {
            Target::Private(sandbox) => sandbox.origins(variables)?,
            Target::Attached(_) => origins::origins(&mut self.connect()?)?,
        })
    }

    /// Whether the server died, and how, in words for a person.
    ///
    /// A server that dies closes its sockets seconds before it is gone: this waits for it.
    pub(crate) fn death(&mut self) -> Option<String> {
        const LONGEST: Duration = Duration::from_secs(20);
        match self {
            Target::Private(sandbox) => sandbox.wait_for_death(LONGEST).map(|death| death.to_string()),
            Target::Attached(_) => None,
        }
    }

    /// Bytes free on the server's disk when it waits for room there.
    pub(crate) fn full_disk(&self) -> Option<u64> {
        const LITTLE: u64 = 64 << 20;
        match self {
            Target::Private(sandbox) => {
                let free = sandbox.free_space().ok()?;
                (free < LITTLE || sandbox.complains_of_full_disk()).then_some(free)
            }
            Target::Attached(_) => None,
        }
    }
}

pub(crate) fn wire(doing: &'static str) -> impl FnOnce(scaleprof_wire::Error) -> RunError {
    move |source| RunError::Wire {
        doing,
        source: Box::new(source),
    }
}

/// The server at the other end of a Unix socket. With socket activation that is the service manager, and with a proxy
/// the proxy: neither is what we measure.
fn peer_of(path: &std::path::Path) -> Option<u32> {
    let stream = std::os::unix::net::UnixStream::connect(path).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?;
    is_server(&name_of(pid)?).then_some(pid)
}

/// The CPUs that a process may use.
pub(crate) fn cpus_of(pid: u32) -> Option<CpuSet> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    let mask = rustix::thread::sched_getaffinity(Some(pid)).ok()?;
    let all = 0..rustix::thread::CpuSet::MAX_CPU as u32;
    Some(all.filter(|cpu| mask.is_set(*cpu as usize)).collect())
}
