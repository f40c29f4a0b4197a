//! The closing table as it is printed.

#[allow(dead_code, missing_docs)]
use crate::fixture;

use fixture::{Shape, make};
use scaleprof_bundle::Summary;
use scaleprof_report::text::{Style, table};

fn printed(shape: &str, style: Style) -> String {
    let shape = Shape::named(shape).expect("a shape of the fixture");
    table(&make(&shape).1, style)
}

#[test]
fn with_hardware_counters() {
    insta::assert_snapshot!(printed("usual", Style::plain()));
}

#[test]
fn without_hardware_counters_names_them_and_the_reason() {
    insta::assert_snapshot!(printed("vm", Style::plain()));
}

#[test]
fn with_throughput_only() {
    insta::assert_snapshot!(printed("bare", Style::plain()));
}

#[test]
fn in_eighty_columns() {
    let text = printed(
        "usual",
        Style {
            colour: false,
            width: Some(80),
        },
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn in_forty_columns() {
    insta::assert_snapshot!(printed(
        "usual",
        Style {
            colour: false,
            width: Some(40)
        }
    ));
}

#[test]
fn with_one_rung_and_with_none() {
    insta::assert_snapshot!(printed("one", Style::plain()) + "\n---\n\n" + &printed("empty", Style::plain()));
}

#[test]
fn colour_only_when_asked_for() {
    assert!(!printed("usual", Style::plain()).contains('\x1b'));
    let coloured = printed(
        "usual",
        Style {
            colour: true,
            width: None,
        },
    );
    assert!(coloured.contains("\x1b["), "{coloured}");
    let mut bare = String::new();
    let mut parts = coloured.split('\x1b');
    bare.push_str(parts.next().unwrap_or_default());
    for part in parts {
        bare.push_str(part.split_once('m').expect("an escape sequence ends").1);
    }
    assert_eq!(bare, printed("usual", Style::plain()));
}

#[test]
fn a_lock_without_a_known_holder_says_who_woke_those_that_waited() {
    let (_, mut summary) = make(&Shape::usual());
    let locks = &mut summary.rungs.last_mut().expect("a rung").locks;
    let woken = ["start_thread", "log_flush_do_unlocks", "os_event_set", "futex_wake [k]"];
    for lock in locks.iter_mut() {
        lock.waker = woken.map(str::to_owned).into();
    }
    let table = table(&summary, Style::plain());
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    // The first has a holder, and nobody is said to have woken those that wait for it.
    assert!(
        words.contains("held in lock_rec_dequeue_from_page); one on the heap"),
        "{table}"
    );
    assert!(words.contains(", woken in log_flush_do_unlocks)"), "{table}");
}

#[test]
fn who_waits_for_a_metadata_lock_does_not_merely_wait_at_a_condition_variable() {
    let (_, mut summary) = make(&Shape::usual());
    let lock = &mut summary.rungs.last_mut().expect("a rung").locks[1];
    let waiting = |place: &str| {
        [place, "pthread_cond_timedwait", "futex_wait [k]"]
            .map(str::to_owned)
            .into()
    };
    lock.waiter = waiting("MDL_wait::timed_wait");
    lock.waker = ["MDL_wait::set_status", "futex_wake [k]"].map(str::to_owned).into();
    let words = |summary: &Summary| {
        let table = table(summary, Style::plain());
        table.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = words(&summary);
    assert!(
        said.contains("; a metadata lock (") && said.contains(", woken in MDL_wait::set_status)"),
        "{said}"
    );
    summary.rungs.last_mut().expect("a rung").locks[1].waiter = waiting("wait_for_work");
    let said = words(&summary);
    assert!(said.contains("; a condition variable, in wait_for_work ("), "{said}");
}
