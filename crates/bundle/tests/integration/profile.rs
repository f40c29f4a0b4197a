//! A profile goes into a bundle and comes back whole.

use crate::sample;
use scaleprof_bundle::*;
use scaleprof_profile::*;
use scaleprof_vocabulary::{Role, SymbolSource, ThreadState, WakerKind};

/// Every address is a function of its own.
struct Names;

impl Namer for Names {
    fn frames(&mut self, address: u64, kernel: bool) -> Vec<Frame> {
        vec![Frame {
            module: if kernel { KERNEL } else { "mysqld" }.into(),
            build_id: Some("00ff".into()),
            address: address as i64,
            function: Some(format!("f{address}").into()),
            inlined: false,
            file: Some("sync/sync0sync.cc".into()),
            line: Some(7),
            symbol_source: SymbolSource::Dwarf,
        }]
    }
}

fn waiting(thread: u32, time_ns: u64, user: &[u64]) -> RawSample {
    RawSample {
        time_ns,
        thread,
        cpu: 1,
        state: ThreadState::Lock,
        weight_ns: 2.5e6,
        stack: RawStack {
            kernel: vec![900],
            user: user.to_vec(),
            ..RawStack::default()
        },
        lock: Some(LockWait {
            goes_on: false,
            kernel: false,
            address: 0x7000,
            operation: 9,
            owner: Some(8),
            holder_stack: Some(RawStack {
                user: vec![50, 11],
                ..RawStack::default()
            }),
            holder_state: Some(ThreadState::Io),
        }),
        waker: Some(Waker {
            kind: WakerKind::Kernel,
            stack: None,
        }),
    }
}

#[test]
fn samples_stacks_and_locks_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let writer = BundleWriter::create(folder.path()).unwrap();
    writer.write_manifest(&sample::manifest()).unwrap();
    let mut converter = Converter::new();
    for measurement in 0..2 {
        let clock = MeasurementClock {
            monotonic_ns: 1_000_000_000,
            utc: UtcMicros(1_800_000_000_000_000),
        };
        converter.add(&waiting(7, 3_500_000_000, &[30, 11]), &mut Names);
        converter.add(
            &waiting(9, 900_000_000, &[31 + u64::try_from(measurement).unwrap(), 11]),
            &mut Names,
        );
        let mut rows = MeasurementRows::default();
        rows.add_profile(measurement, converter.take(), &clock, |thread| match thread {
            7 => Role::Connection,
            _ => Role::Background,
        });
        writer.write_measurement(&sample::rung(measurement), &rows).unwrap();
    }
    let bundle = Bundle::open(folder.path()).unwrap();
    assert_eq!(bundle.samples.len(), 4);
    let samples: Vec<SampleRow> = bundle.samples.rows().collect();
    let first = &samples[0];
    assert_eq!((first.second, first.time_us), (2, UtcMicros(1_800_000_002_500_000)));
    assert_eq!(
        (first.role, first.state, first.weight_ns),
        (Role::Connection, ThreadState::Lock, 2.5e6)
    );
    assert_eq!(first.waker_kind, Some(WakerKind::Kernel));
    assert_eq!(first.holder_state, Some(ThreadState::Io));
    assert!(bundle.stacks.iter().any(|row| Some(row.stack) == first.holder_stack));
    assert_eq!((samples[1].second, samples[1].role), (-1, Role::Background));
    assert_eq!(first.stack, samples[2].stack);
    let lock = bundle.locks.iter().find(|row| Some(row.lock) == first.lock).unwrap();
    assert_eq!(
        (lock.operation.as_str(), lock.waits, lock.holder_samples),
        ("wait_bitset", 1, 1)
    );

    // Every stack leads to a thread's outermost frame, and every frame is there.
    for sample in &samples {
        let (mut at, mut functions) = (Some(sample.stack), Vec::new());
        while let Some(stack) = at {
            let row = bundle.stacks.iter().find(|row| row.stack == stack).unwrap();
            let frame = bundle.frames.iter().find(|frame| frame.frame == row.frame).unwrap();
            functions.push(frame.function.clone().unwrap());
            at = row.parent;
            assert_eq!(row.depth, 3 - functions.len() as i32);
        }
        assert_eq!((&*functions[0], &*functions[2]), ("f900", "f10"));
    }
}
