//! What a run means: pure functions from the tables of a bundle to a verdict
