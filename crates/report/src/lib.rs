//! How a run is shown: HTML, text and JSON, made from a bundle alone
