//! The programs in this machine's kernel, with slots that say what they seldom say by themselves.

use scaleprof_vocabulary::ThreadState;
use std::time::Duration;

use super::*;
use crate::watch::code::ProcessCode;
use crate::watch::layout::ThreadSlot;

const MOST_THREADS: u32 = 1024;

fn attach(place: &mut MaybeUninit<OpenObject>) -> Result<Programs<'_>, ProbeError> {
    let watched = std::process::id();
    let code = ProcessCode::of(watched).map_err(|source| ProbeError::NoProcess { pid: watched, source })?;
    let fit = Fit {
        watched,
        features: KernelFeatures::ask().map_err(LibbpfLog::listen().failed("reading the kernel's types"))?,
        most_threads: MOST_THREADS,
        frequency_hz: 99,
        ignore_run_delay: false,
        foreign_names: false,
        fights_budget: 0.002,
    };
    let mut programs = Programs::load(place, fit, code.tables())?;
    programs.attach(fit)?;
    Ok(programs)
}

/// The programs, attached to this very process; nothing where they cannot be loaded, which CI does not forgive.
fn attached(place: &mut MaybeUninit<OpenObject>) -> Option<Programs<'_>> {
    match attach(place) {
        Ok(programs) => Some(programs),
        Err(error) => {
            testing::skip!("{error}");
            None
        }
    }
}

/// Some kernels do not tell of every switch. A thread that slept, got its CPU unseen and ended there has slept all the same.
#[test]
fn a_thread_that_ends_after_an_arrival_that_nobody_saw_has_slept_before() {
    let mut place = MaybeUninit::uninit();
    let Some(programs) = attached(&mut place) else { return };
    let slept = Duration::from_millis(100);
    // It may switch between its change of the slot and its end, and be seen then: once more.
    for _ in 0..20 {
        let table = programs.skeleton.maps.slots.as_fd();
        let slots = Shared::<ThreadSlot>::map(table, MOST_THREADS as usize).expect("a table");
        let thread = std::thread::spawn(move || {
            std::thread::sleep(slept);
            let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            let mut all = (0..MOST_THREADS as usize).filter_map(|index| Some((index, slots.get(index)?)));
            let (index, slot) = all.find(|(_, slot)| slot.thread == number)?;
            let unseen = ThreadSlot {
                state: ThreadState::Sleep as u8,
                left_as: ThreadState::Sleep as u8,
                entered_at: slot.left_at - 1,
                ..slot
            };
            slots.set(index, unseen);
            Some((index, unseen))
        });
        let (index, before) = thread.join().expect("ends").expect("it was seen to begin");
        // The kernel may tell of its end after it told whoever joined it.
        let ended = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            programs.slots.get(index).filter(|slot| slot.ended != 0)
        });
        let ended = ended.expect("it is seen to end");
        programs.free_slot(index);
        let interval = Duration::from_nanos(ended.left_at - before.left_at);
        if ended.sleep != before.sleep || interval < slept {
            continue;
        }
        let grown = |state: ThreadState| ended.nanoseconds[state as usize] - before.nanoseconds[state as usize];
        let blocked = Duration::from_nanos(grown(ThreadState::Sleep) + grown(ThreadState::RunQueue));
        assert!(blocked >= slept * 9 / 10, "{blocked:?} of {interval:?}: {ended:?}");
        return;
    }
    panic!("it always switched before it ended");
}

/// Hybrid processors, and virtual machines that give a counter to some CPUs only.
#[test]
fn each_cpu_has_the_best_timer_that_it_can_have() {
    let with_counters = |counters: &'static [u32]| {
        move |event, cpu: u32| match event {
            Event::Cycles if !counters.contains(&cpu) => Err("no counter"),
            event => Ok((event, cpu)),
        }
    };
    let cycles = |cpu| (Event::Cycles, cpu);
    let clock = |cpu| (Event::CpuClock, cpu);
    let all = timers(&[0, 1, 2], with_counters(&[0, 1, 2]));
    assert_eq!(all, Ok((vec![cycles(0), cycles(1), cycles(2)], TimerEvent::Cycles)));
    let some = timers(&[0, 1, 2], with_counters(&[0, 2]));
    assert_eq!(some, Ok((vec![cycles(0), clock(1), cycles(2)], TimerEvent::CpuClock)));
    let none = timers(&[0, 1], |_, cpu| Err::<(), u32>(cpu));
    assert_eq!(none, Err(0));
}
