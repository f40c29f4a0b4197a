//! Which of the server's threads serve the load.

use scaleprof_vocabulary::Role;
use std::collections::HashMap;

use foldhash::HashSet;

use crate::sample_pieces::in_pieces;

use scaleprof_profile::{Frame, FrameId, Frames, KERNEL, Profile, Sample, StackId, StackTree};

/// What a thread did in a measurement, as far as it tells whom it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadUse {
    pub thread: u32,
    pub cpu_ns: u64,
    /// Time that it waited for a socket.
    pub net_ns: u64,
}

/// The role of every thread of the process `pid` in a measurement with `connections`.
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

/// The role of every thread of the process `pid` where the load is not ours: whoever serves a client serves a connection.
/// `handlers` are the threads that were seen in a function that serves one: a thread that works or waits for a lock all the
/// time never waits for its client.
pub(crate) fn roles_of_any_load(pid: u32, threads: &[ThreadUse], handlers: &HashSet<u32>) -> HashMap<u32, Role> {
    let role = |thread: &ThreadUse| match thread.thread != pid {
        true if thread.net_ns > 0 || handlers.contains(&thread.thread) => Role::Connection,
        _ => Role::Background,
    };
    threads.iter().map(|thread| (thread.thread, role(thread))).collect()
}

/// Functions of MariaDB and MySQL that serve one connection until it closes.
const HANDLERS: [&str; 3] = ["handle_one_connection", "do_handle_one_connection", "handle_connection"];

/// The threads of a profile that were seen in one of these.
pub(crate) fn handlers(profile: &Profile) -> HashSet<u32> {
    let serving = serving_stacks(&profile.stacks, &profile.frames);
    let of_piece = |samples: &[Sample]| {
        let mut threads: HashSet<u32> = HashSet::default();
        for sample in samples {
            if !threads.contains(&sample.thread) && serving.contains(&sample.stack) {
                threads.insert(sample.thread);
            }
        }
        threads
    };
    in_pieces(&profile.samples, of_piece).into_iter().flatten().collect()
}

/// What such a thread is in when its connection has closed and the server keeps it for the next one.
const PARKED: [&str; 8] = [
    "pthread_cond_",
    "__pthread_cond_",
    "___pthread_cond_",
    "my_cond_",
    "inline_mysql_cond_",
    "block_until_new_connection",
    "Per_thread_connection_handler::block_until_new_connection",
    "one_thread_per_connection_end",
];

/// What a function says of a thread that is in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    /// It serves a connection in the functions that this one calls.
    Handler,
    /// Called by a handler: it waits for its next connection.
    Parked,
    /// Called by a handler: it is at work for its connection.
    Works,
    /// Whatever the functions outside say.
    Nothing,
}

impl Says {
    fn of(frame: &Frame) -> Says {
        if &*frame.module == KERNEL {
            return Says::Nothing;
        }
        let name = frame.function.as_deref().unwrap_or_default();
        // Its arguments may follow; a whole name is long.
        let is = |handler: &&str| {
            let rest = name.strip_prefix(handler);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
        };
        if HANDLERS.iter().any(is) {
            Says::Handler
        } else if PARKED.iter().any(|parked| name.starts_with(parked)) {
            Says::Parked
        } else {
            Says::Works
        }
    }
}

/// The stacks whose thread is at work for a connection: what the innermost handler calls tells. Each node of the tree is looked at
/// once, as an imported recording may have many times as many samples.
fn serving_stacks(stacks: &StackTree, frames: &Frames) -> HashSet<StackId> {
    // Most are of functions that are at work.
    let says = frames.iter().map(|(id, frame)| (id, Says::of(frame)));
    let says: foldhash::HashMap<FrameId, Says> = says.filter(|(_, says)| *says != Says::Works).collect();
    let (mut serving, mut in_handler) = (HashSet::default(), HashSet::default());
    for (stack, node) in stacks.iter() {
        let is_of = |known: &HashSet<StackId>| node.parent.is_some_and(|parent| known.contains(&parent));
        let outside_is_handler = is_of(&in_handler);
        match says.get(&node.frame).copied().unwrap_or(Says::Works) {
            Says::Handler => in_handler.insert(stack),
            Says::Nothing if outside_is_handler => in_handler.insert(stack),
            Says::Works if outside_is_handler => serving.insert(stack),
            Says::Parked if outside_is_handler => false,
            _ => is_of(&serving) && serving.insert(stack),
        };
    }
    serving
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use scaleprof_vocabulary::SymbolSource;

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
    fn under_a_load_that_is_not_ours_all_who_serve_a_client_count() {
        let threads = [
            thread(10, 5, 100), // the listener
            thread(11, 1, 990), // idle
            thread(12, 900, 0), // a long statement
            thread(13, 7, 0),   // purge
        ];
        let roles = roles_of_any_load(10, &threads, &[12].into_iter().collect());
        assert_eq!((roles[&10], roles[&13]), (Role::Background, Role::Background));
        assert_eq!((roles[&11], roles[&12]), (Role::Connection, Role::Connection));
    }

    /// Whether a thread in these functions of the server, outermost first, is at work for a connection.
    fn is_serving(names: &[&str]) -> bool {
        let frame = |name: &str| Frame {
            module: if name.starts_with("sys_") { KERNEL } else { "mysqld" }.into(),
            build_id: None,
            address: 0,
            function: Some(name.into()).filter(|_| !name.is_empty()),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::Symtab,
        };
        let (mut stacks, mut frames) = (StackTree::default(), Frames::default());
        let ids: Vec<FrameId> = names.iter().map(|name| frames.intern(frame(name))).collect();
        let stack = stacks.intern(ids).expect("frames");
        serving_stacks(&stacks, &frames).contains(&stack)
    }

    #[test]
    fn a_thread_that_is_kept_for_the_next_connection_serves_none() {
        let start = [
            "start_thread",
            "handle_one_connection",
            "do_handle_one_connection(CONNECT*, bool)",
        ];
        let inside = |name| is_serving(&[&start[..], &[name]].concat());
        assert!(inside("do_command(THD*, bool)") && inside(""));
        assert!(!inside("pthread_cond_timedwait") && !is_serving(&start) && !is_serving(&["main", "poll"]));
    }

    proptest! {
        /// By the definition, on the list of names.
        #[test]
        fn what_the_innermost_handler_calls_tells_whether_a_thread_serves(
            names in vec(select(vec!["handle_connection", "do_handle_one_connection(CONNECT*)", "my_cond_wait", "work", "", "sys_read"]), 1..9)
        ) {
            let of_server: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with("sys_")).collect();
            let is_handler = |name: &&str| HANDLERS.contains(&name.split_once('(').map_or(*name, |(name, _)| name));
            let called = of_server.iter().rposition(is_handler).and_then(|at| of_server.get(at + 1));
            let serves = called.is_some_and(|name| !PARKED.iter().any(|parked| name.starts_with(parked)));
            prop_assert_eq!(is_serving(&names), serves);
        }
    }

    #[test]
    fn a_pool_of_threads_serves_the_load_as_a_whole() {
        let threads = [thread(11, 900, 50), thread(12, 800, 60)];
        let roles = roles(10, 64, &threads);
        assert_eq!(roles, HashMap::from([(11, Role::Connection), (12, Role::Connection)]));
    }
}
