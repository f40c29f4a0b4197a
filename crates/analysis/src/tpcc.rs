//! What TPC-C counts beside transactions of all kinds: New-Orders per minute.

use scaleprof_bundle::{Estimate, RungSummary, TpccFigures, Workload};

/// tpmC of a warehouse whose ten users read and type as long as the specification has it (clause 4.2.2).
const NOMINAL: f64 = 12.86;

/// The figures of a rung; none for another workload, and where no transaction was counted.
pub(crate) fn figures(workload: &Workload, rung: &RungSummary) -> Option<TpccFigures> {
    let option = |wanted: &str| {
        let found = workload.options.iter().find(|(name, _)| name == wanted);
        found.and_then(|(_, value)| value.parse::<f64>().ok())
    };
    let warehouses = option("warehouses").filter(|_| workload.name == "tpcc")?;
    let count = |name: &str| {
        let of_kind = rung.transactions.iter().filter(|one| one.transaction == name);
        of_kind.map(|one| one.count as f64).sum::<f64>()
    };
    let all: f64 = rung.transactions.iter().map(|one| one.count as f64).sum();
    let rolled_back = count("new_order_rolled_back");
    let new_orders = count("new_order") + rolled_back;
    // The deck of cards fixes their share: what scatters is throughput.
    let per_minute = 60.0 * new_orders / all;
    let tpmc = Estimate {
        value: rung.throughput.value * per_minute,
        low: rung.throughput.low.map(|low| low * per_minute),
        high: rung.throughput.high.map(|high| high * per_minute),
    };
    (all > 0.0 && warehouses > 0.0).then_some(TpccFigures {
        tpmc,
        nominal_share: tpmc.value / (NOMINAL * warehouses),
        nominal_is_limit: option("think_times").is_some_and(|factor| factor >= 1.0),
        rolled_back_share: (new_orders > 0.0).then(|| rolled_back / new_orders),
    })
}
