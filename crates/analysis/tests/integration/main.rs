//! The answers, from bundles of which the truth is known.

mod comparison;
mod export;
mod flame;
mod hot_functions;
mod robust;
mod summary;
mod truths;
