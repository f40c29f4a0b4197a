//! How an experiment is measured: rungs, pairs, and when it is enough.

use super::plan_error::PlanError;
use super::plan_file::{DesignText, LadderText};
use crate::ladder::parse_connections;
use scaleprof_analysis::trials::{FEWEST_PAIRS, sign_flip::MOST_PAIRS};

/// Rungs where the plan names none: below, around and far beyond what the CPUs of most machines can do at once.
const LADDER: &str = "1,16,64,256";
/// Eight pairs see a difference of 2 % in two sessions of three and one of 5 % in nearly all, on a machine of usual noise.
const PAIRS: u32 = 8;
/// Where it ends when it is precise.
const PAIRS_WHERE_WIDTH_ENDS_IT: u32 = 20;
const PAIRS_OF_A_QUICK_LOOK: u32 = 4;
const SENTINELS: u32 = 2;
const SENTINELS_OF_A_QUICK_LOOK: u32 = 1;
const SECONDS: u32 = 10;
const SECONDS_OF_A_QUICK_LOOK: u32 = 5;
const MARGIN_PERCENT: f64 = 1.0;

/// How an experiment is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Rungs, rising.
    pub connections: Vec<u32>,
    /// At each rung of a start.
    pub seconds: u32,
    /// The most pairs; fixed before the first start, as one that may always be added is one that decides.
    pub most_pairs: u32,
    /// Half of the width of the interval over the ladder at which it ends before, as a share.
    pub target_half_width: Option<f64>,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// A/A pairs at each end.
    pub sentinels: u32,
    /// Whether the starts of a round, and those of an A/A pair, run side by side and take turns on the machine; otherwise one after the
    /// other.
    pub side_by_side: bool,
    /// Whether every variant has a watched run.
    pub watch: bool,
    /// Seed of the order.
    pub seed: u64,
}

impl Design {
    /// Whether there are too few pairs for a verdict that counts.
    pub fn is_indicative(&self) -> bool {
        (self.most_pairs as usize) < FEWEST_PAIRS
    }

    /// Whether an interval of this half width (of logarithms) after so many rounds is precise enough to end. Asked after whole blocks
    /// of two rounds only, and not before the fewest pairs that count.
    pub(crate) fn is_precise(&self, rounds: u32, half_width: Option<f64>) -> bool {
        let whole = rounds.is_multiple_of(2) && rounds as usize >= FEWEST_PAIRS;
        let wanted = self.target_half_width.map(f64::ln_1p);
        whole && half_width.zip(wanted).is_some_and(|(found, wanted)| found <= wanted)
    }
}

/// Checks ladder and design; `seed` is that of the load.
pub(crate) fn design(ladder: &LadderText, text: &DesignText, seed: u64) -> Result<Design, PlanError> {
    let connections = parse_connections(ladder.connections.as_deref().unwrap_or(LADDER)).map_err(|error| {
        let said = error.to_string();
        let problem = said.strip_prefix("--connections: ").unwrap_or(&said).to_owned();
        PlanError::key(
            "ladder.connections",
            problem,
            "write numbers and doubling ranges, such as 1,16,64..512",
        )
    })?;
    let quick = text.quick.unwrap_or(false);
    let of = |usual: u32, quickly: u32| if quick { quickly } else { usual };
    let target = text
        .precision_percent
        .map(|value| percent("design.precision_percent", value, 0.1))
        .transpose()?;
    if quick && target.is_some() {
        return Err(PlanError::key(
            "design.quick",
            "a quick look has too few pairs to become precise",
            "leave out quick or precision_percent",
        ));
    }
    let usual = if target.is_some() {
        PAIRS_WHERE_WIDTH_ENDS_IT
    } else {
        PAIRS
    };
    Ok(Design {
        connections,
        seconds: within(
            "ladder.seconds",
            ladder.seconds.unwrap_or(of(SECONDS, SECONDS_OF_A_QUICK_LOOK)),
            (1, 86_400),
        )?,
        most_pairs: pairs(text.pairs.unwrap_or(of(usual, PAIRS_OF_A_QUICK_LOOK)), target.is_some())?,
        target_half_width: target,
        margin: percent(
            "design.margin_percent",
            text.margin_percent.unwrap_or(MARGIN_PERCENT),
            0.0,
        )?,
        sentinels: within(
            "design.aa_pairs",
            text.aa_pairs.unwrap_or(of(SENTINELS, SENTINELS_OF_A_QUICK_LOOK)),
            (0, 10),
        )?,
        side_by_side: text.interleave.unwrap_or(true),
        watch: text.probe.unwrap_or(true),
        seed: text.seed.unwrap_or(seed),
    })
}

fn pairs(pairs: u32, width_ends_it: bool) -> Result<u32, PlanError> {
    let fewest = if width_ends_it { FEWEST_PAIRS as u32 } else { 2 };
    let pairs = within("design.pairs", pairs, (fewest, MOST_PAIRS as u32))?;
    match pairs % 2 {
        0 => Ok(pairs),
        _ => Err(PlanError::key(
            "design.pairs",
            format!("{pairs} is odd, and every second round is the mirror image of the one before it"),
            format!("use {} or {}", pairs - 1, pairs + 1),
        )),
    }
}

fn within(key: &str, value: u32, (low, high): (u32, u32)) -> Result<u32, PlanError> {
    match (low..=high).contains(&value) {
        true => Ok(value),
        false => Err(PlanError::key(
            key,
            format!("{value} is not possible"),
            format!("use {low} to {high}"),
        )),
    }
}

/// A percentage as a share.
fn percent(key: &str, value: f64, low: f64) -> Result<f64, PlanError> {
    match value.is_finite() && (low..=50.0).contains(&value) {
        true => Ok(value / 100.0),
        false => Err(PlanError::key(
            key,
            format!("{value} is not possible"),
            format!("use {low} to 50 percent"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: DesignText) -> Result<Design, PlanError> {
        design(&LadderText::default(), &text, 1)
    }

    #[test]
    fn the_defaults_are_those_of_the_research() {
        let usual = of(DesignText::default()).unwrap();
        assert_eq!((usual.most_pairs, usual.sentinels, usual.margin), (8, 2, 0.01));
        assert!(!usual.is_indicative() && usual.watch);
        let quick = of(DesignText {
            quick: Some(true),
            ..DesignText::default()
        });
        let quick = quick.unwrap();
        assert_eq!((quick.most_pairs, quick.sentinels, quick.is_indicative()), (4, 1, true));
    }

    #[test]
    fn it_ends_on_width_after_whole_blocks_only() {
        let precise = of(DesignText {
            precision_percent: Some(1.0),
            ..DesignText::default()
        });
        let precise = precise.unwrap();
        assert_eq!(precise.most_pairs, 20);
        assert!(precise.is_precise(6, Some(0.009)));
        assert!(!precise.is_precise(7, Some(0.009)) && !precise.is_precise(4, Some(0.0)));
        assert!(!precise.is_precise(8, Some(0.02)) && !precise.is_precise(8, None));
        assert!(!of(DesignText::default()).unwrap().is_precise(8, Some(0.0)));
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_what_can() {
        let error = |text: DesignText| of(text).unwrap_err().to_string();
        let pairs = |pairs| DesignText {
            pairs: Some(pairs),
            ..DesignText::default()
        };
        assert_eq!(error(pairs(0)), "design.pairs: 0 is not possible\nfix: use 2 to 40");
        assert!(error(pairs(7)).contains("use 6 or 8"));
        let margin = DesignText {
            margin_percent: Some(f64::NAN),
            ..DesignText::default()
        };
        assert!(error(margin).contains("margin_percent"));
        let ladder = LadderText {
            connections: Some("x".into()),
            seconds: None,
        };
        let error = design(&ladder, &DesignText::default(), 1).unwrap_err().to_string();
        assert!(error.starts_with("ladder.connections: 'x' is not a number"), "{error}");
    }
}
