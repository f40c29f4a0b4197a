//! The unwinder on stacks of which every frame is known: those of this very process.
#![cfg(target_arch = "x86_64")]

use scaleprof_vocabulary::UnwindStatus;
use std::arch::asm;
use std::cell::RefCell;
use std::hint::black_box;

use proptest::prelude::*;
use scaleprof_probe::plain::{StackUnwinder, parse_maps};
use scaleprof_profile::RawStack;

fn own_unwinder() -> StackUnwinder {
    StackUnwinder::of_process(std::process::id()).expect("our own maps can be read")
}

/// Walks the stack from the caller of this function on, as a sample of it at this moment would be.
#[inline(always)]
fn walk_from_here(unwinder: &mut StackUnwinder) -> RawStack {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers and changes none.
    unsafe {
        asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp, options(nomem, nostack));
    }
    let stack = readable_around(sp);
    unwinder.unwind(pc, sp, bp, &mut |address| read_own(&stack, address))
}

/// The mapping in which an address lies.
fn readable_around(address: u64) -> std::ops::Range<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
    let around = parse_maps(&maps)
        .into_iter()
        .find(|mapping| mapping.addresses.contains(&address));
    around.expect("mapped").addresses
}

fn read_own(readable: &std::ops::Range<u64>, address: u64) -> Option<u64> {
    let inside = address >= readable.start && address.checked_add(8)? <= readable.end;
    // SAFETY: the eight bytes lie in a mapping that the kernel listed, the stack of this thread.
    inside.then(|| unsafe { (address as *const u64).read_unaligned() })
}

type Step = fn(&mut StackUnwinder) -> RawStack;

#[inline(never)]
fn inner(unwinder: &mut StackUnwinder) -> RawStack {
    black_box(walk_from_here(unwinder))
}

#[inline(never)]
fn middle(unwinder: &mut StackUnwinder) -> RawStack {
    let room = black_box([7u8; 3000]);
    let stack = black_box(inner as Step)(unwinder);
    black_box(room);
    stack
}

#[inline(never)]
fn outer(unwinder: &mut StackUnwinder) -> RawStack {
    black_box(black_box(middle as Step)(unwinder))
}

/// Whether the address lies near the beginning of the function: none here is longer than this.
fn is_in(address: u64, function: Step) -> bool {
    let start = function as usize as u64;
    (start..start + 4096).contains(&address)
}

#[test]
fn callers_come_in_their_order_and_the_thread_start_ends_the_stack() {
    let stack = outer(&mut own_unwinder());
    assert_eq!(stack.ending, UnwindStatus::Complete, "{stack:x?}");
    assert!(is_in(stack.user[0], inner), "{stack:x?}");
    assert!(is_in(stack.user[1], middle), "{stack:x?}");
    assert!(is_in(stack.user[2], outer), "{stack:x?}");
    assert!(stack.user.len() > 5, "the thread's start lies further out: {stack:x?}");
    assert_eq!(stack.interrupted, [0]);
}

#[test]
fn a_second_walk_gives_the_same_stack() {
    let mut unwinder = own_unwinder();
    let walks: Vec<RawStack> = (0..2).map(|_| outer(&mut unwinder)).collect();
    assert_eq!(walks[0], walks[1]);
}

#[test]
fn the_maps_may_be_read_again_at_any_time() {
    let mut unwinder = own_unwinder();
    unwinder.read_maps_again().expect("readable");
    assert_eq!(outer(&mut unwinder).ending, UnwindStatus::Complete);
    assert!(unwinder.missing().is_empty(), "{:?}", unwinder.missing());
}

#[test]
fn kept_maps_serve_as_well_as_those_of_a_living_process() {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
    let mut kept = StackUnwinder::of_maps(&maps, "/".as_ref());
    let mut living = own_unwinder();
    let walks: Vec<RawStack> = [&mut kept, &mut living].into_iter().map(outer).collect();
    assert_eq!(walks[0], walks[1]);
}

thread_local! {
    static IN_HANDLER: RefCell<Option<(StackUnwinder, RawStack)>> = const { RefCell::new(None) };
}

extern "C" fn on_signal(_: libc::c_int) {
    IN_HANDLER.with_borrow_mut(|slot| {
        let (unwinder, stack) = slot.as_mut().expect("the test put it there");
        *stack = walk_from_here(unwinder);
    });
}

#[inline(never)]
fn raises_a_signal(_: &mut StackUnwinder) -> RawStack {
    // SAFETY: plain system calls; the signal goes to this thread, whose handler is set.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), libc::SIGUSR1) };
    black_box(RawStack::default())
}

#[test]
fn a_stack_goes_on_behind_a_signal_where_the_thread_was_interrupted() {
    let handler: extern "C" fn(libc::c_int) = on_signal;
    // SAFETY: the handler runs at a known place, inside the call of tgkill, and so may use memory as any code may.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    IN_HANDLER.set(Some((own_unwinder(), RawStack::default())));
    black_box(raises_a_signal as Step)(&mut own_unwinder());
    let (_, stack) = IN_HANDLER.take().expect("put there above");
    assert_eq!(stack.ending, UnwindStatus::Complete, "{stack:x?}");
    // The handler, then the kernel's return trampoline, then the system call's wrapper that was interrupted.
    let [0, interrupted] = stack.interrupted[..] else {
        panic!("one signal frame: {stack:x?}");
    };
    let after = &stack.user[usize::from(interrupted)..];
    assert!(
        after.iter().any(|address| is_in(*address, raises_a_signal)),
        "{stack:x?}"
    );
}

#[test]
fn memory_that_cannot_be_read_ends_the_stack_and_harms_no_later_one() {
    let mut unwinder = own_unwinder();
    let whole = outer(&mut unwinder);
    let cut = unwinder.unwind(whole.user[0], 0x1000, 0x1000, &mut |_| None);
    assert_eq!(cut.ending, UnwindStatus::UnreadableMemory);
    assert_eq!(cut.user, whole.user[..1]);
    let again = outer(&mut unwinder);
    assert_eq!(
        (again.ending, &again.user[..3]),
        (UnwindStatus::Complete, &whole.user[..3])
    );
}

#[test]
fn an_address_of_no_file_ends_the_stack() {
    let stack = own_unwinder().unwind(0x1234, 0x5000, 0x6000, &mut |_| Some(1));
    assert_eq!(
        (stack.ending, &stack.user[..]),
        (UnwindStatus::NoMapping, &[0x1234][..])
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever stands in registers and memory: the walk ends, and it never claims more than it has.
    #[test]
    fn garbage_never_hangs_or_panics(sp: u64, bp: u64, offset in 0u64..0x8000, words in proptest::collection::vec(any::<u64>(), 1..64)) {
        let mut unwinder = own_unwinder();
        let near = outer as Step as usize as u64;
        let stack = unwinder.unwind(near + offset, sp, bp, &mut |address| {
            Some(words[(address / 8) as usize % words.len()] % 3 + near + address % 0x8000)
        });
        prop_assert!(!stack.user.is_empty() && stack.user.len() <= scaleprof_probe::plain::MOST_FRAMES);
    }
}
