//! Which CPUs the server gets and which the client.
//!
//! A client on the server's CPUs steals from what it measures, so the two are kept apart where there are enough.
//! The rule, for a machine of `n` allowed CPUs:
//!
//! - Fewer than 4: both share all, and the report says so.
//! - Else the client gets about a quarter, in whole cores (hardware threads of one core share its units, so a core
//!   of mixed owners would disturb again), and the server the rest. Never more than half goes to the client.
//! - The client's cores come from the last NUMA node first, so that the server's nodes stay whole. The server's
//!   memory is bound to the nodes its CPUs are on if these are not all nodes of the machine.
//!
//! Only CPUs count that this process may use: its affinity mask, which holds what a control group's cpuset allows.

use crate::cpu_set::CpuSet;
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// One CPU's place in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// The kernel's number of it.
    pub number: u32,
    /// The core it is a hardware thread of; CPUs with the same value share a core.
    pub core: u32,
    /// The NUMA node it is on.
    pub node: u32,
}

/// The online CPUs of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Topology {
    /// In order of their number.
    pub cpus: Vec<Cpu>,
}

impl Topology {
    /// Reads this machine's from /sys.
    pub fn of_this_machine() -> Result<Topology, Error> {
        Topology::read(Path::new("/sys/devices/system"))
    }

    /// Reads a folder that is laid out as /sys/devices/system. What is missing there counts as one core a CPU and
    /// one node for all, as in containers that hide it.
    pub fn read(system: &Path) -> Result<Topology, Error> {
        let list = |path: &Path| {
            fs::read_to_string(path)
                .ok()
                .and_then(|text| text.parse::<CpuSet>().ok())
        };
        let online = match list(&system.join("cpu/online")) {
            Some(online) => online,
            None => CpuSet::allowed()?,
        };
        let mut nodes = BTreeMap::new();
        for node in list(&system.join("node/online")).unwrap_or_default().iter() {
            for cpu in list(&system.join(format!("node/node{node}/cpulist")))
                .unwrap_or_default()
                .iter()
            {
                nodes.insert(cpu, node);
            }
        }
        let core = |cpu: u32| {
            list(&system.join(format!("cpu/cpu{cpu}/topology/thread_siblings_list")))
                .and_then(|siblings| siblings.iter().next())
                .unwrap_or(cpu)
        };
        let cpus = online
            .iter()
            .map(|number| Cpu {
                number,
                core: core(number),
                node: nodes.get(&number).copied().unwrap_or(0),
            })
            .collect();
        Ok(Topology { cpus })
    }

    /// The NUMA nodes that have CPUs.
    pub fn nodes(&self) -> BTreeSet<u32> {
        self.cpus.iter().map(|cpu| cpu.node).collect()
    }

    fn all(&self) -> CpuSet {
        self.cpus.iter().map(|cpu| cpu.number).collect()
    }
}

/// Where the server and the client run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The server's CPUs.
    pub server: CpuSet,
    /// The client's CPUs.
    pub client: CpuSet,
    /// Whether some CPU is in both.
    pub shared: bool,
    /// The NUMA nodes that the server's memory is bound to; none leaves it to the kernel.
    pub memory_nodes: Option<Vec<u32>>,
    /// Whether the server leaves CPUs to the load that both use.
    #[serde(default)]
    pub server_yields: bool,
    /// Why it is so, in a sentence for the report.
    pub reason: String,
}

/// The nice value of a server that yields: a thread of nice 0 has 68 times the weight of its threads
/// (sched(7)). It takes no privilege.
const LOWEST_PRIORITY: i32 = 19;

/// Fewest CPUs that are divided between server and client.
const FEWEST_TO_DIVIDE: usize = 4;

impl Placement {
    /// The placement on this machine: as asked, else by the rule. Where memory cannot be bound to nodes (containers
    /// often forbid it), it is left to the kernel, and `reason` says so.
    pub fn on_this_machine(server: Option<CpuSet>, client: Option<CpuSet>) -> Result<Placement, Error> {
        let topology = Topology::of_this_machine()?;
        let mut placement = Placement::choose(&topology, &CpuSet::allowed()?, server, client)?;
        if let Some(nodes) = &placement.memory_nodes
            && let Err(error) = crate::before_exec::try_binding_memory(nodes)
        {
            let why = format!("; the server's memory could not be bound to its NUMA nodes ({error})");
            placement.reason.push_str(&why);
            placement.memory_nodes = None;
        }
        Ok(placement)
    }

    /// The placement on a machine of this topology of which we may use `allowed`.
    pub fn choose(
        topology: &Topology,
        allowed: &CpuSet,
        server: Option<CpuSet>,
        client: Option<CpuSet>,
    ) -> Result<Placement, Error> {
        let usable = topology.all().within(allowed);
        for asked in [&server, &client].into_iter().flatten() {
            let missing = asked.without(&usable);
            if asked.is_empty() || !missing.is_empty() {
                return Err(Error::CpuList {
                    list: asked.to_string(),
                    reason: if asked.is_empty() {
                        "it names no CPU".to_owned()
                    } else {
                        format!("CPUs {missing} are offline or not allowed here; usable are {usable}")
                    },
                });
            }
        }
        let (server, client, reason) = match (server, client) {
            (Some(server), Some(client)) => (server, client, "as asked".to_owned()),
            (Some(server), None) => {
                let rest = usable.without(&server);
                let client = if rest.is_empty() { usable } else { rest };
                (
                    server,
                    client,
                    "the server's CPUs as asked, the client on the others".to_owned(),
                )
            }
            (None, Some(client)) => {
                let rest = usable.without(&client);
                let server = if rest.is_empty() { usable } else { rest };
                (
                    server,
                    client,
                    "the client's CPUs as asked, the server on the others".to_owned(),
                )
            }
            (None, None) => divide(topology, &usable),
        };
        let nodes = |set: &CpuSet| -> BTreeSet<u32> {
            let cpus = topology.cpus.iter().filter(|cpu| set.contains(cpu.number));
            cpus.map(|cpu| cpu.node).collect()
        };
        let server_nodes = nodes(&server);
        Ok(Placement {
            shared: !server.within(&client).is_empty(),
            memory_nodes: (server_nodes != topology.nodes()).then(|| server_nodes.into_iter().collect()),
            server,
            client,
            server_yields: false,
            reason,
        })
    }

    /// The same with a server that leaves shared CPUs to the load whenever the load has something to do,
    /// for a process that may not give its load priority. Where no CPU is shared there is nothing to leave.
    pub fn with_server_that_yields(mut self) -> Placement {
        self.server_yields = true;
        if self.shared {
            self.reason.push_str(&format!(
                "; without root or CAP_SYS_NICE the server runs at nice {LOWEST_PRIORITY}, so other processes on its \
                 CPUs slow it down"
            ));
        }
        self
    }

    /// The server's nice value, where it is not the one of this process: of one that yields, on CPUs that
    /// the load uses too.
    pub fn server_nice(&self) -> Option<i32> {
        let shared = !self.server.within(&self.client).is_empty();
        (self.server_yields && shared).then_some(LOWEST_PRIORITY)
    }
}

fn divide(topology: &Topology, usable: &CpuSet) -> (CpuSet, CpuSet, String) {
    let shared = |reason: String| (usable.clone(), usable.clone(), reason);
    if usable.len() < FEWEST_TO_DIVIDE {
        return shared(format!(
            "server and client share all {} CPUs, so the client slows the server; {FEWEST_TO_DIVIDE} CPUs or more are divided",
            usable.len()
        ));
    }
    // Cores as (node, core) with their usable CPUs, the last node and core first.
    let mut cores: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(|cpu| usable.contains(cpu.number)) {
        cores.entry((cpu.node, cpu.core)).or_default().push(cpu.number);
    }
    let target = usable.len().div_ceil(4);
    let mut client = BTreeSet::new();
    for threads in cores.values().rev() {
        if client.len() >= target {
            break;
        }
        if client.len() + threads.len() <= usable.len() / 2 {
            client.extend(threads);
        }
    }
    if client.is_empty() {
        return shared(format!(
            "server and client share all {} CPUs: they are too few cores to divide",
            usable.len()
        ));
    }
    let client = CpuSet(client);
    let server = usable.without(&client);
    let reason = format!(
        "{} CPUs for the server and {} for the client, in whole cores",
        server.len(),
        client.len()
    );
    (server, client, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_set::MOST_CPUS;
    use proptest::prelude::*;

    /// A machine of `nodes` x `cores` x `threads`, numbered as Linux does on x86: all first threads, then all second.
    fn machine(nodes: u32, cores: u32, threads: u32) -> Topology {
        let per_round = nodes * cores;
        let cpus = (0..per_round * threads)
            .map(|number| Cpu {
                number,
                core: number % per_round,
                node: number % per_round / cores,
            })
            .collect();
        Topology { cpus }
    }

    fn list(text: &str) -> CpuSet {
        text.parse().expect("a CPU list")
    }

    fn choose(topology: &Topology) -> Placement {
        Placement::choose(topology, &topology.all(), None, None).expect("a placement")
    }

    #[test]
    fn a_server_yields_only_on_cpus_that_the_load_uses_too() {
        let two = choose(&machine(1, 2, 1));
        assert_eq!(two.server_nice(), None);
        let two = two.with_server_that_yields();
        assert_eq!(two.server_nice(), Some(LOWEST_PRIORITY));
        assert!(two.reason.contains("nice 19"), "{}", two.reason);
        let eight = choose(&machine(1, 8, 1));
        let yielding = eight.clone().with_server_that_yields();
        assert_eq!((yielding.server_nice(), &yielding.reason), (None, &eight.reason));
        // As a replica or neighbour on CPUs of the load.
        let server = yielding.client.clone();
        assert_eq!(Placement { server, ..yielding }.server_nice(), Some(LOWEST_PRIORITY));
    }

    #[test]
    fn reads_and_writes_the_kernels_lists() {
        assert_eq!(list("0-3,8").iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
        assert_eq!(list(" 0-3,8\n").to_string(), "0-3,8");
        assert_eq!(list("").to_string(), "");
        for wrong in ["3-1", "a", "1-", "99999999", "-1"] {
            assert!(wrong.parse::<CpuSet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_cpus_are_shared_and_it_is_said() {
        let placement = choose(&machine(1, 2, 1));
        assert!(placement.shared);
        assert_eq!(placement.server, placement.client);
        assert!(placement.reason.contains("share"), "{}", placement.reason);
    }

    #[test]
    fn the_client_gets_a_quarter_in_whole_cores_from_the_last_node() {
        let placement = choose(&machine(1, 8, 2));
        assert_eq!(
            (placement.server.to_string(), placement.client.to_string()),
            ("0-5,8-13".into(), "6-7,14-15".into())
        );
        let placement = choose(&machine(4, 4, 1));
        assert_eq!(
            (placement.server.to_string(), placement.client.to_string()),
            ("0-11".into(), "12-15".into())
        );
        assert_eq!(placement.memory_nodes, Some(vec![0, 1, 2]));
        let placement = choose(&machine(2, 4, 1));
        assert_eq!(
            (placement.client.to_string(), placement.memory_nodes),
            ("6-7".into(), None)
        );
    }

    #[test]
    fn what_is_asked_is_checked_against_what_is_allowed() {
        let topology = machine(1, 4, 1);
        let placement = Placement::choose(&topology, &list("0-2"), Some(list("0")), None).expect("a placement");
        assert_eq!(placement.client, list("1-2"));
        let error = Placement::choose(&topology, &list("0-2"), Some(list("3")), None).expect_err("not allowed");
        assert!(error.to_string().contains("usable are 0-2"), "{error}");
        assert!(Placement::choose(&topology, &list("0-2"), None, Some(list(""))).is_err());
    }

    #[test]
    fn this_machine_has_a_placement() {
        let placement = Placement::on_this_machine(None, None).expect("a placement");
        assert!(!placement.server.is_empty() && !placement.client.is_empty());
    }

    proptest! {
        #[test]
        fn lists_survive_being_written(cpus in proptest::collection::btree_set(0u32..MOST_CPUS, 0..100)) {
            let set = CpuSet(cpus);
            prop_assert_eq!(list(&set.to_string()), set);
        }

        #[test]
        fn divided_sets_are_disjoint_whole_and_in_proportion(
            nodes in 1u32..5, cores in 1u32..33, threads in 1u32..5, hidden in proptest::collection::vec(0u32..256, 0..20)
        ) {
            let topology = machine(nodes, cores, threads);
            let usable = topology.all().without(&hidden.into_iter().collect());
            prop_assume!(!usable.is_empty());
            let placement = Placement::choose(&topology, &usable, None, None).expect("a placement");
            prop_assert!(!placement.server.is_empty() && !placement.client.is_empty());
            if placement.shared {
                prop_assert_eq!(&placement.server, &usable);
                prop_assert_eq!(&placement.client, &usable);
            } else {
                prop_assert!(usable.len() >= FEWEST_TO_DIVIDE);
                prop_assert!(placement.server.within(&placement.client).is_empty());
                prop_assert_eq!(placement.server.len() + placement.client.len(), usable.len());
                prop_assert!(placement.client.len() <= placement.server.len());
                for cpu in topology.cpus.iter().filter(|cpu| usable.contains(cpu.number)) {
                    for other in topology.cpus.iter().filter(|other| usable.contains(other.number)) {
                        let same_side = placement.client.contains(cpu.number) == placement.client.contains(other.number);
                        prop_assert!(cpu.core != other.core || same_side, "core {} is split", cpu.core);
                    }
                }
            }
        }
    }
}
