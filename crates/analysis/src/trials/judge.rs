//! From the starts of a session to verdicts.

use super::drift::drift;
use super::log_ratios::{PairedMean, Scatter};
use super::sign_flip::sign_flip_p;
use super::starts::{RungFigures, Sentinel, Session, Start};
use super::verdict::{margin, verdict};
use super::{Change, Compared, Judged, RungCompared, SessionQuality, VariantCompared};
use crate::comparison::differences::{holm, weighted_holm};
use crate::decomposition::{Side, decompose};
use crate::numbers::percent;
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::ExperimentVerdict;

/// Of the allowance of false alarms, the part of the figure over the whole ladder; the rungs share the rest. So a session of equal
/// servers calls anything a difference in at most one case of twenty, and a variant that is better at many connections and
/// worse at few is seen though its mean is that of the other.
const WEIGHT_OF_THE_WHOLE: f64 = 0.5;

/// What a session comes to.
pub fn judge(session: &Session) -> Judged {
    let mut found: Vec<Found> = session.others.iter().map(|other| compared(session, *other)).collect();
    // All comparisons of the session are one family: whoever looks at ten rungs of three variants sees thirty chances.
    let family: Vec<(f64, f64)> = found.iter().flat_map(Found::family).collect();
    let mut adjusted = weighted_holm(&family).into_iter();
    for one in &mut found {
        one.conclude(&mut adjusted);
    }
    // Whether a variant scales otherwise is a question of its own, asked of each.
    let mut all: Vec<&mut Scaling> = found.iter_mut().filter_map(|one| one.scaling.as_mut()).collect();
    let each: Vec<f64> = all.iter().map(|scaling| scaling.p).collect();
    for (scaling, p) in all.iter_mut().zip(holm(&each)) {
        scaling.p = p;
    }
    Judged {
        quality: quality(session),
        variants: found.into_iter().map(Found::told).collect(),
    }
}

/// Half of the width of the interval of each variant's figure over the ladder, as logarithms, the widest of all; none where one has
/// no interval yet. It is what a session that goes on until it is precise looks at, and it alone: whoever stops when a difference
/// shows finds differences where there are none.
pub fn widest(session: &Session) -> Option<f64> {
    let each = session.others.iter().map(|other| {
        let whole = Whole::of(session, *other);
        PairedMean::of(&whole.pairs(session, *other))?.half_width
    });
    each.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// A figure with its mean over the pairs, before it is known what its p counts for.
struct Tested {
    mean: PairedMean,
    sign_flip: Option<f64>,
    margin: f64,
    /// That both did as much says nothing of what either can do: it was what both were offered.
    offered: bool,
}

impl Tested {
    /// `a_a` are the same figure's log-ratios of the sentinels.
    fn of(pairs: &[f64], a_a: &[f64], asked: f64, offered: bool) -> Option<Tested> {
        let mean = PairedMean::of(pairs)?;
        // How far two starts of one server are apart all pairs tell, those of different variants about their own mean.
        let scatter = Scatter::of(a_a).and(Scatter::of(pairs));
        let a_a = (!a_a.is_empty()).then(|| PairedMean::with_scatter(a_a, scatter));
        Some(Tested {
            mean,
            sign_flip: sign_flip_p(pairs),
            margin: margin(asked, a_a.as_ref()),
            offered,
        })
    }

    fn compared(&self, p: f64) -> Compared {
        Compared {
            pairs: self.mean.pairs,
            ratio: self.mean.ratio(),
            p: self.mean.p,
            adjusted_p: self.mean.p.map(|_| p),
            sign_flip_p: self.sign_flip,
            margin: self.margin.exp_m1(),
            verdict: match verdict(&self.mean, self.margin, p, self.sign_flip) {
                ExperimentVerdict::NoDifference if self.offered => ExperimentVerdict::Inconclusive,
                verdict => verdict,
            },
        }
    }

    /// A ratio that is no finding, of whatever size.
    fn not_judged(&self) -> Compared {
        Compared {
            adjusted_p: None,
            verdict: ExperimentVerdict::Inconclusive,
            ..self.compared(1.0)
        }
    }
}

/// Which rungs and pairs the figure over the ladder is made of.
struct Whole {
    ladder: Vec<u32>,
}

impl Whole {
    /// The rungs that at least half of the pairs have, and at which the client did not set the limit.
    fn of(session: &Session, other: usize) -> Whole {
        let pairs = session.pairs(other);
        let counts = |connections: &u32| {
            let has = |start: &Start| start.rungs.get(connections).is_some_and(|rung| !rung.client_limited);
            let having = pairs.iter().filter(|(a, b)| has(a) && has(b)).count();
            having * 2 >= pairs.len()
        };
        Whole {
            ladder: session.ladder.iter().copied().filter(counts).collect(),
        }
    }

    /// The rungs that at least half of the A/A pairs have: one that failed in all starts says nothing of the session.
    fn of_sentinels(session: &Session) -> Whole {
        let pairs = &session.sentinels;
        let have = |connections: &u32| {
            let has = |pair: &&Sentinel| pair.starts.iter().all(|start| start.rungs.contains_key(connections));
            pairs.iter().filter(has).count() * 2 >= pairs.len()
        };
        Whole {
            ladder: session.ladder.iter().copied().filter(have).collect(),
        }
    }

    /// ln(B/A) of every pair that has all of the rungs.
    fn pairs(&self, session: &Session, other: usize) -> Vec<f64> {
        let pairs = session.pairs(other).into_iter();
        pairs.filter_map(|(a, b)| self.log_ratio(a, b)).collect()
    }

    fn sentinels(&self, session: &Session) -> Vec<f64> {
        let pairs = session.sentinels.iter();
        pairs
            .filter_map(|Sentinel { starts: [a, b], .. }| self.log_ratio(a, b))
            .collect()
    }

    fn log_ratio(&self, a: &Start, b: &Start) -> Option<f64> {
        Some(b.level(&self.ladder)? - a.level(&self.ladder)?)
    }
}

struct Found {
    variant: usize,
    ladder: Vec<u32>,
    whole: Option<Tested>,
    rungs: Vec<(RungCompared, Option<Tested>)>,
    scaling: Option<Scaling>,
    told: Option<Compared>,
    offered: bool,
}

/// How a variant's ratio changes from the first rung to the last.
struct Scaling {
    mean: PairedMean,
    sign_flip: Option<f64>,
    /// The mean's p as it counts where all variants were looked at.
    p: f64,
}

impl Scaling {
    /// Better (true), worse, or not beyond chance.
    fn told(&self) -> Option<bool> {
        match verdict(&self.mean, 0.0, self.p, self.sign_flip) {
            ExperimentVerdict::Faster => Some(true),
            ExperimentVerdict::Slower => Some(false),
            ExperimentVerdict::NoDifference | ExperimentVerdict::Inconclusive => None,
        }
    }
}

impl Found {
    /// Rungs whose throughput is judged: at the others the client set the limit.
    fn judged(&self) -> usize {
        self.rungs.iter().filter(|(rung, _)| !rung.client_limited).count()
    }

    /// p and weight of every figure.
    fn family(&self) -> Vec<(f64, f64)> {
        let of = |tested: &Option<Tested>, weight| {
            let p = tested.as_ref().and_then(|tested| tested.mean.p);
            (p.unwrap_or(1.0), if p.is_some() { weight } else { 0.0 })
        };
        let (whole, each) = match self.judged() {
            // The same figure twice.
            1 => (1.0, 0.0),
            rungs => (WEIGHT_OF_THE_WHOLE, (1.0 - WEIGHT_OF_THE_WHOLE) / rungs.max(1) as f64),
        };
        let mut family = vec![of(&self.whole, whole)];
        family.extend(self.rungs.iter().map(|(rung, tested)| match rung.client_limited {
            true => of(&None, 0.0),
            false => of(tested, each),
        }));
        family
    }

    /// With what the p-values count for, in the order of [`Found::family`].
    fn conclude(&mut self, adjusted: &mut impl Iterator<Item = f64>) {
        let of_whole = adjusted.next().unwrap_or(1.0);
        self.told = self.whole.as_ref().map(|tested| tested.compared(of_whole));
        let one_rung = self.judged() == 1;
        for (rung, tested) in &mut self.rungs {
            let own = adjusted.next().unwrap_or(1.0);
            let p = if one_rung { of_whole } else { own };
            rung.throughput = tested.as_ref().map(|tested| match rung.client_limited {
                true => tested.not_judged(),
                false => tested.compared(p),
            });
        }
    }

    fn told(self) -> VariantCompared {
        let differs = |compared: &Option<Compared>| {
            compared.as_ref().is_some_and(|compared| {
                matches!(compared.verdict, ExperimentVerdict::Faster | ExperimentVerdict::Slower)
            })
        };
        let any = differs(&self.told) || self.rungs.iter().any(|(rung, _)| differs(&rung.throughput));
        VariantCompared {
            variant: self.variant,
            overall: self.told,
            overall_rungs: self.ladder,
            rungs: self.rungs.into_iter().map(|(rung, _)| rung).collect(),
            scales: self.scaling.as_ref().filter(|_| any).and_then(Scaling::told),
            scaling_ratio: self.scaling.map(|scaling| scaling.mean.ratio()),
            open_loop: self.offered,
        }
    }
}

fn compared(session: &Session, other: usize) -> Found {
    let whole = Whole::of(session, other);
    let starts = || session.pairs(other).into_iter().flat_map(|(a, b)| [a, b]);
    let offered = starts().flat_map(|start| start.rungs.values()).any(|rung| rung.offered);
    let rungs: Vec<_> = session
        .ladder
        .iter()
        .map(|connections| rung(session, other, *connections, offered))
        .collect();
    let (pairs, a_a) = (whole.pairs(session, other), whole.sentinels(session));
    Found {
        variant: other,
        whole: Tested::of(&pairs, &a_a, session.margin, offered),
        scaling: scaling(session, other, &whole.ladder),
        ladder: whole.ladder,
        rungs,
        told: None,
        offered,
    }
}

/// Mean of ln of (B/A at the last rung) over (B/A at the first): above 0 where B holds more of its lead, the more connections there are.
fn scaling(session: &Session, other: usize, ladder: &[u32]) -> Option<Scaling> {
    let (first, last) = (ladder.first()?, ladder.last().filter(|_| ladder.len() > 1)?);
    let pairs = session.pairs(other).into_iter();
    let each: Vec<f64> = pairs
        .filter_map(|(a, b)| {
            let at = |connections: &u32| Some(b.level(&[*connections])? - a.level(&[*connections])?);
            Some(at(last)? - at(first)?)
        })
        .collect();
    let mean = PairedMean::of(&each)?;
    Some(Scaling {
        p: mean.p.unwrap_or(1.0),
        sign_flip: sign_flip_p(&each),
        mean,
    })
}

fn rung(session: &Session, other: usize, connections: u32, offered: bool) -> (RungCompared, Option<Tested>) {
    let both: Vec<(&RungFigures, &RungFigures)> = session
        .pairs(other)
        .into_iter()
        .filter_map(|(a, b)| Some((a.rungs.get(&connections)?, b.rungs.get(&connections)?)))
        .collect();
    let throughput = |rung: &RungFigures| Some(rung.throughput);
    let ratio = |figure: &dyn Fn(&RungFigures) -> Option<f64>| {
        let each: Vec<f64> = both
            .iter()
            .filter_map(|(a, b)| log_ratio(figure(a)?, figure(b)?))
            .collect();
        // A figure that some pairs lack would be of other pairs than the rest.
        PairedMean::of(&each)
            .filter(|mean| mean.pairs == both.len())
            .map(|mean| mean.ratio())
    };
    let a_a: Vec<f64> = session
        .sentinels
        .iter()
        .filter_map(|Sentinel { starts: [a, b], .. }| {
            let figure = |start: &Start| throughput(start.rungs.get(&connections)?);
            log_ratio(figure(a)?, figure(b)?)
        })
        .collect();
    let pairs: Vec<f64> = both
        .iter()
        .filter_map(|(a, b)| log_ratio(throughput(a)?, throughput(b)?))
        .collect();
    let limited = both
        .iter()
        .filter(|(a, b)| a.client_limited || b.client_limited)
        .count();
    let told = RungCompared {
        connections,
        throughput: None,
        cpu_seconds_per_txn: ratio(&|rung| Some(rung.law.as_ref()?.cpu_seconds_per_txn)),
        switches_per_txn: ratio(&|rung| rung.switches_per_txn),
        p50: ratio(&|rung| rung.p50_ms),
        p99: ratio(&|rung| rung.p99_ms),
        change: change(&both, connections),
        client_limited: limited * 2 > both.len(),
    };
    (told, Tested::of(&pairs, &a_a, session.margin, offered))
}

fn log_ratio(a: f64, b: f64) -> Option<f64> {
    Some((b / a).ln()).filter(|ratio| a > 0.0 && b > 0.0 && ratio.is_finite())
}

/// The iron law from A to B: the mean over the pairs of each pair's parts, so that these add up as those of a pair do.
fn change(both: &[(&RungFigures, &RungFigures)], connections: u32) -> Option<Change> {
    let parts = both.iter().map(|(a, b)| {
        let side = |of: &RungFigures| Some((of.throughput, of.law.clone()?));
        let ((xa, la), (xb, lb)) = (side(a)?, side(b)?);
        let side = |throughput, law| Side {
            connections,
            throughput,
            law,
        };
        decompose(side(xa, &la), side(xb, &lb))
    });
    let parts = parts.collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty())?;
    let mean = |part: &dyn Fn(&scaleprof_bundle::Decomposition) -> Option<f64>| {
        let each: Option<Vec<f64>> = parts.iter().map(part).collect();
        each.map(|each| each.iter().sum::<f64>() / each.len() as f64)
    };
    Some(Change {
        throughput: mean(&|part| Some(part.throughput))?,
        utilisation: mean(&|part| Some(part.utilisation))?,
        cpu_seconds: mean(&|part| Some(part.cpu_seconds))?,
        clock: mean(&|part| part.clock),
        instructions: mean(&|part| part.instructions),
        cycles_per_instruction: mean(&|part| part.cycles_per_instruction),
        residual: mean(&|part| Some(part.residual))?,
    })
}

/// What the session says of itself: equal servers must not differ, and the machine must not have become another.
fn quality(session: &Session) -> SessionQuality {
    let whole = Whole::of_sentinels(session);
    let sentinels = whole.sentinels(session);
    // The scatter of all pairs, each set about its own mean.
    let scatter = session.others.iter().fold(Scatter::of(&sentinels), |sum, other| {
        sum.and(Scatter::of(&whole.pairs(session, *other)))
    });
    let a_a = (!sentinels.is_empty()).then(|| PairedMean::with_scatter(&sentinels, scatter));
    let drift = drift(session, &whole.ladder);
    let margin = margin(session.margin, a_a.as_ref());
    let mut doubts = Vec::new();
    let range = |ratio: Estimate| match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!(" ({} to {})", signed(low), signed(high)),
        None => String::new(),
    };
    if let Some(a_a) = a_a.filter(PairedMean::excludes_zero) {
        doubts.push(format!(
            "A/A pairs differ significantly, by {}{}: conditions on this machine changed between them",
            signed(a_a.ratio().value),
            range(a_a.ratio())
        ));
    }
    // What befalls both of a pair alike is in no ratio.
    let drifted = drift.filter(|drift| !session.side_by_side && drift.excludes_zero() && drift.mean.abs() > margin);
    if let Some(drift) = drifted {
        doubts.push(format!(
            "throughput drifted by {}{} during the session, above the margin of {}; pairs cancel only a steady drift",
            signed(drift.ratio().value),
            range(drift.ratio()),
            percent(margin.exp_m1())
        ));
    }
    SessionQuality {
        reliable: match (a_a, doubts.is_empty()) {
            (_, false) => Some(false),
            (Some(_), true) => Some(true),
            (None, true) => None,
        },
        aa_pairs: sentinels.len(),
        aa_interval: a_a.map(|mean| mean.ratio()),
        drift: drift.map(|mean| mean.ratio()),
        margin: margin.exp_m1(),
        caveats: doubts,
    }
}

/// A ratio as a change: +2.1 %.
pub(super) fn signed(ratio: f64) -> String {
    let change = ratio - 1.0;
    let sign = if change < 0.0 { "\u{2212}" } else { "+" };
    format!("{sign}{}", percent(change.abs()))
}

#[cfg(test)]
mod tests;
