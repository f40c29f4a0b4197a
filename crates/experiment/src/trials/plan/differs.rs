//! What sets a variant apart, in words.

use super::super::plan_file::VariantText;
use crate::privacy::names_something;
use scaleprof_analysis::numbers::counted;
use std::path::Path;

/// What sets a variant apart, as it may be shown to others: of paths the last part, of what may be a name three dots.
pub(super) fn differs_by(text: &VariantText) -> Vec<String> {
    let mut words = of_server(text);
    words.extend(of_load(text));
    words
}

fn last(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(|| "...".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn of_server(text: &VariantText) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(text.path.as_ref().map(|path| format!("server {}", last(path))));
    words.extend(text.set.iter().map(|(name, value)| {
        let value = value.to_string();
        let public = !names_something(name) && !value.contains('/');
        format!("{name}={}", if public { value } else { "...".to_owned() })
    }));
    words.extend(text.environment.keys().map(|name| format!("environment {name}")));
    words.extend(
        text.wrapper
            .as_ref()
            .and_then(|words| words.first())
            .map(|first| format!("wrapper {}", last(first))),
    );
    // Statements may name what is whose.
    words.extend(match text.sql.len() {
        0 => None,
        1 => Some("a statement after its start".to_owned()),
        several => Some(format!("{several} statements after its start")),
    });
    words.extend(text.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")));
    words.extend(text.replication.as_ref().map(|method| format!("replication {method}")));
    words.extend(text.replicas.map(|count| counted(count, "replica")));
    words.extend(text.neighbours.map(|count| counted(count, "neighbour")));
    words.extend(
        text.cpus_others
            .as_ref()
            .map(|cpus| format!("CPUs of the others {cpus}")),
    );
    words.extend(text.buffer_pool.as_ref().map(|size| format!("buffer pool {size}")));
    let on_off = |on: bool| if on { "on" } else { "off" };
    words.extend(
        text.performance_schema
            .map(|on| format!("Performance Schema {}", on_off(on))),
    );
    words.extend(
        text.server_defaults_file
            .as_ref()
            .map(|path| format!("option file {}", last(path))),
    );
    words
}

fn of_load(text: &VariantText) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(text.workload.as_ref().map(|name| format!("workload {}", last(name))));
    words.extend(text.warehouses.map(|count| format!("{count} warehouses")));
    words.extend(text.mix.as_ref().map(|mix| format!("mix {mix}")));
    words.extend(
        text.home_warehouse
            .as_ref()
            .map(|home| format!("home warehouse {home}")),
    );
    words.extend(text.think_times.map(|factor| format!("think times {factor}")));
    words.extend(text.tables.map(|count| format!("{count} tables")));
    words.extend(text.rows.map(|count| format!("{count} rows")));
    words.extend(text.options.iter().map(|(name, value)| format!("{name}={value}")));
    words.extend(text.read_tables.map(|read| match read {
        true => "tables read into memory first".to_owned(),
        false => "tables not read into memory first".to_owned(),
    }));
    words.extend(text.isolation.as_ref().map(|level| format!("isolation {level}")));
    words.extend(text.distribution.as_ref().map(|name| format!("distribution {name}")));
    words.extend(text.protocol.as_ref().map(|name| format!("protocol {name}")));
    words.extend(text.rate.map(|rate| format!("{rate} transactions/s offered")));
    words.extend(text.idle_connections.map(|count| format!("{count} idle connections")));
    words
}
