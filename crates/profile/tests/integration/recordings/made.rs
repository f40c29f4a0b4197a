//! Recordings that this machine cannot make, written byte by byte as perf writes them into a pipe: deferred call chains, waits,
//! another architecture, hardware events.

use scaleprof_profile::import::{ReadOptions, Recording, Weights, read_recording};
use scaleprof_profile::{KERNEL, Sample};
use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use testing::perf_recording::{Event, KERNEL_MARK, Written, chain, field};

pub const USER: u64 = -512_i64 as u64;
const USER_DEFERRED: u64 = -640_i64 as u64;

pub fn read(written: &Written) -> Recording {
    let options = ReadOptions {
        inlines: true,
        symfs: Some("/nonexistent".into()),
        ..ReadOptions::default()
    };
    read_recording(&written.bytes[..], &options).expect("read")
}

/// Module and address of every frame of a sample, outermost first.
pub fn frames(recording: &Recording, sample: &Sample) -> Vec<(String, i64)> {
    let stack = recording.profile.stacks.frames(sample.stack);
    let frames = stack.iter().filter_map(|frame| recording.profile.frames.get(*frame));
    frames.map(|frame| (frame.module.to_string(), frame.address)).collect()
}

pub fn of_program(addresses: &[i64]) -> Vec<(String, i64)> {
    addresses
        .iter()
        .map(|address| ("server".to_owned(), *address))
        .collect()
}

pub const CHAIN: u64 = field::TID | field::TIME | field::PERIOD | field::CALLCHAIN | field::IDENTIFIER;

#[test]
fn a_user_stack_that_came_later_belongs_to_all_samples_that_wait_for_it() {
    let mut file = Written::new(&[Event::clock(CHAIN)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    for time in [10, 20] {
        let addresses = [KERNEL_MARK, 0xffff_ffff_8100_0000, USER_DEFERRED, 99];
        file.sample(&[1, 7 << 32 | 7, time, 1000], &chain(&addresses));
    }
    file.sample(
        &[1, 7 << 32 | 7, 30, 1000],
        &chain(&[KERNEL_MARK, 0xffff_ffff_8100_0000, USER_DEFERRED, 5]),
    );
    file.record(22, 0, &[99, 2, 0x40_1000, 0x40_2001]);
    let found = read(&file);
    let samples = &found.profile.samples;
    assert_eq!(samples.len(), 3);
    for sample in &samples[..2] {
        let own: Vec<(String, i64)> = frames(&found, sample)
            .into_iter()
            .filter(|(module, _)| module == "server")
            .collect();
        // The second is a return address: the call before it is meant.
        assert_eq!(own, of_program(&[0x2000, 0x1000]));
        assert!(frames(&found, sample).iter().any(|(module, _)| module == KERNEL));
    }
    assert_eq!(
        samples[2].ending,
        UnwindStatus::NoUserStack,
        "its user stack never came"
    );
}

#[test]
fn of_a_whole_machine_the_database_server_is_taken() {
    let mut file = Written::new(&[Event::clock(CHAIN)]);
    for (process, program) in [
        (7, "/srv/mysqldump"),
        (8, "/usr/sbin/mariadbd"),
        (9, "/usr/bin/sysbench"),
    ] {
        file.map(process, 0x40_0000, 0x10_0000, program);
        // The server is not the busiest; the dump is no server.
        for time in 0..10 - process {
            let thread = process + 100;
            file.sample(
                &[1, u64::from(thread) << 32 | u64::from(process), u64::from(time), 1000],
                &chain(&[USER, 0x40_1000]),
            );
        }
    }
    let of = |process: Option<&str>| {
        let options = ReadOptions {
            process: process.map(str::to_owned),
            symfs: Some("/nonexistent".into()),
            ..ReadOptions::default()
        };
        read_recording(&file.bytes[..], &options).expect("read")
    };
    let server = of(None);
    let threads = |recording: &Recording| -> Vec<u32> {
        let mut all: Vec<u32> = recording.profile.samples.iter().map(|sample| sample.thread).collect();
        all.dedup();
        all
    };
    assert_eq!(threads(&server), [108]);
    assert_eq!(
        server.program.as_ref().map(|program| program.name.as_str()),
        Some("mariadbd")
    );
    assert!(
        server
            .profile
            .frames
            .iter()
            .all(|(_, frame)| &*frame.module != "sysbench")
    );
    let said = "4 of its 6 samples, of 2 other processes than the database server 8, were skipped";
    assert!(
        server.warnings.iter().any(|warning| warning.contains(said)),
        "{:?}",
        server.warnings
    );
    assert_eq!(of(Some("all")).profile.samples.len(), 6);
    assert_eq!(threads(&of(Some("9"))), [109]);
}

#[test]
fn waits_stand_beside_the_time_on_cpus() {
    let mut off_cpu = Event::clock(CHAIN);
    off_cpu.config = 10;
    let mut file = Written::new(&[Event::clock(CHAIN), off_cpu]);
    file.name(2, "offcpu-time");
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(&[1, 7 << 32 | 7, 10, 1000], &chain(&[USER, 0x40_1000]));
    file.sample(&[2, 7 << 32 | 7, 20, 5_000_000], &chain(&[USER, 0x40_2000]));
    let found = read(&file);
    let states: Vec<(ThreadState, f64)> = found
        .profile
        .samples
        .iter()
        .map(|sample| (sample.state, sample.weight_ns))
        .collect();
    assert_eq!(states, [(ThreadState::Cpu, 1000.0), (ThreadState::Other, 5e6)]);
    assert_eq!(found.event.as_deref(), Some("cpu-clock, offcpu-time"));
}

/// perf from 6.16 on puts long waits out while it records, as raw data under the name of whoever runs then.
#[test]
fn a_wait_in_raw_data_belongs_to_the_thread_that_waited() {
    let mut off_cpu = Event::clock(field::TID | field::TIME | field::PERIOD | field::RAW | field::IDENTIFIER);
    off_cpu.config = 10;
    let mut file = Written::new(&[Event::clock(CHAIN), off_cpu]);
    file.name(2, "offcpu-time");
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(&[1, 8 << 32 | 7, 10, 1000], &chain(&[USER, 0x40_1000]));
    // The wait of thread 8 of process 7, in the order of perf's kernel program and in that of its reader.
    for pair in [7_u64 << 32 | 8, 8 << 32 | 7] {
        let words = [pair, 5_000_000, 3, USER, 0x40_2000, 0x40_3001, 1];
        let mut raw = 60_u32.to_le_bytes().to_vec();
        raw.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        raw.extend([0; 4]);
        file.sample(&[2, 99 << 32 | 99, 20, 1], &raw);
    }
    let found = read(&file);
    let waits: Vec<&Sample> = found
        .profile
        .samples
        .iter()
        .filter(|sample| sample.state == ThreadState::Other)
        .collect();
    assert_eq!(waits.len(), 2);
    for wait in waits {
        assert_eq!((wait.thread, wait.weight_ns), (8, 5e6));
        let own: Vec<(String, i64)> = frames(&found, wait)
            .into_iter()
            .filter(|(module, _)| module == "server")
            .collect();
        assert_eq!(own, of_program(&[0x3000, 0x2000]));
    }
    assert!(
        !found.threads.contains_key(&99),
        "who ran when a wait ended has no part in it"
    );
}

/// perf writes what it summed up in the kernel when it ends, with no time that could be one.
#[test]
fn waits_that_were_summed_up_until_the_end_are_in_its_last_moment_and_no_longer_than_it() {
    let mut off_cpu = Event::clock(CHAIN);
    off_cpu.config = 10;
    let mut file = Written::new(&[Event::clock(CHAIN), off_cpu]);
    file.name(2, "offcpu-time");
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(&[1, 7 << 32 | 7, 12_000, 1000], &chain(&[USER, 0x40_1000]));
    file.sample(&[1, 7 << 32 | 7, 14_000, 1000], &chain(&[USER, 0x40_1000]));
    // Two places at which thread 7 waited, and one of thread 8.
    for (thread, address, length) in [(7_u64, 0x40_2000, 2_000), (7, 0x40_3000, 1_500), (8, 0x40_2000, 3_000)] {
        file.sample(&[2, thread << 32 | 7, u64::MAX << 32, length], &chain(&[USER, address]));
    }
    let found = read(&file);
    assert_eq!(found.span, Some(10_500..14_000));
    let waits = found
        .profile
        .samples
        .iter()
        .filter(|sample| sample.state != ThreadState::Cpu);
    assert_eq!(waits.map(|sample| sample.time_ns).collect::<Vec<u64>>(), [14_000; 3]);
    let said = "3 of its samples are sums of waits";
    assert!(
        found.warnings.iter().any(|warning| warning.starts_with(said)),
        "{:?}",
        found.warnings
    );
}

/// A wait may have begun before anything ran.
#[test]
fn a_wait_that_ended_at_a_known_time_began_as_long_before() {
    let mut off_cpu = Event::clock(CHAIN);
    off_cpu.config = 10;
    let mut file = Written::new(&[Event::clock(CHAIN), off_cpu]);
    file.name(2, "offcpu-time");
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(&[1, 7 << 32 | 7, 9_000, 1000], &chain(&[USER, 0x40_1000]));
    file.sample(&[2, 7 << 32 | 7, 8_500, 7_500], &chain(&[USER, 0x40_2000]));
    assert_eq!(read(&file).span, Some(1_000..9_000));
}

/// What a tracepoint says: numbers of some bytes at some places of 60 bytes, with the length in front.
fn raw(fields: &[(usize, &[u8])]) -> Vec<u8> {
    const LENGTH: u32 = 60;
    let mut bytes = [&LENGTH.to_le_bytes()[..], &[0; LENGTH as usize]].concat();
    for (place, field) in fields {
        bytes[4 + place..4 + place + field.len()].copy_from_slice(field);
    }
    bytes
}

/// CPU time, switches of the whole machine, wake-ups and perf's sums of waits: thread 7 sleeps from 1 000 to 5 000 ns, is woken twice at
/// 4 000 and gets a CPU at 5 000; at 6 000 it leaves again and is woken at 7 000, and at 9 000 all ends.
fn switches(with_wake_ups: bool) -> Recording {
    let tracepoint = |config: u64| {
        let mut event = Event::clock(CHAIN | field::RAW);
        (event.kind, event.config) = (2, config);
        event
    };
    let mut sums = Event::clock(CHAIN);
    sums.config = 10;
    let events = [
        Event::clock(CHAIN),
        tracepoint(314),
        tracepoint(317),
        tracepoint(318),
        sums,
    ];
    let mut file = Written::new(&events);
    for (id, name) in [
        (2, "sched:sched_switch"),
        (3, "sched:sched_waking"),
        (4, "sched:sched_wakeup"),
        (5, "offcpu-time"),
    ] {
        file.name(id, name);
    }
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    let (server, idle) = (7 << 32 | 7, 0);
    let switch = |file: &mut Written, who: u64, time: u64, state: u64, next: u32| {
        let says = raw(&[(32, &state.to_le_bytes()), (56, &next.to_le_bytes())]);
        let stack = chain(&[USER, 0x40_2000]);
        file.sample(&[2, who, time, 1], &[stack, says].concat());
    };
    let wake = |file: &mut Written, id: u64, time: u64| {
        if with_wake_ups {
            let says = raw(&[(24, &7_u32.to_le_bytes())]);
            file.sample(
                &[id, idle, time, 1],
                &[chain(&[KERNEL_MARK, 0xffff_ffff_8100_0000]), says].concat(),
            );
        }
    };
    file.sample(&[1, server, 500, 400], &chain(&[USER, 0x40_1000]));
    switch(&mut file, server, 1_000, 1, 0);
    wake(&mut file, 3, 4_000);
    wake(&mut file, 4, 4_100);
    switch(&mut file, idle, 5_000, 0, 7);
    switch(&mut file, server, 6_000, 1, 0);
    wake(&mut file, 3, 7_000);
    file.sample(&[1, server, 9_000, 400], &chain(&[USER, 0x40_1000]));
    file.sample(&[5, server, u64::MAX << 32, 5_000_000], &chain(&[USER, 0x40_2000]));
    read(&file)
}

fn times(recording: &Recording, state: ThreadState) -> Vec<(u64, f64)> {
    let samples = recording.profile.samples.iter();
    let of_state = samples.filter(|sample| sample.state == state);
    let mut times: Vec<(u64, f64)> = of_state.map(|sample| (sample.time_ns, sample.weight_ns)).collect();
    times.sort_by_key(|(time, _)| *time);
    times
}

#[test]
fn a_wait_is_split_where_the_thread_was_woken() {
    let found = switches(true);
    assert_eq!(times(&found, ThreadState::Other), [(1_000, 3_000.0), (6_000, 1_000.0)]);
    assert_eq!(
        times(&found, ThreadState::RunQueue),
        [(4_000, 1_000.0), (7_000, 2_000.0)]
    );
    assert_eq!(times(&found, ThreadState::Cpu), [(500, 400.0), (9_000, 400.0)]);
    let innermost = |sample: &Sample| frames(&found, sample).pop();
    for sample in found
        .profile
        .samples
        .iter()
        .filter(|sample| sample.state != ThreadState::Cpu)
    {
        assert_eq!(innermost(sample), Some(("server".to_owned(), 0x2000)));
    }
    assert!(
        found.warnings.iter().all(|warning| !warning.contains("--event")),
        "a wake-up is no event to take: {:?}",
        found.warnings
    );
}

#[test]
fn without_wake_ups_a_wait_lasts_until_the_thread_runs() {
    let found = switches(false);
    assert_eq!(times(&found, ThreadState::Other), [(1_000, 4_000.0), (6_000, 3_000.0)]);
    assert_eq!(times(&found, ThreadState::RunQueue), []);
}

/// Of a process alone nobody knows how long a thread was away, so that each departure counts once.
#[test]
fn switches_of_a_process_alone_count_once_whoever_was_woken() {
    let tracepoint = |config: u64| {
        let mut event = Event::clock(CHAIN | field::RAW);
        (event.kind, event.config) = (2, config);
        event
    };
    let mut file = Written::new(&[tracepoint(314), tracepoint(317)]);
    file.name(1, "sched:sched_switch");
    file.name(2, "sched:sched_waking");
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    let stack = || chain(&[USER, 0x40_2000]);
    let switch = |next: u32| raw(&[(32, &1_u64.to_le_bytes()), (56, &next.to_le_bytes())]);
    file.sample(&[1, 7 << 32 | 7, 1_000, 1], &[stack(), switch(8)].concat());
    let woken = raw(&[(24, &7_u32.to_le_bytes())]);
    file.sample(&[2, 8 << 32 | 7, 2_000, 1], &[stack(), woken].concat());
    file.sample(&[1, 8 << 32 | 7, 3_000, 1], &[stack(), switch(7)].concat());
    let found = read(&file);
    assert_eq!(found.profile.samples.len(), 2);
    assert_eq!(times(&found, ThreadState::RunQueue), []);
}

/// A call of futex(2) whose end was not recorded leaves an address behind: `known_waits.rs` has the waits that are for one.
#[test]
fn a_call_of_futex_names_no_lock_where_the_stack_waits_for_none() {
    let tracepoint = |config: u64| {
        let mut event = Event::clock(CHAIN | field::RAW);
        (event.kind, event.config) = (2, config);
        event
    };
    let mut file = Written::new(&[tracepoint(314), tracepoint(522), tracepoint(521)]);
    file.name(1, "sched:sched_switch");
    file.name(2, "syscalls:sys_enter_futex");
    file.name(3, "syscalls:sys_exit_futex");
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    let (server, idle) = (7 << 32 | 7, 0);
    let stack = || chain(&[USER, 0x40_2000]);
    let switch = |file: &mut Written, who: u64, time: u64, state: u64, next: u32| {
        let says = raw(&[(32, &state.to_le_bytes()), (56, &next.to_le_bytes())]);
        file.sample(&[1, who, time, 1], &[stack(), says].concat());
    };
    let call = |address: u64, operation: u64| raw(&[(16, &address.to_le_bytes()), (24, &operation.to_le_bytes())]);
    file.sample(&[2, server, 900, 1], &[stack(), call(0x7f00_0000_1000, 128)].concat());
    switch(&mut file, server, 1_000, 1, 0);
    switch(&mut file, idle, 5_000, 0, 7);
    file.sample(&[3, server, 5_100, 1], &[stack(), raw(&[(16, &[0; 8])])].concat());
    // This one is in no call.
    switch(&mut file, server, 6_000, 1, 0);
    switch(&mut file, idle, 7_000, 0, 7);
    let found = read(&file);
    assert_eq!(found.profile.samples.len(), 2, "{:?}", found.profile.samples);
    // Nothing tells that the stack waits for a lock here, so an address proves nothing.
    assert_eq!(times(&found, ThreadState::Other), [(1_000, 4_000.0), (6_000, 1_000.0)]);
    assert!(found.profile.locks.is_empty(), "{:?}", found.profile.locks);
    assert!(
        found.warnings.iter().all(|warning| !warning.contains("--event")),
        "calls are no events to take: {:?}",
        found.warnings
    );
}

/// The sums that perf writes at its end have no time, and would make a wait that goes on then last for centuries.
#[test]
fn the_same_waits_do_not_count_twice() {
    let found = switches(false);
    assert_eq!(found.span, Some(500..9_000));
    let said = "its 1 sums of waits (perf record --off-cpu) were skipped";
    assert!(
        found.warnings.iter().any(|warning| warning.starts_with(said)),
        "{:?}",
        found.warnings
    );
}

#[test]
fn cycles_become_time_by_their_frequency() {
    let mut cycles = Event::clock(CHAIN);
    (cycles.kind, cycles.config, cycles.hertz) = (0, 0, Some(100));
    let mut file = Written::new(&[cycles]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    for at in 0..50 {
        file.sample(
            &[1, 7 << 32 | 7, at * 10_000_000, 30_000_000],
            &chain(&[USER, 0x40_1000]),
        );
    }
    let found = read(&file);
    let total: f64 = found.profile.samples.iter().map(|sample| sample.weight_ns).sum();
    assert!(
        (total - 0.5e9).abs() < 1.0,
        "50 samples at 100/s are half a second, not {total} ns"
    );
    assert_eq!(found.weights, Weights::Nanoseconds);
}

#[test]
fn a_recording_of_another_architecture_keeps_its_stacks_and_says_what_is_missing() {
    let mut file = Written::new(&[Event::clock(CHAIN)]);
    file.feature_string(6, "aarch64");
    file.feature_string(4, "6.1.0-somewhere-else");
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(
        &[1, 7 << 32 | 7, 10, 1000],
        &chain(&[KERNEL_MARK, 0xffff_8000_0810_0000, USER, 0x40_1000, 0x40_2004]),
    );
    let found = read(&file);
    assert_eq!(found.machine.architecture.as_deref(), Some("aarch64"));
    let placed = frames(&found, &found.profile.samples[0]);
    assert_eq!(
        placed.last(),
        Some(&(KERNEL.to_owned(), 0)),
        "the kernel without a name"
    );
    let lacks: Vec<String> = found.lacks.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    assert!(
        lacks.iter().any(|lack| lack.contains("6.1.0-somewhere-else")),
        "{lacks:?}"
    );
    assert!(
        lacks
            .iter()
            .any(|lack| lack.contains("functions of server") && lack.contains("--symfs")),
        "{lacks:?}"
    );
}

#[test]
fn what_was_lost_is_told() {
    let mut file = Written::new(&[Event::clock(CHAIN)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(&[1, 7 << 32 | 7, 10, 1000], &chain(&[USER, 0x40_1000]));
    file.sample(&[1, 8 << 32 | 8, 11, 1000], &chain(&[USER, 0x40_1000]));
    file.record(2, 0, &[1, 41]);
    file.record(2, 0, &[1, 1]);
    // The event's own account of the same samples, and what a filter dropped on purpose.
    file.record(13, 0, &[40]);
    file.record(13, 1 << 15, &[7000]);
    let options = ReadOptions {
        process: Some("7".to_owned()),
        symfs: Some("/nonexistent".into()),
        ..ReadOptions::default()
    };
    let of_one = read_recording(&file.bytes[..], &options).expect("read");
    assert_eq!(of_one.samples_lost, None, "nobody knows how many were of that process");
    assert!(of_one.lacks.iter().any(|(what, _)| what == "samples_lost"));
    let found = read(&file);
    assert_eq!(found.samples_lost, Some(42));
    assert!(
        found
            .warnings
            .iter()
            .any(|warning| warning.starts_with("42 samples were lost")),
        "{:?}",
        found.warnings
    );
}

#[test]
fn a_process_that_maps_between_all_of_its_samples_is_followed() {
    let mut file = Written::new(&[Event::clock(CHAIN)]);
    for at in 0..2000_u64 {
        file.map(7, 0x40_0000, 0x1000, &format!("/srv/plugin{}", at % 3));
        file.sample(&[1, 7 << 32 | 7, at, 1], &chain(&[USER, 0x40_0800]));
    }
    let found = read(&file);
    for (at, sample) in found.profile.samples.iter().enumerate() {
        let innermost = frames(&found, sample).pop();
        assert_eq!(innermost, Some((format!("plugin{}", at % 3), 0x800)), "sample {at}");
    }
}

#[test]
fn code_in_anonymous_memory_is_called_as_its_program_says() {
    let mut file = Written::new(&[Event::clock(CHAIN)]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    for (process, start) in [(7, 0x7000_0000), (7, 0x7100_0000), (8, 0x7000_0000)] {
        file.map(process, start, 0x1000, "//anon");
    }
    for (time, at) in [(10, 0x7000_0010), (20, 0x7100_0010), (30, 0x7000_0500)] {
        let addresses = [USER, at, 0x40_1001];
        file.sample(&[1, 7 << 32 | 7, time, 1000], &chain(&addresses));
    }
    let root = tempfile::tempdir().expect("a folder");
    let options = |root: &std::path::Path| ReadOptions {
        symfs: Some(root.to_owned()),
        process: Some("7".to_owned()),
        ..ReadOptions::default()
    };
    let tips = |options: &ReadOptions| {
        let found = read_recording(&file.bytes[..], options).expect("read");
        let tip = |sample: &Sample| {
            let stack = found.profile.stacks.frames(sample.stack);
            let frame = stack
                .last()
                .and_then(|tip| found.profile.frames.get(*tip))
                .expect("a frame");
            (
                frame.module.to_string(),
                frame.function.clone().map(|name| name.to_string()),
            )
        };
        let tips: Vec<(String, Option<String>)> = found.profile.samples.iter().map(tip).collect();
        let lacks = found
            .lacks
            .iter()
            .any(|(what, _)| what == "functions of (anonymous memory)");
        (tips, lacks)
    };
    let called = |name: &str| ("(anonymous memory)".to_owned(), Some(name.to_owned()));
    let nameless = || called("[code in anonymous memory]");
    assert_eq!(
        tips(&options(root.path())),
        (vec![nameless(), nameless(), nameless()], true)
    );
    std::fs::create_dir(root.path().join("tmp")).expect("made");
    let map = "70000000 100 first one\n71000000 100 second\n";
    std::fs::write(root.path().join("tmp/perf-7.map"), map).expect("written");
    let named = vec![called("first one"), called("second"), nameless()];
    assert_eq!(tips(&options(root.path())), (named, false));
}
