//! What of a server's archive is not kept: test suites, the embedded server, manuals. They are two thirds of the size.

use std::path::Path;

/// Folders that hold nothing which a server needs to run.
const FOLDERS: [&str; 3] = ["mysql-test", "mariadb-test", "sql-bench"];

/// The same in the packages of distributions, from the top.
const PACKAGE_FOLDERS: [&str; 5] = [
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bug",
    "etc/init.d",
];

/// Whether an entry of an archive is left out.
pub(crate) fn leaves_out(place: &Path) -> bool {
    let in_folder = place.iter().any(|part| FOLDERS.iter().any(|folder| part == *folder));
    let of_package = PACKAGE_FOLDERS.iter().any(|folder| place.starts_with(folder));
    let file = place.file_name().unwrap_or_default().to_string_lossy();
    let above = place.parent().and_then(Path::file_name).unwrap_or_default();
    let embedded = (above == "bin" && file.contains("embedded"))
        || (above == "lib"
            && (file.starts_with("libmysqld.") || file.starts_with("libmysqld-") || file.starts_with("libmariadbd.")));
    in_folder || of_package || embedded
}

/// Whether an entry of the package with the service is kept: only the list of the stripped server's symbols.
pub(crate) fn is_symbol_list(place: &Path) -> bool {
    place.to_string_lossy().ends_with(".sym.gz")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_their_messages_stay_tests_and_the_embedded_server_go() {
        for kept in [
            "mysql-5.6.14/bin/mysqld",
            "x/share/english/errmsg.sys",
            "usr/share/doc/mysql-server/mysqld.sym.gz",
            "lib/plugin/semisync_master.so",
            "lib/libmysqlclient.so",
        ] {
            assert!(!leaves_out(Path::new(kept)), "{kept}");
        }
        for dropped in [
            "mysql-5.6.14/mysql-test/t/1st.test",
            "bin/mysqltest_embedded",
            "x/lib/libmysqld.a",
            "x/lib/libmysqld-debug.a",
            "usr/share/man/man8/mysqld.8.gz",
        ] {
            assert!(leaves_out(Path::new(dropped)), "{dropped}");
        }
    }
}
