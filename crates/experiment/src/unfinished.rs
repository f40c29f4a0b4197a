//! Transactions that outlive their measurement: ended, so that the next measurement has the server
//! to itself.

use crate::error::RunError;
use crate::target::wire;
use scaleprof_wire::Client;
use scaleprof_workload::schema::SCHEMA;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long an answer may take: KILL itself never waits for the statement that it ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long undoing what they did may take before the run goes on beside it.
const LONGEST: Duration = Duration::from_secs(60);
/// How long the server has to notice by itself that a connection was closed.
const GRACE: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// "Unknown thread id": it ended by itself.
const UNKNOWN_THREAD: u16 = 1094;

/// What became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Killed {
    /// Connections with a statement in flight, to which KILL was sent.
    pub(crate) killed: usize,
    /// Those that still ran a minute later.
    pub(crate) left: usize,
}

/// Kills what the server still does for connections of ours that are closed, and waits until it is gone.
///
/// Behind a proxy the numbers that we were greeted with are the proxy's: only a connection that also has our user and
/// the load's schema is one of ours.
///
/// # Errors
/// The server does not answer, or does not let us.
pub(crate) fn kill(client: &mut Client, user: &str, connection_ids: &[u32]) -> Result<Killed, RunError> {
    client.set_patience(Some(PATIENCE));
    let ours: BTreeSet<String> = connection_ids.iter().map(ToString::to_string).collect();
    let busy = wait(client, user, &ours, GRACE)?;
    for id in &busy {
        match client.execute(&format!("KILL {id}")) {
            Ok(_) => {}
            Err(e) if e.number() == Some(UNKNOWN_THREAD) => {}
            Err(e) => return Err(wire("ending a transaction that outlived its measurement")(e)),
        }
    }
    let left = match busy.is_empty() {
        true => 0,
        false => wait(client, user, &ours, LONGEST)?.len(),
    };
    Ok(Killed {
        killed: busy.len(),
        left,
    })
}

/// Waits until the server has let our connections go, but not too long; gives those that it has not.
fn wait(client: &mut Client, user: &str, ours: &BTreeSet<String>, longest: Duration) -> Result<Vec<String>, RunError> {
    let deadline = Instant::now() + longest;
    loop {
        let busy = under_way(client, user, ours)?;
        if busy.is_empty() || Instant::now() > deadline {
            return Ok(busy);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Those of our connections that the server has not let go.
fn under_way(client: &mut Client, user: &str, ours: &BTreeSet<String>) -> Result<Vec<String>, RunError> {
    let list = client
        .query("SHOW PROCESSLIST")
        .map_err(wire("looking for transactions that outlived their measurement"))?;
    let column = |name: &str| list.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
    let (Some(id), Some(account), Some(database)) = (column("Id"), column("User"), column("db")) else {
        return Ok(Vec::new());
    };
    let value = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    Ok(list
        .rows
        .iter()
        .filter(|row| value(row, account) == user && value(row, database) == SCHEMA)
        .map(|row| value(row, id))
        .filter(|id| ours.contains(id))
        .collect())
}
