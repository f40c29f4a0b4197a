//! What can be chosen about the workload.

use super::deck::Mix;
use std::fmt;
use std::str::FromStr;

/// Which warehouse a transaction's terminal belongs to. Other kits call it `terminalWarehouseFixed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HomeWarehouse {
    /// Every connection is a terminal of one warehouse and one district for good (clauses 2.4.1.1 and 2.8.1.1).
    #[default]
    Fixed,
    /// Drawn for every transaction, as sysbench-tpcc and go-tpc have it: connections meet on every warehouse.
    Random,
}

impl fmt::Display for HomeWarehouse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HomeWarehouse::Fixed => "fixed",
            HomeWarehouse::Random => "random",
        })
    }
}

impl FromStr for HomeWarehouse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "fixed" => Ok(HomeWarehouse::Fixed),
            "random" => Ok(HomeWarehouse::Random),
            other => Err(format!("there is no home warehouse '{other}': use fixed or random")),
        }
    }
}

/// Most warehouses: 100 MB each, and numbers that fit the columns.
pub const MOST_WAREHOUSES: u32 = 100_000;

/// The options of the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct TpccOptions {
    /// Warehouses: the size of the data, about 100 MB each.
    pub warehouses: u32,
    /// How often each kind of transaction comes.
    pub mix: Mix,
    /// Where a transaction's terminal stands.
    pub home: HomeWarehouse,
    /// Keying and think times of clause 5.2.5, times this; none where connections begin again at once.
    pub pauses: Option<f64>,
    /// Seed of the rows and of the constants of clause 2.1.6.1, which go with them.
    pub data_seed: u64,
    /// Whether HISTORY has a primary key, as clusters ask for; the specification has none.
    pub history_key: bool,
}

impl Default for TpccOptions {
    fn default() -> Self {
        TpccOptions {
            warehouses: 1,
            mix: Mix::default(),
            home: HomeWarehouse::default(),
            pauses: None,
            data_seed: 1,
            history_key: false,
        }
    }
}

/// Why options cannot be run.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum TpccOptionsError {
    /// No warehouse, or too many.
    #[error("--warehouses {0} is not possible: use 1 to {MOST_WAREHOUSES}")]
    Warehouses(u32),
    /// A factor that is no factor.
    #[error("--think-times {0} is not possible: use a factor above 0 up to 100; 1 is that of the specification")]
    Pauses(f64),
}

impl TpccOptions {
    pub(super) fn validate(&self) -> Result<(), TpccOptionsError> {
        if !(1..=MOST_WAREHOUSES).contains(&self.warehouses) {
            return Err(TpccOptionsError::Warehouses(self.warehouses));
        }
        match self.pauses {
            Some(factor) if !(factor > 0.0 && factor <= 100.0) => Err(TpccOptionsError::Pauses(factor)),
            _ => Ok(()),
        }
    }

    /// What the tables hold, in words: equal words, equal tables.
    pub fn data_description(&self) -> String {
        let key = if self.history_key { " history key" } else { "" };
        format!("tpcc 1: warehouses {} seed {}{key}", self.warehouses, self.data_seed)
    }

    /// About how large the tables get, bytes: measured 85 MB a warehouse after the load and 12 MB of items; a warehouse has 15 MB
    /// for the orders of a run.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.warehouses) * 100_000_000 + 12_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_options_are_refused_in_words() {
        let with = |warehouses, pauses| {
            let options = TpccOptions {
                warehouses,
                pauses,
                ..TpccOptions::default()
            };
            options.validate().err().map(|error| error.to_string())
        };
        assert_eq!(with(1, None), None);
        assert!(with(0, None).is_some_and(|e| e.contains("--warehouses 0")));
        assert!(with(1, Some(0.0)).is_some_and(|e| e.contains("--think-times 0")));
        assert!(with(1, Some(f64::NAN)).is_some());
        assert!(
            "somewhere"
                .parse::<HomeWarehouse>()
                .is_err_and(|e| e.contains("fixed or random"))
        );
    }
}
