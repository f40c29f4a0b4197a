//! Throughput against connections, a line for each variant.

use super::LINES;
use crate::figures::number;
use crate::html::for_markup;
use scaleprof_analysis::trials::Outcome;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 32.0;
const BOTTOM: f64 = 45.0;
/// Lines across, beside that at the bottom.
const STEPS: u32 = 4;

/// The chart with its key; none where nothing was measured.
pub(super) fn svg(outcome: &Outcome) -> Option<String> {
    let rungs = outcome.variants.iter().flat_map(|variant| &variant.rungs);
    let highest = rungs
        .clone()
        .map(|rung| rung.throughput.value)
        .filter(|value| value.is_finite())
        .reduce(f64::max)?;
    let first = rungs.clone().map(|rung| rung.connections).min()?;
    let last = rungs.map(|rung| rung.connections).max()?;
    let top = round_up(highest * 1.1);
    let x = |connections: u32| {
        let span = f64::from(last).log2() - f64::from(first).log2();
        let part = if span > 0.0 {
            (f64::from(connections).log2() - f64::from(first).log2()) / span
        } else {
            0.5
        };
        LEFT + 15.0 + part * (WIDTH - LEFT - RIGHT - 30.0)
    };
    // An interval may reach beyond the chart.
    let y = |value: f64| HEIGHT - BOTTOM - (value / top).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Throughput by connections; the figures are in the table below\">\n"
    );
    for step in 0..=STEPS {
        let value = top * f64::from(step) / f64::from(STEPS);
        let (at, words) = (y(value), number(value));
        out.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"quiet\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{words}</text>\n",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        ));
    }
    for connections in &outcome.design.connections {
        if (first..=last).contains(connections) {
            out.push_str(&format!(
                "<text class=\"quiet\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{connections}</text>\n",
                x(*connections),
                HEIGHT - BOTTOM + 18.0
            ));
        }
    }
    out.push_str(&format!(
        "<text class=\"quiet\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">connections</text>\n<text class=\"quiet\" x=\"4\" \
         y=\"{:.1}\">tx/s</text>\n",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 6.0,
        12.0
    ));
    // One that takes no part keeps its colour from the others, so that these stay the same in every page of an experiment.
    let measured = || {
        let variants = outcome.variants.iter().enumerate();
        variants.filter(|(_, variant)| !variant.rungs.is_empty())
    };
    for (at, variant) in measured() {
        let colour = at % LINES;
        let points: Vec<String> = variant
            .rungs
            .iter()
            .map(|rung| format!("{:.1},{:.1}", x(rung.connections), y(rung.throughput.value)))
            .collect();
        out.push_str(&format!(
            "<polyline class=\"line c{colour}\" points=\"{}\"/>\n",
            points.join(" ")
        ));
        for rung in &variant.rungs {
            let (at, of) = (x(rung.connections), rung.throughput);
            if let Some((low, high)) = of.low.zip(of.high) {
                out.push_str(&format!(
                    "<line class=\"whisker c{colour}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\n",
                    y(low),
                    y(high)
                ));
            }
            out.push_str(&format!(
                "<circle class=\"mark f{colour}\" cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\"/>\n",
                y(of.value)
            ));
        }
    }
    out.push_str("</svg>\n<ul class=\"keys\">\n");
    for (at, variant) in measured() {
        let (colour, name) = (at % LINES, for_markup(&variant.name));
        out.push_str(&format!(
            "<li><svg viewBox=\"0 0 48 12\" aria-hidden=\"true\"><line class=\"line c{colour}\" x1=\"0\" x2=\"48\" y1=\"6\" y2=\"6\"/></svg> \
             {name}</li>\n"
        ));
    }
    out.push_str("</ul>\n");
    Some(out)
}

/// The next number whose quarters read well.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0];
    steps
        .into_iter()
        .map(|step| step * unit)
        .find(|step| *step >= value)
        .unwrap_or(10.0 * unit)
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn the_scale_ends_at_a_number_that_reads_well() {
        let found = [0.0, 1.0, 1.1, 4500.0, 12_300.0, 81.0].map(round_up);
        let expected = [1.0, 1.0, 1.2, 6000.0, 16_000.0, 100.0];
        let close = |(a, b): (f64, f64)| (a / b - 1.0).abs() < 1e-12;
        assert!(found.into_iter().zip(expected).all(close), "{found:?}");
    }
}
