//! What the server counts itself.

use crate::error::RunError;
use crate::options::{LoadOptions, WorkloadChoice};
use scaleprof_server::variables::global_status;
use scaleprof_wire::Client;
use scaleprof_workload::OltpWorkloadKind as Kind;
use std::collections::BTreeMap;

/// The numbers of SHOW GLOBAL STATUS.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status(BTreeMap<String, f64>);

impl Status {
    pub(crate) fn read(client: &mut Client) -> Result<Self, RunError> {
        let status = global_status(client)?;
        let numbers = status
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)));
        Ok(Status(numbers.collect()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// By how much each counter changed since `before`. Levels such as `threads_running` are left out: their change
    /// says little.
    pub(crate) fn since<'a>(&'a self, before: &'a Status) -> impl Iterator<Item = (&'a str, f64)> {
        self.0
            .iter()
            .filter(|(name, _)| !is_level(name))
            .filter_map(|(name, after)| Some((name.as_str(), after - before.get(name)?)))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, f64); N]> for Status {
    fn from(numbers: [(&str, f64); N]) -> Self {
        Status(numbers.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

fn is_level(name: &str) -> bool {
    const COUNTED_PAGES: [&str; 7] = ["read", "written", "created", "flushed", "freed", "evicted", "young"];
    let pages = name.contains("_pages_") && !COUNTED_PAGES.iter().any(|end| name.ends_with(end));
    let begins = ["threads_", "max_used", "open_", "uptime"];
    let ends = [
        "_current_waits",
        "_size",
        "_bytes_data",
        "_bytes_dirty",
        "_time_avg",
        "_time_max",
    ];
    pages
        || begins.iter().any(|begin| name.starts_with(begin)) && name != "threads_created"
        || ends.iter().any(|end| name.ends_with(end))
        || name.contains("_age")
}

/// Which of the server's counters counts transactions of this load, and by how much a transaction raises it.
///
/// It is an account of the load that is not the client's own.
pub(crate) fn transaction_counter(load: &LoadOptions) -> Option<(&'static str, f64)> {
    let o = &load.oltp;
    // TPC-C commits most of its transactions and rolls the others back: no one counter has them all.
    let WorkloadChoice::Oltp(kind) = &load.workload else {
        return None;
    };
    let explicit = !o.skip_trx;
    Some(match kind {
        Kind::ReadWrite | Kind::ReadOnly | Kind::WriteOnly if explicit => ("com_commit", 1.0),
        Kind::ReadWrite | Kind::ReadOnly if o.point_selects > 0 => {
            let ranges = o.simple_ranges + o.sum_ranges + o.order_ranges + o.distinct_ranges;
            let ranges = if o.range_selects { ranges } else { 0 };
            ("com_select", f64::from(o.point_selects + ranges))
        }
        Kind::WriteOnly if o.delete_inserts > 0 => ("com_delete", f64::from(o.delete_inserts)),
        Kind::PointSelect | Kind::RandomPoints | Kind::RandomRanges => ("com_select", 1.0),
        Kind::UpdateIndex => ("com_update", f64::from(o.index_updates)),
        Kind::UpdateNonIndex => ("com_update", f64::from(o.non_index_updates)),
        Kind::Insert => ("com_insert", 1.0),
        Kind::Delete => ("com_delete", 1.0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_told_from_counters() {
        for level in [
            "threads_running",
            "innodb_buffer_pool_pages_dirty",
            "innodb_checkpoint_age",
            "open_files",
            "uptime",
            "innodb_row_lock_time_avg",
        ] {
            assert!(is_level(level), "{level}");
        }
        for counter in [
            "com_commit",
            "innodb_pages_read",
            "innodb_buffer_pool_pages_flushed",
            "threads_created",
            "innodb_row_lock_time",
            "bytes_sent",
        ] {
            assert!(!is_level(counter), "{counter}");
        }
    }
}
