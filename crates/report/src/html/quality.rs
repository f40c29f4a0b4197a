//! How much of what the threads did was seen, for the page.

use scaleprof_analysis::data_quality::data_quality;
use scaleprof_bundle::Bundle;
use serde::Serialize;

/// The figures of one rung; `web/src/probeQuality.ts` names them.
#[derive(Serialize)]
pub(super) struct Quality {
    /// None for a watch.
    connections: Option<u32>,
    figures: Vec<Figure>,
}

/// A figure, or why there is none.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    value: Option<f64>,
    reason: Option<String>,
}

/// Those of every rung.
pub(super) fn quality(bundle: &Bundle) -> Vec<Quality> {
    let rungs = data_quality(bundle).into_iter();
    rungs
        .map(|rung| Quality {
            connections: rung.connections,
            figures: rung
                .figures
                .into_iter()
                .map(|(name, figure)| Figure {
                    name,
                    value: figure.as_ref().ok().copied(),
                    reason: figure.err(),
                })
                .collect(),
        })
        .collect()
}
