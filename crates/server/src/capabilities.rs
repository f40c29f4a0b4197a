//! What each server version can do, in one table. Whoever needs to know asks [`Capabilities::has`]; no other file
//! compares versions.
//!
//! Sources: the "Server Option, System Variable, and Status Variable Reference" of the MySQL 5.6 to 9 manuals and
//! "What Is New in MySQL x.y"; the MariaDB knowledge base's page of each variable; dbdeployer's capability table.

use crate::identify::{Installation, SYSTEM_TABLE_SCRIPTS};
use crate::product::{Product, Version};

/// Something that some versions have and others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// `--bootstrap` takes the system tables' SQL on standard input.
    Bootstrap,
    /// `--initialize-insecure` makes a data folder whose root has no password.
    InitializeInsecure,
    /// The X plugin listens on port 33060 unless told not to.
    MysqlX,
    /// There is a query cache to be switched off.
    QueryCache,
    /// The redo log's size is `innodb_redo_log_capacity`.
    RedoLogCapacity,
    /// The redo log is a ring of `innodb_log_files_in_group` files.
    LogFilesInGroup,
    /// The binary log is on unless told not to.
    BinlogByDefault,
    /// `performance_schema` is on unless told not to.
    PerformanceSchemaByDefault,
    /// The isolation level's variable is `transaction_isolation`, not `tx_isolation`. (The option on the command
    /// line has the long name everywhere.)
    TransactionIsolationVariable,
    /// New accounts authenticate with `caching_sha2_password`.
    CachingSha2ByDefault,
    /// Accounts with `mysql_native_password` can log in.
    NativePassword,
    /// `mysql_native_password` is there, but off unless `--mysql-native-password=ON`.
    NativePasswordOnRequest,
    /// The buffer pool's page list is written at shutdown and read at start-up.
    BufferPoolDump,
    /// `innodb_file_per_table` is off unless set.
    SharedTablespaceByDefault,
    /// The statement `SHUTDOWN`.
    ShutdownStatement,
    /// A data folder holds an `auto.cnf` with the server's identity, which a copy must not share.
    AutoCnf,
    /// Transactions have global identifiers, by which a replica finds where to go on.
    GlobalTransactionIds,
    /// The binary log has rows, not statements, unless told otherwise.
    RowBinlogByDefault,
    /// A replica writes what it replays to its own binary log unless told not to.
    LogReplicaUpdatesByDefault,
    /// Statements say SOURCE and REPLICA; before, MASTER and SLAVE.
    SourceAndReplicaWords,
    /// Semi-synchronous replication is part of the server, not a plugin.
    SemiSyncBuiltIn,
    /// The plugins of semi-synchronous replication, and their settings, say source and replica.
    SemiSyncSourceWords,
    /// Group Replication that is set up by statements that say SOURCE.
    GroupReplication,
    /// Galera 4, part of the server but for its library.
    Galera,
}

/// The versions of one product from the first on and before the second.
type Range = (Product, Version, Version);

const fn v(major: u16, minor: u16, patch: u16) -> Version {
    Version::new(major, minor, patch)
}
const EVER: Version = v(0, 0, 0);
const NEVER: Version = v(u16::MAX, 0, 0);

use Product::{MariaDb, MySql};

/// Percona Server stands in no row: it has what MySQL of the same version has.
const TABLE: &[(Feature, &[Range])] = &[
    // MySQL 5.7 still takes --bootstrap, but brings its system tables compiled in and no script to feed.
    (Feature::Bootstrap, &[(MySql, EVER, v(5, 7, 0)), (MariaDb, EVER, NEVER)]),
    (Feature::InitializeInsecure, &[(MySql, v(5, 7, 6), NEVER)]),
    (Feature::MysqlX, &[(MySql, v(8, 0, 11), NEVER)]),
    (
        Feature::QueryCache,
        &[(MySql, EVER, v(8, 0, 3)), (MariaDb, EVER, NEVER)],
    ),
    (Feature::RedoLogCapacity, &[(MySql, v(8, 0, 30), NEVER)]),
    (
        Feature::LogFilesInGroup,
        &[(MySql, EVER, v(8, 0, 30)), (MariaDb, EVER, v(10, 5, 0))],
    ),
    (Feature::BinlogByDefault, &[(MySql, v(8, 0, 3), NEVER)]),
    (Feature::PerformanceSchemaByDefault, &[(MySql, v(5, 6, 6), NEVER)]),
    (
        Feature::TransactionIsolationVariable,
        &[(MySql, v(5, 7, 20), NEVER), (MariaDb, v(11, 1, 1), NEVER)],
    ),
    (Feature::CachingSha2ByDefault, &[(MySql, v(8, 0, 4), NEVER)]),
    (
        Feature::NativePassword,
        &[(MySql, EVER, v(9, 0, 0)), (MariaDb, EVER, NEVER)],
    ),
    (Feature::NativePasswordOnRequest, &[(MySql, v(8, 4, 0), v(9, 0, 0))]),
    (
        Feature::BufferPoolDump,
        &[(MySql, v(5, 6, 3), NEVER), (MariaDb, v(10, 0, 0), NEVER)],
    ),
    (
        Feature::SharedTablespaceByDefault,
        &[(MySql, EVER, v(5, 6, 6)), (MariaDb, EVER, v(5, 6, 0))],
    ),
    (
        Feature::ShutdownStatement,
        &[(MySql, v(5, 7, 9), NEVER), (MariaDb, v(10, 0, 4), NEVER)],
    ),
    (Feature::AutoCnf, &[(MySql, v(5, 6, 0), NEVER)]),
    (
        Feature::GlobalTransactionIds,
        &[(MySql, v(5, 6, 10), NEVER), (MariaDb, v(10, 0, 2), NEVER)],
    ),
    (Feature::RowBinlogByDefault, &[(MySql, v(5, 7, 7), NEVER)]),
    (Feature::LogReplicaUpdatesByDefault, &[(MySql, v(8, 0, 3), NEVER)]),
    (Feature::SourceAndReplicaWords, &[(MySql, v(8, 0, 23), NEVER)]),
    (Feature::SemiSyncBuiltIn, &[(MariaDb, v(10, 3, 3), NEVER)]),
    (Feature::SemiSyncSourceWords, &[(MySql, v(8, 0, 26), NEVER)]),
    (Feature::GroupReplication, &[(MySql, v(8, 0, 23), NEVER)]),
    (Feature::Galera, &[(MariaDb, v(10, 4, 0), NEVER)]),
];

/// The oldest versions that were ever meant to work.
const OLDEST: [(Product, Version); 2] = [(MySql, v(5, 5, 0)), (MariaDb, v(5, 5, 0))];

/// The scripts of a bootstrap, in order. Each is given by all its names, of which the first that exists is used;
/// the second field says whether it may be missing.
const BOOTSTRAP_SCRIPTS: [(&[&str], bool); 5] = [
    (&SYSTEM_TABLE_SCRIPTS, false),
    (
        &["mariadb_performance_tables.sql", "mysql_performance_tables.sql"],
        true,
    ),
    (
        &["mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"],
        false,
    ),
    (&["maria_add_gis_sp_bootstrap.sql"], true),
    (&["mariadb_sys_schema.sql", "mysql_sys_schema.sql"], true),
];

/// How an empty data folder gets its system tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initialise {
    /// The server makes them itself: `--initialize-insecure`.
    Itself,
    /// The server runs these scripts: `--bootstrap`, with the statements before, the files, and those after on its
    /// standard input.
    Bootstrap {
        /// Lines before the scripts, one statement each.
        before: String,
        /// The scripts.
        scripts: Vec<std::path::PathBuf>,
        /// Lines after the scripts, one statement each.
        after: String,
    },
}

/// What one server can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    product: Product,
    version: Version,
}

impl Capabilities {
    /// What this product can do in this version.
    pub fn of(product: Product, version: Version) -> Self {
        Capabilities {
            product: match product {
                Product::Percona => MySql,
                other => other,
            },
            version,
        }
    }

    /// Who makes it; Percona's server counts as the MySQL that it is built from.
    pub fn product(&self) -> Product {
        self.product
    }

    /// Whether the server has the feature.
    pub fn has(&self, feature: Feature) -> bool {
        TABLE
            .iter()
            .filter(|(row, _)| *row == feature)
            .flat_map(|(_, ranges)| ranges.iter())
            .any(|(product, from, until)| *product == self.product && (*from..*until).contains(&self.version))
    }

    /// Whether the version is one that can be run at all.
    pub fn is_supported(&self) -> bool {
        OLDEST
            .iter()
            .any(|(product, oldest)| *product == self.product && self.version >= *oldest)
    }

    /// The name under which SHOW VARIABLES has the isolation level.
    pub fn isolation_variable(&self) -> &'static str {
        if self.has(Feature::TransactionIsolationVariable) {
            "transaction_isolation"
        } else {
            "tx_isolation"
        }
    }

    /// The settings that make a redo log of this many bytes.
    pub fn redo_log(&self, bytes: u64) -> Vec<(&'static str, String)> {
        if self.has(Feature::RedoLogCapacity) {
            vec![("innodb_redo_log_capacity", bytes.to_string())]
        } else if self.has(Feature::LogFilesInGroup) {
            vec![
                ("innodb_log_files_in_group", "2".to_owned()),
                ("innodb_log_file_size", (bytes / 2).to_string()),
            ]
        } else {
            vec![("innodb_log_file_size", bytes.to_string())]
        }
    }

    /// The settings that switch off what would stand between the statements and the engine, or listen where it was
    /// not asked to, in the versions that have it.
    pub fn switched_off(&self) -> Vec<(&'static str, &'static str)> {
        let mut off = Vec::new();
        if self.has(Feature::QueryCache) {
            // The size matters too: a cache of type 0 but with a size still takes its mutex in 5.x.
            off.extend([("query_cache_type", "0"), ("query_cache_size", "0")]);
        }
        if self.has(Feature::MysqlX) {
            // Builds without the X plugin exist.
            off.push(("loose_mysqlx", "OFF"));
        }
        if self.has(Feature::BufferPoolDump) {
            // Reading pages in the background of the first rung would be measured with it.
            off.extend([
                ("innodb_buffer_pool_dump_at_shutdown", "OFF"),
                ("innodb_buffer_pool_load_at_startup", "OFF"),
            ]);
        }
        off
    }

    /// How to make the system tables with this installation, or what is missing for it.
    pub fn initialise(&self, installation: &Installation) -> Result<Initialise, String> {
        if self.has(Feature::InitializeInsecure) {
            // Its only account is root@localhost: over TCP nobody has one who was not given it.
            return Ok(Initialise::Itself);
        }
        if !self.has(Feature::Bootstrap) {
            return Err(format!("versions before {} cannot be initialised", v(5, 7, 6)));
        }
        let share = installation.share.as_ref().ok_or_else(|| {
            format!(
                "there is no {} under {}/share, from which its data folder would be made; unpack the whole archive \
                 or package",
                SYSTEM_TABLE_SCRIPTS.join(" or "),
                installation.basedir.display()
            )
        })?;
        let mut scripts = Vec::new();
        for (names, optional) in BOOTSTRAP_SCRIPTS {
            match names
                .iter()
                .map(|name| share.join(name))
                .find(|script| script.is_file())
            {
                Some(script) => scripts.push(script),
                None if optional => {}
                None => return Err(format!("there is no {} in {}", names.join(" or "), share.display())),
            }
        }
        Ok(Initialise::Bootstrap {
            // MariaDB's scripts make root an account without password when the variable is NULL.
            before: "create database if not exists mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n".to_owned(),
            scripts,
            // Without a password there is to be no way in but the socket, whose folder is ours. Old scripts make accounts without a
            // name too, which would shadow others on the same host.
            after: match self.product {
                MySql => "delete from mysql.user where user='' or (user='root' and host<>'localhost');\n".to_owned(),
                _ if self.version >= v(10, 4, 0) => {
                    "delete from mysql.global_priv where user='root' and host<>'localhost';\n".to_owned()
                }
                _ => "delete from mysql.user where user='root' and host<>'localhost';\n".to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Feature::*;
    use super::*;

    fn has(product: Product, version: (u16, u16, u16), feature: Feature) -> bool {
        Capabilities::of(product, v(version.0, version.1, version.2)).has(feature)
    }

    #[test]
    fn every_feature_stands_in_one_row() {
        for (feature, ranges) in TABLE {
            assert_eq!(
                TABLE.iter().filter(|(other, _)| other == feature).count(),
                1,
                "{feature:?}"
            );
            for (_, from, until) in *ranges {
                assert!(from < until, "{feature:?}");
            }
        }
    }

    #[test]
    fn mysql_initialises_itself_from_5_7_6_on_and_percona_alike() {
        for product in [Product::MySql, Product::Percona] {
            assert!(!has(product, (5, 6, 51), InitializeInsecure));
            assert!(has(product, (5, 6, 51), Bootstrap));
            assert!(has(product, (5, 7, 44), InitializeInsecure));
            assert!(has(product, (9, 7, 4), InitializeInsecure));
            assert!(!has(product, (9, 7, 4), Bootstrap));
        }
        assert!(!has(Product::MariaDb, (11, 8, 6), InitializeInsecure));
        assert!(has(Product::MariaDb, (11, 8, 6), Bootstrap));
    }

    #[test]
    fn the_redo_log_has_the_asked_size_under_each_name() {
        let redo = |product, version: (u16, u16, u16)| {
            Capabilities::of(product, v(version.0, version.1, version.2)).redo_log(1 << 30)
        };
        assert_eq!(
            redo(Product::Percona, (8, 0, 36)),
            [("innodb_redo_log_capacity", "1073741824".into())]
        );
        assert_eq!(
            redo(Product::MariaDb, (11, 4, 2)),
            [("innodb_log_file_size", "1073741824".into())]
        );
        assert_eq!(
            redo(Product::MySql, (5, 6, 14)),
            [
                ("innodb_log_files_in_group", "2".into()),
                ("innodb_log_file_size", "536870912".into())
            ]
        );
        assert_eq!(redo(Product::MariaDb, (10, 4, 34)).len(), 2);
    }

    #[test]
    fn the_isolation_variable_has_the_name_that_the_version_knows() {
        let name = |product, version: (u16, u16, u16)| {
            Capabilities::of(product, v(version.0, version.1, version.2)).isolation_variable()
        };
        assert_eq!(name(Product::MySql, (5, 6, 14)), "tx_isolation");
        assert_eq!(name(Product::Percona, (5, 7, 30)), "transaction_isolation");
        assert_eq!(name(Product::MariaDb, (10, 11, 6)), "tx_isolation");
        assert_eq!(name(Product::MariaDb, (11, 8, 6)), "transaction_isolation");
    }

    #[test]
    fn native_passwords_went_in_two_steps() {
        assert!(has(Product::MySql, (8, 0, 40), NativePassword));
        assert!(!has(Product::MySql, (8, 0, 40), NativePasswordOnRequest));
        assert!(has(Product::Percona, (8, 4, 3), NativePasswordOnRequest));
        assert!(!has(Product::MySql, (9, 0, 0), NativePassword));
        assert!(has(Product::MariaDb, (11, 8, 6), NativePassword));
    }

    #[test]
    fn only_what_a_version_has_is_switched_off() {
        let names = |product, version: (u16, u16, u16)| -> Vec<&str> {
            let off = Capabilities::of(product, v(version.0, version.1, version.2)).switched_off();
            off.into_iter().map(|(name, _)| name).collect()
        };
        assert!(names(Product::MySql, (5, 6, 14)).contains(&"query_cache_size"));
        assert!(!names(Product::MySql, (9, 7, 4)).contains(&"query_cache_size"));
        assert!(names(Product::MySql, (9, 7, 4)).contains(&"loose_mysqlx"));
        assert!(!names(Product::MariaDb, (11, 8, 6)).contains(&"loose_mysqlx"));
        assert_eq!(
            names(Product::MySql, (5, 5, 62)),
            ["query_cache_type", "query_cache_size"]
        );
    }

    #[test]
    fn what_is_too_old_is_said_to_be() {
        assert!(!Capabilities::of(Product::MySql, v(5, 1, 73)).is_supported());
        assert!(Capabilities::of(Product::Percona, v(5, 6, 51)).is_supported());
        assert!(Capabilities::of(Product::MariaDb, v(10, 3, 39)).is_supported());
    }
}
