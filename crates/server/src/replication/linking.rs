//! The statements that make a server follow another, and what it says of how that goes.

use super::ReplicationMethod;
use crate::capabilities::{Capabilities, Feature};
use crate::error::Error;
use crate::product::Product;
use crate::variables::status_of;
use scaleprof_wire::{Client, ResultSet};
use std::io::Read;

/// The account with which replicas log in; 16 letters are the most of old servers.
const ACCOUNT: &str = "'scaleprof_copy'@'127.0.0.1'";
const USER: &str = "scaleprof_copy";
/// The channel by which a member of a group catches up before it takes part.
const RECOVERY: &str = "group_replication_recovery";

/// What semi-synchronous replication calls its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SemiSyncWords {
    pub(super) source_plugin: &'static str,
    pub(super) replica_plugin: &'static str,
    source_enabled: &'static str,
    replica_enabled: &'static str,
    waiting_for: &'static str,
    is_on: &'static str,
    given_up: &'static str,
}

impl SemiSyncWords {
    pub(super) fn of(capabilities: &Capabilities) -> Self {
        match capabilities.has(Feature::SemiSyncSourceWords) {
            true => SemiSyncWords {
                source_plugin: "semisync_source.so",
                replica_plugin: "semisync_replica.so",
                source_enabled: "rpl_semi_sync_source_enabled",
                replica_enabled: "rpl_semi_sync_replica_enabled",
                waiting_for: "rpl_semi_sync_source_clients",
                is_on: "rpl_semi_sync_source_status",
                given_up: "rpl_semi_sync_source_no_times",
            },
            false => SemiSyncWords {
                source_plugin: "semisync_master.so",
                replica_plugin: "semisync_slave.so",
                source_enabled: "rpl_semi_sync_master_enabled",
                replica_enabled: "rpl_semi_sync_slave_enabled",
                waiting_for: "rpl_semi_sync_master_clients",
                is_on: "rpl_semi_sync_master_status",
                given_up: "rpl_semi_sync_master_no_times",
            },
        }
    }
}

/// A password that nobody knows but the servers of one replication. It stands in no file of ours.
pub(super) fn password() -> Result<String, Error> {
    const RANDOM: &str = "/dev/urandom";
    let mut bytes = [0; 14];
    std::fs::File::open(RANDOM)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Error::system("read", RANDOM))?;
    // Letters of both cases, a digit and a sign, as a server may ask for; 32 letters are the most that a replica may be told.
    Ok(format!("Aa1-{}", crate::identify::hexadecimal(&bytes)))
}

/// Makes the account with which replicas log in; in no binary log, as every server of a group makes its own.
pub(super) fn account(password: &str) -> Vec<String> {
    vec![
        "SET SESSION sql_log_bin = 0".to_owned(),
        format!("CREATE USER {ACCOUNT} IDENTIFIED BY '{password}'"),
        format!("GRANT REPLICATION SLAVE ON *.* TO {ACCOUNT}"),
        "SET SESSION sql_log_bin = 1".to_owned(),
    ]
}

/// Makes a replica read the binary log of the server at this port.
pub(super) fn follow(method: ReplicationMethod, capabilities: &Capabilities, port: u16, password: &str) -> Vec<String> {
    let mut statements = Vec::new();
    if method == ReplicationMethod::SemiSynchronous {
        let words = SemiSyncWords::of(capabilities);
        statements.push(format!("SET GLOBAL {} = ON", words.replica_enabled));
    }
    if capabilities.has(Feature::SourceAndReplicaWords) {
        statements.push(format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = '{USER}', \
             SOURCE_PASSWORD = '{password}', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1"
        ));
        statements.push("START REPLICA".to_owned());
        return statements;
    }
    let position = match capabilities.product() {
        Product::MariaDb => "MASTER_USE_GTID = slave_pos",
        _ if capabilities.has(Feature::CachingSha2ByDefault) => "MASTER_AUTO_POSITION = 1, GET_MASTER_PUBLIC_KEY = 1",
        _ => "MASTER_AUTO_POSITION = 1",
    };
    statements.push(format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = '{USER}', \
         MASTER_PASSWORD = '{password}', MASTER_CONNECT_RETRY = 1, {position}"
    ));
    statements.push("START SLAVE".to_owned());
    statements
}

/// Makes a source wait for its replicas. Not before there are any: its first commit would wait for as long as it may.
pub(super) fn wait_for_replicas(capabilities: &Capabilities) -> String {
    format!("SET GLOBAL {} = ON", SemiSyncWords::of(capabilities).source_enabled)
}

/// Makes a server a member of the group; the first one founds it.
pub(super) fn join_group(password: &str, founds: bool) -> Vec<String> {
    let mut statements = account(password);
    statements.push(format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_USER = '{USER}', SOURCE_PASSWORD = '{password}' FOR CHANNEL '{RECOVERY}'"
    ));
    let found = |on| format!("SET GLOBAL group_replication_bootstrap_group = {on}");
    let start = "START GROUP_REPLICATION".to_owned();
    match founds {
        true => statements.extend([found("ON"), start, found("OFF")]),
        false => statements.push(start),
    }
    statements
}

/// How a server's part in a replication goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// As it shall.
    Well,
    /// Not yet as it shall: what it says.
    NotYet(String),
    /// It has given up: what it says.
    Ended(String),
}

/// Asks a replica how its part goes; of Galera and of groups, of so many servers.
pub(super) fn standing_of_replica(
    client: &mut Client,
    method: ReplicationMethod,
    capabilities: &Capabilities,
    servers: u32,
) -> Result<Standing, Error> {
    let mut ask = |sql: &str| client.query(sql).map_err(Error::wire("ask a replica how it goes"));
    Ok(match method {
        ReplicationMethod::Asynchronous | ReplicationMethod::SemiSynchronous => {
            let words = match capabilities.has(Feature::SourceAndReplicaWords) {
                true => "SHOW REPLICA STATUS",
                false => "SHOW SLAVE STATUS",
            };
            of_reader(&ask(words)?)
        }
        ReplicationMethod::Group => {
            let members = ask("SELECT MEMBER_STATE FROM performance_schema.replication_group_members")?;
            let states: Vec<String> = members.rows.into_iter().flatten().flatten().collect();
            of_members(&states, servers)
        }
        ReplicationMethod::Galera => {
            let status = status_of(client, &["wsrep_cluster_size", "wsrep_local_state_comment"])?;
            let value = |name: &str| status.get(name).map_or("", String::as_str);
            let (size, state) = (value("wsrep_cluster_size"), value("wsrep_local_state_comment"));
            match size == servers.to_string() && state == "Synced" {
                true => Standing::Well,
                false => Standing::NotYet(format!("it is '{state}' in a cluster of {size}")),
            }
        }
    })
}

fn of_reader(status: &ResultSet) -> Standing {
    let Some(row) = status.rows.first() else {
        return Standing::Ended("it has no source".to_owned());
    };
    // Slave_IO_Running, Replica_IO_Running: the words changed and the ends did not.
    let value = |ending: &str| {
        let at = status.columns.iter().position(|name| name.ends_with(ending));
        at.and_then(|at| row.get(at).cloned().flatten()).unwrap_or_default()
    };
    let (reads, replays) = (value("_IO_Running"), value("_SQL_Running"));
    if reads == "Yes" && replays == "Yes" {
        return Standing::Well;
    }
    let problems: Vec<String> = ["Last_IO_Error", "Last_SQL_Error"]
        .map(value)
        .into_iter()
        .filter(|problem| !problem.is_empty())
        .collect();
    let said = match problems.is_empty() {
        true => format!("reading the source's log: {reads}; replaying it: {replays}"),
        false => problems.join("; "),
    };
    match reads == "No" || replays == "No" {
        true => Standing::Ended(said),
        false => Standing::NotYet(said),
    }
}

fn of_members(states: &[String], servers: u32) -> Standing {
    let online = states.iter().filter(|state| *state == "ONLINE").count();
    let said = format!("{online} of {servers} members are ONLINE ({})", states.join(", "));
    match () {
        () if online == servers as usize => Standing::Well,
        () if states.iter().any(|state| state == "ERROR") => Standing::Ended(said),
        () => Standing::NotYet(said),
    }
}

/// Asks the source of a semi-synchronous replication whether it waits for this many replicas.
pub(super) fn standing_of_source(
    client: &mut Client,
    capabilities: &Capabilities,
    replicas: u32,
) -> Result<Standing, Error> {
    let words = SemiSyncWords::of(capabilities);
    let status = status_of(client, &[words.waiting_for, words.is_on, words.given_up])?;
    let value = |name: &str| status.get(name).map_or("", String::as_str);
    let (clients, on) = (value(words.waiting_for), value(words.is_on));
    let given_up: u64 = value(words.given_up).parse().unwrap_or(0);
    if given_up > 0 {
        return Ok(Standing::Ended(format!(
            "the source gave up waiting for its replicas, {given_up} times: until they answered again it was asynchronous"
        )));
    }
    Ok(match clients == replicas.to_string() && on == "ON" {
        true => Standing::Well,
        false => Standing::NotYet(format!("the source waits for {clients} replicas; waiting is {on}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::Version;

    fn capabilities(product: Product, version: (u16, u16, u16)) -> Capabilities {
        Capabilities::of(product, Version::new(version.0, version.1, version.2))
    }

    #[test]
    fn a_replica_is_told_in_the_words_that_its_version_knows() {
        let said = |product, version| {
            follow(
                ReplicationMethod::Asynchronous,
                &capabilities(product, version),
                4711,
                "secret",
            )
            .join(";")
        };
        let newest = said(Product::MySql, (9, 7, 0));
        assert!(
            newest.contains("CHANGE REPLICATION SOURCE TO") && newest.contains("START REPLICA"),
            "{newest}"
        );
        let old = said(Product::MySql, (5, 6, 14));
        assert!(
            old.contains("CHANGE MASTER TO") && old.contains("MASTER_AUTO_POSITION = 1"),
            "{old}"
        );
        assert!(!old.contains("PUBLIC_KEY"), "{old}");
        let between = said(Product::MySql, (8, 0, 20));
        assert!(between.contains("GET_MASTER_PUBLIC_KEY = 1"), "{between}");
        let mariadb = said(Product::MariaDb, (10, 11, 6));
        assert!(mariadb.contains("MASTER_USE_GTID = slave_pos"), "{mariadb}");
    }

    #[test]
    fn a_reader_that_gave_up_says_why() {
        let status = |cells: [&str; 4]| ResultSet {
            columns: [
                "Replica_IO_Running",
                "Replica_SQL_Running",
                "Last_IO_Error",
                "Last_SQL_Error",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: vec![cells.iter().map(|cell| Some((*cell).to_owned())).collect()],
            affected_rows: 0,
        };
        assert_eq!(of_reader(&status(["Yes", "Yes", "", ""])), Standing::Well);
        assert_eq!(
            of_reader(&status(["No", "Yes", "access denied", ""])),
            Standing::Ended("access denied".to_owned())
        );
        assert!(matches!(
            of_reader(&status(["Connecting", "Yes", "", ""])),
            Standing::NotYet(_)
        ));
        let none = ResultSet {
            columns: Vec::new(),
            rows: Vec::new(),
            affected_rows: 0,
        };
        assert!(matches!(of_reader(&none), Standing::Ended(_)));
    }

    #[test]
    fn a_group_is_well_when_all_its_members_are() {
        let states = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(of_members(&states(&["ONLINE", "ONLINE"]), 2), Standing::Well);
        assert!(matches!(
            of_members(&states(&["ONLINE", "RECOVERING"]), 2),
            Standing::NotYet(_)
        ));
        assert!(matches!(of_members(&states(&["ERROR"]), 2), Standing::Ended(_)));
    }

    #[test]
    fn no_two_passwords_are_alike() {
        let (one, other) = (password().unwrap(), password().unwrap());
        assert!(one != other && one.len() == 32 && !one.contains('\''));
    }
}
