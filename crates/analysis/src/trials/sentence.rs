//! A comparison of two variants in words.

use super::judge::signed;
use super::{Compared, RungCompared, VariantCompared, Verdict};
use crate::numbers::{counted, percent};
use scaleprof_bundle::Estimate;

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
        true => format!("Nothing can be said of {variant}: no pair of starts with {base} was measured whole."),
        false => format!(
            "Nothing can be said of {variant} and {base}: the client set the limit wherever they were measured. Give it more CPUs \
             (--cpus-client) or threads (--client-threads), or use a load that asks more of the server."
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
        Verdict::Faster => format!(
            "{variant} did more of the load that was offered than {base}, by {}.",
            by(whole)
        ),
        Verdict::Slower => format!(
            "{variant} did less of the load that was offered than {base}, by {}.",
            by(whole)
        ),
        Verdict::NoDifference | Verdict::Inconclusive if within => format!(
            "{variant} did as much of the load that was offered as {base} ({}): that does not say how much either can do.",
            change(whole)
        ),
        Verdict::NoDifference | Verdict::Inconclusive => format!(
            "Whether {variant} did as much of the load that was offered as {base} cannot be told: {}.",
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
        true => " With so few pairs this is indicative only.",
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
            false => format!(" Without the rungs of {} connections, {why}.", rungs.join(", ")),
        }
    };
    without(
        false,
        "which fewer than half of the pairs of starts have, as their load failed there",
    ) + &without(true, "where the client set the limit")
}

/// The rungs that the figure over the ladder does not stand for.
fn by_rung(found: &VariantCompared) -> String {
    let apart: Vec<String> = found
        .rungs
        .iter()
        .filter_map(|rung| {
            let compared = rung.throughput.as_ref()?;
            let word = match compared.verdict {
                Verdict::Faster => "faster",
                Verdict::Slower => "slower",
                Verdict::NoDifference | Verdict::Inconclusive => return None,
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
    let few = few.map_or("", |_| ", as far as so few pairs can show");
    format!(" It scales {word} than {base}{change} against it{few}.")
}

/// More transactions of another kind are no gain.
fn of_other_work(base: &str, variant: &str, whole: &Compared, found: &VariantCompared) -> String {
    let times = format!(
        "{variant} and {base} do different transactions: that there are {:.2} times as many of {variant} says nothing by itself.",
        whole.ratio.value
    );
    let scales = match (found.scales, found.scaling_ratio) {
        (Some(_), _) => scaling(base, found),
        (None, Some(ratio)) => format!(
            " Whether one of them scales better cannot be told: from the first rung to the last the ratio changes by {}.",
            estimate(ratio)
        ),
        (None, None) => String::new(),
    };
    times + &scales
}

fn of_whole(base: &str, variant: &str, whole: &Compared, asked: f64) -> String {
    let margin = percent(whole.margin);
    let words = match whole.verdict {
        Verdict::Faster => format!("{variant} is faster than {base} by {} over the ladder.", by(whole)),
        Verdict::Slower => format!("{variant} is slower than {base} by {} over the ladder.", by(whole)),
        Verdict::NoDifference => format!(
            "{variant} and {base} do not differ by more than {margin} over the ladder: {}.",
            change(whole)
        ),
        Verdict::Inconclusive => format!(
            "Whether {variant} differs from {base} over the ladder by more than {margin} cannot be told: {}.",
            change(whole)
        ),
    };
    // Who asked for 1 % should not take 20 % for it.
    let coarse = match whole.margin > COARSE * asked.max(LEAST_MARGIN) && whole.verdict == Verdict::NoDifference {
        true => format!(
            " Starts of the same server differ by as much here, so that less than {margin} may be hidden: measure more A/A pairs \
             (sentinels), longer, or on a calmer machine."
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

    fn compared(value: f64, low: f64, high: f64, verdict: Verdict) -> Compared {
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
            of(Some(compared(0.9, 0.85, 0.96, Verdict::Slower))),
            "size=64 is slower than size=1 by 10 % (4.0 % to 15 %) over the ladder."
        );
        assert_eq!(
            of(Some(compared(1.002, 0.997, 1.008, Verdict::NoDifference))),
            "size=64 and size=1 do not differ by more than 1.2 % over the ladder: +0.2 % (\u{2212}0.3 % to +0.8 %)."
        );
        assert!(of(Some(compared(1.02, 0.97, 1.07, Verdict::Inconclusive))).contains("cannot be told"));
        assert!(of(None).starts_with("Nothing can be said"));
        let coarse = Compared {
            margin: 0.22,
            ..compared(1.02, 0.92, 1.13, Verdict::NoDifference)
        };
        assert!(of(Some(coarse)).contains("so that less than 22 % may be hidden"));
        let few = Compared {
            pairs: 4,
            ..compared(1.1, 1.05, 1.15, Verdict::Faster)
        };
        assert!(of(Some(few)).ends_with("indicative only."));
    }

    #[test]
    fn rungs_that_the_figure_is_made_without_are_named() {
        let rung = |connections, client_limited| rung(connections, None, client_limited);
        let told = VariantCompared {
            rungs: vec![rung(1, true), rung(16, false), rung(256, false), rung(512, false)],
            overall_rungs: vec![16],
            ..found(Some(compared(1.14, 1.1, 1.2, Verdict::Faster)))
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(
            words.contains("Without the rungs of 256, 512 connections, which fewer than half"),
            "{words}"
        );
        assert!(
            words.contains("Without the rungs of 1 connections, where the client"),
            "{words}"
        );
    }

    #[test]
    fn a_client_that_was_the_limit_everywhere_is_no_verdict() {
        let limited = rung(64, Some(compared(1.0, 0.999, 1.001, Verdict::Inconclusive)), true);
        let told = VariantCompared {
            rungs: vec![limited],
            overall_rungs: Vec::new(),
            ..found(None)
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(words.contains("the client set the limit wherever"), "{words}");
    }

    #[test]
    fn of_an_offered_load_the_response_time_is_told() {
        let slow = RungCompared {
            p99: Some(compared(9.0, 8.0, 10.0, Verdict::Inconclusive).ratio),
            ..rung(16, None, false)
        };
        let told = VariantCompared {
            open_loop: true,
            overall_rungs: vec![16],
            rungs: vec![slow],
            ..found(Some(compared(1.0, 0.999, 1.001, Verdict::Inconclusive)))
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(
            words.contains("does not say how much either can do")
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
                rung(1, compared(1.0, 0.99, 1.01, Verdict::NoDifference)),
                rung(512, compared(1.3, 1.2, 1.4, Verdict::Faster)),
            ],
            scales: Some(true),
            scaling_ratio: Some(compared(1.3, 1.2, 1.4, Verdict::Faster).ratio),
            ..found(Some(compared(1.14, 1.1, 1.2, Verdict::Faster)))
        };
        let words = sentence(["A", "B"], &told, 0.01, true);
        assert!(
            words.contains("By rung: faster by 30 % (20 % to 40 %) at 512 connections."),
            "{words}"
        );
        assert!(words.ends_with("It scales better than A: from 1 to 512 connections it changes by +30 % against it."));
        let other = sentence(["A", "B"], &told, 0.01, false);
        assert!(
            other.starts_with("B and A do different transactions: that there are 1.14 times as many of B says nothing")
                && other
                    .ends_with("It scales better than A: from 1 to 512 connections it changes by +30 % against it.")
                && !other.contains("faster"),
            "{other}"
        );
    }
}
