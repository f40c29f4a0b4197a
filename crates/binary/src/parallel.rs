//! The same work on many things at once.

use crate::deep_stack::{NoRoom, with_stack};
use crate::makers_cpu::MakersCpu;
use std::mem::MaybeUninit;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;

/// CPUs that this program may use. The system is asked once: it takes several files to tell.
static CPUS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));

/// Room that a thread may take for its calls. What it does not take costs nothing; reading debug information may go deep.
const STACK: usize = 64 << 20;

/// How many CPUs there are for work that is shared out.
#[must_use]
pub fn cpus() -> usize {
    *CPUS
}

/// What `work` makes of each of `items`, in their order, on as many threads as there are CPUs. Who is done takes the next, so
/// large ones and small ones may be mixed.
///
/// # Panics
/// Where `work` does.
pub fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    in_parallel_with(items, |_| (), |(), item| work(item)).0
}

/// The same with something that each thread makes for itself at its `beginning`, by its number, and has at hand for all of its items, such as
/// what it learnt from those before. That of all threads is given too, by their numbers.
///
/// # Panics
/// Where `work` or `beginning` does.
pub fn in_parallel_with<T: Send, R: Send, S: Send>(
    items: Vec<T>,
    beginning: impl Fn(usize) -> S + Sync,
    work: impl Fn(&mut S, T) -> R + Sync,
) -> (Vec<R>, Vec<S>) {
    in_parallel_from_to(items, (beginning, |own| own), work)
}

/// The same with what each thread makes at its end of what it has at hand.
///
/// # Panics
/// Where `work`, `beginning` or `end` does.
pub fn in_parallel_from_to<T: Send, R: Send, S, E: Send>(
    items: Vec<T>,
    (beginning, end): (impl Fn(usize) -> S + Sync, impl Fn(S) -> E + Sync),
    work: impl Fn(&mut S, T) -> R + Sync,
) -> (Vec<R>, Vec<E>) {
    let threads = CPUS.min(items.len());
    if threads <= 1 {
        let mut own = beginning(0);
        let made = items.into_iter().map(|item| work(&mut own, item)).collect();
        return (made, vec![end(own)]);
    }
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let next = AtomicUsize::new(0);
    let take_turns = |number: usize| {
        let mut made: Vec<(usize, R)> = Vec::new();
        let mut own = beginning(number);
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else {
                return (made, end(own));
            };
            // Nobody else has this place, so the lock is free and the item there.
            let item = item.lock().ok().and_then(|mut item| item.take());
            made.extend(item.map(|item| (place, work(&mut own, item))));
        }
    };
    let take_turns = &take_turns;
    let (mut made, all) = thread::scope(|scope| {
        // Where no more threads are allowed, those that there are do all of it.
        let cpu = MakersCpu::here();
        let start = |number| {
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                cpu.leave();
                take_turns(number)
            })
        };
        let others: Vec<_> = (1..threads).map_while(|number| start(number).ok()).collect();
        MakersCpu::let_begin();
        // This thread's own is smaller, and taking more for each piece of work would take longer than some of them.
        let (mut made, ended) = match stacker::remaining_stack() {
            Some(left) if left < STACK / 2 => {
                with_stack(STACK, || take_turns(0)).unwrap_or_else(|NoRoom| take_turns(0))
            }
            _ => take_turns(0),
        };
        let mut all = vec![ended];
        for other in others {
            match other.join() {
                Ok((results, ended)) => {
                    made.extend(results);
                    all.push(ended);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        (made, all)
    });
    made.sort_by_key(|(place, _)| *place);
    (made.into_iter().map(|(_, result)| result).collect(), all)
}

/// What `other` and `here` give, at the same time; without `other` just what `here` gives. Where no further thread is allowed they are done one
/// after the other.
///
/// # Panics
/// Where one of them does.
pub fn beside<A: Send, B>(other: Option<impl FnOnce() -> A + Send>, here: impl FnOnce() -> B) -> (Option<A>, B) {
    beside_on(thread::Builder::new(), other, here)
}

/// Two things at the same time.
///
/// # Panics
/// Where one of them does.
pub fn both<A: Send, B>(other: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    match beside(Some(other), here) {
        (Some(made), made_here) => (made, made_here),
        (None, _) => unreachable!("there is something beside"),
    }
}

fn beside_on<A: Send, B>(
    builder: thread::Builder,
    other: Option<impl FnOnce() -> A + Send>,
    here: impl FnOnce() -> B,
) -> (Option<A>, B) {
    if other.is_none() {
        return (None, here());
    }
    // A thread that cannot be started would take the work with it.
    let other = Mutex::new(other);
    let take = || other.lock().ok().and_then(|mut other| other.take());
    let work = || take().map(|other| other());
    let cpu = MakersCpu::here();
    let work_elsewhere = || {
        cpu.leave();
        work()
    };
    thread::scope(|scope| {
        let thread = builder.spawn_scoped(scope, work_elsewhere);
        MakersCpu::let_begin();
        let made_here = here();
        let made = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => work(),
        };
        (made, made_here)
    })
}

/// What `make` makes of each place below `count`, in their order, on as many threads as there are CPUs. Millions of small things go
/// where they stay at once.
///
/// # Panics
/// Where `make` does.
pub fn filled_in_parallel<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    /// Few enough for all CPUs to have some, and enough to be worth the turn.
    const AT_ONCE: usize = 1 << 14;
    let mut made = Vec::with_capacity(count);
    let room = made.spare_capacity_mut();
    let pieces = room[..count].chunks_mut(AT_ONCE).enumerate().collect();
    let written = in_parallel(pieces, |(number, piece): (usize, &mut [MaybeUninit<T>])| {
        let length = piece.len();
        for (place, room) in (number * AT_ONCE..).zip(piece) {
            room.write(make(place));
        }
        length
    });
    assert_eq!(written.into_iter().sum::<usize>(), count, "a piece was left out");
    // SAFETY: there is room for `count`, and so many places were written: the pieces share none, and each told that it was written whole.
    unsafe { made.set_len(count) };
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let slow_first = |n: u64| {
            thread::sleep(std::time::Duration::from_micros((40 - n) * 50));
            n * n
        };
        let found = in_parallel((0..40).collect(), slow_first);
        assert_eq!(found, (0..40).map(|n| n * n).collect::<Vec<u64>>());
        assert_eq!(in_parallel(Vec::<u64>::new(), slow_first), Vec::<u64>::new());
    }

    #[test]
    fn two_things_are_done_at_the_same_time_or_where_no_thread_can_be_had_one_after_the_other() {
        let own = || thread::current().id();
        let (beside, here) = both(own, own);
        assert_ne!(beside, here);
        assert_eq!(super::beside(None::<fn() -> u8>, || 7), (None, 7));
        // No machine has that much memory.
        let impossible = thread::Builder::new().stack_size(1 << 60);
        let (beside, here) = beside_on(impossible, Some(own), own);
        assert_eq!(beside, Some(here));
    }

    #[test]
    fn where_one_of_two_panics_so_does_the_whole() {
        assert!(std::panic::catch_unwind(|| both(|| panic!("on purpose"), || 1)).is_err());
        assert!(std::panic::catch_unwind(|| both(|| 1, || panic!("on purpose"))).is_err());
    }

    #[test]
    fn a_vector_is_filled_in_order() {
        for count in [0, 1, 100, (1 << 14) - 1, 1 << 14, 100_003] {
            let made = filled_in_parallel(count, |place| Box::new(place * 3));
            assert!(made.iter().map(|made| **made).eq((0..count).map(|place| place * 3)));
        }
    }

    #[test]
    fn where_making_panics_so_does_filling() {
        let fails = || {
            filled_in_parallel(100_000, |place| match place {
                70_000 => panic!("on purpose"),
                _ => vec![place],
            })
        };
        assert!(std::panic::catch_unwind(fails).is_err());
    }

    #[test]
    fn each_thread_has_what_it_learnt_from_the_items_before() {
        let (counted, all) = in_parallel_with(
            (0..100).collect(),
            |_| 0,
            |before: &mut u64, _: u64| {
                *before += 1;
                *before
            },
        );
        assert_eq!(all.iter().sum::<u64>(), 100);
        // By whomever, each count begins at one and goes on without a gap.
        let begun = counted.iter().filter(|count| **count == 1).count();
        assert!(
            (1..=thread::available_parallelism().map_or(1, NonZero::get)).contains(&begun),
            "{counted:?}"
        );
        assert!(
            counted
                .iter()
                .all(|count| *count == 1 || counted.contains(&(count - 1))),
            "{counted:?}"
        );
    }
}
