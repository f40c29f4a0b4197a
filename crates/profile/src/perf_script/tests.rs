//! Texts as perf prints them, and as they are after a mishap.

use super::*;

#[test]
fn modifiers_tell_whether_the_kernel_was_left_out() {
    for event in ["cycles:u", "cycles:Pu", "cycles:ppu", "cpu_core/cycles/Pu"] {
        assert!(leaves_out_the_kernel(event), "{event}");
    }
    for event in [
        "cycles",
        "cpu-clock",
        "cycles:P",
        "cycles:uk",
        "sched:sched_switch",
        "instructions:ppp",
    ] {
        assert!(!leaves_out_the_kernel(event), "{event}");
    }
}

#[test]
fn lines_without_call_graphs_are_headers_however_far_names_are_indented() {
    let text = "          mysqld  1234 [001] 12345.678901:     250000 cpu-clock:  55d0 main+0x1 \
                (/usr/sbin/mysqld)\nmysqld  1234 [001] 12345.688901:     250000 cpu-clock:  55d9 other+0x1 \
                (/usr/sbin/mysqld)\n";
    assert!(text.lines().all(is_header));
    assert!(!is_header("            55d0 main+0x1 (/usr/sbin/mysqld)"));
}

const TWO_THREADS: &str = "# ========
# captured on    : Sat Nov 21 2026
ib page cleaner  1234/1240 [001] \
                           100.000000:     250000 cpu-clock:pppH: 
\t    7f8c1234abcd pthread_mutex_lock+0x12 \
                           (/usr/lib/libc.so.6)
\t    55d0 lock_guard (inlined)
\t    55d1 flush+0x1 (/opt/my \
                           sql/mysqld (deleted))
\t    55d2 [unknown] (/opt/my sql/mysqld (deleted))

connection  \
                           1234/1241 [000] 100.250000:     250000 cpu-clock:pppH: 
\t    55d3 do_command(THD*)+0x7 \
                           (/opt/my sql/mysqld (deleted))

connection  1234/1241 [000] 100.260000:     7 cycles: 
\t \
                              55d3 do_command(THD*)+0x7 (/opt/my sql/mysqld (deleted))

other  99/99 [000] \
                           100.500000:     250000 cpu-clock:pppH: 
\tffffffff81 __schedule+0x1 ([kernel.kallsyms])

";

fn options(event: Option<&str>, process: Option<&str>) -> ReadOptions {
    ReadOptions {
        event: event.map(str::to_owned),
        process: process.map(str::to_owned),
        ..ReadOptions::default()
    }
}

/// The call paths with their weights.
fn paths(recording: &Recording) -> Vec<(String, f64)> {
    let profile = &recording.profile;
    let path = |sample: &crate::Sample| {
        let frames = profile.stacks.frames(sample.stack).into_iter();
        let names: Vec<String> = frames
            .map(|frame| profile.frames.get(frame).unwrap().function_name())
            .collect();
        (names.join(" > "), sample.weight_ns)
    };
    profile.samples.iter().map(path).collect()
}

#[test]
fn samples_have_their_threads_times_and_stacks() {
    let found = read(TWO_THREADS.as_bytes(), &options(None, None)).unwrap();
    let expected = [
        "[unnamed in mysqld] > flush > lock_guard > pthread_mutex_lock",
        "do_command(THD*)",
        "__schedule [k]",
    ];
    assert_eq!(paths(&found), expected.map(|path| (path.to_owned(), 250_000.0)));
    assert_eq!(
        (found.weights, found.event.as_deref()),
        (Weights::Nanoseconds, Some("cpu-clock:pppH"))
    );
    assert_eq!(found.span, Some(100_000_000_000..100_500_000_000));
    let threads: Vec<(u32, u32, &str)> = found
        .threads
        .iter()
        .map(|(number, thread)| (*number, thread.process, thread.name.as_str()))
        .collect();
    assert_eq!(
        threads,
        [
            (99, 99, "other"),
            (1240, 1234, "ib page cleaner"),
            (1241, 1234, "connection")
        ]
    );
    assert!(found.warnings[0].contains("cycles"), "{:?}", found.warnings);
}

#[test]
fn an_event_or_a_process_can_be_asked_for() {
    let found = read(TWO_THREADS.as_bytes(), &options(Some("cycles"), None)).unwrap();
    assert_eq!(
        (paths(&found), found.weights),
        (vec![("do_command(THD*)".to_owned(), 7.0)], Weights::Counts)
    );
    let found = read(TWO_THREADS.as_bytes(), &options(Some("cpu-clock"), Some("1234"))).unwrap();
    assert_eq!(found.profile.samples.len(), 2);
    // The name of a thread stands for its process.
    let found = read(TWO_THREADS.as_bytes(), &options(None, Some("connection"))).unwrap();
    assert_eq!(found.profile.samples.len(), 2);
    let said = |options| read(TWO_THREADS.as_bytes(), &options).unwrap_err().to_string();
    assert!(said(options(Some("faults"), None)).contains("cpu-clock:pppH, cycles"));
    assert!(said(options(None, Some("77"))).contains("process 77"));
}

#[test]
fn an_event_is_taken_on_all_kinds_of_cores() {
    let text =
        "a 7 1.0: 5 cpu_core/cycles/P: 1 f (/a)\na 7 2.0: 3 cpu_atom/cycles/P: 1 f (/a)\na 7 3.0: 9 faults: 1 f (/a)\n";
    let weight = |event| {
        let found = read(text.as_bytes(), &options(event, None)).unwrap();
        paths(&found).iter().map(|(_, weight)| weight).sum::<f64>()
    };
    assert_eq!(weight(None), 8.0);
    assert_eq!(weight(Some("cycles")), 8.0);
    assert_eq!(weight(Some("cpu_atom/cycles/P")), 3.0);
}

#[test]
fn a_process_that_is_not_printed_is_said_to_be_unknown() {
    let text = "mysqld 7 1.0: 5 cycles: 1 f (/a)\nconnection 8 2.0: 3 cycles: 1 f (/a)\n";
    let found = read(text.as_bytes(), &options(None, Some("mysqld"))).unwrap();
    let warning = &found.warnings[0];
    assert!(
        warning.contains("skipped 1 samples") && warning.contains("+pid"),
        "{warning}"
    );
    let whole = read(text.as_bytes(), &options(None, None)).unwrap();
    assert!(whole.warnings.is_empty(), "{:?}", whole.warnings);
}

#[test]
fn what_was_not_printed_is_not_made_up() {
    // -F comm,tid,event,ip,sym,dso,srcline: no times and no periods, and source lines between the frames.
    let text = "mysqld 7 cpu-clock: \n\t 55d1 add (/opt/mysqld)\n  sql/a.cc:7\n\t 55d2 main (/opt/mysqld)\n\nmysqld 7 cpu-clock: \n\t 1 main (/opt/mysqld)\n";
    let found = read(text.as_bytes(), &options(None, None)).unwrap();
    let expected = [("main > add".to_owned(), 1000.0), ("main".to_owned(), 1000.0)];
    assert_eq!(
        (paths(&found), found.weights, found.span),
        (expected.to_vec(), Weights::Counts, None)
    );
    let said = read(b"mysqld 7 cpu-clock: \nmysqld 7 cpu-clock: \n", &options(None, None)).unwrap_err();
    assert!(said.to_string().contains("record with -g"), "{said}");
}

#[test]
fn a_text_that_is_cut_off_is_read_as_far_as_it_goes() {
    let ends: Vec<usize> = TWO_THREADS.match_indices("\n\n").map(|(at, _)| at + 2).collect();
    assert_eq!(ends.len(), 4);
    for cut in 0..=TWO_THREADS.len() {
        // The third record is of another event.
        let whole = [0, 1, 3].iter().filter(|record| ends[**record] <= cut).count();
        match read(&TWO_THREADS.as_bytes()[..cut], &options(None, None)) {
            // What is there of the one that is cut may count.
            Ok(found) => assert!(
                (whole..=whole + 1).contains(&found.profile.samples.len()),
                "{cut}: {found:?}"
            ),
            Err(error) => assert_eq!(whole, 0, "{cut}: {error}"),
        }
    }
    let damaged = TWO_THREADS.replacen(
        "connection  1234/1241 [000] 100.250000:     250000 cpu-clock:pppH:",
        "conn",
        1,
    );
    let found = read(damaged.as_bytes(), &options(None, None)).unwrap();
    assert!(found.warnings[0].contains("line 9"), "{:?}", found.warnings);
    assert_eq!(found.profile.samples.len(), 2);
}

#[test]
fn what_idle_cpus_do_is_nobodys_time() {
    let text = "\
swapper     0 [001]     1.000000:   10101010 cpu-clock:pppH: 
\tffffffff81 default_idle+0x1 ([kernel.kallsyms])

mysqld   1234 [000]     1.010000:   10101010 cpu-clock:pppH: 
\t    55d1 flush+0x1 (/usr/sbin/mysqld)

";
    let recording = read(text.as_bytes(), &options(None, None)).expect("read");
    assert_eq!(recording.profile.samples.len(), 1);
    assert_eq!(recording.threads.keys().collect::<Vec<_>>(), [&1234]);
    assert!(
        recording
            .warnings
            .iter()
            .any(|warning| warning.contains("1 samples of idle CPUs"))
    );
}

#[test]
fn what_comes_with_work_is_taken_before_faults_and_switches() {
    let text =
        "a 7 1.0: 1 page-faults: 1 f (/a)\na 7 2.0: 1 sched:sched_switch: prev_comm=a\na 7 3.0: 5 cycles:P: 1 g (/a)\n";
    let found = read(text.as_bytes(), &options(None, None)).unwrap();
    assert_eq!(found.event.as_deref(), Some("cycles:P"));
    assert_eq!(found.profile.samples.len(), 1);
}

#[test]
fn names_that_would_steer_a_terminal_are_replaced() {
    let hostile = TWO_THREADS
        .replace("do_command(THD*)", "do\u{1b}[2Jcommand")
        .replace("connection  ", "conn\u{7}ect  ");
    // A file that begins so is taken for no text.
    let text = TWO_THREADS.repeat(10) + &hostile;
    let recording = crate::import::read_recording(text.as_bytes(), &options(None, None)).expect("readable");
    assert_eq!(recording.threads[&1241].name, "conn\u{fffd}ect");
    let shown = paths(&recording);
    assert!(
        shown.iter().any(|(path, _)| path.contains("do\u{fffd}[2Jcommand")),
        "{shown:?}"
    );
}
