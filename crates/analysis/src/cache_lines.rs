//! Which variables take cache lines from one another.
//!
//! A CPU that writes a variable takes the whole line that it lies in from all other CPUs' caches. Who reads a neighbour that
//! never changes waits for the line nevertheless. The classic case is MySQL's bug 97777 (MDEV-21145): a setting that every
//! search in an index looks at, `btr_search_enabled`, beside the counter of a random generator that every spinning thread
//! writes, `ut_rnd_ulint_counter`.
//!
//! What is known comes as plain rows: which [`Place`]s code touches and how ([`PlaceAccess`]), from the machine code; and where
//! there is a bundle, what the instructions cost ([`MeasuredCosts`]). [`judge`] makes [`JudgedLine`]s of them. Each says
//! on what it stands (its [`LadderStep`]s): a neighbour in the file is a possibility; a load that is hot and gets dearer with
//! every connection is nearly a proof.

mod compare;
mod costs;
mod counted;
mod facts;
mod judge;
mod judged;
mod kept;
mod of_bundle;
mod roles;
#[cfg(test)]
pub(crate) mod tests;
mod words;

pub use compare::{PairElsewhere, pairs_elsewhere};
pub use costs::{CostsNotKnown, MeasuredCosts};
pub use facts::{CodeFunction, Place, PlaceAccess};
pub use judge::{judge, lines_of};
pub use judged::{
    CountedWrites, Evidence, JudgedLine, JudgedPlace, LadderStep, LineKind, PlaceCost, PlaceRole, Toucher, TwoRungs,
};
pub use kept::{Kept, Untouched, rows_to_keep};
pub use of_bundle::{BundleLine, LineToucher, lines_of_bundle};
