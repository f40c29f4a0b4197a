//! Who used the machine's CPUs.

use crate::totals::Total;
use std::collections::BTreeMap;

/// CPUs that `who` used, by the kernel's account of user and system time.
pub(crate) fn cpu_rate(sums: &BTreeMap<String, Total>, who: &str) -> Option<f64> {
    let rate = |what: &str| {
        sums.get(&format!("{who}.cpu_{what}_seconds"))
            .and_then(Total::per_second)
    };
    Some(rate("user")? + rate("system")?)
}

/// From this part of the CPUs on they count as busy: whoever waits then loses nothing by it, since somebody else runs.
pub(crate) const BUSY: f64 = 0.9;

/// Parts of the CPU time of all CPUs.
pub(crate) struct MachineShares {
    /// In which a CPU was not idle.
    pub busy: Option<f64>,
    /// Of other programs than the server, the client and the servers that were started beside it.
    pub other: Option<f64>,
    /// That the hypervisor took.
    pub steal: Option<f64>,
}

impl MachineShares {
    pub(crate) fn of(sums: &BTreeMap<String, Total>) -> MachineShares {
        let rate = |what: &str| {
            sums.get(&format!("machine.cpu_{what}_seconds"))
                .and_then(Total::per_second)
        };
        let optional = |what: &str| rate(what).unwrap_or(0.0);
        let Some((busy, idle)) = cpu_rate(sums, "machine").zip(rate("idle")) else {
            return MachineShares {
                busy: None,
                other: None,
                steal: None,
            };
        };
        let busy = busy + optional("irq");
        let all = busy + idle + optional("iowait") + optional("steal");
        // Replicas and neighbours that we started, where there are some.
        let beside = cpu_rate(sums, "topology").unwrap_or(0.0);
        let ours = cpu_rate(sums, "server").zip(cpu_rate(sums, "client"));
        MachineShares {
            busy: (all > 0.0).then(|| 1.0 - (idle + optional("iowait")) / all),
            // Interrupts are charged to no process, so a little is left even on a quiet machine.
            other: ours
                .filter(|_| all > 0.0)
                .map(|(server, client)| ((busy - server - client - beside) / all).max(0.0)),
            steal: rate("steal").filter(|_| all > 0.0).map(|steal| steal / all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MachineShares;
    use crate::totals::{Amount, Total};
    use std::collections::BTreeMap;

    #[test]
    fn what_the_server_the_client_and_servers_beside_it_use_is_not_of_other_programs() {
        let over = Amount {
            seconds: 10.0,
            transactions: 1.0,
        };
        let seconds = [
            ("machine.cpu_user_seconds", 12.0),
            ("machine.cpu_system_seconds", 3.0),
            ("machine.cpu_irq_seconds", 1.0),
            ("machine.cpu_idle_seconds", 3.0),
            ("machine.cpu_steal_seconds", 1.0),
            ("server.cpu_user_seconds", 4.0),
            ("server.cpu_system_seconds", 1.0),
            ("client.cpu_user_seconds", 2.0),
            ("client.cpu_system_seconds", 1.0),
            ("topology.cpu_user_seconds", 3.0),
            ("topology.cpu_system_seconds", 1.0),
        ];
        let total = |value| Total {
            value,
            over,
            running_share: 1.0,
        };
        let sums: BTreeMap<String, Total> = seconds
            .iter()
            .map(|(name, value)| ((*name).to_owned(), total(*value)))
            .collect();
        let shares = MachineShares::of(&sums);
        let near = |share: Option<f64>, expected: f64| share.is_some_and(|share| (share - expected).abs() < 1e-9);
        assert!(
            near(shares.other, (16.0 - 5.0 - 3.0 - 4.0) / 20.0),
            "{:?}",
            shares.other
        );
        assert!(near(shares.busy, 17.0 / 20.0), "{:?}", shares.busy);
        assert!(near(shares.steal, 1.0 / 20.0), "{:?}", shares.steal);
    }
}
