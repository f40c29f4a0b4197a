//! The samples of a recording, of which there may be millions, on all CPUs.

use scaleprof_profile::{Sample, in_parallel};

/// Samples of one piece. It is the same on every machine: sums of numbers with fractions depend on their order.
const SAMPLES_AT_ONCE: usize = 1 << 18;

/// What `work` makes of pieces of samples, in the order of these.
pub(crate) fn in_pieces<R: Send>(samples: &[Sample], work: impl Fn(&[Sample]) -> R + Sync) -> Vec<R> {
    in_parallel(samples.chunks(SAMPLES_AT_ONCE).collect(), work)
}
