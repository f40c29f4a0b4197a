//! What is shown of a bundle: text, page, listings, comparisons.

mod annotation;
mod bug;
mod comparison;
mod diff_page;
mod experiment;
mod fixture;
mod page;
mod text;
mod two_runs;
