//! A plan as it is written: TOML, or what the command line puts together. Nothing is checked here but that every key is known.

use super::plan_error::PlanError;
use scaleprof_server::one_spelling;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An experiment as a person writes it down (docs/experiment.md has every key).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanFile {
    /// Its name.
    pub name: Option<String>,
    /// What it asks.
    pub question: Option<String>,
    /// The load of all variants.
    pub load: LoadText,
    /// The rungs.
    pub ladder: LadderText,
    /// How sure it shall be.
    pub design: DesignText,
    /// The server of all variants.
    pub server: ServerText,
    /// Without what it cannot be asked.
    pub requires: RequiresText,
    /// What is compared; the first is what the others are held against, unless they say otherwise.
    #[serde(rename = "variant")]
    pub variants: Vec<VariantText>,
}

/// The load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct LoadText {
    pub workload: Option<String>,
    pub tables: Option<u32>,
    pub rows: Option<u32>,
    pub distribution: Option<String>,
    pub protocol: Option<String>,
    /// Further options of sysbench's workloads.
    pub options: BTreeMap<String, Value>,
    /// A FILE.sql that one connection runs before a workload that is a FILE.sql.
    pub setup: Option<String>,
    /// Of tpcc.
    pub warehouses: Option<u32>,
    /// Of tpcc: cards of a deck, such as `10,10,1,1,1`.
    pub mix: Option<String>,
    /// Of tpcc: `fixed` or `random`.
    pub home_warehouse: Option<String>,
    /// Of tpcc: keying and think times, times this.
    pub think_times: Option<f64>,
    /// Whether the tables are read into memory before the first rung; they are where it is not said.
    pub read_tables: Option<bool>,
    pub isolation: Option<String>,
    /// Transactions offered a second: an open loop.
    pub rate: Option<f64>,
    /// Of an open loop: `poisson` or `constant`.
    pub arrivals: Option<String>,
    pub idle_connections: Option<u32>,
    pub seed: Option<u64>,
    /// Threads of the client.
    pub client_threads: Option<u32>,
    pub transport: Option<String>,
}

/// The rungs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LadderText {
    /// Such as `1,16,64..512`.
    pub connections: Option<String>,
    /// At each rung.
    pub seconds: Option<u32>,
}

/// How sure it shall be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DesignText {
    /// The most pairs of each variant and the first one.
    pub pairs: Option<u32>,
    /// Differences up to so many percent do not matter.
    pub margin_percent: Option<f64>,
    /// Ends as soon as the interval over the ladder is no wider than so many percent to either side.
    pub precision_percent: Option<f64>,
    /// Pairs of two starts of the first variant, at each end of the session.
    pub aa_pairs: Option<u32>,
    /// Fewer pairs, for a first look.
    pub quick: Option<bool>,
    /// Whether the starts of a round run side by side and take turns on the machine; where it can be done, if nothing is said.
    pub interleave: Option<bool>,
    /// Whether every variant has a run in which the server's threads are watched.
    pub probe: Option<bool>,
    /// Seed of the order.
    pub seed: Option<u64>,
}

/// The server of all variants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct ServerText {
    /// A BASEDIR, a binary or the name of a build; the distribution's server where there is none.
    pub path: Option<String>,
    pub set: BTreeMap<String, Value>,
    pub environment: BTreeMap<String, String>,
    pub wrapper: Option<Vec<String>>,
    /// Statements that one connection runs as soon as the server answers.
    pub sql: Vec<String>,
    pub cpus: Option<String>,
    pub cpus_client: Option<String>,
    /// How replicas follow the server: `asynchronous`, `semi-synchronous`, `group` or `galera`; `none` where nobody does.
    pub replication: Option<String>,
    /// How many of them; 1 where it is not said.
    pub replicas: Option<u32>,
    /// Servers like it that bear the same load at the same time.
    pub neighbours: Option<u32>,
    /// CPUs of its replicas or neighbours; its own where it is not said.
    pub cpus_others: Option<String>,
    /// Such as `4G`.
    pub buffer_pool: Option<String>,
    pub performance_schema: Option<bool>,
    pub server_defaults_file: Option<String>,
}

/// What an experiment needs beside a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequiresText {
    /// Memory nodes (NUMA) of the machine.
    pub memory_nodes: Option<u32>,
    /// That the command line says what is compared; in words that tell how.
    pub comparison: Option<String>,
}

/// One variant: what it has otherwise than `[server]` and `[load]` say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct VariantText {
    pub name: Option<String>,
    /// The name of the variant that it is held against.
    pub base: Option<String>,
    /// `mysql`, `mariadb`, `percona`: with a server of another maker it takes no part.
    pub products: Vec<String>,
    pub path: Option<String>,
    pub set: BTreeMap<String, Value>,
    pub environment: BTreeMap<String, String>,
    pub wrapper: Option<Vec<String>>,
    pub sql: Vec<String>,
    pub cpus: Option<String>,
    pub replication: Option<String>,
    pub replicas: Option<u32>,
    pub neighbours: Option<u32>,
    pub cpus_others: Option<String>,
    pub buffer_pool: Option<String>,
    pub performance_schema: Option<bool>,
    pub server_defaults_file: Option<String>,
    pub workload: Option<String>,
    pub tables: Option<u32>,
    pub rows: Option<u32>,
    pub isolation: Option<String>,
    pub distribution: Option<String>,
    pub protocol: Option<String>,
    pub options: BTreeMap<String, Value>,
    pub setup: Option<String>,
    pub warehouses: Option<u32>,
    pub mix: Option<String>,
    pub home_warehouse: Option<String>,
    pub think_times: Option<f64>,
    pub read_tables: Option<bool>,
    pub rate: Option<f64>,
    pub idle_connections: Option<u32>,
}

/// A setting's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum Value {
    Switch(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => f.write_str(if *on { "ON" } else { "OFF" }),
            Value::Whole(number) => number.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// Settings with others over them, however their names are written.
pub(super) fn set_over(all: &mut BTreeMap<String, Value>, over: impl IntoIterator<Item = (String, Value)>) {
    for (name, value) in over {
        all.retain(|known, _| one_spelling(known) != one_spelling(&name));
        all.insert(name, value);
    }
}

impl PlanFile {
    /// Reads a plan; `file` is what it is called in errors.
    ///
    /// # Errors
    /// What is no TOML, and keys that no plan has, with the line.
    pub fn parse(text: &str, file: &str) -> Result<PlanFile, PlanError> {
        toml::from_str(text).map_err(|error| PlanError::Unreadable {
            file: file.to_owned(),
            line: error.span().map(|span| 1 + text[..span.start].matches('\n').count()),
            problem: error.message().trim_end_matches('.').to_owned(),
        })
    }

    /// Adds settings of the command line, `NAME=VALUE` or `NAME`, for all variants.
    ///
    /// # Errors
    /// A text without a name.
    pub fn set_for_all(&mut self, settings: &[String]) -> Result<(), PlanError> {
        for text in settings {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Value::Text(value.to_owned())),
                None => (text.as_str(), Value::Switch(true)),
            };
            if name.trim().is_empty() {
                return Err(PlanError::key(
                    "--set",
                    format!("'{text}' has no name"),
                    "write --set NAME=VALUE",
                ));
            }
            self.server.set.insert(name.trim().to_owned(), value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_that_no_plan_has_is_named_with_its_line() {
        let text = "name = \"x\"\n\n[load]\nworklaod = \"tpcc\"\n";
        let error = PlanFile::parse(text, "a.toml").unwrap_err().to_string();
        assert!(error.starts_with("a.toml, line 4: "), "{error}");
        assert!(error.contains("worklaod") && error.contains("workload"), "{error}");
        let error = PlanFile::parse("name = ", "a.toml").unwrap_err().to_string();
        assert!(error.starts_with("a.toml, line 1: "), "{error}");
    }

    #[test]
    fn values_may_be_written_as_numbers_switches_and_texts() {
        let text = "[[variant]]\nset = { a = 1, b = true, c = 0.5, d = \"O_DIRECT\" }\n";
        let plan = PlanFile::parse(text, "a.toml").unwrap();
        let shown: Vec<String> = plan.variants[0].set.values().map(Value::to_string).collect();
        assert_eq!(shown, ["1", "ON", "0.5", "O_DIRECT"]);
        // As it is kept in the experiment's folder.
        let kept = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<PlanFile>(&kept).unwrap(), plan);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z=\\[\\]\"{} \n0-9.]{0,80}") {
            let _ = PlanFile::parse(&text, "x");
        }
    }
}
