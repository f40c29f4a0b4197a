//! Evidence from a running server: which places of a line are written, and how often.

use super::judged::{CountedWrites, Evidence, JudgedLine, JudgedPlace, LadderStep, PlaceRole};
use crate::numbers::grouped;

/// A line that is written so often a second is hot.
const HOT_RATE: f64 = 1000.0;
/// Written places of a line whose writes are worth counting, and those that are said to be read only.
const MOST_WRITTEN: usize = 3;
const MOST_READ: usize = 2;

impl JudgedLine {
    /// The places whose writes are worth counting, by their place in the line: what is written most, and what is said to be
    /// only read.
    pub fn worth_counting(&self) -> Vec<usize> {
        let most = |roles: &[PlaceRole], weight: fn(&JudgedPlace) -> f64, most: usize| {
            let of_role = self
                .variables
                .iter()
                .enumerate()
                .filter(|(_, place)| roles.contains(&place.role));
            let mut found: Vec<(usize, &JudgedPlace)> = of_role.collect();
            found.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)));
            found.truncate(most);
            found.into_iter().map(|(number, _)| number).collect::<Vec<usize>>()
        };
        let mut places = most(
            &[PlaceRole::Written, PlaceRole::Lock],
            |place| place.write_weight,
            MOST_WRITTEN,
        );
        places.extend(most(&[PlaceRole::ReadMostly], |place| place.read_weight, MOST_READ));
        places
    }

    /// Puts counted writes, each with the number of its place, into the places and into the evidence.
    pub fn add_counted_writes(&mut self, counted: &[(usize, CountedWrites)]) {
        for (number, writes) in counted {
            if let Some(place) = self.variables.get_mut(*number) {
                place.write_rate = Some(*writes);
            }
        }
        let known = self
            .variables
            .iter()
            .filter_map(|place| Some((place, place.write_rate?)));
        let mut known: Vec<(&JudgedPlace, CountedWrites)> = known.collect();
        known.sort_by(|a, b| b.1.rate().total_cmp(&a.1.rate()));
        if known.is_empty() {
            return;
        }
        let told: Vec<String> = known.iter().map(|(place, writes)| words(place, writes)).collect();
        let is_hot = |writes: &CountedWrites| writes.rate() >= HOT_RATE && writes.writers > 1;
        let step = LadderStep {
            step: Evidence::HotStore,
            holds: Some(known.iter().any(|(_, writes)| is_hot(writes))),
            words: format!("counted by watchpoints: {}", told.join("; ")),
        };
        for known in self
            .evidence
            .iter_mut()
            .filter(|known| known.step == Evidence::HotStore)
        {
            known.clone_from(&step);
        }
    }
}

fn words(place: &JudgedPlace, writes: &CountedWrites) -> String {
    match writes.writes {
        0 => format!("{} was not written in {:.2} s", place.name, writes.seconds),
        _ => format!(
            "{} was written {} times a second by {} of {} threads ({} writes in {:.2} s)",
            place.name,
            grouped(writes.rate()),
            writes.writers,
            writes.threads,
            writes.writes,
            writes.seconds
        ),
    }
}
