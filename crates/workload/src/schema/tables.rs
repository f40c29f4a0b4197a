//! The schema and its tables.

use crate::oltp::OltpOptions;
use scaleprof_wire::{Client, Error};

/// The schema that the load makes and uses.
pub const SCHEMA: &str = "scaleprof_load";
/// The table that says that the schema is ours, and what is in it.
const MARKER: &str = "scaleprof_marker";

/// What can go wrong with the load's tables.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The name is taken.
    #[error(
        "the schema {SCHEMA} was not created by scaleprof (no table {MARKER}), so it is not touched\nfix: rename it, or \
         use another server"
    )]
    NotOurs,
    /// A statement failed.
    #[error("{doing}: {source}{}", hint(source))]
    Statement {
        /// What we were about.
        doing: String,
        /// What went wrong.
        source: Box<Error>,
    },
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}

fn hint(error: &Error) -> &'static str {
    match error.number() {
        Some(1044 | 1142 | 1227) => "\nfix: GRANT ALL ON scaleprof_load.* TO the account",
        Some(1290) => {
            "; the message names the setting that forbids new tables\nfix: on a replica (read_only, \
             super_read_only), create them on its source: run there without --drop-schema"
        }
        Some(1153) => "\nfix: raise the server's max_allowed_packet: SET GLOBAL max_allowed_packet = 1048576",
        Some(1114 | 1021) => "\nfix: free space on the server's disk, or use fewer --rows, --tables or --warehouses",
        _ => "",
    }
}

pub(crate) fn doing(what: impl Into<String>) -> impl FnOnce(Error) -> SchemaError {
    let what = what.into();
    move |error| SchemaError::Statement {
        doing: what,
        source: Box::new(error),
    }
}

/// What is on the server already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// No schema of our name.
    Absent,
    /// Ours, filled to the end; with the description that [`create`] was given.
    Filled(String),
    /// Ours, but filling it did not come to its end, or a load used its rows up.
    Unusable,
}

/// Looks what is there.
///
/// # Errors
/// The schema is somebody else's, or the server does not answer.
pub fn state(client: &mut Client) -> Result<SchemaState, SchemaError> {
    let looking = || doing("looking for the load's schema");
    let schema = format!("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '{SCHEMA}'");
    if client.query_value(&schema).map_err(looking())?.as_deref() == Some("0") {
        return Ok(SchemaState::Absent);
    }
    let marker = format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{SCHEMA}' AND table_name = '{MARKER}'"
    );
    if client.query_value(&marker).map_err(looking())?.as_deref() == Some("0") {
        return Err(SchemaError::NotOurs);
    }
    let description = format!("SELECT description FROM {SCHEMA}.{MARKER} WHERE filled = 1");
    Ok(match client.query_value(&description).map_err(looking())? {
        Some(description) => SchemaState::Filled(description),
        None => SchemaState::Unusable,
    })
}

/// Drops the schema if it is ours.
///
/// # Errors
/// It is somebody else's, or the server refuses.
pub fn drop_ours(client: &mut Client) -> Result<(), SchemaError> {
    if state(client)? == SchemaState::Absent {
        return Ok(());
    }
    client
        .execute(&format!("DROP DATABASE {SCHEMA}"))
        .map(drop)
        .map_err(doing("dropping the load's schema"))
}

/// Makes the schema with its marker and empty tables. What was there of ours is dropped first.
///
/// # Errors
/// The name is taken by somebody else, or a statement fails.
pub fn create(client: &mut Client, options: Option<&OltpOptions>, description: &str) -> Result<(), SchemaError> {
    drop_ours(client)?;
    client
        .execute(&format!("CREATE DATABASE {SCHEMA}"))
        .map_err(doing("making the load's schema"))?;
    // The description holds only our own words and numbers; quotes are doubled all the same.
    let quoted = description.replace('\'', "''");
    let marked = [
        // With a key: servers can be told to have no table without one.
        format!("CREATE TABLE {SCHEMA}.{MARKER} (description VARCHAR(500) NOT NULL, filled INT NOT NULL PRIMARY KEY)"),
        format!("INSERT INTO {SCHEMA}.{MARKER} VALUES ('{quoted}', 0)"),
    ]
    .iter()
    .try_for_each(|statement| client.execute(statement).map(drop));
    if let Err(problem) = marked {
        // Without its mark nobody could tell that it is ours. It has just been made, and nothing is in it.
        let _ = client.execute(&format!("DROP DATABASE {SCHEMA}"));
        return Err(doing("marking the load's schema as ours")(problem));
    }
    for table in 1..=options.map_or(0, |o| o.tables) {
        if let Some(options) = options {
            client
                .execute(&create_table(options, table))
                .map_err(doing(format!("making table {table} of the load")))?;
        }
    }
    Ok(())
}

/// sysbench's table.
fn create_table(options: &OltpOptions, table: u32) -> String {
    let auto_increment = if options.auto_inc { " AUTO_INCREMENT" } else { "" };
    let key = if options.secondary { "KEY xid" } else { "PRIMARY KEY" };
    format!(
        "CREATE TABLE {SCHEMA}.sbtest{table} (id INTEGER NOT NULL{auto_increment}, k INTEGER DEFAULT '0' NOT NULL, \
         c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, {key} (id)) ENGINE = InnoDB"
    )
}

/// Notes that the tables are complete.
pub(crate) fn mark_filled(client: &mut Client) -> Result<(), SchemaError> {
    mark(client, true, "noting that the tables are complete")
}

/// Notes that a load is about to use the rows up, so that no other takes what it leaves for what it asked for.
///
/// # Errors
/// The server does not answer.
pub fn mark_used_up(client: &mut Client) -> Result<(), SchemaError> {
    mark(client, false, "noting that the load uses the rows up")
}

fn mark(client: &mut Client, filled: bool, what: &str) -> Result<(), SchemaError> {
    client
        .execute(&format!("UPDATE {SCHEMA}.{MARKER} SET filled = {}", u8::from(filled)))
        .map(drop)
        .map_err(doing(what))
}

/// What becomes of the optimiser's statistics when tables are read into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistics {
    /// They are made anew, so that every run has the same.
    Anew,
    /// They stay: on a replica nothing may be written that it was not sent.
    AsTheyAre,
}

/// Reads every page of the tables and indexes once, so that the first rung finds them in memory as the others do.
///
/// Gives which statistics they have now: a server that is read-only keeps those that were there.
///
/// # Errors
/// A statement fails.
pub fn warm(
    client: &mut Client,
    options: &OltpOptions,
    table: u32,
    statistics: Statistics,
) -> Result<Statistics, SchemaError> {
    let name = format!("{SCHEMA}.sbtest{table}");
    let rows = if options.secondary {
        String::new()
    } else {
        "FORCE INDEX (PRIMARY)".into()
    };
    let statistics = match statistics {
        Statistics::Anew => analyse(client, &name)?,
        Statistics::AsTheyAre => Statistics::AsTheyAre,
    };
    let mut statements = vec![format!("SELECT COUNT(*), AVG(LENGTH(c)) FROM {name} {rows}")];
    if options.create_secondary {
        statements.push(format!(
            "SELECT COUNT(*) FROM {name} FORCE INDEX (k_{table}) WHERE k >= 0"
        ));
    }
    for statement in statements {
        client
            .execute(&statement)
            .map_err(doing(format!("reading table {table} into memory")))?;
    }
    Ok(statistics)
}

/// "The server is running with the --read-only option so it cannot execute this statement".
const OPTION_PREVENTS: u16 = 1290;

/// Makes the statistics of a table anew, where the server lets us.
pub(crate) fn analyse(client: &mut Client, table: &str) -> Result<Statistics, SchemaError> {
    match client.execute(&format!("ANALYZE TABLE {table}")) {
        Ok(_) => Ok(Statistics::Anew),
        Err(e) if e.number() == Some(OPTION_PREVENTS) => Ok(Statistics::AsTheyAre),
        Err(e) => Err(doing(format!("making the statistics of {table} anew"))(e)),
    }
}

/// Size of the tables with their indexes as the server estimates it, bytes.
///
/// # Errors
/// The server does not answer.
pub fn data_bytes(client: &mut Client) -> Result<Option<u64>, SchemaError> {
    let sum = format!(
        "SELECT CAST(SUM(data_length + index_length) AS UNSIGNED) FROM information_schema.tables WHERE table_schema = '{SCHEMA}'"
    );
    let value = client
        .query_value(&sum)
        .map_err(doing("asking for the size of the tables"))?;
    Ok(value.and_then(|text| text.parse().ok()))
}
