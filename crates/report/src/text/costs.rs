//! CPU time of a transaction in columns.

use scaleprof_analysis::Per;
use scaleprof_analysis::numbers::grouped;
use scaleprof_bundle::Estimate;

/// From here on costs are written in microseconds.
const MICROSECONDS_FROM: f64 = 10e-6;
/// Room for a number in a column.
pub(super) const NUMBER: usize = 9;

/// In which unit the costs of a table are written.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    per_second: f64,
}

impl Unit {
    /// One that suits the largest of the costs.
    pub(super) fn of(largest: f64) -> Unit {
        match largest {
            seconds if seconds >= MICROSECONDS_FROM => Unit {
                name: "\u{b5}s",
                per_second: 1e6,
            },
            _ => Unit {
                name: "ns",
                per_second: 1e9,
            },
        }
    }

    pub(super) fn number(self, seconds: f64) -> String {
        grouped(seconds * self.per_second)
    }

    /// With its sign.
    fn change(self, seconds: f64) -> String {
        let number = self.number(seconds);
        if seconds >= 0.0 { format!("+{number}") } else { number }
    }

    /// A growth with its sign, and a mark where it may be chance.
    pub(super) fn growth(self, growth: Option<Estimate>) -> String {
        growth.map_or(String::new(), |growth| {
            let mark = if is_unsure(growth) { "?" } else { "" };
            format!("{}{mark}", self.change(growth.value))
        })
    }

    /// With its interval.
    pub(super) fn estimate(self, estimate: Estimate) -> String {
        let value = self.number(estimate.value);
        match estimate.low.zip(estimate.high) {
            Some((low, high)) => format!(
                "{value} {} ({} \u{2013} {})",
                self.name,
                self.number(low),
                self.number(high)
            ),
            None => format!("{value} {}", self.name),
        }
    }
}

/// What a column of costs is headed with.
pub(super) fn heading(connections: Option<u32>) -> String {
    connections.map_or("watched".to_owned(), |connections| connections.to_string())
}

/// What a cost is a part of.
pub(super) fn whole(per: Per) -> &'static str {
    match per {
        Per::Transaction => "of a transaction",
        Per::Second => "of a second",
    }
}

/// The same behind a stroke.
pub(super) fn short(per: Per) -> &'static str {
    match per {
        Per::Transaction => "tx",
        Per::Second => "s",
    }
}

/// A figure in its column.
pub(super) fn cell(text: String) -> String {
    format!("{text:>NUMBER$} ")
}

pub(super) fn value(estimate: Option<Estimate>) -> f64 {
    estimate.map_or(0.0, |estimate| estimate.value)
}

/// Whether a growth may be nothing but chance.
pub(super) fn is_unsure(growth: Estimate) -> bool {
    growth.low.is_none_or(|low| low <= 0.0) && growth.high.is_none_or(|high| high >= 0.0)
}

/// No longer than that, with an ellipsis where something was cut off.
pub(super) fn shortened(text: &str, width: Option<usize>) -> String {
    let length = text.chars().count();
    match width.filter(|width| length > *width) {
        Some(width) => text.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect(),
        None => text.to_owned(),
    }
}
