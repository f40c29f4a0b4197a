//! sysbench's options, with its defaults.

use crate::Distribution;
use std::fmt;
use std::str::FromStr;

/// How statements travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Prepared on every connection, then EXECUTE with binary values (sysbench's `--db-ps-mode=auto`).
    #[default]
    Binary,
    /// Whole statements as text (`--db-ps-mode=disable`).
    Text,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Binary => "binary",
            Protocol::Text => "text",
        })
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "binary" => Ok(Protocol::Binary),
            "text" => Ok(Protocol::Text),
            other => Err(format!("there is no protocol '{other}': use binary or text")),
        }
    }
}

/// The options of the OLTP workloads; names and defaults are sysbench's, except the distribution, which is uniform.
#[derive(Debug, Clone, PartialEq)]
pub struct OltpOptions {
    /// Tables `sbtest1` to `sbtest{tables}`.
    pub tables: u32,
    /// Rows of each.
    pub table_size: u32,
    /// Width of the range selects.
    pub range_size: u32,
    /// Point selects a transaction.
    pub point_selects: u32,
    /// Range selects a transaction.
    pub simple_ranges: u32,
    /// Sums over a range a transaction.
    pub sum_ranges: u32,
    /// Sorted range selects a transaction.
    pub order_ranges: u32,
    /// Distinct range selects a transaction.
    pub distinct_ranges: u32,
    /// Updates of the indexed column a transaction.
    pub index_updates: u32,
    /// Updates of another column a transaction.
    pub non_index_updates: u32,
    /// Pairs of a delete and an insert of the same id a transaction.
    pub delete_inserts: u32,
    /// Whether there are range selects at all.
    pub range_selects: bool,
    /// Whether the server makes the ids.
    pub auto_inc: bool,
    /// Whether to leave BEGIN and COMMIT out.
    pub skip_trx: bool,
    /// Whether `id` is a plain index instead of the primary key.
    pub secondary: bool,
    /// Whether to make the index on `k`.
    pub create_secondary: bool,
    /// Ids in the list of `select_random_points`.
    pub random_points: u32,
    /// Ranges of `select_random_ranges`.
    pub number_of_ranges: u32,
    /// Width of those ranges.
    pub delta: u32,
    /// How ids are drawn.
    pub distribution: Distribution,
    /// How statements travel.
    pub protocol: Protocol,
}

impl Default for OltpOptions {
    fn default() -> Self {
        OltpOptions {
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            range_selects: true,
            auto_inc: true,
            skip_trx: false,
            secondary: false,
            create_secondary: true,
            random_points: 10,
            number_of_ranges: 10,
            delta: 5,
            distribution: Distribution::Uniform,
            protocol: Protocol::Binary,
        }
    }
}

/// Options that cannot be run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionsError {
    /// A figure is outside what it may be.
    #[error("--{name} {value} is not possible: use {low} to {high}")]
    OutOfRange {
        /// The option.
        name: &'static str,
        /// What was given.
        value: u32,
        /// Least.
        low: u32,
        /// Most.
        high: u32,
    },
    /// The workload has statements for one table only.
    #[error("{0} reads only the first table, as in sysbench\nfix: use --tables 1")]
    OneTableOnly(&'static str),
    /// Nothing is left to send.
    #[error("a transaction has no statement\nfix: set point_selects or another count above 0 (--workload-option)")]
    Empty,
    /// An option that only has a meaning elsewhere.
    #[error(
        "unknown option {0}: --workload-option takes sysbench's names without dashes, such as point_selects=5, \
         range_size, index_updates or rand_type"
    )]
    Unknown(String),
    /// A value of the wrong kind.
    #[error("--{name} {value}: {wanted} required")]
    BadValue {
        /// The option.
        name: String,
        /// What was given.
        value: String,
        /// What was wanted.
        wanted: &'static str,
    },
}

impl OltpOptions {
    /// Sets an option by sysbench's name for it, such as `point-selects` or `point_selects`.
    ///
    /// # Errors
    /// The option does not exist or the value does not suit it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionsError> {
        let bad = |wanted| OptionsError::BadValue {
            name: name.to_owned(),
            value: value.to_owned(),
            wanted,
        };
        let number = || value.parse::<u32>().map_err(|_| bad("a whole number"));
        let switch = || match value {
            "on" | "true" | "1" => Ok(true),
            "off" | "false" | "0" => Ok(false),
            _ => Err(bad("on or off")),
        };
        match name.replace('_', "-").as_str() {
            "range-size" => self.range_size = number()?,
            "point-selects" => self.point_selects = number()?,
            "simple-ranges" => self.simple_ranges = number()?,
            "sum-ranges" => self.sum_ranges = number()?,
            "order-ranges" => self.order_ranges = number()?,
            "distinct-ranges" => self.distinct_ranges = number()?,
            "index-updates" => self.index_updates = number()?,
            "non-index-updates" => self.non_index_updates = number()?,
            "delete-inserts" => self.delete_inserts = number()?,
            "random-points" => self.random_points = number()?,
            "number-of-ranges" => self.number_of_ranges = number()?,
            "delta" => self.delta = number()?,
            "range-selects" => self.range_selects = switch()?,
            "auto-inc" => self.auto_inc = switch()?,
            "skip-trx" => self.skip_trx = switch()?,
            "secondary" => self.secondary = switch()?,
            "create-secondary" => self.create_secondary = switch()?,
            _ => return Err(OptionsError::Unknown(name.to_owned())),
        }
        Ok(())
    }

    /// Checks what does not depend on the workload.
    pub(super) fn validate(&self) -> Result<(), OptionsError> {
        let within = |name, value, low, high| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(OptionsError::OutOfRange { name, value, low, high })
            }
        };
        within("tables", self.tables, 1, 10_000)?;
        // Ids are INTEGER; a range may reach past the last row.
        within("rows", self.table_size, 1, 2_000_000_000)?;
        within("range-size", self.range_size, 1, 100_000_000)?;
        within("random-points", self.random_points, 1, 10_000)?;
        within("number-of-ranges", self.number_of_ranges, 1, 5_000)?;
        within("delta", self.delta, 0, 100_000_000)?;
        for (name, value) in [
            ("point-selects", self.point_selects),
            ("simple-ranges", self.simple_ranges),
            ("sum-ranges", self.sum_ranges),
            ("order-ranges", self.order_ranges),
            ("distinct-ranges", self.distinct_ranges),
            ("index-updates", self.index_updates),
            ("non-index-updates", self.non_index_updates),
            ("delete-inserts", self.delete_inserts),
        ] {
            within(name, value, 0, 10_000)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_sysbench_s_names() {
        let mut options = OltpOptions::default();
        options.set("point_selects", "3").unwrap();
        options.set("skip-trx", "on").unwrap();
        assert_eq!((options.point_selects, options.skip_trx), (3, true));
        assert_eq!(
            options.set("skip-trx", "maybe").unwrap_err().to_string(),
            "--skip-trx maybe: on or off required"
        );
        assert!(matches!(options.set("threads", "3"), Err(OptionsError::Unknown(_))));
    }
}
