//! What is written for other tools says what was to be written, and what was written is read again.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scaleprof_profile::import::{ReadOptions, Recording, Weights, read_recordings};
use scaleprof_profile::{
    About, Amount, Cost, CostProfile, Frame, FrameId, Frames, KERNEL, Moment, StackId, StackTree, ThreadLine, Timeline,
    Unit, firefox, folded, pprof, speedscope,
};
use scaleprof_vocabulary::{Role, SymbolSource, ThreadState};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Time by function: in it alone, and with all that it calls.
type ByFunction = BTreeMap<String, (f64, f64)>;

const NANOSECOND: f64 = 1e-9;
const MICROSECOND: f64 = 1e-6;

fn add(sums: &mut ByFunction, path: &[String], time: f64) {
    if let Some(leaf) = path.last() {
        sums.entry(leaf.clone()).or_default().0 += time;
    }
    for function in path.iter().collect::<BTreeSet<_>>() {
        sums.entry(function.clone()).or_default().1 += time;
    }
}

fn path(stacks: &StackTree, frames: &Frames, stack: StackId) -> Vec<String> {
    let name = |frame: FrameId| frames.get(frame).expect("kept").function_name();
    stacks.frames(stack).into_iter().map(name).collect()
}

/// What a profile comes to in a unit.
fn of_profile(profile: &CostProfile, unit: Unit) -> ByFunction {
    let factor = profile.about.amount.factor(unit);
    let mut sums = ByFunction::new();
    for cost in &profile.costs {
        let path = path(&profile.stacks, &profile.frames, cost.stack);
        add(&mut sums, &path, cost.thread_seconds * factor);
    }
    sums
}

fn of_recording(recording: &Recording) -> ByFunction {
    let profile = &recording.profile;
    let mut sums = ByFunction::new();
    for sample in &profile.samples {
        add(
            &mut sums,
            &path(&profile.stacks, &profile.frames, sample.stack),
            sample.weight_ns / 1e9,
        );
    }
    sums
}

/// Whether they have the same functions with the same times, each off by so much at most. A function without time may be missing.
fn agree(one: &ByFunction, other: &ByFunction, within: f64) -> Result<(), TestCaseError> {
    for name in one.keys().chain(other.keys()) {
        let of = |sums: &ByFunction| sums.get(name).copied().unwrap_or_default();
        let (a, b) = (of(one), of(other));
        prop_assert!(
            (a.0 - b.0).abs() <= within && (a.1 - b.1).abs() <= within,
            "{name}: {a:?} and {b:?}"
        );
    }
    Ok(())
}

fn frame() -> impl Strategy<Value = Frame> {
    let modules = prop::sample::select(vec!["mysqld", "libc.so.6", KERNEL, "[ext4]", "[vdso]"]);
    let names = prop::sample::select(vec![
        "main",
        "do_command(THD*)",
        "operator new(unsigned long)",
        "std::max<int>(int const&, int const&)",
        "row_search.part.0",
        "row_search",
        "futex_wait",
        "(anonymous namespace)::f",
    ]);
    let place = (modules, option::weighted(0.9, names), 0..5_i64);
    (place, any::<bool>(), option::of(1..99_i32)).prop_map(|((module, function, address), inlined, line)| Frame {
        module: module.into(),
        build_id: (module != KERNEL).then(|| format!("{:x}", module.len()).into()),
        address,
        function: function.map(Into::into),
        inlined,
        file: line.map(|line| format!("sql/{}.cc", line % 3).into()),
        line,
        symbol_source: SymbolSource::Dwarf,
    })
}

/// A profile with all that a bundle may have: recursion, functions of the kernel, inlined ones, places without a name. What is built
/// in is in the module of what it is built into.
fn profile() -> impl Strategy<Value = CostProfile> {
    let names = (option::of(0..3_usize), option::of(0..3_usize));
    let cost = (vec(0..9_usize, 1..7), 0..8_usize, 0..3_usize, names, 0.0..0.01);
    let amount = prop_oneof![
        (1.0..1e6).prop_map(Amount::Transactions),
        (1.0..60.0).prop_map(Amount::Seconds),
        Just(Amount::Unknown)
    ];
    (vec(frame(), 9), vec(cost, 1..40), amount).prop_map(|(frames, costs, amount)| {
        let mut profile = CostProfile {
            about: About {
                title: "a run".into(),
                short_title: "4 connections".into(),
                amount,
                ..About::default()
            },
            names: ["connection", "log_sys+64", "purge"].map(str::to_owned).to_vec(),
            ..CostProfile::default()
        };
        for (path, state, role, (thread, lock), thread_seconds) in costs {
            let mut stack = None;
            let mut outer: Option<Frame> = None;
            for place in path {
                let mut frame = frames[place].clone();
                match &outer {
                    Some(outer) if frame.inlined => {
                        frame.module.clone_from(&outer.module);
                        frame.build_id.clone_from(&outer.build_id);
                        frame.address = outer.address;
                    }
                    _ => frame.inlined = false,
                }
                let number = profile.frames.intern(frame.clone());
                stack = Some(profile.stacks.child(stack, number));
                outer = Some(frame);
            }
            profile.costs.push(Cost {
                stack: stack.expect("a path has frames"),
                state: ThreadState::ALL[state],
                role: Role::ALL[role],
                thread,
                lock,
                thread_seconds,
                samples: 1,
            });
        }
        profile
    })
}

fn read(bytes: &[u8]) -> Vec<Recording> {
    read_recordings(bytes, &ReadOptions::default()).expect("what was written is read")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pprof_is_read_as_it_was_written(profile in profile()) {
        // One that comes to nothing has no samples to read.
        prop_assume!(profile.costs.iter().any(|cost| cost.thread_seconds > 2.0 * NANOSECOND));
        let found = read(&pprof::write(&profile).unwrap());
        prop_assert_eq!((found.len(), found[0].weights), (1, Weights::Nanoseconds));
        let within = NANOSECOND * (profile.costs.len() + 1) as f64;
        agree(&of_profile(&profile, Unit::Seconds), &of_recording(&found[0]), within)?;
        let read = &found[0].profile;
        for state in ThreadState::ALL {
            let costs = profile.costs.iter().filter(|cost| cost.state == state);
            let expected: f64 = costs.map(|cost| cost.thread_seconds).sum();
            let samples = read.samples.iter().filter(|sample| sample.state == state);
            let found: f64 = samples.map(|sample| sample.weight_ns / 1e9).sum();
            prop_assert!((expected - found).abs() <= within, "{:?}", state);
        }
        // Addresses, lines, files, modules and what is built into what come back too.
        let known: BTreeSet<String> = profile.frames.iter().map(|(_, frame)| described(frame)).collect();
        for (_, frame) in read.frames.iter() {
            prop_assert!(known.contains(&described(frame)), "{} is not among {:?}", described(frame), known);
        }
        for name in ["connection", "log_sys+64", "purge"] {
            let place = profile.names.iter().position(|known| known == name);
            let waits = profile.costs.iter().filter(|cost| cost.lock == place && cost.thread_seconds > 0.0);
            let lock = read.locks.iter().find(|lock| lock.variable.as_ref().is_some_and(|of| of.name == name));
            let expected: f64 = waits.map(|cost| cost.thread_seconds).sum();
            prop_assert!((lock.map_or(0.0, |lock| lock.wait_ns / 1e9) - expected).abs() <= within);
        }
    }

    #[test]
    fn the_shown_value_of_pprof_is_per_transaction(profile in profile()) {
        let bytes = pprof::write(&profile).unwrap();
        let name = match profile.about.amount {
            Amount::Transactions(_) => "time_per_1000_transactions",
            Amount::Seconds(_) => "time_per_second",
            Amount::Unknown => "time",
        };
        let of = |name: &str| ReadOptions { event: Some(name.to_owned()), ..ReadOptions::default() };
        match read_recordings(&bytes[..], &of(name)) {
            Ok(found) => {
                let within = NANOSECOND * (profile.costs.len() + 1) as f64;
                agree(&of_profile(&profile, Unit::PerAmount), &of_recording(&found[0]), within)?;
            }
            // One that comes to nothing has no samples to read.
            Err(error) => {
                let seconds: f64 = profile.costs.iter().map(|cost| cost.thread_seconds).sum();
                prop_assert!(seconds * profile.about.amount.factor(Unit::PerAmount) < NANOSECOND, "{name}: {error}");
            }
        }
        let found = read_recordings(&bytes[..], &of("samples")).unwrap();
        let samples: f64 = found[0].profile.samples.iter().map(|sample| sample.weight_ns).sum();
        prop_assert_eq!((samples / 1e3, found[0].weights), (profile.costs.len() as f64, Weights::Counts));
        prop_assert!(read_recordings(&bytes[..], &of("cycles")).is_err());
    }

    #[test]
    fn folded_stacks_are_read_as_they_were_written(before in profile(), after in profile()) {
        for unit in [Unit::PerAmount, Unit::Seconds] {
            let within = MICROSECOND * (before.costs.len() + after.costs.len() + 1) as f64;
            let text = folded::write(&before, unit);
            if !text.is_empty() {
                let found = read(text.as_bytes());
                prop_assert_eq!(found.len(), 1);
                agree(&of_profile(&before, unit), &of_recording(&found[0]), within)?;
            }
            let text = folded::write_difference(&before, &after, unit);
            let nothing = |column| text.lines().all(|line| line.rsplit(' ').nth(column) == Some("0"));
            if nothing(0) || nothing(1) {
                // One side came to less than a microsecond: there is nothing to read of it.
                prop_assert!(read_recordings(text.as_bytes(), &ReadOptions::default()).is_err());
            } else {
                let found = read(text.as_bytes());
                prop_assert_eq!(found.len(), 2);
                for (profile, found) in [&before, &after].into_iter().zip(&found) {
                    agree(&of_profile(profile, unit), &of_recording(found), within)?;
                }
            }
        }
    }

    #[test]
    fn speedscope_has_every_rung(one in profile(), other in profile()) {
        let bytes = speedscope::write(&[&one, &other], 1, Unit::PerAmount).unwrap();
        let file: Value = serde_json::from_slice(&bytes).unwrap();
        prop_assert_eq!(&file["activeProfileIndex"], 1);
        let name = |place: &Value| file["shared"]["frames"][place.as_u64().unwrap() as usize]["name"].as_str().unwrap().to_owned();
        for (profile, rung) in [&one, &other].into_iter().zip(column(&file, "profiles")) {
            let mut sums = ByFunction::new();
            let mut all = 0.0;
            for (sample, weight) in column(&rung, "samples").iter().zip(column(&rung, "weights")) {
                let path: Vec<String> = sample.as_array().unwrap().iter().map(name).collect();
                add(&mut sums, &path, weight.as_f64().unwrap() / 1e3);
                all += weight.as_f64().unwrap();
            }
            agree(&of_profile(profile, Unit::PerAmount), &sums, 1e-9)?;
            prop_assert!((rung["endValue"].as_f64().unwrap() - all).abs() <= 1e-9 * all.max(1.0));
        }
    }

    #[test]
    fn firefox_has_every_thread_with_its_states(profile in profile()) {
        let file: Value = serde_json::from_slice(&firefox::write(&timeline(&profile)).unwrap()).unwrap();
        let shared = &file["shared"];
        let at = |table: &Value, name: &str, place: usize| table[name][place].as_u64().unwrap() as usize;
        let (stacks, frames, functions) = (&shared["stackTable"], &shared["frameTable"], &shared["funcTable"]);
        let mut sums = ByFunction::new();
        let mut waits_for_locks = 0.0;
        for thread in column(&file, "threads") {
            let samples = &thread["samples"];
            for (stack, weight) in column(samples, "stack").iter().zip(column(samples, "weight")) {
                let seconds = weight.as_f64().unwrap() / 1e3;
                let leaf = stack.as_u64().unwrap() as usize;
                let mut path = Vec::new();
                let mut next = Some(leaf);
                while let Some(stack) = next {
                    let function = at(frames, "func", at(stacks, "frame", stack));
                    path.push(shared["stringArray"][at(functions, "name", function)].as_str().unwrap().to_owned());
                    next = stacks["prefix"][stack].as_u64().map(|outer| outer as usize);
                    prop_assert!(next.is_none_or(|outer| outer < stack), "callers stand first");
                }
                path.reverse();
                add(&mut sums, &path, seconds);
                let category = at(frames, "category", at(stacks, "frame", leaf));
                if file["meta"]["categories"][category]["name"] == "Waiting for a lock" {
                    waits_for_locks += seconds;
                }
            }
        }
        agree(&of_profile(&profile, Unit::Seconds), &sums, 1e-9)?;
        let locks = profile.costs.iter().filter(|cost| cost.state == ThreadState::Lock);
        let expected: f64 = locks.map(|cost| cost.thread_seconds).sum();
        prop_assert!((waits_for_locks - expected).abs() < 1e-9);
    }
}

fn column(table: &Value, name: &str) -> Vec<Value> {
    table[name].as_array().expect(name).clone()
}

/// All that a format keeps of a frame; of the kernel no address.
fn described(frame: &Frame) -> String {
    let frame = Frame {
        symbol_source: SymbolSource::NameAlone,
        ..frame.clone()
    };
    format!("{frame:?}")
}

/// Every cost as a sample of one of three threads.
fn timeline(profile: &CostProfile) -> Timeline {
    let moment = |place: usize, cost: &Cost| Moment {
        at_ns: place as i64,
        state: cost.state,
        stack: cost.stack,
        thread_seconds: cost.thread_seconds,
    };
    let thread = |number: usize| {
        let costs = profile.costs.iter().enumerate();
        ThreadLine {
            number: number as i64,
            name: None,
            role: Role::Connection,
            moments: costs
                .filter(|(place, _)| place % 3 == number)
                .map(|(place, cost)| moment(place, cost))
                .collect(),
        }
    };
    Timeline {
        about: profile.about.clone(),
        frames: profile.frames.clone(),
        stacks: profile.stacks.clone(),
        interval_ns: None,
        threads: (0..3).map(thread).collect(),
    }
}
