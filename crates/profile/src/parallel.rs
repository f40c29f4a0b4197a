//! The same work on many things at once.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each of `items`, in their order, on as many threads as there are CPUs. Who is done takes the next, so
/// large ones and small ones may be mixed.
///
/// # Panics
/// Where `work` does.
pub fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let next = AtomicUsize::new(0);
    let take_turns = || {
        let mut made: Vec<(usize, R)> = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return made };
            // Nobody else has this place, so the lock is free and the item there.
            let item = item.lock().ok().and_then(|mut item| item.take());
            made.extend(item.map(|item| (place, work(item))));
        }
    };
    let mut made: Vec<(usize, R)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take_turns)).collect();
        let mut made = take_turns();
        for other in others {
            match other.join() {
                Ok(results) => made.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    });
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, result)| result).collect()
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
}
