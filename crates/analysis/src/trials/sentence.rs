//! A comparison of two variants in words.

use super::judge::signed;
use super::{Compared, RungCompared, VariantCompared};
use crate::numbers::{counted, percent};
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::ExperimentVerdict;

/// A margin that is so many times the one that was asked for is worth a word.
const COARSE: f64 = 2.0;
/// Below this no session tells apart what two starts differ by.
const LEAST_MARGIN: f64 = 0.01;

/// What became of throughput from the base to the variant, for a person. `asked` is the margin that was asked for; `same_work` whether
/// the transactions of both are the same: where they are not, only how they scale can be compared.
pub fn sentence([base, variant]: [&str; 2], found: &VariantCompared, asked: f64, same_work: bool) -> String {
    let Some(whole) = &found.overall else {
        return of_nothing(base, variant, found);
    };
    match same_work {
        true if found.open_loop => of_offered_load(base, variant, whole, found) + &left_out(found) + &by_rung(found),
        true => of_whole(base, variant, whole, asked) + &left_out(found) + &by_rung(found) + &scaling(base, found),
        false => of_other_work(base, variant, whole, found),
    }
}

/// No rung is left to compare.
fn of_nothing(base: &str, variant: &str, found: &VariantCompared) -> String {
    let (limited, others): (Vec<&RungCompared>, Vec<&RungCompared>) =
        found.rungs.iter().partition(|rung| rung.client_limited);
    match limited.is_empty() || others.iter().any(|rung| rung.throughput.is_some()) {
        true => format!("Cannot tell about {variant}: no pair of starts with {base} was measured completely."),
        false => format!(
            "Not reliable: the client was the limit of {variant} and {base} at every rung. Use more CPUs (--cpus-client) or \
             threads (--client-threads), or a heavier workload."
        ),
    }
}

/// As many transactions as were asked for are no sign of how many can be had: what differs then is how long they take.
fn of_offered_load(base: &str, variant: &str, whole: &Compared, found: &VariantCompared) -> String {
    let within = whole
        .ratio
        .low
        .zip(whole.ratio.high)
        .is_some_and(|(low, high)| high.ln().max(-low.ln()) <= whole.margin.ln_1p());
    let words = match whole.verdict {
        ExperimentVerdict::Faster => format!(
            "{variant} completed more of the offered load than {base}, by {}.",
            by(whole)
        ),
        ExperimentVerdict::Slower => format!(
            "{variant} completed less of the offered load than {base}, by {}.",
            by(whole)
        ),
        ExperimentVerdict::NoDifference | ExperimentVerdict::Inconclusive if within => format!(
            "{variant} completed as much of the offered load as {base} ({}). The most that either can do is unknown.",
            change(whole)
        ),
        ExperimentVerdict::NoDifference | ExperimentVerdict::Inconclusive => format!(
            "Inconclusive: {variant} against {base}, {} of the offered load.",
            change(whole)
        ),
    };
    let counts = |rung: &&RungCompared| found.overall_rungs.contains(&rung.connections);
    let last = found.rungs.iter().filter(counts).rev();
    let last = last.filter_map(|rung| Some((rung.connections, rung.p99?))).next();
    let response = last.map_or(String::new(), |(connections, ratio)| {
        format!(
            " The 99th percentile of the response time changes by {} at {}.",
            estimate(ratio),
            counted(connections, "connection")
        )
    });
    words + &response + few(whole)
}

/// What is to be added where there are too few pairs for a verdict that counts.
fn few(whole: &Compared) -> &'static str {
    match whole.pairs < super::FEWEST_PAIRS {
        true => " Few pairs: indicative only.",
        false => "",
    }
}

/// The rungs that the figure over the ladder is made without, and why: who reads that one variant is faster must know where it fell over.
fn left_out(found: &VariantCompared) -> String {
    let without = |limited: bool, why: &str| {
        let rungs = found
            .rungs
            .iter()
            .filter(|rung| rung.client_limited == limited && !found.overall_rungs.contains(&rung.connections));
        let rungs: Vec<String> = rungs.map(|rung| rung.connections.to_string()).collect();
        match rungs.is_empty() {
            true => String::new(),
            false => format!(" Excluded: {} connections, {why}.", rungs.join(", ")),
        }
    };
    without(false, "because the load failed in more than half of the pairs")
        + &without(true, "because the client was the limit")
}

/// The rungs that the figure over the ladder does not stand for.
fn by_rung(found: &VariantCompared) -> String {
    let apart: Vec<String> = found
        .rungs
        .iter()
        .filter_map(|rung| {
            let compared = rung.throughput.as_ref()?;
            let word = match compared.verdict {
                ExperimentVerdict::Faster | ExperimentVerdict::Slower => compared.verdict.label(),
                ExperimentVerdict::NoDifference | ExperimentVerdict::Inconclusive => return None,
            };
            // What the figure over the ladder says already is not said again.
            let same = found.overall.is_some_and(|whole| whole.verdict == compared.verdict);
            let grown = found.rungs.len() > 1 && (!same || found.scales.is_some());
            grown.then(|| format!("{word} by {} at {}", by(compared), rung.connections))
        })
        .collect();
    match apart.is_empty() {
        true => String::new(),
        false => format!(" By rung: {} connections.", apart.join(", ")),
    }
}

fn scaling(base: &str, found: &VariantCompared) -> String {
    let ends = found.overall_rungs.first().zip(found.overall_rungs.last());
    let Some((better, (first, last))) = found.scales.zip(ends) else {
        return String::new();
    };
    let word = if better { "better" } else { "worse" };
    let change = found.scaling_ratio.map_or(String::new(), |ratio| {
        let by = signed(ratio.value);
        format!(": from {first} to {last} connections it changes by {by}")
    });
    let few = found.overall.filter(|whole| whole.pairs < super::FEWEST_PAIRS);
    let few = few.map_or("", |_| " (few pairs: indicative only)");
    format!(" It scales {word} than {base}{change} against it{few}.")
}

/// More transactions of another kind are no gain.
fn of_other_work(base: &str, variant: &str, whole: &Compared, found: &VariantCompared) -> String {
    let times = format!(
        "{variant} and {base} run different transactions, so their throughput ({:.2} times) is not comparable.",
        whole.ratio.value
    );
    let scales = match (found.scales, found.scaling_ratio) {
        (Some(_), _) => scaling(base, found),
        (None, Some(ratio)) => format!(
            " Inconclusive whether one scales better: from the first rung to the last, the ratio changes by {}.",
            estimate(ratio)
        ),
        (None, None) => String::new(),
    };
    times + &scales
}

fn of_whole(base: &str, variant: &str, whole: &Compared, asked: f64) -> String {
    let margin = percent(whole.margin);
    let words = match whole.verdict {
        ExperimentVerdict::Faster => format!("{variant} is faster than {base} by {} over the ladder.", by(whole)),
        ExperimentVerdict::Slower => format!("{variant} is slower than {base} by {} over the ladder.", by(whole)),
        ExperimentVerdict::NoDifference => format!(
            "No difference above {margin} between {variant} and {base} over the ladder: {}.",
            change(whole)
        ),
        ExperimentVerdict::Inconclusive => format!(
            "Inconclusive: {variant} against {base}, {} over the ladder, margin {margin}.",
            change(whole)
        ),
    };
    // Who asked for 1 % should not take 20 % for it.
    let coarse = match whole.margin > COARSE * asked.max(LEAST_MARGIN)
        && whole.verdict == ExperimentVerdict::NoDifference
    {
        true => format!(
            " A/A pairs differ as much, so differences below {margin} may be hidden. Use more A/A pairs, longer windows or a \
             quieter machine."
        ),
        false => String::new(),
    };
    format!("{words}{coarse}{}", few(whole))
}

/// `+2.1 % (+0.9 % to +3.3 %)`.
fn change(compared: &Compared) -> String {
    estimate(compared.ratio)
}

fn estimate(ratio: Estimate) -> String {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!("{} ({} to {})", signed(ratio.value), signed(low), signed(high)),
        None => format!("{} (no interval)", signed(ratio.value)),
    }
}

/// The size of a difference whose sign is said in words: `2.1 % (0.9 % to 3.3 %)`.
fn by(compared: &Compared) -> String {
    let size = |ratio: f64| percent((ratio - 1.0).abs());
    let ratio = compared.ratio;
    let limits = ratio.low.zip(ratio.high).map(|(low, high)| match ratio.value < 1.0 {
        true => (high, low),
        false => (low, high),
    });
    match limits {
        Some((least, most)) => format!("{} ({} to {})", size(ratio.value), size(least), size(most)),
        None => size(ratio.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(value: f64, low: f64, high: f64, verdict: ExperimentVerdict) -> Compared {
        Compared {
            pairs: 8,
            ratio: Estimate {
                value,
                low: Some(low),
                high: Some(high),
            },
            p: None,
            adjusted_p: None,
            sign_flip_p: None,
            margin: 0.012,
            verdict,
        }
    }

    fn found(whole: Option<Compared>) -> VariantCompared {
        VariantCompared {
            variant: 1,
            overall: whole,
            overall_rungs: vec![1, 512],
            rungs: Vec::new(),
            scales: None,
            scaling_ratio: None,
            open_loop: false,
        }
    }

    fn rung(connections: u32, throughput: Option<Compared>, client_limited: bool) -> RungCompared {
        RungCompared {
            connections,
            throughput,
            cpu_seconds_per_txn: None,
            switches_per_txn: None,
            p50: None,
            p99: None,
            change: None,
            client_limited,
        }
    }

    #[test]
    fn each_verdict_has_its_words() {
        let of = |whole| sentence(["size=1", "size=64"], &found(whole), 0.01, true);
        assert_eq!(
            of(Some(compared(0.9, 0.85, 0.96, ExperimentVerdict::Slower))),
            "size=64 is slower than size=1 by 10 % (4.0 % to 15 %) over the ladder."
        );
        assert_eq!(
            of(Some(compared(1.002, 0.997, 1.008, ExperimentVerdict::NoDifference))),
            "No difference above 1.2 % between size=64 and size=1 over the ladder: +0.2 % (\u{2212}0.3 % to +0.8 %)."
        );
        assert_eq!(
            of(Some(compared(1.02, 0.97, 1.07, ExperimentVerdict::Inconclusive))),
            "Inconclusive: size=64 against size=1, +2.0 % (\u{2212}3.0 % to +7.0 %) over the ladder, margin 1.2 %."
        );
        assert!(of(None).starts_with("Cannot tell about size=64"));
        let coarse = Compared {
            margin: 0.22,
            ..compared(1.02, 0.92, 1.13, ExperimentVerdict::NoDifference)
        };
        assert!(of(Some(coarse)).contains("so differences below 22 % may be hidden"));
        let few = Compared {
            pairs: 4,
            ..compared(1.1, 1.05, 1.15, ExperimentVerdict::Faster)
        };
        assert!(of(Some(few)).ends_with("indicative only."));
    }

    #[test]
    fn rungs_that_the_figure_is_made_without_are_named() {
        let rung = |connections, client_limited| rung(connections, None, client_limited);
        let told = VariantCompared {
            rungs: vec![rung(1, true), rung(16, false), rung(256, false), rung(512, false)],
            overall_rungs: vec![16],
            ..found(Some(compared(1.14, 1.1, 1.2, ExperimentVerdict::Faster)))
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(
            words.contains("Excluded: 256, 512 connections, because the load failed"),
            "{words}"
        );
        assert!(words.contains("Excluded: 1 connections, because the client"), "{words}");
    }

    #[test]
    fn a_client_that_was_the_limit_everywhere_is_no_verdict() {
        let limited = rung(
            64,
            Some(compared(1.0, 0.999, 1.001, ExperimentVerdict::Inconclusive)),
            true,
        );
        let told = VariantCompared {
            rungs: vec![limited],
            overall_rungs: Vec::new(),
            ..found(None)
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(words.starts_with("Not reliable: the client was the limit"), "{words}");
    }

    #[test]
    fn of_an_offered_load_the_response_time_is_told() {
        let slow = RungCompared {
            p99: Some(compared(9.0, 8.0, 10.0, ExperimentVerdict::Inconclusive).ratio),
            ..rung(16, None, false)
        };
        let told = VariantCompared {
            open_loop: true,
            overall_rungs: vec![16],
            rungs: vec![slow],
            ..found(Some(compared(1.0, 0.999, 1.001, ExperimentVerdict::Inconclusive)))
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(
            words.contains("The most that either can do is unknown.")
                && words.contains("response time changes by +800 %")
                && words.ends_with("at 16 connections."),
            "{words}"
        );
    }

    #[test]
    fn a_variant_that_scales_otherwise_is_told_by_rung() {
        let rung = |connections, of| rung(connections, Some(of), false);
        let told = VariantCompared {
            rungs: vec![
                rung(1, compared(1.0, 0.99, 1.01, ExperimentVerdict::NoDifference)),
                rung(512, compared(1.3, 1.2, 1.4, ExperimentVerdict::Faster)),
            ],
            scales: Some(true),
            scaling_ratio: Some(compared(1.3, 1.2, 1.4, ExperimentVerdict::Faster).ratio),
            ..found(Some(compared(1.14, 1.1, 1.2, ExperimentVerdict::Faster)))
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(
            words.contains("By rung: faster by 30 % (20 % to 40 %) at 512 connections."),
            "{words}"
        );
        assert!(words.ends_with("It scales better than A: from 1 to 512 connections it changes by +30 % against it."));
        let other = sentence(["A", "B"], &told, 0.01, false);
        assert!(
            other
                .starts_with("B and A run different transactions, so their throughput (1.14 times) is not comparable.")
                && other
                    .ends_with("It scales better than A: from 1 to 512 connections it changes by +30 % against it.")
                && !other.contains("faster"),
            "{other}"
        );
    }
}
