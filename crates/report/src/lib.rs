//! How a run is shown: HTML, text and JSON, made from a bundle alone.
//!
//! [`html::render`] gives the report as one self-contained page, [`text::table`] the closing table of a run in the
//! terminal, [`json::summary`] the summary for scripts. All three are pure functions.

pub mod html;
pub mod json;
pub mod text;

mod figures;
