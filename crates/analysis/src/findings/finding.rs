//! A finding while it is put together.

use super::kind::{remedy, share_of, title};
use super::{LEAST, WITHOUT_INTERVAL};
use crate::path_costs::StatePath;
use scaleprof_bundle::{Estimate, Finding, Remedy};
use scaleprof_vocabulary::{FindingKind, ShareOf};

pub(super) struct Draft {
    pub kind: FindingKind,
    /// In plain words, where its kind does not say enough.
    pub title: Option<String>,
    /// What it is about, where that is known.
    pub subject: Option<String>,
    pub path: Vec<String>,
    /// The server's function that it is about.
    pub place: Option<String>,
    pub lost: Estimate,
    /// What that is a part of.
    pub share_of: ShareOf,
    /// What it accounts for.
    pub accounts: Accounts,
    /// The rungs that were compared.
    pub rungs: (u32, u32),
    /// Whether it is at another rung than the last, and so no cause of what was lost there.
    pub is_elsewhere: bool,
    pub evidence: Vec<String>,
    pub tries: Vec<String>,
    /// Those that are settings.
    pub remedies: Vec<Remedy>,
    /// What is known of the place.
    pub known: Option<String>,
    /// Settings of the server that matter.
    pub knobs: Vec<String>,
}

/// Whose growth a finding tells, so that all findings of a run can be added up without telling anything twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Accounts {
    /// Call paths whose whole growth it tells.
    pub state_paths: Vec<StatePath>,
    /// The lock all waits for which it tells.
    pub lock: Option<i64>,
    /// Growth that no path tells by itself, seconds per transaction.
    pub besides: Option<Estimate>,
}

impl Draft {
    pub(super) fn new(kind: FindingKind, path: Vec<String>, lost: Estimate) -> Draft {
        Draft {
            kind,
            title: None,
            subject: None,
            path,
            place: None,
            lost,
            share_of: share_of(kind),
            accounts: Accounts::default(),
            rungs: (0, 0),
            is_elsewhere: false,
            evidence: Vec::new(),
            tries: Vec::new(),
            remedies: Vec::new(),
            known: None,
            knobs: Vec::new(),
        }
    }

    /// What it is ranked by: what is surely lost.
    pub(super) fn rank(&self) -> f64 {
        self.lost.low.unwrap_or(self.lost.value / 2.0)
    }

    /// Whether it is beyond chance and large enough. What was counted has no interval and needs none; what was sampled in too
    /// few seconds for one must be twice as large.
    pub(super) fn is_worth_a_word(&self) -> bool {
        let least = match self.kind {
            FindingKind::Retries => LEAST,
            _ => LEAST * WITHOUT_INTERVAL,
        };
        // That threads spin is known by where they stand, not by a difference that may be chance; only how much of it there is, is not.
        let surely = match self.kind {
            FindingKind::SpinWaiting => LEAST / 2.0,
            _ => LEAST,
        };
        match self.lost.low {
            Some(low) => low >= surely && self.lost.value >= LEAST,
            None => self.lost.value >= least,
        }
    }

    /// The title that its kind gives it.
    pub(super) fn usual_title(&self) -> String {
        title(self.kind, self.subject.as_deref(), self.place.as_deref())
    }

    pub(super) fn finish(self) -> Finding {
        let usual_title = self.usual_title();
        let mut evidence = self.evidence;
        evidence.extend(self.known);
        let mut tries = self.tries;
        tries.extend(remedy(self.kind).map(str::to_owned));
        Finding {
            kind: self.kind,
            title: self.title.unwrap_or(usual_title),
            lost_share: within_the_whole(self.lost, self.share_of),
            share_of: self.share_of,
            rungs: [self.rungs.0, self.rungs.1],
            path: self.path,
            evidence,
            suggestions: tries,
            remedies: self.remedies,
            remedy_results: Vec::new(),
        }
    }
}

/// A part of a time is never more than all of it, though an interval that measurements scatter so
/// much may say so.
fn within_the_whole(lost: Estimate, share_of: ShareOf) -> Estimate {
    match share_of {
        ShareOf::CpuTime | ShareOf::ConnectionTime => Estimate {
            high: lost.high.map(|high| high.min(1.0).max(lost.value)),
            ..lost
        },
        _ => lost,
    }
}
