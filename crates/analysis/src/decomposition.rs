//! Why throughput differs between two rungs: the change of its logarithm by the factors of the iron law.

use scaleprof_bundle::{Decomposition, IronLaw};

/// A rung for the decomposition.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Connections.
    pub connections: u32,
    /// Transactions per second.
    pub throughput: f64,
    /// Its iron law.
    pub law: &'a IronLaw,
}

/// ln X(to) - ln X(from) by its parts. Utilisation, CPU seconds and residual add up to the whole;
/// clock, instructions and cycles per instruction add up to CPU seconds (they are given only where
/// both rungs have hardware counters). None where a factor is not above 0.
pub fn decompose(from: Side<'_>, to: Side<'_>) -> Option<Decomposition> {
    let change = |a: f64, b: f64| Some((b / a).ln()).filter(|v| a > 0.0 && b > 0.0 && v.is_finite());
    let optional = |a: Option<f64>, b: Option<f64>| a.zip(b).and_then(|(a, b)| change(a, b));
    let (a, b) = (from.law, to.law);
    let throughput = change(from.throughput, to.throughput)?;
    let utilisation = change(a.utilisation * a.cpus, b.utilisation * b.cpus)?;
    let cpu_seconds = -change(a.cpu_seconds_per_txn, b.cpu_seconds_per_txn)?;
    let parts = optional(a.clock_hz, b.clock_hz)
        .zip(optional(a.instructions_per_txn, b.instructions_per_txn))
        .zip(optional(a.cycles_per_instruction, b.cycles_per_instruction));
    Some(Decomposition {
        from: from.connections,
        to: to.connections,
        throughput,
        utilisation,
        clock: parts.map(|((clock, _), _)| clock),
        instructions: parts.map(|((_, instructions), _)| -instructions),
        cycles_per_instruction: parts.map(|(_, cycles)| -cycles),
        cpu_seconds,
        residual: throughput - utilisation - cpu_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn law(u: f64, f: f64, i: f64, k: f64) -> IronLaw {
        IronLaw {
            cpus: 2.0,
            utilisation: u,
            clock_hz: Some(f),
            instructions_per_txn: Some(i),
            cycles_per_instruction: Some(k),
            cpu_seconds_per_txn: i * k / f,
            system_share: None,
            residual: None,
            residual_sources: None,
        }
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_whole(
            a in (0.01..1.0f64, 1e9..5e9f64, 1e3..1e8f64, 0.2..5.0f64, 0.5..2.0f64),
            b in (0.01..1.0f64, 1e9..5e9f64, 1e3..1e8f64, 0.2..5.0f64, 0.5..2.0f64),
        ) {
            let (la, lb) = (law(a.0, a.1, a.2, a.3), law(b.0, b.1, b.2, b.3));
            let side = |law, connections, throughput| Side { connections, throughput, law };
            // What the law says times what it leaves over.
            let throughput = |law: &IronLaw, left_over: f64| law.cpus * law.utilisation / law.cpu_seconds_per_txn * left_over;
            let (xa, xb) = (throughput(&la, a.4), throughput(&lb, b.4));
            let d = decompose(side(&la, 1, xa), side(&lb, 2, xb)).unwrap();
            let parts = d.clock.unwrap() + d.instructions.unwrap() + d.cycles_per_instruction.unwrap();
            prop_assert!((parts - d.cpu_seconds).abs() < 1e-9);
            prop_assert!((d.residual - (b.4 / a.4).ln()).abs() < 1e-9);
            prop_assert!((d.throughput - (xb / xa).ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn without_hardware_counters_only_cpu_seconds_are_named() {
        let mut bare = law(0.9, 2e9, 1e6, 1.0);
        bare.clock_hz = None;
        let d = decompose(
            Side {
                connections: 1,
                throughput: 10.0,
                law: &law(0.9, 2e9, 1e6, 1.0),
            },
            Side {
                connections: 8,
                throughput: 5.0,
                law: &bare,
            },
        );
        let d = d.unwrap();
        assert_eq!((d.clock, d.instructions), (None, None));
        assert!((d.residual - 0.5f64.ln()).abs() < 1e-12);
    }
}
