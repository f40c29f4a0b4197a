//! From raw hardware counts to figures that can be believed: differences, scaling and cross-checks, without any I/O.
//!
//! Every group holds cycles and instructions first, then at most two more events: four at once count truly on the
//! machines seen so far, while a fifth or sixth can read garbage (a Zen 3 guest announced six counters; the sixth gave 0
//! cycles, or 582,654 instructions instead of 1.5e9). Groups take turns. A figure that is in one group only is scaled by
//! cycles, which are in all of them: `value = counted in the group x cycles of all groups / cycles of the group`.

use crate::figure::{Counter, Missing};
use crate::perf_event::{Event, RawGroup};

/// Instructions per cycle outside of this range are garbage: no CPU retires more than ten, and one instruction in a
/// hundred cycles is slower than memory makes them.
const PLAUSIBLE_INSTRUCTIONS_PER_CYCLE: std::ops::RangeInclusive<f64> = 0.01..=10.0;
/// Cycles per second of CPU time.
const PLAUSIBLE_CLOCK_HERTZ: std::ops::RangeInclusive<f64> = 1e8..=1e10;
/// How far the instructions per cycle of two groups may lie apart: they count different seconds of one load.
const GROUPS_AGREE_WITHIN: f64 = 0.25;
/// Groups are compared only when both have counted this long; shorter, their seconds may differ for good reasons.
const COMPARED_FROM_NANOSECONDS: u64 = 1_000_000_000;

/// Raw counts of all groups: by group, then by CPU.
pub type HardwareCounts = Vec<Vec<RawGroup>>;

/// Divides the events into groups of at most four: cycles and instructions in each, then two of the others.
pub fn layout(others: &[Event]) -> Vec<Vec<Event>> {
    let pair = [Event::Cycles, Event::Instructions];
    if others.is_empty() {
        return vec![pair.to_vec()];
    }
    others
        .chunks(2)
        .map(|two| pair.iter().chain(two).copied().collect())
        .collect()
}

/// The figure of an event in the bundle.
pub(crate) fn figure(event: Event) -> &'static str {
    match event {
        Event::Cycles => "hw.cycles",
        Event::Instructions => "hw.instructions",
        Event::CacheReferences => "hw.cache_references",
        Event::CacheMisses => "hw.cache_misses",
        Event::BranchMisses => "hw.branch_misses",
        Event::CpuClock => "hw.task_clock_seconds",
        Event::ContextSwitches => "server.context_switches",
        Event::Migrations => "server.migrations",
    }
}

/// One group between two readings, all CPUs together, scaled up by the time the kernel did not let it count.
#[derive(Debug, Clone, Default)]
struct GroupDelta {
    values: Vec<f64>,
    enabled: u64,
    running: u64,
}

fn group_delta(before: &[RawGroup], after: &[RawGroup]) -> GroupDelta {
    let mut sum = GroupDelta::default();
    for (then, now) in before.iter().zip(after) {
        let enabled = now.time_enabled.saturating_sub(then.time_enabled);
        let running = now.time_running.saturating_sub(then.time_running);
        sum.enabled = sum.enabled.saturating_add(enabled);
        sum.running = sum.running.saturating_add(running);
        if running == 0 {
            continue;
        }
        let scale = (enabled as f64 / running as f64).max(1.0);
        sum.values.resize(sum.values.len().max(now.values.len()), 0.0);
        for (total, (then, now)) in sum.values.iter_mut().zip(then.values.iter().zip(&now.values)) {
            *total += now.saturating_sub(*then) as f64 * scale;
        }
    }
    sum
}

impl GroupDelta {
    fn cycles(&self) -> f64 {
        self.values.first().copied().unwrap_or(0.0)
    }

    fn instructions(&self) -> f64 {
        self.values.get(1).copied().unwrap_or(0.0)
    }

    fn instructions_per_cycle(&self) -> f64 {
        self.instructions() / self.cycles()
    }

    /// Why the counts of this group cannot be true.
    fn fault(&self) -> Option<String> {
        if self.enabled == 0 {
            return Some("the server did not run while this group of counters had its turn".to_owned());
        }
        if self.running == 0 {
            return Some(
                "other users of the counters left them no time at all; end other profilers: ps -C perf".to_owned(),
            );
        }
        if self.cycles() <= 0.0 {
            return Some("the counter of cycles stood still while the server ran: it reads garbage here".to_owned());
        }
        let ratio = self.instructions_per_cycle();
        (!PLAUSIBLE_INSTRUCTIONS_PER_CYCLE.contains(&ratio))
            .then(|| format!("{ratio:.4} instructions per cycle are not possible: the counters read garbage here"))
    }
}

/// Figures of the time between two readings, and those that had to be dropped with the reason.
///
/// `task_clock_seconds` is the CPU time of the same processes in the same time from a software
/// clock, where known; it exposes a counter of cycles that runs wild. `running_share` of a figure
/// is the share of that time in which its counter really counted (1 = all of it; less means that
/// the value is scaled up).
pub fn hardware_figures(
    layout: &[Vec<Event>],
    before: &HardwareCounts,
    after: &HardwareCounts,
    task_clock_seconds: Option<f64>,
) -> (Vec<Counter>, Vec<Missing>) {
    let groups: Vec<GroupDelta> = before
        .iter()
        .zip(after)
        .map(|(then, now)| group_delta(then, now))
        .collect();
    let mut faults: Vec<Option<String>> = groups.iter().map(GroupDelta::fault).collect();
    compare_groups(&groups, &mut faults);

    let good = || {
        groups
            .iter()
            .zip(&faults)
            .filter(|(_, fault)| fault.is_none())
            .map(|(group, _)| group)
    };
    let cycles: f64 = good().map(GroupDelta::cycles).sum();
    let instructions: f64 = good().map(GroupDelta::instructions).sum();
    let enabled: f64 = groups.iter().map(|group| group.enabled as f64).sum();
    let running: f64 = good().map(|group| group.running as f64).sum();
    let share = |running: f64| Some((running / enabled).clamp(0.0, 1.0));
    // Time in which only a faulty group counted is filled in from the others.
    let good_enabled: f64 = good().map(|group| group.enabled as f64).sum();
    let fill = if good_enabled > 0.0 {
        enabled / good_enabled
    } else {
        1.0
    };

    let mut counters = Vec::new();
    let mut missing = Vec::new();
    let wild_clock = task_clock_seconds
        .filter(|seconds| *seconds > 0.01)
        .map(|seconds| cycles * fill / seconds);
    let common_fault = match wild_clock {
        _ if cycles <= 0.0 => Some(
            faults
                .iter()
                .flatten()
                .next()
                .cloned()
                .unwrap_or_else(|| "nothing was counted".to_owned()),
        ),
        Some(hertz) if !PLAUSIBLE_CLOCK_HERTZ.contains(&hertz) => Some(format!(
            "{hertz:.3e} cycles in a second of CPU time are not possible: the counters read garbage here"
        )),
        _ => None,
    };
    for (event, value) in [(Event::Cycles, cycles), (Event::Instructions, instructions)] {
        match &common_fault {
            None => counters.push(Counter {
                name: figure(event),
                value: value * fill,
                running_share: share(running),
            }),
            Some(reason) => missing.push(Missing {
                figure: figure(event),
                reason: reason.clone(),
            }),
        }
    }
    for ((events, group), fault) in layout.iter().zip(&groups).zip(&faults) {
        for (place, event) in events.iter().enumerate().skip(2) {
            let raw = group.values.get(place).copied().unwrap_or(0.0);
            match common_fault
                .as_ref()
                .or(fault.as_ref())
                .cloned()
                .or_else(|| impossible(*event, raw, group))
            {
                None => counters.push(Counter {
                    name: figure(*event),
                    value: raw * cycles * fill / group.cycles(),
                    running_share: share(group.running as f64),
                }),
                Some(reason) => missing.push(Missing {
                    figure: figure(*event),
                    reason,
                }),
            }
        }
    }
    drop_misses_above_references(&mut counters, &mut missing);
    (counters, missing)
}

/// Two groups that count the same load must agree on its instructions per cycle; where they do not, the one that lies
/// further from the median of all is dropped, and of two only, both (nothing tells which is right).
fn compare_groups(groups: &[GroupDelta], faults: &mut [Option<String>]) {
    let compared: Vec<usize> = (0..groups.len())
        .filter(|i| faults[*i].is_none() && groups[*i].running >= COMPARED_FROM_NANOSECONDS)
        .collect();
    let mut ratios: Vec<f64> = compared.iter().map(|i| groups[*i].instructions_per_cycle()).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(lowest), Some(highest)) = (ratios.first().copied(), ratios.last().copied()) else {
        return;
    };
    if highest <= lowest * (1.0 + GROUPS_AGREE_WITHIN) {
        return;
    }
    let median = ratios[ratios.len() / 2];
    for i in compared {
        let ratio = groups[i].instructions_per_cycle();
        let agrees = (ratio.max(median) / ratio.min(median)) <= 1.0 + GROUPS_AGREE_WITHIN;
        if ratios.len() == 2 || !agrees {
            faults[i] = Some(format!(
                "groups of counters disagree about the same load ({lowest:.2} and {highest:.2} instructions per cycle)"
            ));
        }
    }
}

fn impossible(event: Event, value: f64, group: &GroupDelta) -> Option<String> {
    let most = match event {
        Event::BranchMisses => group.instructions(),
        // Prefetches count too, but never more than a few in a cycle.
        _ => group.cycles() * 10.0,
    };
    (value > most).then(|| {
        format!(
            "more {} than the CPU can make: the counter reads garbage here",
            event.name()
        )
    })
}

fn drop_misses_above_references(counters: &mut Vec<Counter>, missing: &mut Vec<Missing>) {
    let value = |name: &str| counters.iter().find(|c| c.name == name).map(|c| c.value);
    let (references, misses) = (figure(Event::CacheReferences), figure(Event::CacheMisses));
    let (Some(all), Some(missed)) = (value(references), value(misses)) else {
        return;
    };
    if missed > all * 1.05 {
        counters.retain(|c| c.name != references && c.name != misses);
        let reason = "more cache misses than cache references were counted: one of the two reads garbage here";
        missing.extend([references, misses].map(|figure| Missing {
            figure,
            reason: reason.to_owned(),
        }));
    }
}

#[cfg(test)]
mod tests;
