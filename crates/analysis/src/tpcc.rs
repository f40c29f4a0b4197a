//! What TPC-C counts beside transactions of all kinds: New-Orders per minute.

use scaleprof_bundle::{Estimate, TpccFigures, TransactionLatency, Workload};
use scaleprof_vocabulary::{TpccTransaction, WorkloadName};

/// tpmC of a warehouse whose ten users read and type as long as the specification has it (clause 4.2.2).
const NOMINAL: f64 = 12.86;

/// The figures of a rung by its throughput and its kinds of transactions; none for another workload, and where no transaction
/// was counted.
pub(crate) fn figures(
    workload: &Workload,
    throughput: Estimate,
    transactions: &[TransactionLatency],
) -> Option<TpccFigures> {
    let option = |wanted: &str| {
        let found = workload.options.iter().find(|(name, _)| name == wanted);
        found.and_then(|(_, value)| value.parse::<f64>().ok())
    };
    let warehouses = option("warehouses").filter(|_| workload.name == WorkloadName::Tpcc)?;
    let count = |kind: TpccTransaction| {
        let of_kind = transactions.iter().filter(|one| one.transaction == kind);
        of_kind.map(|one| one.count as f64).sum::<f64>()
    };
    let all: f64 = transactions.iter().map(|one| one.count as f64).sum();
    let rolled_back = count(TpccTransaction::NewOrderRolledBack);
    let new_orders = count(TpccTransaction::NewOrder) + rolled_back;
    // The deck of cards fixes their share: what scatters is throughput.
    let per_minute = 60.0 * new_orders / all;
    let tpmc = Estimate {
        value: throughput.value * per_minute,
        low: throughput.low.map(|low| low * per_minute),
        high: throughput.high.map(|high| high * per_minute),
    };
    (all > 0.0 && warehouses > 0.0).then_some(TpccFigures {
        tpmc,
        nominal_share: tpmc.value / (NOMINAL * warehouses),
        nominal_is_limit: option("think_times").is_some_and(|factor| factor >= 1.0),
        rolled_back_share: (new_orders > 0.0).then(|| rolled_back / new_orders),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Histogram;

    fn workload(name: WorkloadName, options: &[(&str, &str)]) -> Workload {
        Workload {
            name,
            imported_as: None,
            tables: None,
            rows: None,
            distribution: "nurand".into(),
            protocol: "binary".into(),
            isolation: None,
            seed: 1,
            loop_kind: Some(scaleprof_vocabulary::LoopWord::Closed),
            options: options.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(),
        }
    }

    fn kinds(counts: &[(TpccTransaction, u64)]) -> Vec<TransactionLatency> {
        let kind = |&(transaction, count): &(TpccTransaction, u64)| TransactionLatency {
            transaction,
            count,
            latency_ms: Histogram::default().latency_ms(),
        };
        counts.iter().map(kind).collect()
    }

    const THROUGHPUT: Estimate = Estimate {
        value: 10.0,
        low: Some(9.0),
        high: None,
    };

    #[test]
    fn tpmc_counts_the_new_orders_of_a_minute_with_those_that_were_rolled_back() {
        let kinds = kinds(&[
            (TpccTransaction::NewOrder, 44),
            (TpccTransaction::Payment, 55),
            (TpccTransaction::NewOrderRolledBack, 1),
        ]);
        let found = figures(
            &workload(WorkloadName::Tpcc, &[("warehouses", "2")]),
            THROUGHPUT,
            &kinds,
        )
        .expect("figures");
        assert!((found.tpmc.value - 270.0).abs() < 1e-9);
        assert_eq!((found.tpmc.low.map(f64::round), found.tpmc.high), (Some(243.0), None));
        assert!((found.nominal_share - 270.0 / 25.72).abs() < 1e-9);
        assert_eq!(found.rolled_back_share, Some(1.0 / 45.0));
        assert!(!found.nominal_is_limit);
    }

    #[test]
    fn the_nominal_bounds_users_who_type_and_read_as_long_as_specified() {
        let kinds = kinds(&[(TpccTransaction::NewOrder, 1)]);
        let limits = |factor: &str| {
            let workload = workload(WorkloadName::Tpcc, &[("warehouses", "1"), ("think_times", factor)]);
            figures(&workload, THROUGHPUT, &kinds).map(|found| found.nominal_is_limit)
        };
        assert_eq!((limits("1"), limits("0.5")), (Some(true), Some(false)));
    }

    #[test]
    fn other_workloads_and_rungs_without_transactions_have_no_tpmc() {
        let some = kinds(&[(TpccTransaction::NewOrder, 1)]);
        assert!(
            figures(
                &workload(WorkloadName::Script, &[("warehouses", "1")]),
                THROUGHPUT,
                &some
            )
            .is_none()
        );
        assert!(figures(&workload(WorkloadName::Tpcc, &[("warehouses", "1")]), THROUGHPUT, &[]).is_none());
        assert!(figures(&workload(WorkloadName::Tpcc, &[]), THROUGHPUT, &some).is_none());
    }
}
