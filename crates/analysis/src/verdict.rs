//! What a run comes to, in one sentence for a person.

use crate::decomposition::{Side, decompose};
use crate::intervals::ratio;
use crate::numbers::{counted, factor, grouped, percent};
use crate::peak::{BAND, Rung, peak};
use scaleprof_bundle::{Decomposition, IronLaw, Verdict};
use scaleprof_vocabulary::LadderVerdict;

/// Rungs below which nothing is said about scaling.
pub const FEWEST_RUNGS: usize = 3;
/// CPUs count as busy from this utilisation on.
const BUSY: f64 = 0.85;

/// A rung that counts, with its iron law where there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Connections and throughput.
    pub rung: Rung,
    /// Its iron law.
    pub law: Option<IronLaw>,
    /// Share of the machine's CPU time that somebody used, the client and other programs included.
    pub machine_busy: Option<f64>,
}

/// Judges rungs that stand by rising connections. `refused` are the connections of the rungs in which the client set the
/// limit: they are named, not interpreted. None where no rung counts.
pub fn verdict(judged: &[Judged], refused: &[u32]) -> Option<Verdict> {
    let rungs: Vec<Rung> = judged.iter().map(|j| j.rung).collect();
    let found = peak(&rungs)?;
    let (best, last) = (&judged[found.index], judged.last()?);
    let decomposition = (found.index + 1 < judged.len())
        .then(|| decomposed(best, last))
        .flatten();
    let mut verdict = Verdict {
        class: match found.falls_over_at {
            _ if judged.len() < FEWEST_RUNGS => LadderVerdict::Inconclusive,
            Some(_) => LadderVerdict::FallsOver,
            None if found.retention.is_none_or(|kept| kept.value >= BAND) => LadderVerdict::Scales,
            // What may be a fall, and is not surely one, is no answer either way.
            None => LadderVerdict::Inconclusive,
        },
        peak_connections: best.rung.connections,
        peak_throughput: best.rung.throughput.estimate(),
        peak_band: found.band,
        retention: found.retention,
        // Two points make no curve: a fall is named where it can be judged.
        falls_over_at: found.falls_over_at.filter(|_| judged.len() >= FEWEST_RUNGS),
        decay_exponent: found.decay_exponent,
        decomposition,
        sentence: String::new(),
    };
    verdict.sentence = sentence(&verdict, judged, last) + &refusals(refused);
    Some(verdict)
}

/// The sentence of a run whose rungs are all limited by the client.
pub fn nothing_counts(refused: &[u32]) -> String {
    format!(
        "Not reliable: the client, not the server, was the limit at {}.",
        listed(refused)
    )
}

fn decomposed(from: &Judged, to: &Judged) -> Option<Decomposition> {
    let side = |j: &'_ Judged, law| Side {
        connections: j.rung.connections,
        throughput: j.rung.throughput.value,
        law,
    };
    decompose(side(from, from.law.as_ref()?), side(to, to.law.as_ref()?))
}

fn sentence(verdict: &Verdict, judged: &[Judged], last: &Judged) -> String {
    let peak = format!(
        "{}/s at {}",
        grouped(verdict.peak_throughput.value),
        counted(verdict.peak_connections, "connection")
    );
    let end = last.rung.connections;
    if judged.len() < FEWEST_RUNGS {
        let rungs = if judged.len() == 1 { "one rung" } else { "two rungs" };
        return format!("Cannot tell whether throughput scales: only {rungs} measured. Throughput is {peak}.");
    }
    let kept = verdict.retention.map_or(1.0, |r| r.value);
    if verdict.falls_over_at.is_some() {
        let fall = match last.rung.throughput.value > 0.0 {
            true => format!(
                "Throughput peaks at {peak} and falls to {} of that at {end}",
                percent(kept)
            ),
            false => format!("Throughput peaks at {peak} and stops at {end}"),
        };
        let why = verdict
            .decomposition
            .as_ref()
            .map(|d| cause(d, last))
            .unwrap_or_default();
        return format!("{fall}{why}.");
    }
    if verdict.peak_connections == end {
        let before = &judged[judged.len() - 2].rung;
        let gain = verdict.peak_throughput.value / before.throughput.value.max(f64::MIN_POSITIVE) - 1.0;
        let above = format!("{} above that at {}", percent(gain), before.connections);
        let low = ratio(&last.rung.throughput, &before.throughput).and_then(|ratio| ratio.low);
        let doubt = match low {
            _ if gain <= 1.0 - BAND => return format!("Throughput levels off at {peak}, the last rung; no fall."),
            Some(low) if low > 1.0 => {
                return format!(
                    "Throughput still rises at the last rung: {peak}, {above}. Measure more connections to find the \
                     peak."
                );
            }
            Some(_) => "is within noise",
            None => "has no interval",
        };
        return format!(
            "No peak found: {peak} at the last rung, {above}, {doubt}. Measure more connections and longer windows."
        );
    }
    if kept >= BAND {
        return format!(
            "Throughput peaks at {peak} and keeps {} of that at {end}.",
            percent(kept)
        );
    }
    let limits = verdict.retention.and_then(|kept| kept.low.zip(kept.high));
    let why = match limits {
        Some((low, high)) if high >= BAND => format!(
            "the interval ({:.0} to {}) does not exclude noise",
            low * 100.0,
            percent(high)
        ),
        None => "without an interval, noise is not excluded".to_owned(),
        // A single measurement knows nothing of how measurements differ.
        Some(_) => "one measurement of a rung does not exclude noise".to_owned(),
    };
    format!(
        "{} of the peak remains at {}; {why}. Peak: {peak}.",
        percent(kept),
        counted(end, "connection")
    )
}

/// Names the parts of a fall: more CPU time per transaction, idle CPUs, or both.
fn cause(parts: &Decomposition, last: &Judged) -> String {
    let lost = parts.throughput;
    if lost >= 0.0 {
        return String::new();
    }
    let busy = last.law.as_ref().map(|law| law.utilisation);
    let dearer = (-parts.cpu_seconds).exp();
    let mut said = Vec::new();
    if parts.cpu_seconds < 0.15 * lost {
        let mut text = format!("CPU time per transaction is {} times that at the peak", factor(dearer));
        if let (Some(i), Some(k)) = (parts.instructions, parts.cycles_per_instruction) {
            text += &format!(
                " (instructions {}x, cycles per instruction {}x",
                factor((-i).exp()),
                factor((-k).exp())
            );
            if let Some(clock) = parts.clock.filter(|clock| clock.abs() > 0.05) {
                text += &format!(", clock {}x", factor(clock.exp()));
            }
            text += ")";
        }
        said.push(text);
    }
    if parts.utilisation < 0.15 * lost {
        let down = |now: f64| {
            format!(
                " (the server's use of them is down from {} to {})",
                percent(now / parts.utilisation.exp()),
                percent(now)
            )
        };
        let whose = match last.machine_busy {
            Some(all) if all >= BUSY => "the client or other processes use its CPUs",
            Some(_) => "CPUs are idle",
            None => "the server leaves CPUs idle or to other processes",
        };
        said.push(format!("{whose}{}", busy.map(down).unwrap_or_default()));
    } else if !said.is_empty() && last.machine_busy.or(busy).is_some_and(|u| u >= BUSY) {
        let Some(first) = said.pop() else { return String::new() };
        let whose = if last.machine_busy.is_some() {
            "the machine's"
        } else {
            "its"
        };
        return format!(": {first} while {whose} CPUs stay busy");
    }
    if said.is_empty() {
        return "; the counters do not explain it".to_owned();
    }
    format!(": {}", said.join(" and "))
}

fn refusals(refused: &[u32]) -> String {
    if refused.is_empty() {
        return String::new();
    }
    format!(" Excluded: {}, because the client was the limit.", listed(refused))
}

/// `1, 2 and 4 connections`.
fn listed(rungs: &[u32]) -> String {
    let list: Vec<String> = rungs.iter().map(ToString::to_string).collect();
    let list = match list.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => list.concat(),
    };
    let what = if rungs == [1] { "connection" } else { "connections" };
    format!("{list} {what}")
}

#[cfg(test)]
mod tests;
