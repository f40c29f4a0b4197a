//! The statements of the workloads.

use scaleprof_wire::Parameter;
use std::fmt::Write as _;

/// A kind of statement; the names are sysbench's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum StatementKind {
    Begin,
    Commit,
    PointSelects,
    SimpleRanges,
    SumRanges,
    OrderRanges,
    DistinctRanges,
    IndexUpdates,
    NonIndexUpdates,
    Deletes,
    Inserts,
    RandomPoints,
    RandomRanges,
}

use StatementKind::*;

impl StatementKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [StatementKind; 13] = [
        Begin,
        Commit,
        PointSelects,
        SimpleRanges,
        SumRanges,
        OrderRanges,
        DistinctRanges,
        IndexUpdates,
        NonIndexUpdates,
        Deletes,
        Inserts,
        RandomPoints,
        RandomRanges,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Begin => "begin",
            Commit => "commit",
            PointSelects => "point_selects",
            SimpleRanges => "simple_ranges",
            SumRanges => "sum_ranges",
            OrderRanges => "order_ranges",
            DistinctRanges => "distinct_ranges",
            IndexUpdates => "index_updates",
            NonIndexUpdates => "non_index_updates",
            Deletes => "deletes",
            Inserts => "inserts",
            RandomPoints => "random_points",
            RandomRanges => "random_ranges",
        }
    }

    /// Whether there is one for every table.
    pub(super) fn is_per_table(self) -> bool {
        !matches!(self, Begin | Commit | RandomPoints | RandomRanges)
    }

    /// Its text for table `sbtest{table}`, with `terms` terms in the lists of the random selects.
    pub(super) fn sql(self, table: u32, terms: u32) -> String {
        match self {
            Begin => "BEGIN".into(),
            Commit => "COMMIT".into(),
            PointSelects => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            SimpleRanges => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            SumRanges => format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            OrderRanges => {
                format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            DistinctRanges => {
                format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            IndexUpdates => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            NonIndexUpdates => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Deletes => format!("DELETE FROM sbtest{table} WHERE id=?"),
            Inserts => format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            RandomPoints => {
                let mut sql = String::from("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?");
                (1..terms).for_each(|_| sql.push_str(", ?"));
                sql.push(')');
                sql
            }
            RandomRanges => {
                let mut sql = String::from("SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ?");
                for _ in 1..terms {
                    let _ = write!(sql, " OR k BETWEEN ? AND ?");
                }
                sql
            }
        }
    }

    /// Kinds of its parameters.
    pub(super) fn parameters(self, terms: u32) -> Vec<Parameter> {
        use Parameter::{Int, ShortString};
        match self {
            Begin | Commit => vec![],
            PointSelects | IndexUpdates | Deletes => vec![Int],
            SimpleRanges | SumRanges | OrderRanges | DistinctRanges => vec![Int, Int],
            NonIndexUpdates => vec![ShortString, Int],
            Inserts => vec![Int, Int, ShortString, ShortString],
            RandomPoints => vec![Int; terms as usize],
            RandomRanges => vec![Int; terms as usize * 2],
        }
    }
}
