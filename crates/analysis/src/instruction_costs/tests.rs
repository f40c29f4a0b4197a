use super::*;
use crate::ledger::Watched;
use crate::made_up_sample::sample;
use crate::rung_instructions::by_rung;
use crate::totals::{Amount, Window};
use scaleprof_bundle::{Bundle, MeasurementRow, SampleRow, Samples, SecondRow, StackRow, StateRow, UtcMicros};
use scaleprof_vocabulary::{MeasurementOutcome, PerState, Role, SymbolSource, ThreadState};

const MAIN: i64 = 1;
const CALLER: i64 = 2;
/// Function `walk` and what was built into it, both at 0x2010.
const WALK: i64 = 3;
const INLINED: i64 = 4;
const SYSCALL: i64 = 5;
const KERNEL: i64 = 6;
const LOST: i64 = 7;
/// Another instruction of `walk`.
const LATER: i64 = 8;

fn frame(frame: i64, module: &str, function: &str, address: i64, inlined: bool) -> FrameRow {
    FrameRow {
        frame,
        module: module.into(),
        build_id: (module == "mysqld").then(|| "ab12".into()),
        address,
        function: Some(function.into()),
        inlined,
        file: Some(format!("{function}.cc").into()),
        line: Some(7),
        symbol_source: SymbolSource::Dwarf,
    }
}

fn frames() -> Vec<FrameRow> {
    vec![
        frame(MAIN, "mysqld", "main", 0x1000, false),
        frame(CALLER, "mysqld", "caller", 0x1500, false),
        frame(WALK, "mysqld", "walk", 0x2010, false),
        frame(INLINED, "mysqld", "peek", 0x2010, true),
        frame(SYSCALL, "libc.so.6", "read", 0x3002, false),
        frame(KERNEL, "[kernel]", "vfs_read", 0x11, false),
        frame(LOST, "[scaleprof]", "[incomplete: no_rule]", 0, false),
        frame(LATER, "mysqld", "walk", 0x2018, false),
    ]
}

/// Every stack has the number of its innermost frame, but `THROUGH_CALLER`.
const THROUGH_CALLER: i64 = 30;

fn stacks() -> Vec<StackRow> {
    let stack = |stack: i64, parent: Option<i64>, frame: i64| StackRow {
        stack,
        parent,
        frame,
        depth: 0,
    };
    vec![
        stack(MAIN, None, MAIN),
        stack(CALLER, Some(MAIN), CALLER),
        stack(WALK, Some(MAIN), WALK),
        stack(INLINED, Some(WALK), INLINED),
        stack(29, Some(CALLER), WALK),
        stack(THROUGH_CALLER, Some(29), INLINED),
        stack(SYSCALL, Some(MAIN), SYSCALL),
        stack(KERNEL, Some(SYSCALL), KERNEL),
        stack(LOST, None, LOST),
        stack(LATER, Some(MAIN), LATER),
    ]
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

fn costs(samples: &[SampleRow], exact: Option<PerState<Option<f64>>>) -> InstructionCosts {
    let samples: Samples = samples.iter().cloned().collect();
    let watched = Watched {
        samples: samples.blocks().iter().collect(),
        ..Watched::default()
    };
    let (stacks, frames) = (stacks(), frames());
    let call_paths = CallPaths::of_rows(&stacks, &frames);
    InstructionCosts::of(&Sampled::of(&windows(), &watched, exact.as_ref()), &call_paths)
}

fn every_second(state: ThreadState, stack: i64, milliseconds: f64) -> Vec<SampleRow> {
    (2..12)
        .map(|second| sample(second, state, stack, milliseconds))
        .collect()
}

fn at(costs: &InstructionCosts, address: i64) -> (InstructionId, SampledInstruction) {
    let mut found = costs.instructions().filter(|(_, one)| one.at.address == address);
    let (id, instruction) = found.next().expect("it was sampled");
    assert!(found.next().is_none(), "{address:#x} is there twice");
    (id, instruction.clone())
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

#[test]
fn an_instruction_is_one_however_it_was_reached_and_names_what_was_built_in() {
    let samples = [
        every_second(ThreadState::Cpu, INLINED, 10.0),
        every_second(ThreadState::Cpu, THROUGH_CALLER, 20.0),
    ]
    .concat();
    let found = costs(&samples, None);
    let (id, instruction) = at(&found, 0x2010);
    assert_eq!(
        (instruction.at.module.as_str(), instruction.at.build_id.as_deref()),
        ("mysqld", Some("ab12"))
    );
    let functions: Vec<_> = instruction
        .source
        .iter()
        .map(|place| place.function.as_deref().unwrap())
        .collect();
    assert_eq!((functions, instruction.samples), (vec!["peek", "walk"], 20));
    assert!(close(found.seconds(id, Spent::Running), 3e-4));
    assert_eq!(found.seconds(id, Spent::Spinning), 0.0);
}

#[test]
fn instructions_of_one_function_stand_apart_and_add_up() {
    let samples = [
        every_second(ThreadState::Cpu, WALK, 10.0),
        every_second(ThreadState::Cpu, LATER, 5.0),
    ]
    .concat();
    let found = costs(&samples, None);
    let (first, second) = (at(&found, 0x2010).0, at(&found, 0x2018).0);
    assert!(close(found.seconds(first, Spent::Running), 1e-4) && close(found.seconds(second, Spent::Running), 5e-5));
    let both = found.estimate([first, second], &Spent::ITSELF).unwrap();
    assert!(close(both.value, 1.5e-4) && close(found.all().unwrap(), 1.5e-4));
    // Every second is the same, so nothing is unsure.
    assert!(both.high.unwrap() - both.low.unwrap() < 1e-12);
}

#[test]
fn spinning_and_working_are_told_apart_and_scaled_each_to_its_exact_time() {
    let samples = [
        every_second(ThreadState::Cpu, WALK, 10.0),
        every_second(ThreadState::Spin, LATER, 1.0),
    ]
    .concat();
    let exact: PerState<Option<f64>> = [(ThreadState::Cpu, Some(4e-4)), (ThreadState::Spin, Some(8e-4))]
        .into_iter()
        .collect();
    let found = costs(&samples, Some(exact));
    assert!(close(found.seconds(at(&found, 0x2010).0, Spent::Running), 4e-4));
    let spinning = at(&found, 0x2018).0;
    assert!(close(found.seconds(spinning, Spent::Spinning), 8e-4));
    assert_eq!(found.seconds(spinning, Spent::Running), 0.0);
    assert!(close(found.all().unwrap(), 12e-4));
}

#[test]
fn time_in_the_kernel_stands_where_it_was_entered() {
    let samples = [
        every_second(ThreadState::Cpu, KERNEL, 10.0),
        every_second(ThreadState::Cpu, SYSCALL, 1.0),
    ]
    .concat();
    let found = costs(&samples, None);
    let (id, instruction) = at(&found, 0x3002);
    assert_eq!(
        (instruction.at.module.as_str(), instruction.at.build_id),
        ("libc.so.6", None)
    );
    assert!(close(found.seconds(id, Spent::InKernel), 1e-4) && close(found.seconds(id, Spent::Running), 1e-5));
    assert!(close(found.estimate([id], &Spent::ITSELF).unwrap().value, 1e-5));
}

#[test]
fn waits_warm_up_and_background_threads_cost_no_cpu_time_of_a_transaction() {
    let mut samples = every_second(ThreadState::Cpu, WALK, 10.0);
    samples.push(sample(0, ThreadState::Cpu, WALK, 1e6));
    samples.push(sample(5, ThreadState::Lock, WALK, 1e6));
    samples.push(SampleRow {
        role: Role::Background,
        ..sample(5, ThreadState::Cpu, WALK, 1e6)
    });
    let found = costs(&samples, None);
    assert!(close(found.all().unwrap(), 1e-4) && close(found.seconds(at(&found, 0x2010).0, Spent::Running), 1e-4));
}

#[test]
fn stacks_that_are_lost_count_in_all_and_at_no_instruction() {
    let samples = [
        every_second(ThreadState::Cpu, WALK, 10.0),
        every_second(ThreadState::Cpu, LOST, 10.0),
        every_second(ThreadState::Cpu, 99, 10.0),
    ]
    .concat();
    let found = costs(&samples, None);
    assert_eq!(found.instructions().count(), 1);
    assert!(close(found.all().unwrap(), 3e-4));
}

#[test]
fn an_instruction_that_comes_and_goes_has_wide_limits() {
    let samples: Vec<SampleRow> = (2..12)
        .map(|second| sample(second, ThreadState::Cpu, WALK, if second < 4 { 500.0 } else { 1.0 }))
        .collect();
    let found = costs(&samples, None);
    let estimate = found.estimate([at(&found, 0x2010).0], &Spent::ITSELF).unwrap();
    assert!(
        estimate.low.unwrap() < 0.5 * estimate.value && estimate.high.unwrap() > 1.5 * estimate.value,
        "{estimate:?}"
    );
}

#[test]
fn a_rung_without_samples_or_transactions_has_no_costs() {
    let nothing = InstructionCosts::default();
    assert_eq!((nothing.all(), nothing.transactions()), (None, 0.0));
    assert_eq!(nothing.estimate([], &Spent::ITSELF), None);
}

/// Two rungs of 20 s, the instruction twice as dear at the second.
pub(crate) fn bundle() -> Bundle {
    let mut bundle = Bundle {
        stacks: stacks(),
        frames: frames(),
        ..testing::planted::empty()
    };
    for (measurement, connections) in [(0, 8), (1, 64)] {
        bundle.measurements.push(MeasurementRow {
            measurement,
            connections,
            idle_connections: 0,
            repeat: 0,
            offered_rate: None,
            started_at: UtcMicros(0),
            connect_seconds: 0.1,
            outcome: MeasurementOutcome::Complete,
            client_lag_p99_us: None,
            client_threads: 1,
            client_resident_bytes: None,
        });
        for second in 0..20 {
            bundle.seconds.push(SecondRow {
                measurement,
                second,
                started_at: UtcMicros(0),
                duration_ns: 1_000_000_000,
                transactions: 100,
                queries: 100,
                reads: 0,
                writes: 100,
                errors: 0,
                retries: 0,
                service_sum_ns: 1,
                response_sum_ns: 1,
                in_transaction_ns: i64::from(connections) * 1_000_000_000,
                p50_ns: None,
                p95_ns: None,
                p99_ns: None,
                max_ns: None,
            });
            let milliseconds = f64::from(10 * (measurement + 1));
            bundle.states.push(StateRow {
                measurement,
                second: Some(second),
                role: Role::Connection,
                state: ThreadState::Cpu,
                // Twice what the samples say.
                nanoseconds: (2e6 * milliseconds) as i64,
                thread: None,
                name: None,
                lifetime_ns: None,
            });
            bundle.samples.extend([SampleRow {
                measurement,
                ..sample(second, ThreadState::Cpu, WALK, milliseconds)
            }]);
        }
    }
    bundle
}

#[test]
fn every_rung_of_a_bundle_has_its_costs_in_the_measure_of_its_ledger() {
    let rungs = by_rung(&bundle());
    let found: Vec<(Option<u32>, f64)> = rungs
        .iter()
        .map(|rung| {
            (
                rung.connections,
                rung.costs.seconds(at(&rung.costs, 0x2010).0, Spent::Running),
            )
        })
        .collect();
    assert_eq!(
        found.iter().map(|(connections, _)| *connections).collect::<Vec<_>>(),
        [Some(8), Some(64)]
    );
    assert!(close(found[0].1, 2e-4) && close(found[1].1, 4e-4), "{found:?}");
}
