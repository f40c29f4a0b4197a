//! Variants of a server held against each other: what pairs of starts say, and how sure that is.
//!
//! The unit is the server start, as that is what varies most from one measurement to the next (Kalibera and Jones 2013; on an idle
//! machine restarts alone differ by up to 3 %, Zaitsev 2014). Starts of two variants stand in pairs that followed each other; the
//! logarithms of their ratios are what is calculated with:
//!
//! - mean and 95 % interval by Student's t ([`log_ratios`]), checked by the exact sign-flip test ([`sign_flip`]);
//! - where the whole interval lies within the equivalence margin, there is no difference that matters; else one counts where it is
//!   beyond chance by Holm's rule over all rungs and variants ([`verdict`]);
//! - one figure over the whole ladder: the geometric mean of the rungs' ratios, with an interval of its own;
//! - pairs of starts of *one* variant at both ends of the session (A/A) say what the session's word is worth.
//!
//! Comparing two runs that were made one after the other cannot do that: under a drift of 6 % it calls equal servers different in 30
//! to 66 cases of a hundred (docs/adr/0016).

mod drift;
mod judge;
pub mod log_ratios;
mod outcome;
mod sentence;
pub mod sign_flip;
mod starts;
pub mod verdict;

pub use judge::{judge, widest};
pub use outcome::*;
pub use sentence::sentence;
pub use starts::{ReplicaFigures, RungFigures, Sentinel, Session, Start, Together};
pub use verdict::FEWEST_PAIRS;
