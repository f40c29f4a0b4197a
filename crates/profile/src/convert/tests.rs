use super::*;
use crate::{KERNEL, Waker};
use proptest::collection::vec;
use proptest::prelude::*;
use scaleprof_vocabulary::{SymbolSource, ThreadState, UnwindStatus, WakerKind};

/// Functions of 0x100 bytes, named by their start; those at 0x700 have another function built in. Knows how often it was
/// asked.
#[derive(Default)]
struct Names {
    asked: Vec<(u64, bool)>,
}

impl Namer for Names {
    fn frames(&mut self, address: u64, kernel: bool) -> Vec<Frame> {
        self.asked.push((address, kernel));
        let function = |name: String, inlined| Frame {
            module: if kernel { KERNEL } else { "mysqld" }.into(),
            build_id: None,
            address: address as i64,
            function: Some(name.into()),
            inlined,
            file: None,
            line: None,
            symbol_source: SymbolSource::Symtab,
        };
        match address >> 8 {
            0 => vec![],
            7 => vec![function("built_in".into(), true), function("f7".into(), false)],
            n => vec![function(format!("{}{n:x}", if kernel { "k" } else { "f" }), false)],
        }
    }

    fn variable(&mut self, address: u64) -> Option<Variable> {
        (address >= 0x10_000).then(|| Variable {
            module: "mysqld".into(),
            name: format!("log_sys+{}", address - 0x10_000),
        })
    }
}

fn user(addresses: &[u64]) -> RawStack {
    RawStack {
        user: addresses.to_vec(),
        ..RawStack::default()
    }
}

fn sample(stack: RawStack) -> RawSample {
    RawSample {
        time_ns: 5,
        thread: 7,
        cpu: 1,
        state: ThreadState::Cpu,
        weight_ns: 1e6,
        stack,
        lock: None,
        waker: None,
    }
}

fn waiting(address: u64, stack: RawStack, holder_stack: Option<RawStack>) -> RawSample {
    RawSample {
        state: ThreadState::Lock,
        lock: Some(LockWait {
            goes_on: false,
            kernel: false,
            address,
            operation: 0,
            owner: None,
            holder_state: holder_stack.as_ref().map(|_| ThreadState::RunQueue),
            holder_stack,
        }),
        ..sample(stack)
    }
}

fn converted(samples: &[RawSample]) -> (Profile, Names) {
    let (mut converter, mut names) = (Converter::new(), Names::default());
    for sample in samples {
        converter.add(sample, &mut names);
    }
    assert_eq!(
        (converter.len(), converter.is_empty()),
        (samples.len(), samples.is_empty())
    );
    (converter.take(), names)
}

fn path(profile: &Profile, stack: StackId) -> String {
    let frames = profile.stacks.frames(stack);
    let name = |id: &FrameId| profile.frames.get(*id).unwrap().function.clone().unwrap();
    frames.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_thread_starts_outside_and_the_kernel_stands_inside() {
    let stack = RawStack {
        kernel: vec![0x900, 0x810],
        ..user(&[0x300, 0x210, 0x110])
    };
    let (profile, names) = converted(&[sample(stack)]);
    assert_eq!(path(&profile, profile.samples[0].stack), "f1 f2 f3 k8 k9");
    let asked = [
        (0x10f, false),
        (0x20f, false),
        (0x300, false),
        (0x80f, true),
        (0x900, true),
    ];
    assert_eq!(names.asked, asked);
}

#[test]
fn a_return_address_at_the_end_of_a_function_belongs_to_the_call_before_it() {
    // The callee never returns, so the return address is already the next function.
    let (profile, _) = converted(&[sample(user(&[0x300, 0x200]))]);
    assert_eq!(path(&profile, profile.samples[0].stack), "f1 f3");
}

#[test]
fn what_a_signal_interrupted_is_no_return_address() {
    let stack = RawStack {
        interrupted: vec![0, 2],
        ..user(&[0x300, 0x410, 0x200, 0x110])
    };
    let (profile, _) = converted(&[sample(stack)]);
    assert_eq!(path(&profile, profile.samples[0].stack), "f1 f2 f4 f3");
}

#[test]
fn built_in_functions_stand_inside_the_function_that_holds_them() {
    let (profile, _) = converted(&[sample(user(&[0x300, 0x710]))]);
    assert_eq!(path(&profile, profile.samples[0].stack), "f7 built_in f3");
}

#[test]
fn an_incomplete_stack_never_merges_with_a_complete_one() {
    let incomplete = RawStack {
        ending: UnwindStatus::NoRule,
        ..user(&[0x300, 0x210])
    };
    let nothing = RawStack {
        ending: UnwindStatus::NoUserStack,
        ..RawStack::default()
    };
    let samples = [user(&[0x300, 0x210]), incomplete, nothing, RawStack::default()].map(sample);
    let (profile, _) = converted(&samples);
    let paths: Vec<_> = profile.samples.iter().map(|s| path(&profile, s.stack)).collect();
    assert_eq!(
        paths,
        [
            "f2 f3",
            "[incomplete: no_rule] f2 f3",
            "[incomplete: no_user_stack]",
            "[incomplete: not_taken]"
        ]
    );
}

#[test]
fn an_address_that_no_file_covers_is_one_frame_without_its_number() {
    let (profile, _) = converted(&[sample(user(&[0x300, 0x42, 0x110])), sample(user(&[0x300, 0x43, 0x110]))]);
    assert_eq!(path(&profile, profile.samples[0].stack), "f1 [unknown] f3");
    assert_eq!(profile.samples[0].stack, profile.samples[1].stack);
}

#[test]
fn every_address_is_looked_up_once() {
    let samples: Vec<_> = (0..100).map(|_| sample(user(&[0x300, 0x210, 0x110]))).collect();
    let (mut converter, mut names) = (Converter::new(), Names::default());
    for sample in &samples {
        converter.add(sample, &mut names);
    }
    assert_eq!(names.asked.len(), 3);
    // Interrupted within the instruction that a thread called from, it is at the same place.
    converter.add(&sample(user(&[0x20f])), &mut names);
    assert_eq!(names.asked.len(), 3);
    converter.add(&samples[0], &mut names);
    converter.forget_addresses();
    converter.add(&samples[0], &mut names);
    assert_eq!(names.asked.len(), 6);
}

#[test]
fn a_lock_in_a_variable_has_its_name_and_one_on_the_heap_the_path_that_waits() {
    let holder = || Some(user(&[0x500, 0x110]));
    let samples = [
        waiting(0x10_040, user(&[0x300, 0x110]), holder()),
        waiting(0x10_040, user(&[0x400, 0x110]), holder()),
        waiting(0x10_040, user(&[0x300, 0x110]), Some(user(&[0x600]))),
        waiting(0x2_000, user(&[0x300, 0x110]), None),
        // Another object, another place in the same function: allocation is no part of a lock's identity.
        waiting(0x3_000, user(&[0x333, 0x110]), None),
        waiting(0x2_000, user(&[0x400, 0x110]), None),
    ];
    let (profile, _) = converted(&samples);
    let locks: Vec<_> = profile.samples.iter().map(|s| s.lock().unwrap()).collect();
    assert!(locks[0] == locks[1] && locks[1] == locks[2] && locks[3] == locks[4]);
    assert!(locks[0] != locks[3] && locks[4] != locks[5]);
    assert_eq!(profile.locks.len(), 3);
    let named = &profile.locks[0];
    assert_eq!(named.variable.as_ref().unwrap().name, "log_sys+64");
    assert_eq!((named.operation.as_str(), named.waits, named.wait_ns), ("wait", 3, 3e6));
    assert_eq!(named.holder_samples, 2);
    assert_eq!(path(&profile, named.holder_stack.unwrap()), "f1 f5");
    assert_eq!(profile.locks[1].variable, None);
}

#[test]
fn the_owner_of_a_lock_is_kept_with_each_wait_and_has_a_place_where_it_was_seen() {
    let asleep = waiting(0x2_000, user(&[0x300]), Some(user(&[0x500, 0x110])));
    let not_taken = RawStack {
        ending: UnwindStatus::NotTaken,
        ..RawStack::default()
    };
    let mut running = waiting(0x2_000, user(&[0x300]), Some(user(&[0x500, 0x110])));
    running.lock.as_mut().unwrap().holder_state = Some(ThreadState::Cpu);
    let mut unseen = waiting(0x2_000, user(&[0x300]), Some(not_taken));
    unseen.lock.as_mut().unwrap().holder_state = Some(ThreadState::Cpu);
    let unknown = waiting(0x2_000, user(&[0x300]), None);
    let (profile, _) = converted(&[asleep, running, unseen, unknown]);
    let owners: Vec<_> = profile
        .samples
        .iter()
        .map(|sample| {
            let wait = sample.wait.as_ref().expect("a lock");
            (wait.holder_stack.map(|stack| path(&profile, stack)), wait.holder_state)
        })
        .collect();
    let expected = [
        (Some("f1 f5".to_owned()), Some(ThreadState::RunQueue)),
        (Some("f1 f5".to_owned()), Some(ThreadState::Cpu)),
        (None, Some(ThreadState::Cpu)),
        (None, None),
    ];
    assert_eq!(profile.locks[0].holder_samples, 2);
    assert_eq!(owners, expected);
}

#[test]
fn the_waker_is_kept_with_its_stack() {
    let raw = RawSample {
        waker: Some(Waker {
            kind: WakerKind::SameProcess,
            stack: Some(user(&[0x500, 0x110])),
        }),
        ..waiting(0x2_000, user(&[0x300]), None)
    };
    let (profile, _) = converted(&[raw]);
    let wait = profile.samples[0].wait.as_ref().expect("a waker");
    assert_eq!(wait.waker_kind, Some(WakerKind::SameProcess));
    assert_eq!(path(&profile, wait.waker_stack.unwrap()), "f1 f5");
}

#[test]
fn the_next_measurement_has_its_own_samples_and_the_same_numbers() {
    let (mut converter, mut names) = (Converter::new(), Names::default());
    let raw = waiting(0x10_040, user(&[0x300, 0x110]), None);
    converter.add(&raw, &mut names);
    let first = converter.take();
    converter.add(&raw, &mut names);
    let second = converter.take();
    assert_eq!(first.samples, second.samples);
    assert_eq!((second.samples.len(), second.locks[0].waits), (1, 1));
    assert_eq!(first.locks, second.locks);
    assert!(converter.take().samples.is_empty());
}

/// Of few addresses, so that many begin alike from their outer end.
fn any_like_stack() -> impl Strategy<Value = RawStack> {
    let address = || prop::sample::select(vec![0x110_u64, 0x210, 0x310, 0x710]);
    let stack = (
        vec(address(), 0..3),
        vec(address(), 0..6),
        vec(0u16..4, 0..2),
        any::<bool>(),
    );
    stack.prop_map(|(kernel, user, interrupted, is_complete)| RawStack {
        kernel,
        user,
        interrupted,
        ending: if is_complete {
            UnwindStatus::Complete
        } else {
            UnwindStatus::NoRule
        },
    })
}

fn any_stack() -> impl Strategy<Value = RawStack> {
    let addresses = || vec(0u64..0xa00, 0..9);
    (addresses(), addresses(), vec(0u16..12, 0..3), 0u8..9).prop_map(|(kernel, user, interrupted, ending)| RawStack {
        kernel,
        user,
        interrupted,
        ending: UnwindStatus::from_number(ending).unwrap(),
    })
}

proptest! {
    #[test]
    fn a_stack_is_the_same_whichever_was_kept_before(stacks in vec(any_like_stack(), 1..40)) {
        let (mut converter, mut names) = (Converter::new(), Names::default());
        for raw in &stacks {
            let kept = converter.keep(raw, &mut names);
            let alone = Converter::new().keep(raw, &mut Names::default());
            prop_assert_eq!(kept, alone);
        }
    }

    #[test]
    fn any_stack_keeps_its_weight_and_finds_a_place(stacks in vec(any_stack(), 0..40)) {
        let samples: Vec<_> = stacks.iter().cloned().map(sample).collect();
        let (profile, _) = converted(&samples);
        prop_assert_eq!(profile.samples.len(), samples.len());
        for (raw, sample) in stacks.iter().zip(&profile.samples) {
            let frames = profile.stacks.frames(sample.stack);
            let root = profile.frames.get(frames[0]).unwrap().function.clone().unwrap();
            let is_complete = raw.ending == UnwindStatus::Complete && !(raw.user.is_empty() && raw.kernel.is_empty());
            prop_assert_eq!(root.starts_with("[incomplete: "), !is_complete);
            prop_assert!(frames.len() >= raw.user.len() + raw.kernel.len());
        }
        // The order in which samples come is no part of any number.
        let backwards: Vec<_> = samples.iter().rev().cloned().collect();
        let (other, _) = converted(&backwards);
        for (one, two) in profile.samples.iter().zip(other.samples.iter().rev()) {
            prop_assert_eq!(one, two);
        }
    }
}
