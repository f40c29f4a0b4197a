//! Judged lines, as they are kept and shown.

use crate::numbers::percent;
use scaleprof_bundle::Estimate;
use serde::{Deserialize, Serialize};

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// Something that is only read lies beside something that is written.
    FalseSharing,
    /// A lock lies beside other things.
    LockSharesLine,
    /// Several things that are written for different reasons.
    IndependentWriters,
    /// One thing that many functions write.
    TrueSharing,
    /// Apart on this machine, together where lines are longer.
    LongerLinesOnly,
}

/// What a place is to the others in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceRole {
    /// The running server reads it and does not write it, as far as its code shows.
    ReadMostly,
    /// The running server writes it.
    Written,
    /// A mutex, latch or the like.
    Lock,
    /// Only its address is handed on: what is done with it does not show.
    AddressPassed,
    /// Only the start or the end of the server touches it, or nobody that is known.
    Unused,
}

/// A function that touches a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toucher {
    /// Its name.
    pub function: String,
    /// Instructions in it that do.
    pub sites: u32,
}

/// A time per transaction at two rungs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TwoRungs {
    /// At the rung at which a transaction was cheapest.
    pub base: Estimate,
    /// At the last one.
    pub last: Estimate,
}

/// What the instructions that touch a place cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlaceCost {
    /// Seen at the instructions themselves.
    pub itself: TwoRungs,
    /// Seen at them or at the instruction behind each, at which a thread is seen that waited for memory.
    pub with_skid: TwoRungs,
    /// What the second of these is of all CPU time of a transaction at the last rung.
    pub share: f64,
    /// All CPU time of a transaction at the last rung, seconds.
    pub all: f64,
    /// Samples behind it at both rungs: of threads that ran these instructions, not of those that were in the kernel from there.
    pub samples: [u64; 2],
    /// What three samples stand for at the last rung, in seconds per transaction: where no sample fell, it costs less than that
    /// with 95 % certainty (rule of three).
    pub least_seen: f64,
}

/// Fewer samples say nothing about whether something grows.
const FEWEST_SAMPLES: u64 = 10;
/// Instructions are hot where they take this much of a transaction's CPU time.
const HOT: f64 = 0.001;

impl PlaceCost {
    /// Whether it surely grew: the intervals at both rungs lie apart. None where there are no intervals, or too few samples to
    /// tell.
    pub fn grows(&self) -> Option<bool> {
        let apart = self.with_skid.last.low? > self.with_skid.base.high?;
        (self.samples[1] >= FEWEST_SAMPLES).then_some(apart)
    }

    /// Whether it takes 0.1 % of a transaction's CPU time or more at the last rung. None where too few samples fell to tell.
    pub fn is_hot(&self) -> Option<bool> {
        match self.share >= HOT {
            true => (self.samples[1] >= FEWEST_SAMPLES).then_some(true),
            false => (self.least_seen <= HOT * self.all).then_some(false),
        }
    }

    /// Its share of a transaction's CPU time: `3.1 %`, `under 0.1 %`.
    pub fn share_in_words(&self) -> String {
        match self.share < HOT {
            true => format!("under {}", percent(HOT)),
            false => percent(self.share),
        }
    }

    /// By how many seconds a transaction got dearer here.
    pub fn growth(&self) -> f64 {
        self.with_skid.last.value - self.with_skid.base.value
    }
}

/// Writes that a watchpoint counted in a running server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CountedWrites {
    /// How many.
    pub writes: u64,
    /// For how long, seconds.
    pub seconds: f64,
    /// Threads that were watched.
    pub threads: u32,
    /// Those of them that wrote.
    pub writers: u32,
}

impl CountedWrites {
    /// Writes a second.
    pub fn rate(&self) -> f64 {
        self.writes as f64 / self.seconds
    }
}

/// A place in a judged line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedPlace {
    /// Such as `srv_stats.n_rows_read[2]`.
    pub name: String,
    /// Bytes from the start of the line; negative where it begins in an earlier one.
    pub offset: i64,
    /// Bytes.
    pub size: u64,
    /// What it is to the others.
    pub role: PlaceRole,
    /// How much code of the running server reads it, for comparing places with one another.
    pub read_weight: f64,
    /// How much writes it.
    pub write_weight: f64,
    /// Functions of the running server that read it, the most used first.
    pub readers: Vec<Toucher>,
    /// Those that write or update it.
    pub writers: Vec<Toucher>,
    /// Whether some of them do it by locked instructions.
    pub locked: bool,
    /// Functions of the running server that hand its address on.
    pub address_passed_by: u32,
    /// Functions that write it while the server starts, stops or a setting changes.
    pub rare_writers: u32,
    /// What its reading instructions cost; none without a bundle.
    pub read_cost: Option<PlaceCost>,
    /// What its writing instructions cost.
    pub write_cost: Option<PlaceCost>,
    /// How often it was written; none where that was not counted.
    pub write_rate: Option<CountedWrites>,
}

/// A step of the evidence, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// They lie in one line of the file, and code reads one and writes the other.
    Neighbours,
    /// The reading instructions take time.
    HotLoad,
    /// They take more with more connections.
    GrowingCost,
    /// The writing instructions run often.
    HotStore,
    /// The hardware saw the line go from CPU to CPU.
    HardwareSample,
}

/// One step, and whether it was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderStep {
    /// Which.
    pub step: Evidence,
    /// Whether it holds; none where it was not measured.
    pub holds: Option<bool>,
    /// In words, with the figures; or why it was not measured.
    pub words: String,
}

/// A cache line with what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedLine {
    /// Its first byte in the file's addresses.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// What is wrong.
    pub kind: LineKind,
    /// What lines are ranked by without a bundle: how much code reads and writes. Only for comparing lines of one binary.
    pub rank: f64,
    /// What is in it, by address.
    pub variables: Vec<JudgedPlace>,
    /// Weakest evidence first.
    pub evidence: Vec<LadderStep>,
    /// In one sentence.
    pub sentence: String,
    /// What to do.
    pub advice: Vec<String>,
}

impl JudgedLine {
    fn costs(&self) -> impl Iterator<Item = PlaceCost> {
        let costs = self
            .variables
            .iter()
            .flat_map(|place| [place.read_cost, place.write_cost]);
        costs.flatten()
    }

    /// Whether the run shows that it costs anything: instructions that touch it surely take 0.1 % of a transaction's CPU time, or
    /// take surely more than at the other rung; not so without a bundle.
    pub fn costs_something(&self) -> bool {
        self.costs()
            .any(|cost| cost.is_hot() == Some(true) || cost.grows() == Some(true))
    }

    /// Whether a thread was seen at any instruction that touches it, at either rung; not so without a bundle.
    pub fn is_sampled(&self) -> bool {
        self.costs().any(|cost| cost.samples != [0, 0])
    }

    /// By how many seconds a transaction surely got dearer at those instructions that touch it and are hot; 0 without a bundle.
    pub fn sure_growth(&self) -> f64 {
        let grown = self
            .costs()
            .filter(|cost| cost.is_hot() == Some(true) && cost.grows() == Some(true));
        grown.map(|cost| cost.growth()).sum()
    }

    /// What the hot ones of these instructions take of a transaction's CPU time at the last rung; 0 without a bundle.
    pub fn hot_share(&self) -> f64 {
        let hot = self.costs().filter(|cost| cost.is_hot() == Some(true));
        hot.map(|cost| cost.share).sum()
    }
}
