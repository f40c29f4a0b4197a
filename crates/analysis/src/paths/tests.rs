use super::*;
use crate::ledger::Watched;
use crate::made_up_sample::sample;
use crate::sampled::Sampled;
use crate::totals::{Amount, Window};
use scaleprof_bundle::{Bundle, FrameRow, Ledger, SampleRow, Samples, StackRow};
use scaleprof_vocabulary::{Role, SymbolSource, ThreadState, WakerKind};

/// Stack n is the frame n inside of `main`, which is 0.
fn dictionary() -> (Vec<StackRow>, Vec<FrameRow>) {
    let names = ["main", "work", "wait", "hold", "idle"];
    let stacks = (0..names.len() as i64).map(|n| StackRow {
        stack: n,
        parent: (n > 0).then_some(0),
        frame: n,
        depth: i32::from(n > 0),
    });
    let frames = names.iter().zip(0..).map(|(name, n)| FrameRow {
        frame: n,
        module: "mysqld".into(),
        build_id: None,
        address: n,
        function: Some((*name).into()),
        inlined: false,
        file: None,
        line: None,
        symbol_source: SymbolSource::Symtab,
    });
    (stacks.collect(), frames.collect())
}

fn bundle() -> Bundle {
    let (stacks, frames) = dictionary();
    Bundle {
        stacks,
        frames,
        ..testing::planted::empty()
    }
}

/// Ten seconds of 100 transactions from second 2 on.
fn windows() -> [Window; 1] {
    let one = Amount {
        seconds: 1.0,
        transactions: 100.0,
    };
    [Window {
        measurement: 0,
        seconds: (2..12).map(|second| (second, one)).collect(),
        whole: Amount {
            seconds: 12.0,
            transactions: 1200.0,
        },
    }]
}

fn ledger(cpu: f64, lock: f64) -> Ledger {
    Ledger {
        seconds_per_txn: [(ThreadState::Cpu, Some(cpu)), (ThreadState::Lock, Some(lock))]
            .into_iter()
            .collect(),
        connections_over_throughput: None,
        residual: None,
        states_residual: None,
        cpu_residual: None,
        uncharged_cpu_share: None,
        background: vec![],
        complete_stacks_share: None,
        samples: None,
        samples_lost: None,
        observed_waits_share: None,
    }
}

fn sampled<'a>(samples: &'a Samples, ledger: Option<&Ledger>) -> Sampled<'a> {
    let watched = Watched {
        samples: samples.blocks().iter().collect(),
        ..Watched::default()
    };
    Sampled::of(&windows(), &watched, ledger.map(|ledger| &ledger.seconds_per_txn))
}

fn locks(
    samples: &Samples,
    ledger: Option<&Ledger>,
    rows: &[&LockRow],
    call_paths: &mut CallPaths<'_>,
) -> Vec<LockSummary> {
    let sampled = sampled(samples, ledger);
    let locks = sampled.heaviest_locks(MOST_LOCKS);
    let samples = sampled.on(call_paths);
    number_holders_and_wakers(&locks, &samples, rows, call_paths);
    lock_summaries(&locks, &samples, rows, call_paths)
}

fn paths(samples: &[SampleRow], ledger: Option<&Ledger>, bundle: &Bundle) -> Vec<CallPath> {
    let samples: Samples = samples.iter().cloned().collect();
    let mut call_paths = CallPaths::of(bundle);
    let samples = sampled(&samples, ledger).on(&mut call_paths);
    heaviest_paths(&ByPath::of(&samples), &call_paths)
}

/// In every second 30 ms of work, 10 ms idle, 60 ms of waiting; other seconds and roles hold nonsense.
fn steady() -> Vec<SampleRow> {
    let mut samples: Vec<SampleRow> = (2..12)
        .flat_map(|second| {
            let work = (0..3).map(move |_| sample(second, ThreadState::Cpu, 1, 10.0));
            work.chain([
                sample(second, ThreadState::Cpu, 4, 10.0),
                sample(second, ThreadState::Lock, 2, 60.0),
            ])
        })
        .collect();
    samples.push(sample(0, ThreadState::Cpu, 3, 1e6));
    samples.push(SampleRow {
        role: Role::Background,
        ..sample(5, ThreadState::Cpu, 3, 1e6)
    });
    samples
}

#[test]
fn paths_are_ranked_by_their_time_per_transaction() {
    let (bundle, samples) = (bundle(), steady());
    let found = paths(&samples, None, &bundle);
    let seen: Vec<_> = found.iter().map(|p| (p.state, p.path.join(" "), p.samples)).collect();
    let expected = [
        (ThreadState::Lock, "main wait", 10),
        (ThreadState::Cpu, "main work", 30),
        (ThreadState::Cpu, "main idle", 10),
    ];
    assert_eq!(
        seen,
        expected.map(|(state, path, count)| (state, path.to_owned(), count))
    );
    let times: Vec<f64> = found.iter().map(|p| p.seconds_per_txn.value).collect();
    for (time, truth) in times.iter().zip([6e-4, 3e-4, 1e-4]) {
        assert!((time / truth - 1.0).abs() < 1e-9, "{times:?}");
    }
    // Every second is the same, so nothing is unsure.
    let limits = found[0].seconds_per_txn;
    assert!((limits.high.unwrap() - limits.low.unwrap()).abs() < 1e-12);
}

#[test]
fn with_a_ledger_the_paths_of_a_state_add_up_to_it() {
    let (bundle, mut samples) = (bundle(), steady());
    // Half of what happened on CPUs was lost.
    for row in samples.iter_mut().filter(|row| row.state == ThreadState::Cpu) {
        row.weight_ns /= 2.0;
    }
    let found = paths(&samples, Some(&ledger(4e-4, 6e-4)), &bundle);
    let of_state = |state: ThreadState| {
        found
            .iter()
            .filter(|p| p.state == state)
            .map(|p| p.seconds_per_txn.value)
            .sum::<f64>()
    };
    assert!(
        (of_state(ThreadState::Cpu) / 4e-4 - 1.0).abs() < 1e-9
            && (of_state(ThreadState::Lock) / 6e-4 - 1.0).abs() < 1e-9
    );
}

#[test]
fn a_path_that_comes_and_goes_has_wide_limits() {
    let bundle = bundle();
    let samples: Vec<_> = (2..12)
        .map(|second| sample(second, ThreadState::Lock, 2, if second < 4 { 500.0 } else { 1.0 }))
        .collect();
    let found = paths(&samples, None, &bundle);
    let time = found[0].seconds_per_txn;
    assert!(
        time.low.unwrap() < 0.5 * time.value && time.high.unwrap() > 1.5 * time.value,
        "{time:?}"
    );
}

#[test]
fn no_more_than_twenty_paths_are_kept() {
    let mut bundle = bundle();
    bundle.stacks = (0..100)
        .map(|n| StackRow {
            stack: n,
            parent: None,
            frame: n,
            depth: 0,
        })
        .collect();
    bundle.frames = (0..100)
        .map(|n| FrameRow {
            frame: n,
            function: Some(format!("f{n}").into()),
            ..dictionary().1[0].clone()
        })
        .collect();
    let samples: Vec<_> = (0..100).map(|n| sample(5, ThreadState::Cpu, n, n as f64)).collect();
    let found = paths(&samples, None, &bundle);
    assert_eq!((found.len(), found[0].path[0].as_str()), (20, "f99"));
}

#[test]
fn locks_have_their_name_their_waiter_and_their_holder() {
    let bundle = bundle();
    let waits = |lock: i64, stack: i64, milliseconds: f64| {
        let row = move |second| SampleRow {
            lock: Some(lock),
            ..sample(second, ThreadState::Lock, stack, milliseconds)
        };
        (2..12).map(row)
    };
    let samples: Samples = waits(7, 2, 5.0)
        .chain(waits(7, 1, 1.0))
        .chain(waits(8, 4, 2.0))
        .collect();
    let lock = |measurement: i32, lock: i64, name: Option<&str>, owner: Option<i64>, holder_samples: i64| LockRow {
        measurement,
        lock,
        name: name.map(str::to_owned),
        module: name.map(|_| "mysqld".to_owned()),
        operation: "wait".into(),
        waits: 10,
        wait_ns: 1.0,
        holder_stack: owner,
        holder_samples,
    };
    let rows = [
        lock(0, 7, Some("log_sys+64"), Some(3), 4),
        lock(1, 7, Some("log_sys+64"), Some(1), 9),
        lock(2, 7, Some("log_sys+64"), Some(3), 6),
        lock(0, 8, None, None, 0),
    ];
    let rows: Vec<&LockRow> = rows.iter().collect();
    let ledger = ledger(0.0, 8e-4);
    let found = locks(&samples, Some(&ledger), &rows, &mut CallPaths::of(&bundle));
    assert_eq!(found.len(), 2);
    let worst = &found[0];
    assert_eq!(
        (worst.name.as_deref(), worst.module.as_deref()),
        (Some("log_sys+64"), Some("mysqld"))
    );
    assert!((worst.seconds_per_txn.value / 6e-4 - 1.0).abs() < 1e-9);
    assert_eq!((worst.waiter.join(" ").as_str(), worst.samples), ("main wait", 20));
    assert_eq!(
        (worst.holder.join(" ").as_str(), worst.holder_samples),
        ("main hold", 10)
    );
    assert_eq!((found[1].name.as_deref(), found[1].holder.len()), (None, 0));
}

#[test]
fn the_waker_of_a_lock_is_told_for_the_waits_whose_holder_is_not_known() {
    let bundle = bundle();
    let samples: Samples = (2..12)
        .flat_map(|second| {
            let wait = |milliseconds, waker_stack| SampleRow {
                lock: Some(7),
                waker_kind: Some(WakerKind::SameProcess),
                waker_stack: Some(waker_stack),
                ..sample(second, ThreadState::Lock, 2, milliseconds)
            };
            let held = SampleRow {
                holder_state: Some(ThreadState::Cpu),
                ..wait(90.0, 4)
            };
            [wait(10.0, 1), wait(30.0, 3), held]
        })
        .collect();
    let found = locks(&samples, None, &[], &mut CallPaths::of(&bundle));
    assert_eq!(
        (found[0].waker.join(" "), found[0].waker_samples),
        ("main hold".to_owned(), 10)
    );
}
