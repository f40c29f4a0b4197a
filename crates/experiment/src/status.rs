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

    /// What changed since `before`, by name. Levels such as `threads_running` show their change too, which says
    /// little; they are left out.
    pub(crate) fn since(&self, before: &Status) -> Vec<(String, f64)> {
        let is_level = |name: &str| {
            name.starts_with("threads_")
                || name.starts_with("max_used")
                || name.starts_with("open_")
                || name.starts_with("uptime")
                || name.contains("_pages_")
                || name.contains("_bytes_data")
                || name.ends_with("_current_waits")
                || name.ends_with("_size")
                || name.contains("_age")
        };
        self.0
            .iter()
            .filter(|(name, _)| !is_level(name))
            .filter_map(|(name, after)| {
                let change = after - before.get(name)?;
                (change > 0.0).then(|| (name.clone(), change))
            })
            .collect()
    }
}

/// Which of the server's counters counts transactions of this load, and by how much a transaction raises it.
///
/// It is an account of the load that is not the client's own.
pub(crate) fn transaction_counter(load: &LoadOptions) -> Option<(&'static str, f64)> {
    let o = &load.oltp;
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

