//! Which of the server's threads serve the load.

use std::collections::HashMap;

use scaleprof_profile::Role;

/// What a thread did in a visit, as far as it tells whom it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadUse {
    pub thread: u32,
    pub cpu_ns: u64,
    /// Time that it waited for a socket.
    pub net_ns: u64,
}

/// The role of every thread of the process `pid` in a visit with `connections`.
///
/// A thread that waits for a socket serves a connection; the first thread of a server only waits for new ones. The load's
/// connections are the busiest of these: our own ask the server once a second, idle ones never. With a thread pool there are
/// fewer such threads than connections, and all of them serve the load.
pub(crate) fn roles(pid: u32, connections: u32, threads: &[ThreadUse]) -> HashMap<u32, Role> {
    let serves = |thread: &&ThreadUse| thread.net_ns > 0 && thread.thread != pid;
    let mut serving: Vec<&ThreadUse> = threads.iter().filter(serves).collect();
    serving.sort_by_key(|thread| (std::cmp::Reverse(thread.cpu_ns), thread.thread));
    let mut roles: HashMap<u32, Role> = threads.iter().map(|thread| (thread.thread, Role::Background)).collect();
    for (rank, thread) in serving.into_iter().enumerate() {
        let role = if rank < connections as usize {
            Role::Connection
        } else {
            Role::Control
        };
        roles.insert(thread.thread, role);
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(thread: u32, cpu_ns: u64, net_ns: u64) -> ThreadUse {
        ThreadUse { thread, cpu_ns, net_ns }
    }

    #[test]
    fn the_busiest_threads_with_a_socket_serve_the_load() {
        let threads = [
            thread(10, 5, 100),  // the listener: the process's first thread
            thread(11, 900, 50), // the load
            thread(12, 800, 60), // the load
            thread(13, 3, 990),  // our own connection
            thread(14, 999, 0),  // purge
        ];
        let roles = roles(10, 2, &threads);
        assert_eq!(roles[&10], Role::Background);
        assert_eq!((roles[&11], roles[&12]), (Role::Connection, Role::Connection));
        assert_eq!(roles[&13], Role::Control);
        assert_eq!(roles[&14], Role::Background);
    }

    #[test]
    fn a_pool_of_threads_serves_the_load_as_a_whole() {
        let threads = [thread(11, 900, 50), thread(12, 800, 60)];
        let roles = roles(10, 64, &threads);
        assert!(roles.values().all(|role| *role == Role::Connection));
    }
}
