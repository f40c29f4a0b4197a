//! Manners on a server that is not ours: room for its own users, and one load at a time.

use crate::error::RunError;
use crate::options::{LoadOptions, WorkloadChoice};
use crate::target::wire;
use scaleprof_wire::Client;
use scaleprof_workload::OltpWorkload;
use scaleprof_workload::schema::SCHEMA;
use scaleprof_workload::tpcc::Tpcc;

/// Connections and statements that must stay free for the server's own users, as a share of what is free.
const LEAVE: f64 = 0.1;

/// Refuses a load that would take the server's connections or prepared statements away from its users.
///
/// # Errors
/// There is no room, or the server does not answer.
pub(crate) fn check_room(client: &mut Client, load: &LoadOptions, most_connections: u32) -> Result<(), RunError> {
    let per_connection = match &load.workload {
        WorkloadChoice::Oltp(kind) => OltpWorkload::new(*kind, load.oltp.clone())?.prepared_count(),
        WorkloadChoice::Tpcc(options) => Tpcc::new(options.clone())?.prepared_count(),
        WorkloadChoice::Script { .. } => 0,
    };
    let most = u64::from(most_connections + load.idle_connections);
    let checks = [
        ("max_connections", "Threads_connected", most, "use fewer --connections"),
        (
            "max_prepared_stmt_count",
            "Prepared_stmt_count",
            most * per_connection,
            "use fewer --connections or --tables, or --protocol text",
        ),
    ];
    for (limit, used, wanted, advice) in checks {
        let allowed = number(client, &format!("SELECT @@GLOBAL.{limit}"), 0)?;
        let taken = number(client, &format!("SHOW GLOBAL STATUS LIKE '{used}'"), 1)?;
        let (Some(allowed), Some(taken)) = (allowed, taken) else {
            continue;
        };
        let free = ((allowed.saturating_sub(taken)) as f64 * (1.0 - LEAVE)) as u64;
        if wanted > free {
            return Err(RunError::NoRoom {
                limit,
                allowed,
                taken,
                wanted,
                advice,
            });
        }
    }
    Ok(())
}

/// Takes the one lock that every load on this server takes; it is free again when the connection closes.
///
/// # Errors
/// Another load has it, or the server does not answer.
pub(crate) fn lock(client: &mut Client) -> Result<(), RunError> {
    match number(client, &format!("SELECT GET_LOCK('{SCHEMA}', 0)"), 0)? {
        Some(1) => Ok(()),
        _ => Err(RunError::AnotherLoad),
    }
}

/// Whether replicas of this server may follow what the load does.
///
/// # Errors
/// The server does not answer.
pub(crate) fn writes_binary_log(client: &mut Client) -> Result<bool, RunError> {
    Ok(number(client, "SELECT @@GLOBAL.log_bin", 0)? == Some(1))
}

/// Whether the server refuses a table without a primary key.
///
/// # Errors
/// The server does not answer.
pub(crate) fn asks_for_primary_keys(client: &mut Client) -> Result<bool, RunError> {
    // MySQL's from 8.0.13 on, and MariaDB's. What a server does not know it does not show.
    let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('sql_require_primary_key', 'innodb_force_primary_key') AND Value = 'ON'";
    let set = client.query(sql).map_err(wire("asking the server for its limits"))?;
    Ok(!set.rows.is_empty())
}

fn number(client: &mut Client, sql: &str, column: usize) -> Result<Option<u64>, RunError> {
    let set = client.query(sql).map_err(wire("asking the server for its limits"))?;
    let value = set
        .rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().nth(column).flatten());
    Ok(value.and_then(|text| text.parse().ok()))
}
