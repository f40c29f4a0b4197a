//! Which processes of this machine are servers.

use std::path::Path;

/// The name of a process; none where there is no such process.
pub(crate) fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Whether processes of that name are servers that we know. The whole name: `mysqld_safe`,
/// `mysqld_exporter` and the client `mariadb` are none.
pub(crate) fn is_server(name: &str) -> bool {
    ["mysqld", "mariadbd", "mysqld-debug", "mariadbd-debug"].contains(&name)
}

/// A server's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningServer {
    /// Its number.
    pub pid: u32,
    /// What its main thread is called.
    pub name: String,
}

/// Whether a process has ended, by what `/proc/PID/stat` says of it; a zombie has.
pub(crate) fn is_ended(stat: &str) -> bool {
    stat.rsplit_once(") ")
        .is_none_or(|(_, state)| state.is_empty() || state.starts_with(['Z', 'X']))
}

/// The processes here that have the name of a server and have not ended, by number. Those of other
/// users may be hidden (`hidepid`).
#[must_use]
pub fn running_servers() -> Vec<RunningServer> {
    servers_in(Path::new("/proc"))
}

/// Those that a folder such as `/proc` tells of.
fn servers_in(processes: &Path) -> Vec<RunningServer> {
    let entries = std::fs::read_dir(processes).into_iter().flatten().flatten();
    let mut servers: Vec<RunningServer> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(entry.path().join("stat")).ok()?;
            let stat = String::from_utf8_lossy(&stat);
            let (before, _) = stat.rsplit_once(") ")?;
            let name = before.split_once('(')?.1.to_owned();
            (is_server(&name) && !is_ended(&stat)).then_some(RunningServer { pid, name })
        })
        .collect();
    servers.sort_unstable_by_key(|server| server.pid);
    servers
}

#[cfg(test)]
mod tests {
    use super::servers_in;
    use std::fs;

    #[test]
    fn servers_are_those_of_the_whole_name_that_have_not_ended() {
        let place = tempfile::tempdir().expect("a folder");
        let processes = [
            (9, "mariadbd", 'S'),
            (10, "mysqld", 'S'),
            (11, "mysqld", 'Z'),
            (12, "mysqld_exporter", 'S'),
            (13, "mysqld_safe", 'S'),
            (14, "mariadb", 'S'),
            (15, "x) (mysqld", 'S'),
        ];
        assert_eq!(servers_in(place.path()), []);
        for (pid, name, state) in processes {
            let folder = place.path().join(pid.to_string());
            fs::create_dir(&folder).expect("made");
            fs::write(folder.join("stat"), format!("{pid} ({name}) {state} 1 1 1 0 -1")).expect("written");
        }
        fs::create_dir(place.path().join("self")).expect("made");
        let found: Vec<u32> = servers_in(place.path()).iter().map(|server| server.pid).collect();
        assert_eq!(found, [9, 10]);
    }
}
