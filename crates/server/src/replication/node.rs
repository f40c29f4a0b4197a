//! What the servers of a replication are told beside what a server alone is.

use super::{Means, Replication, ReplicationMethod, handover};
use crate::capabilities::Feature;
use crate::error::Error;
use crate::free_port::FreePort;
use crate::product::Product;
use crate::setting::{Origin, Setting};

/// The group's name: a group of ours meets no other, as its members know each other by their ports.
const GROUP_NAME: &str = "5ca1e940-0000-4000-8000-000000000001";

/// Ports on which a node talks with the others, beside that of its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodePorts {
    pub(super) group: u16,
    pub(super) transfer: u16,
}

impl NodePorts {
    /// Ports that are free now, for so many nodes.
    pub(super) fn of(servers: u32) -> Result<Vec<NodePorts>, Error> {
        // All are held until the last is drawn, so that no two are the same.
        let held: Result<Vec<FreePort>, Error> = (0..2 * servers).map(|_| FreePort::draw()).collect();
        let held = held?;
        let pairs = held.chunks_exact(2).map(|pair| NodePorts {
            group: pair[0].number(),
            transfer: pair[1].number(),
        });
        Ok(pairs.collect())
    }
}

/// Settings that are a node's own: neither `--set` nor an option file can give several servers the same.
const OWN: [&str; 8] = [
    "server_id",
    "report_host",
    "wsrep_cluster_address",
    "wsrep_node_address",
    "wsrep_provider_options",
    "group_replication_local_address",
    "group_replication_group_seeds",
    "group_replication_ip_allowlist",
];

/// The settings of a node, by its place from 0, the one that is followed. `users_provider_options` are added to those of Galera's library.
pub(super) fn settings(
    replication: &Replication,
    means: &Means,
    ports: &[NodePorts],
    at: usize,
    users_provider_options: &str,
) -> Vec<Setting> {
    let capabilities = &means.capabilities;
    let is_mariadb = capabilities.product() == Product::MariaDb;
    let mut told: Vec<(&str, String)> = vec![("server_id", (at + 1).to_string())];
    let mut tell = |name: &'static str, value: &str| told.push((name, value.to_owned()));
    if replication.method == ReplicationMethod::Galera {
        tell("binlog_format", "ROW");
        tell("innodb_autoinc_lock_mode", "2");
        tell("wsrep_on", "ON");
        tell("wsrep_cluster_name", "scaleprof");
        tell("wsrep_sst_method", handover::METHOD);
        if let Some(provider) = &means.provider {
            tell("wsrep_provider", &provider.to_string_lossy());
        }
        let all: Vec<String> = ports.iter().map(|node| format!("127.0.0.1:{}", node.group)).collect();
        tell("wsrep_cluster_address", &format!("gcomm://{}", all.join(",")));
        tell("wsrep_node_address", &all[at]);
        let own = ports[at];
        tell(
            "wsrep_provider_options",
            &format!(
                "{users_provider_options};gmcast.listen_addr=tcp://127.0.0.1:{};ist.recv_addr=127.0.0.1:{}",
                own.group, own.transfer
            ),
        );
    } else {
        tell("log_bin", "binlog");
        if !capabilities.has(Feature::RowBinlogByDefault) {
            tell("binlog_format", "ROW");
        }
        if !is_mariadb {
            tell("gtid_mode", "ON");
            tell("enforce_gtid_consistency", "ON");
            if !capabilities.has(Feature::LogReplicaUpdatesByDefault) {
                tell("log_slave_updates", "ON");
            }
        }
    }
    for plugin in &means.plugins {
        tell("plugin_load_add", plugin);
    }
    if replication.method == ReplicationMethod::Group {
        tell("group_replication_group_name", GROUP_NAME);
        tell("group_replication_start_on_boot", "OFF");
        tell("group_replication_recovery_get_public_key", "ON");
        tell("report_host", "127.0.0.1");
        let all: Vec<String> = ports.iter().map(|node| format!("127.0.0.1:{}", node.group)).collect();
        tell("group_replication_local_address", &all[at]);
        tell("group_replication_group_seeds", &all.join(","));
        // The group's port is open on every interface: who is no member is turned away.
        tell("group_replication_ip_allowlist", "127.0.0.1/32");
    } else if at > 0 && replication.method.reads_binary_log() {
        tell("read_only", "ON");
    }
    let told = told.into_iter().map(|(name, value)| Setting {
        name: name.to_owned(),
        value: Some(value),
        origin: if OWN.contains(&name) {
            Origin::Place
        } else {
            Origin::Pinned
        },
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::Capabilities;
    use crate::product::Version;

    const PORTS: [NodePorts; 2] = [
        NodePorts {
            group: 1001,
            transfer: 1002,
        },
        NodePorts {
            group: 2001,
            transfer: 2002,
        },
    ];

    fn told(method: ReplicationMethod, product: Product, version: Version, at: usize) -> Vec<String> {
        let means = Means {
            capabilities: Capabilities::of(product, version),
            plugins: Vec::new(),
            provider: Some("/usr/lib/galera/libgalera_smm.so".into()),
        };
        let replication = Replication { method, replicas: 1 };
        let settings = settings(&replication, &means, &PORTS, at, "gcs.fc_limit=64").into_iter();
        settings
            .map(|setting| format!("{}={}", setting.name, setting.value.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn old_servers_are_told_what_new_ones_do_by_themselves() {
        use ReplicationMethod::Asynchronous;
        let old = told(Asynchronous, Product::MySql, Version::new(5, 6, 14), 1);
        for needed in [
            "log_bin=binlog",
            "gtid_mode=ON",
            "log_slave_updates=ON",
            "binlog_format=ROW",
            "read_only=ON",
        ] {
            assert!(old.contains(&needed.to_owned()), "{needed} in {old:?}");
        }
        let new = told(Asynchronous, Product::MySql, Version::new(9, 7, 0), 0);
        assert!(
            !new.iter()
                .any(|setting| setting.starts_with("log_slave") || setting.starts_with("binlog_format"))
        );
        assert!(!new.contains(&"read_only=ON".to_owned()), "the source is written to");
        let mariadb = told(Asynchronous, Product::MariaDb, Version::new(10, 11, 6), 0);
        assert!(!mariadb.iter().any(|setting| setting.starts_with("gtid_mode")));
    }

    #[test]
    fn every_node_of_a_group_has_its_own_address_and_knows_all() {
        let node = |at| told(ReplicationMethod::Galera, Product::MariaDb, Version::new(10, 11, 6), at);
        assert!(node(1).contains(&"wsrep_cluster_address=gcomm://127.0.0.1:1001,127.0.0.1:2001".to_owned()));
        assert!(node(1).contains(&"wsrep_node_address=127.0.0.1:2001".to_owned()));
        let options = node(0)
            .into_iter()
            .find(|setting| setting.starts_with("wsrep_provider_options="))
            .unwrap();
        assert!(
            options.contains("gcs.fc_limit=64;gmcast.listen_addr=tcp://127.0.0.1:1001;"),
            "{options}"
        );
        assert!(node(0).contains(&"server_id=1".to_owned()) && node(1).contains(&"server_id=2".to_owned()));
        let member = told(ReplicationMethod::Group, Product::MySql, Version::new(8, 0, 36), 1);
        assert!(
            member.contains(&"group_replication_local_address=127.0.0.1:2001".to_owned()),
            "{member:?}"
        );
    }
}
