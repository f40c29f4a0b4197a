//! What a server is started with beside its own options: a command in front of it, environment variables, and statements.

use crate::error::Error;
use std::collections::BTreeMap;
use std::path::Path;

/// How a server is started; nothing special where it is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// Words in front of the server's command line, such as `numactl --interleave=all`. The last thing that this command does must
    /// be to become the server (exec), as numactl, taskset, nice, chrt, prlimit and env do.
    pub wrapper: Vec<String>,
    /// Variables such as `LD_PRELOAD`, beside those of our own environment that any program needs.
    pub environment: BTreeMap<String, String>,
    /// Statements that one connection runs as soon as the server answers: what no setting can say, such as
    /// `UPDATE performance_schema.setup_instruments ...`.
    pub statements: Vec<String>,
}

impl Surroundings {
    /// The same without wrapper and statements: what makes a data folder is no server that is measured.
    pub(crate) fn for_making_data(&self) -> Surroundings {
        Surroundings {
            environment: self.environment.clone(),
            ..Surroundings::default()
        }
    }

    /// An error where the wrapper has not become the server: its CPU time and threads would be taken for the server's.
    pub(crate) fn check(&self, pid: u32, binary: &Path) -> Result<(), Error> {
        let Some(wrapper) = self.wrapper.first() else {
            return Ok(());
        };
        let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
        let (Ok(exe), Ok(binary)) = (exe, binary.canonicalize()) else {
            // It cannot be seen; what runs answers as a server.
            return Ok(());
        };
        match exe == binary {
            true => Ok(()),
            false => Err(Error::WrapperStays {
                wrapper: wrapper.clone(),
                exe,
            }),
        }
    }
}
