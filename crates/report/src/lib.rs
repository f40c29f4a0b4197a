//! How a run is shown: HTML, text, JSON and a bug report, made from a bundle alone.
//!
//! [`html::render`] gives the report as one self-contained page, [`text::table`] the closing table of a run in the
//! terminal, [`json::summary`] the summary for scripts, [`bug::markdown`] a bug report. All four are pure functions.

pub mod bug;
pub mod diff_page;
pub mod experiment_page;
pub mod html;
pub mod json;
pub mod text;

mod figures;
mod grid;
mod tried;
