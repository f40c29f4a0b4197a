//! Tests of [`sleeps`](super).

use super::*;
use scaleprof_vocabulary::{ThreadState, UnwindStatus, WakerKind};

fn sleeps(time: u64, sleep: u64, state: ThreadState, probability: f64) -> Record {
    let what = What::Sleeps {
        sleep,
        state,
        probability,
        stack: RawStack::default(),
        lock: (state == ThreadState::Lock).then_some(LockWait {
            address: 64,
            kernel: false,
            operation: 0,
            owner: Some(9),
            holder_stack: None,
            holder_state: None,
            goes_on: false,
        }),
    };
    record(time, what)
}

fn runs(time: u64, sleep: u64, runnable_at: u64) -> Record {
    let what = What::Runs {
        sleep,
        runnable_at,
        waker_kind: 1,
        found: None,
    };
    record(time, what)
}

fn record(time: u64, what: What) -> Record {
    Record {
        time,
        thread: 5,
        cpu: 1,
        what,
    }
}

fn told(samples: &[RawSample]) -> Vec<(ThreadState, f64)> {
    samples.iter().map(|sample| (sample.state, sample.weight_ns)).collect()
}

#[test]
fn a_wait_is_told_as_blocked_and_then_queued_for_a_cpu() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    all.take(sleeps(100, 1, ThreadState::Lock, 0.5), &mut out);
    all.take(runs(200, 1, 180), &mut out);
    assert_eq!(told(&out), [(ThreadState::Lock, 160.0), (ThreadState::RunQueue, 40.0)]);
    assert_eq!(
        out[0].waker.as_ref().map(|waker| waker.kind),
        Some(WakerKind::SameProcess)
    );
    assert_eq!(out[0].lock.as_ref().map(|lock| lock.owner), Some(Some(9)));
    assert_eq!((out[1].thread, out[1].lock.is_none()), (5, true));
}

#[test]
fn a_wait_knows_where_the_owner_of_the_lock_was_and_what_it_did() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    let owner = |sleep| {
        let stack = RawStack {
            user: vec![7],
            ..RawStack::default()
        };
        let state = ThreadState::Io;
        let what = What::Owner {
            sleep,
            owner: 9,
            state,
            stack,
        };
        record(100, what)
    };
    all.take(sleeps(100, 1, ThreadState::Lock, 1.0), &mut out);
    // Of a wait that is over.
    all.take(owner(0), &mut out);
    assert_eq!(all.waits[&5].lock.as_ref().and_then(|lock| lock.holder_state), None);
    all.take(owner(1), &mut out);
    all.take(runs(200, 1, 180), &mut out);
    let lock = out[0].lock.clone().unwrap();
    assert_eq!(lock.holder_state, Some(ThreadState::Io));
    assert_eq!(lock.holder_stack.map(|stack| stack.user), Some(vec![7]));
}

/// It is told for the last that began to wait, and holds it against the others just as much.
#[test]
fn an_owner_that_ran_is_told_to_all_who_wait_for_it_once_it_is_seen() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    let waits_since = |time, thread| Record {
        thread,
        ..sleeps(time, 1, ThreadState::Lock, 1.0)
    };
    let owner = |time, thread, stack: RawStack| {
        let what = What::Owner {
            sleep: 1,
            owner: 9,
            state: ThreadState::Cpu,
            stack,
        };
        Record {
            thread,
            ..record(time, what)
        }
    };
    let unseen = RawStack {
        ending: UnwindStatus::NotTaken,
        ..RawStack::default()
    };
    let seen = RawStack {
        user: vec![7],
        ..RawStack::default()
    };
    for (time, thread) in [(100, 5), (110, 6)] {
        all.take(waits_since(time, thread), &mut out);
        all.take(owner(time, thread, unseen.clone()), &mut out);
    }
    all.take(owner(150, 6, seen.clone()), &mut out);
    let of_owner = |thread| {
        all.waits[&thread]
            .lock
            .as_ref()
            .and_then(|lock| lock.holder_stack.clone())
    };
    assert_eq!([of_owner(5), of_owner(6)], [Some(seen.clone()), Some(seen)]);
}

#[test]
fn a_thread_that_was_preempted_only_queues() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    all.take(sleeps(100, 1, ThreadState::RunQueue, 1.0), &mut out);
    all.take(runs(150, 1, 100), &mut out);
    assert_eq!(told(&out), [(ThreadState::RunQueue, 50.0)]);
}

#[test]
fn a_wait_under_way_is_shared_between_two_readings() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    all.take(sleeps(100, 3, ThreadState::Net, 1.0), &mut out);
    let slot = ThreadSlot {
        thread: 5,
        sleep: 3,
        state: ThreadState::Net as u8,
        ..ThreadSlot::default()
    };
    all.tell_until(140, |_| Some(slot), &mut out);
    all.take(runs(200, 3, 190), &mut out);
    assert_eq!(
        told(&out),
        [
            (ThreadState::Net, 40.0),
            (ThreadState::Net, 50.0),
            (ThreadState::RunQueue, 10.0)
        ]
    );
}

#[test]
fn an_end_without_a_beginning_is_counted_and_tells_nothing() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    all.take(runs(200, 3, 190), &mut out);
    all.take(sleeps(300, 4, ThreadState::Io, 1.0), &mut out);
    all.take(runs(400, 5, 390), &mut out);
    assert_eq!((out.len(), all.unmatched), (0, 2));
}

#[test]
fn nothing_is_told_of_a_wait_while_the_programs_rest() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    all.take(sleeps(100, 3, ThreadState::Net, 1.0), &mut out);
    let slot = ThreadSlot {
        thread: 5,
        sleep: 3,
        state: ThreadState::Net as u8,
        ..ThreadSlot::default()
    };
    all.tell_until(140, |_| Some(slot), &mut out);
    all.rested_until(500);
    all.take(runs(600, 3, 590), &mut out);
    assert_eq!(
        told(&out),
        [
            (ThreadState::Net, 40.0),
            (ThreadState::Net, 90.0),
            (ThreadState::RunQueue, 10.0)
        ]
    );
}

#[test]
fn a_wait_that_was_found_under_way_counts_though_its_stack_was_not_walked_in_time() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    let found = Found {
        at: 150,
        state: ThreadState::Lock,
        probability: 0.5,
    };
    let what = What::Runs {
        sleep: 8,
        runnable_at: 200,
        waker_kind: 0,
        found: Some(found),
    };
    all.take(record(210, what), &mut out);
    assert_eq!(told(&out), [(ThreadState::Lock, 100.0), (ThreadState::RunQueue, 20.0)]);
    assert_eq!((out[0].stack.ending, all.unmatched), (UnwindStatus::NotTaken, 0));
}

#[test]
fn threads_that_ended_are_forgotten() {
    let (mut all, mut out) = (Sleeps::default(), Vec::new());
    all.take(sleeps(100, 3, ThreadState::Net, 1.0), &mut out);
    all.tell_until(140, |_| None, &mut out);
    assert_eq!(all.waits.len(), 1, "its end may be on its way");
    all.tell_until(100 + LAST_WORDS_NS, |_| None, &mut out);
    assert!(all.waits.is_empty() && out.is_empty());
}
