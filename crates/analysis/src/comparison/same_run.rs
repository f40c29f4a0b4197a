//! Whether two bundles are one run: given twice by mistake, or a copy of it.

use scaleprof_bundle::Bundle;

/// What to say of two bundles that hold the same measurements; none of two runs.
pub(super) fn hint(a: &Bundle, b: &Bundle) -> Option<String> {
    // Two runs do not agree in every second's nanoseconds.
    let is_same = a.measurements == b.measurements && a.seconds == b.seconds && a.states == b.states;
    let is_same = is_same && !(a.seconds.is_empty() && a.states.is_empty());
    is_same.then(|| "A and B are the same run, so nothing can differ. Name another bundle.".to_owned())
}
