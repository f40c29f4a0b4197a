//! What is written is what is read, whatever the values are.

use crate::sample;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scaleprof_bundle::*;
use scaleprof_vocabulary::Word;
use scaleprof_vocabulary::{
    AccessKind, BranchKind, LatencyKind, MeasurementOutcome, Operation, Role, SymbolSource, ThreadState, UnwindStatus,
    WakerKind,
};

/// One of the words of a closed set.
fn any_of<W: Word + std::fmt::Debug>(words: &'static [W]) -> impl Strategy<Value = W> {
    proptest::sample::select(words)
}

fn any_rung() -> impl Strategy<Value = MeasurementRow> {
    let finite = proptest::num::f64::NORMAL | proptest::num::f64::ZERO;
    (
        any::<[i32; 4]>(),
        any::<[i64; 2]>(),
        option::of(finite),
        any_of(&MeasurementOutcome::ALL),
        option::of(any::<i64>()),
    )
        .prop_map(|(small, big, rate, outcome, bytes)| MeasurementRow {
            measurement: 0,
            connections: small[0],
            idle_connections: small[1],
            repeat: small[2],
            offered_rate: rate,
            started_at: UtcMicros(big[0]),
            connect_seconds: big[1] as f64,
            outcome,
            client_lag_p99_us: rate,
            client_threads: small[3],
            client_resident_bytes: bytes,
        })
}

fn any_second() -> impl Strategy<Value = SecondRow> {
    (
        any::<i32>(),
        any::<[i64; 11]>(),
        option::of(any::<i64>()),
        option::of(any::<i64>()),
    )
        .prop_map(|(second, n, a, b)| SecondRow {
            measurement: 0,
            second,
            started_at: UtcMicros(n[0]),
            duration_ns: n[1],
            transactions: n[2],
            queries: n[3],
            reads: n[4],
            writes: n[5],
            errors: n[6],
            retries: n[7],
            service_sum_ns: n[8],
            response_sum_ns: n[9],
            in_transaction_ns: n[8],
            p50_ns: a,
            p95_ns: b,
            p99_ns: a,
            max_ns: Some(n[10]),
        })
}

fn any_counter() -> impl Strategy<Value = CounterRow> {
    let number = proptest::num::f64::NORMAL | proptest::num::f64::INFINITE;
    (
        option::of(any::<i32>()),
        "[a-z._]{0,9}",
        number,
        option::of(0.0..1.0f64),
    )
        .prop_map(|(second, counter, value, running_share)| CounterRow {
            measurement: 0,
            second,
            counter,
            value,
            running_share,
        })
}

fn any_latency() -> impl Strategy<Value = LatencyRow> {
    let operation = (any_of(&Operation::ALL), option::of(any::<i32>()), option::of(".{0,9}"));
    (any::<i32>(), operation, any::<[i64; 2]>()).prop_map(|(second, (operation, number, name), n)| LatencyRow {
        measurement: 0,
        second,
        kind: LatencyKind::ALL[usize::from(second < 0)],
        operation,
        number,
        name,
        value_ns: n[0],
        count: n[1],
    })
}

fn any_error() -> impl Strategy<Value = ErrorRow> {
    (any::<i32>(), ".{0,9}", any::<i64>(), any::<bool>()).prop_map(|(number, statement, count, retried)| ErrorRow {
        measurement: 0,
        error_code: number,
        statement,
        count,
        retried,
    })
}

fn any_state() -> impl Strategy<Value = StateRow> {
    let numbers = (
        option::of(any::<i32>()),
        option::of(any::<i64>()),
        any::<i64>(),
        option::of(any::<i64>()),
    );
    let kind = (any_of(&Role::ALL), any_of(&ThreadState::ALL));
    (numbers, kind, option::of(".{0,9}")).prop_map(
        |((second, thread, nanoseconds, lifetime_ns), (role, state), name)| StateRow {
            measurement: 0,
            second,
            role,
            thread,
            name,
            state,
            nanoseconds,
            lifetime_ns,
        },
    )
}

fn any_sample() -> impl Strategy<Value = SampleRow> {
    let optional = (
        option::of(any::<i64>()),
        option::of(any_of(&WakerKind::ALL)),
        option::of(any::<i64>()),
        option::of(any::<i64>()),
        option::of(any_of(&ThreadState::ALL)),
    );
    (
        any::<[i32; 2]>(),
        any::<[i64; 3]>(),
        (
            any_of(&Role::ALL),
            any_of(&ThreadState::ALL),
            any_of(&UnwindStatus::ALL),
        ),
        0.0..1e12f64,
        optional,
    )
        .prop_map(
            |(
                small,
                big,
                (role, state, unwind_status),
                weight_ns,
                (lock, waker_kind, waker_stack, holder_stack, holder_state),
            )| SampleRow {
                measurement: 0,
                second: small[0],
                time_us: UtcMicros(big[0]),
                thread: big[1],
                role,
                cpu: small[1],
                state,
                stack: big[2],
                unwind_status,
                weight_ns,
                lock,
                waker_kind,
                waker_stack,
                holder_stack,
                holder_state,
            },
        )
}

fn any_lock() -> impl Strategy<Value = LockRow> {
    let names = (option::of(".{0,9}"), option::of(".{0,9}"));
    (any::<[i64; 3]>(), names, 0.0..1e12f64, option::of(any::<i64>())).prop_map(
        |(numbers, (name, module), wait_ns, holder_stack)| LockRow {
            measurement: 0,
            lock: numbers[0],
            name,
            module,
            operation: "wait".into(),
            waits: numbers[1],
            wait_ns,
            holder_stack,
            holder_samples: numbers[2],
        },
    )
}

fn any_stack() -> impl Strategy<Value = StackRow> {
    (any::<[i64; 2]>(), option::of(any::<i64>()), any::<i32>()).prop_map(|(n, parent, depth)| StackRow {
        stack: n[0],
        parent,
        frame: n[1],
        depth,
    })
}

fn any_frame() -> impl Strategy<Value = FrameRow> {
    let names = (
        ".{0,9}",
        option::of(".{0,9}"),
        option::of(".{0,9}"),
        option::of(".{0,9}"),
    );
    (any::<[i64; 2]>(), names, any::<bool>(), option::of(any::<i32>())).prop_map(
        |(numbers, (module, build_id, function, file), inlined, line)| FrameRow {
            frame: numbers[0],
            module: module.into(),
            build_id: build_id.map(Into::into),
            address: numbers[1],
            function: function.map(Into::into),
            inlined,
            file: file.map(Into::into),
            line,
            symbol_source: SymbolSource::Dwarf,
        },
    )
}

fn any_instruction() -> impl Strategy<Value = InstructionRow> {
    let word = || option::of(".{0,9}");
    let branch = option::of(any_of(&BranchKind::ALL));
    let access = option::of(any_of(&AccessKind::ALL));
    let names = (".{0,9}", word(), ".{0,9}", ".{0,9}", word(), word(), branch, access);
    let numbers = (
        any::<[i64; 2]>(),
        any::<i32>(),
        option::of(any::<i32>()),
        option::of(any::<i32>()),
    );
    let optional = (option::of(any::<i64>()), option::of(any::<i64>()), any::<[bool; 2]>());
    (names, numbers, optional).prop_map(|(names, numbers, optional)| {
        let (module, build_id, function, text, file, inlined, branch, access) = names;
        let ([function_start, address], length, line, data_size) = numbers;
        let (target, data_address, [waits, locked]) = optional;
        InstructionRow {
            module,
            build_id,
            function,
            function_start,
            address,
            length,
            text,
            file,
            line,
            inlined: inlined.map(Into::into),
            branch,
            target,
            in_spin_loop: waits,
            access,
            data_address,
            data_size,
            locked,
        }
    })
}

fn any_data_access() -> impl Strategy<Value = DataAccessRow> {
    let word = || option::of(".{0,9}");
    let number = || option::of(any::<i64>());
    let access = option::of(any_of(&AccessKind::ALL));
    let words = (".{0,9}", word(), ".{0,9}", word(), access, word());
    let numbers = (
        any::<[i64; 3]>(),
        option::of(any::<i32>()),
        number(),
        number(),
        number(),
    );
    (words, numbers, any::<[bool; 5]>()).prop_map(|(words, numbers, bits)| {
        let (module, build_id, place, function, access, callee) = words;
        let ([line_pair_address, variable_address, variable_size], calls, instruction, seen_at, seen_behind) = numbers;
        let [is_lock, seldom, locked, in_loop, waits] = bits;
        DataAccessRow {
            module,
            build_id,
            line_pair_address,
            variable: place,
            variable_address,
            variable_size,
            is_lock,
            function,
            call_sites: calls,
            rarely_run: seldom,
            instruction,
            sampled_at: seen_at,
            sampled_after: seen_behind,
            access,
            locked,
            in_loop,
            in_spin_loop: waits,
            callee,
        }
    })
}

fn any_branch() -> impl Strategy<Value = BranchRow> {
    let word = || option::of(".{0,9}");
    let end = || (".{0,9}", word(), word(), any::<i64>());
    let counts = (any::<[i64; 3]>(), option::of(any::<i64>()), option::of(any::<i64>()));
    (end(), end(), counts).prop_map(|(from, to, counts)| {
        let (from_module, from_build_id, from_function, from_address) = from;
        let (to_module, to_build_id, to_function, to_address) = to;
        let ([taken, with_prediction, with_cycles], mispredicted, cycles) = counts;
        BranchRow {
            measurement: 1,
            from_module,
            from_build_id,
            from_function,
            from_address,
            to_module,
            to_build_id,
            to_function,
            to_address,
            taken,
            with_prediction,
            mispredicted,
            with_cycles,
            cycles,
        }
    })
}

fn each_once<T>(rows: Vec<T>, number: impl Fn(&T) -> i64) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    rows.into_iter().filter(|row| seen.insert(number(row))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_row_comes_back_as_it_was(
        rung in any_rung(),
        seconds in vec(any_second(), 0..40),
        counters in vec(any_counter(), 0..40),
        latency in vec(any_latency(), 0..40),
        errors in vec(any_error(), 0..5),
        states in vec(any_state(), 0..20),
        samples in vec(any_sample(), 0..20),
        locks in vec(any_lock(), 0..5),
        stacks in vec(any_stack(), 0..20),
        frames in vec(any_frame(), 0..20),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let writer = BundleWriter::create(folder.path()).unwrap();
        writer.write_manifest(&sample::manifest()).unwrap();
        let stacks = each_once(stacks, |row| row.stack);
        let frames = each_once(frames, |row| row.frame);
        let rows = MeasurementRows { seconds, counters, latency, errors, states, samples, locks, stacks, frames };
        writer.write_measurement(&rung, &rows).unwrap();
        let bundle = Bundle::open(folder.path()).unwrap();
        prop_assert_eq!(&bundle.measurements, &vec![rung]);
        let read = MeasurementRows {
            seconds: bundle.seconds,
            counters: bundle.counters,
            latency: bundle.latency,
            errors: bundle.errors,
            states: bundle.states,
            samples: bundle.samples.rows().collect(),
            locks: bundle.locks,
            stacks: bundle.stacks,
            frames: bundle.frames,
        };
        prop_assert_eq!(read, rows);
    }

    #[test]
    fn instructions_come_back_as_they_were_and_a_bundle_without_them_has_none(rows in vec(any_instruction(), 0..20)) {
        let folder = tempfile::tempdir().unwrap();
        let writer = sample::write_two_measurements(folder.path());
        prop_assert_eq!(Bundle::open(folder.path()).unwrap().instructions().unwrap(), vec![]);
        writer.write_instructions(&rows).unwrap();
        prop_assert_eq!(Bundle::open(folder.path()).unwrap().instructions().unwrap(), rows);
        std::fs::write(folder.path().join("instructions/instructions.parquet"), b"PAR1PAR1").unwrap();
        let said = Bundle::open(folder.path()).unwrap().instructions().unwrap_err().to_string();
        prop_assert!(said.contains("instructions/instructions.parquet"), "{}", said);
    }

    #[test]
    fn branches_of_finished_measurements_come_back_as_they_were_and_a_bundle_without_them_says_so(rows in vec(any_branch(), 0..20)) {
        let folder = tempfile::tempdir().unwrap();
        let writer = sample::write_two_measurements(folder.path());
        prop_assert_eq!(Bundle::open(folder.path()).unwrap().branches().unwrap(), None);
        writer.write_branches(1, rows.len(), |places| rows[places].to_vec()).unwrap();
        // The measurement that they are of was never finished.
        let unfinished = BranchRow { measurement: 7, ..BranchRow::default() };
        writer.write_branches(7, 1, |_| vec![unfinished.clone()]).unwrap();
        prop_assert_eq!(Bundle::open(folder.path()).unwrap().branches().unwrap(), Some(rows));
    }

    #[test]
    fn data_accesses_come_back_as_they_were_and_a_bundle_without_them_says_so(rows in vec(any_data_access(), 0..20)) {
        let folder = tempfile::tempdir().unwrap();
        let writer = sample::write_two_measurements(folder.path());
        prop_assert_eq!(Bundle::open(folder.path()).unwrap().data_accesses().unwrap(), None);
        writer.write_data_accesses(&rows).unwrap();
        prop_assert_eq!(Bundle::open(folder.path()).unwrap().data_accesses().unwrap(), Some(rows));
    }

    #[test]
    fn a_part_of_arbitrary_bytes_is_one_error_that_names_it(bytes in vec(any::<u8>(), 0..300), framed in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        sample::write_two_measurements(folder.path());
        let part = folder.path().join("counters/measurement-00001.parquet");
        let content = if framed { [b"PAR1".as_slice(), &bytes, b"PAR1"].concat() } else { bytes };
        std::fs::write(&part, content).unwrap();
        let said = Bundle::open(folder.path()).unwrap_err().to_string();
        prop_assert!(said.contains("counters/measurement-00001.parquet"), "{}", said);
    }

    #[test]
    fn a_part_with_one_byte_changed_never_brings_the_reader_down(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let folder = tempfile::tempdir().unwrap();
        sample::write_two_measurements(folder.path());
        for part in ["seconds/measurement-00001.parquet", "samples/measurement-00000.parquet"] {
            let part = folder.path().join(part);
            let mut bytes = std::fs::read(&part).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = to;
            std::fs::write(&part, bytes).unwrap();
            let _ = Bundle::open(folder.path());
        }
    }
}

#[test]
fn many_rows_span_pages() {
    let folder = tempfile::tempdir().unwrap();
    let writer = BundleWriter::create(folder.path()).unwrap();
    writer.write_manifest(&sample::manifest()).unwrap();
    let latency: Vec<_> = (0..200_000)
        .map(|n| LatencyRow {
            operation: Operation::Statement,
            number: Some(n % 7),
            ..sample::latency(0, n, i64::from(n) * 977, 1)
        })
        .collect();
    let counters: Vec<_> = (0..60_000)
        .map(|n| sample::counter(0, (n % 3 > 0).then_some(n), &format!("status.{n}"), f64::from(n) * 1.1))
        .collect();
    let rows = MeasurementRows {
        latency,
        counters,
        ..MeasurementRows::default()
    };
    writer.write_measurement(&sample::rung(0), &rows).unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert!(bundle.latency == rows.latency);
    assert!(bundle.counters == rows.counters);
}

/// One of many samples, of which few are alike.
fn one_of_many(n: i64) -> SampleRow {
    SampleRow {
        measurement: 0,
        second: (n / 10_000) as i32,
        time_us: UtcMicros(n * 31),
        thread: n % 512,
        role: if n % 9 == 0 { Role::Background } else { Role::Connection },
        cpu: (n % 2) as i32,
        state: [ThreadState::Cpu, ThreadState::Lock, ThreadState::Net][n as usize / 7 % 3],
        stack: if n < 150_000 { n * 977 } else { n % 150_000 * 977 },
        unwind_status: UnwindStatus::Complete,
        weight_ns: n as f64 * 1.1,
        lock: (n % 3 == 1).then_some(n % 40),
        waker_kind: (n % 50_000 > 25_000).then_some(WakerKind::SameProcess),
        waker_stack: (n % 4 == 0).then_some(n * 1009),
        holder_stack: (n % 5 == 0).then_some(n * 1013),
        holder_state: (n % 60_000 > 40_000).then_some(ThreadState::Io),
    }
}

#[test]
fn samples_of_many_groups_come_back_whole_and_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let writer = BundleWriter::create(folder.path()).unwrap();
    writer.write_manifest(&sample::manifest()).unwrap();
    let held = MeasurementRows {
        samples: (0..1000).map(one_of_many).collect(),
        ..MeasurementRows::default()
    };
    let make = |places: std::ops::Range<usize>| places.map(|place| one_of_many(1000 + place as i64)).collect();
    writer
        .write_measurement_with(&sample::rung(0), held.tables(), 600_000, make)
        .unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert!(bundle.samples.rows().eq((0..601_000).map(one_of_many)));
    // More than are written at once.
    assert!(bundle.samples.blocks().len() > 8);
}

#[test]
fn samples_that_are_missing_or_of_another_measurement_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let writer = BundleWriter::create(folder.path()).unwrap();
    writer.write_manifest(&sample::manifest()).unwrap();
    let row = |measurement| SampleRow {
        measurement,
        ..sample::profiled(0).samples[0].clone()
    };
    let rows = MeasurementRows::default();
    let foreign = writer.write_measurement_with(&sample::rung(0), rows.tables(), 3, |_| vec![row(0), row(7), row(0)]);
    assert!(foreign.unwrap_err().to_string().contains("other numbers"));
    let too_few = writer.write_measurement_with(&sample::rung(1), rows.tables(), 3, |_| vec![row(1)]);
    assert!(
        too_few
            .unwrap_err()
            .to_string()
            .contains("1 rows were made for 3 places")
    );
    assert!(Bundle::open(folder.path()).unwrap().samples.is_empty());
}

/// More values than a dictionary holds, so that the last pages have none, and rows without a value between others.
#[test]
fn many_samples_span_pages_with_and_without_a_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    let writer = BundleWriter::create(folder.path()).unwrap();
    writer.write_manifest(&sample::manifest()).unwrap();
    let rows = MeasurementRows {
        samples: (0..200_000).map(one_of_many).collect(),
        ..MeasurementRows::default()
    };
    writer.write_measurement(&sample::rung(0), &rows).unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert!(bundle.samples.rows().eq(rows.samples));
    assert_eq!(bundle.samples.blocks().len(), 1);
}
