//! Which of a recording's events count.
//!
//! Two events that tick with the same CPU time would count it twice, so one is taken: the first that tells CPU time, or the one
//! that was asked for. Waits that `perf record --off-cpu` wrote, or that follow from switches, are other time and go
//! with it.

use super::attribute::Attribute;
use super::passed::Taken;
use super::weights::{Counted, Scale, needs_samples, scale};
use crate::event_name::are_one_on_different_cores;
use crate::import::{CallPaths, ImportError, ReadOptions};
use std::collections::BTreeMap;

/// The events that count.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub(super) events: &'a [Attribute],
    /// Places of those that are taken; the first is the one that was chosen.
    taken: Vec<usize>,
    /// Whether the event at each place is taken.
    is_taken: Vec<bool>,
    asked: bool,
}

impl<'a> Selection<'a> {
    /// Chooses among the events of a recording.
    ///
    /// # Errors
    /// None is called as the options ask for.
    pub(super) fn of(events: &'a [Attribute], options: &ReadOptions) -> Result<Selection<'a>, ImportError> {
        let place_of = |fits: &dyn Fn(&Attribute) -> bool| events.iter().position(fits);
        let asked = options.event.as_deref();
        let chosen = match asked {
            Some(asked) => place_of(&|event| event.is_called(asked)).ok_or_else(|| ImportError::NoSuchEvent {
                asked: asked.to_owned(),
                present: names(events),
            })?,
            None => place_of(&Attribute::tells_cpu_time)
                .or_else(|| place_of(&|event| !event.is_off_cpu() && !event.is_tracepoint() && !event.is_dummy()))
                // Before tracepoints that are merely counted, such as the others of `perf sched record`.
                .or_else(|| place_of(&Attribute::is_switch))
                .or_else(|| place_of(&|event| !event.is_off_cpu() && !event.is_wake_up() && !event.is_dummy()))
                .unwrap_or(0),
        };
        let mut taken = vec![chosen];
        // The same event on other kinds of cores tells of other CPUs.
        if let Some(name) = events
            .get(chosen)
            .map(Attribute::words)
            .filter(|name| Some(name.as_str()) != asked)
        {
            let is_same = |at: &usize| are_one_on_different_cores(&name, &events[*at].words());
            taken.extend((0..events.len()).filter(is_same));
        }
        // Asked for one event, the user gets one.
        if asked.is_none() {
            let others = events.iter().enumerate();
            taken.extend(
                others
                    .filter(|(at, event)| *at != chosen && (event.is_off_cpu() || event.is_switch()))
                    .map(|(at, _)| at),
            );
        }
        let mut is_taken = vec![false; events.len()];
        for at in &taken {
            is_taken[*at] = true;
        }
        Ok(Selection {
            events,
            taken,
            is_taken,
            asked: asked.is_some(),
        })
    }

    /// Whether samples of the event at that place count.
    pub(super) fn takes(&self, event: usize) -> bool {
        self.is_taken.get(event).copied().unwrap_or(false)
    }

    /// Whether samples of the event at that place tell of waits of those that count, when they end or what they are for: they weigh
    /// nothing themselves.
    pub(super) fn listens_to(&self, event: usize) -> bool {
        let is_switch = |at: &usize| self.events.get(*at).is_some_and(Attribute::is_switch);
        let tells = |event: &Attribute| event.is_wake_up() || event.is_futex_call() || event.is_futex_end();
        !self.takes(event) && self.events.get(event).is_some_and(tells) && self.taken.iter().any(is_switch)
    }

    /// Whether what counts leaves out the kernel.
    pub(super) fn is_without_kernel(&self) -> bool {
        let taken = self.taken.iter().filter_map(|at| self.events.get(*at));
        taken
            .filter(|event| event.tells_cpu_time())
            .any(|event| event.without_kernel)
    }

    /// The names of the events that count.
    pub(super) fn words(&self) -> String {
        let taken = self.taken.iter().filter_map(|at| self.events.get(*at));
        taken.map(Attribute::words).collect::<Vec<String>>().join(", ")
    }

    /// How the callers of the event that was chosen were found, and the most bytes of the stack that were copied for it.
    pub(super) fn call_paths(&self) -> Option<(CallPaths, u32)> {
        let event = self.events.get(self.chosen())?;
        Some((event.call_paths(), event.copied_bytes))
    }

    /// Whether threads are off their CPUs in the samples of that event.
    pub(super) fn waits(&self, event: usize) -> bool {
        let event = self.events.get(event);
        event.is_some_and(|event| event.is_off_cpu() || event.is_switch())
    }

    /// The event that was chosen.
    pub(super) fn chosen(&self) -> usize {
        self.taken.first().copied().unwrap_or(0)
    }

    /// Whether samples of the events that count have the last jumps before them.
    pub(super) fn has_jumps(&self) -> bool {
        let mut taken = self.taken.iter().filter_map(|at| self.events.get(*at));
        taken.any(Attribute::has_jumps)
    }

    /// What to say of the events that do not count.
    pub(super) fn notes(&self) -> Vec<String> {
        let left: Vec<Attribute> = (0..self.events.len())
            .filter(|at| !self.takes(*at) && !self.listens_to(*at))
            .filter_map(|at| self.events.get(at).cloned())
            .filter(|event| !event.is_dummy())
            .collect();
        let others = (!left.is_empty() && !self.asked).then(|| {
            format!(
                "event {} was read as CPU time; choose another with --event: {}",
                self.words(),
                names(&left)
            )
        });
        others.into_iter().collect()
    }

    /// How the weights of each event relate to time.
    pub(super) fn scales(&self, taken: &[Taken], lengths_known: bool) -> BTreeMap<usize, Scale> {
        let mut of_events: BTreeMap<usize, Vec<Counted>> = BTreeMap::new();
        // A large recording has millions, and of clocks none is looked at.
        for same in taken.chunk_by(|a, b| a.event == b.event) {
            let event = same.first().map_or(0, |taken| taken.event as usize);
            let of_event = of_events.entry(event).or_default();
            if self.events.get(event).is_some_and(needs_samples) {
                of_event.extend(same.iter().map(|taken| taken.counted));
            }
        }
        let events = self.taken.iter().filter_map(|at| Some((*at, self.events.get(*at)?)));
        events
            .filter_map(|(at, event)| {
                if event.is_switch() && lengths_known {
                    return Some((at, Scale::Nanoseconds(1.0)));
                }
                // An event without samples says nothing of those of others.
                let samples = of_events.remove(&at)?;
                Some((at, scale(event, &samples)))
            })
            .collect()
    }
}

fn names(events: &[Attribute]) -> String {
    events.iter().map(Attribute::words).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u32, config: u64, name: &str) -> Attribute {
        Attribute {
            kind,
            config,
            name: Some(name.to_owned()),
            ..Attribute::default()
        }
    }

    #[test]
    fn an_event_counts_on_all_kinds_of_cores() {
        let events = [
            event(0, 4 << 32, "cpu_core/cycles/P"),
            event(0, 10 << 32, "cpu_atom/cycles/P"),
            event(0, 10 << 32 | 1, "cpu_atom/instructions/P"),
        ];
        let taken = |asked: Option<&str>| {
            let options = ReadOptions {
                event: asked.map(str::to_owned),
                ..ReadOptions::default()
            };
            let selection = Selection::of(&events, &options).expect("chosen");
            (0..3).filter(|at| selection.takes(*at)).collect::<Vec<usize>>()
        };
        assert_eq!(taken(None), [0, 1]);
        assert_eq!(taken(Some("cycles")), [0, 1]);
        assert_eq!(taken(Some("cpu_atom/cycles/P")), [1]);
    }

    #[test]
    fn switches_count_where_nothing_tells_cpu_time_and_wake_ups_only_end_waits() {
        let events = [
            event(1, 9, "dummy:HG"),
            event(2, 300, "sched:sched_stat_wait"),
            event(2, 317, "sched:sched_waking"),
            event(2, 314, "sched:sched_switch"),
        ];
        let chosen = Selection::of(&events, &ReadOptions::default()).expect("chosen");
        let heard: Vec<(bool, bool)> = (0..4).map(|at| (chosen.takes(at), chosen.listens_to(at))).collect();
        assert_eq!(heard, [(false, false), (false, false), (false, true), (true, false)]);
        // Without switches a wake-up ends nothing.
        let alone = Selection::of(&events[..3], &ReadOptions::default()).expect("chosen");
        assert!(alone.takes(1) && !alone.listens_to(2));
    }

    #[test]
    fn the_first_event_of_cpu_time_counts_and_waits_go_with_it() {
        let events = [
            event(1, 3, "context-switches"),
            event(0, 0, "cycles:u"),
            event(1, 0, "cpu-clock"),
            event(1, 10, "offcpu-time"),
        ];
        let chosen = Selection::of(&events, &ReadOptions::default()).expect("chosen");
        let takes = |selection: &Selection<'_>| (0..4).filter(|at| selection.takes(*at)).collect::<Vec<usize>>();
        assert_eq!(takes(&chosen), [1, 3]);
        assert!(
            chosen
                .notes()
                .iter()
                .any(|note| note.contains("context-switches, cpu-clock"))
        );
        let asked = |name: &str| {
            let options = ReadOptions {
                event: Some(name.to_owned()),
                ..ReadOptions::default()
            };
            Selection::of(&events, &options).map(|selection| takes(&selection))
        };
        assert_eq!(asked("cycles").expect("known"), [1]);
        assert_eq!(asked("cpu-clock").expect("known"), [2]);
        let complaint = asked("branches").expect_err("unknown").to_string();
        assert!(
            complaint.contains("cpu-clock") && complaint.contains("--event"),
            "{complaint}"
        );
    }
}
