//! The rung that others are held against.

/// Of some rungs the one that costs least, the first of equals; those without a known cost are passed over. What counts as
/// the cost depends on what is compared: CPU time per transaction, or the connections' time per transaction, of which the
/// least is the best throughput per connection (the base rung of the thread ledger, DESIGN section 2).
pub(crate) fn cheapest<T>(rungs: impl IntoIterator<Item = T>, cost: impl Fn(&T) -> Option<f64>) -> Option<T> {
    let known = rungs.into_iter().filter_map(|rung| {
        let cost = cost(&rung)?;
        Some((rung, cost))
    });
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(rung, _)| rung)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_least_known_costs_counts() {
        let costs = [None, Some(3.0), Some(2.0), Some(2.0), None];
        assert_eq!(cheapest(0..5, |rung: &usize| costs[*rung]), Some(2));
        assert_eq!(cheapest(0..1, |rung: &usize| costs[*rung]), None);
    }
}
