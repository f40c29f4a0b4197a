//! A plan as it is written: TOML, or what the command line puts together. Nothing is checked here but that every key is known.

use super::plan_error::PlanError;
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
    /// What is compared; the first is what the others are held against.
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
    pub isolation: Option<String>,
    /// Transactions offered a second: an open loop.
    pub rate: Option<f64>,
    pub idle_connections: Option<u32>,
    pub seed: Option<u64>,
    /// Threads of the client.
    pub threads: Option<u32>,
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
    pub half_width_percent: Option<f64>,
    /// Pairs of two starts of the first variant, at each end of the session.
    pub sentinels: Option<u32>,
    /// Fewer pairs, for a first look.
    pub quick: Option<bool>,
    /// Whether every variant has a run in which the server's threads are watched.
    pub watch: Option<bool>,
    /// Seed of the order.
    pub seed: Option<u64>,
}

/// The server of all variants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct ServerText {
    /// A BASEDIR or a binary; the distribution's server where there is none.
    pub path: Option<String>,
    pub set: BTreeMap<String, Value>,
    pub environment: BTreeMap<String, String>,
    pub wrapper: Option<Vec<String>>,
    pub cpus: Option<String>,
    pub cpus_client: Option<String>,
    /// Such as `4G`.
    pub buffer_pool: Option<String>,
    pub performance_schema: Option<bool>,
    pub defaults_file: Option<String>,
}

/// One variant: what it has otherwise than `[server]` and `[load]` say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct VariantText {
    pub name: Option<String>,
    pub path: Option<String>,
    pub set: BTreeMap<String, Value>,
    pub environment: BTreeMap<String, String>,
    pub wrapper: Option<Vec<String>>,
    pub cpus: Option<String>,
    pub buffer_pool: Option<String>,
    pub performance_schema: Option<bool>,
    pub defaults_file: Option<String>,
    pub workload: Option<String>,
    pub isolation: Option<String>,
    pub distribution: Option<String>,
    pub protocol: Option<String>,
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

    /// Adds the variants of `--vary NAME=VALUE,VALUE...`; with several, one for every choice of values. The first values make the
    /// variant that the others are held against.
    ///
    /// # Errors
    /// A text that names fewer than two values, or one twice; a plan that has variants of its own.
    pub fn vary(&mut self, varied: &[String]) -> Result<(), PlanError> {
        if varied.is_empty() {
            return Ok(());
        }
        if !self.variants.is_empty() {
            return Err(PlanError::key(
                "--vary",
                "the plan has variants of its own".to_owned(),
                "leave --vary out, or write a plan without [[variant]]",
            ));
        }
        let mut variants = vec![VariantText::default()];
        for text in varied {
            let (name, values) = values(text)?;
            let with = |variant: &VariantText, value: &str| {
                let mut variant = variant.clone();
                variant.set.insert(name.to_owned(), Value::Text(value.to_owned()));
                let words = format!("{name}={value}");
                variant.name = Some(match variant.name {
                    None => words,
                    Some(before) => format!("{before} {words}"),
                });
                variant
            };
            variants = variants
                .iter()
                .flat_map(|variant| values.iter().map(|value| with(variant, value)).collect::<Vec<_>>())
                .collect();
        }
        self.variants = variants;
        Ok(())
    }
}

fn values(text: &str) -> Result<(&str, Vec<&str>), PlanError> {
    let wrong = |problem: &str| {
        PlanError::key(
            "--vary",
            format!("'{text}' {problem}"),
            "write --vary NAME=VALUE,VALUE, such as innodb_sync_array_size=1,8,64",
        )
    };
    let (name, values) = text.split_once('=').ok_or_else(|| wrong("has no values"))?;
    let (name, values): (_, Vec<&str>) = (name.trim(), values.split(',').map(str::trim).collect());
    if name.is_empty() || values.len() < 2 || values.iter().any(|value| value.is_empty()) {
        return Err(wrong("needs a name and two values at least"));
    }
    let mut sorted = values.clone();
    sorted.sort_unstable();
    sorted.dedup();
    match sorted.len() == values.len() {
        true => Ok((name, values)),
        false => Err(wrong("names a value twice")),
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

    #[test]
    fn varying_two_settings_gives_every_choice() {
        let mut plan = PlanFile::default();
        plan.vary(&["a=1,2".to_owned(), "b=x,y".to_owned()]).unwrap();
        let names: Vec<&str> = plan.variants.iter().filter_map(|v| v.name.as_deref()).collect();
        assert_eq!(names, ["a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"]);
        assert!(
            plan.vary(&["a=1,2".to_owned()])
                .unwrap_err()
                .to_string()
                .contains("of its own")
        );
    }

    #[test]
    fn what_cannot_be_varied_is_refused_with_the_way_to_write_it() {
        for text in ["a", "a=1", "=1,2", "a=1,,2", "a=1,1"] {
            let error = PlanFile::default().vary(&[text.to_owned()]).unwrap_err().to_string();
            assert!(
                error.contains("--vary") && error.contains("NAME=VALUE,VALUE"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z=\\[\\]\"{} \n0-9.]{0,80}") {
            let _ = PlanFile::parse(&text, "x");
        }
    }
}
