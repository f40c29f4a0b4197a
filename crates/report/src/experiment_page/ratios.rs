//! The ratios of one comparison with their intervals and the margin, a row for each rung.

use crate::html::for_markup;
use scaleprof_analysis::trials::{Compared, ComparisonTold};

const WIDTH: f64 = 760.0;
const ROW: f64 = 28.0;
const LEFT: f64 = 120.0;
const RIGHT: f64 = 240.0;
/// The least that the scale reaches to either side, and the most; ln of the ratio.
const LEAST: f64 = 0.02;
const MOST: f64 = 1.5;

/// The chart; none where no rung was compared.
pub(super) fn svg(comparison: &ComparisonTold) -> Option<String> {
    let mut rows: Vec<(String, &Compared)> = comparison
        .rungs
        .iter()
        .filter_map(|rung| Some((rung.connections.to_string(), rung.throughput.as_ref()?)))
        .collect();
    let whole = comparison.overall.as_ref().filter(|_| comparison.rungs.len() > 1);
    rows.extend(whole.map(|whole| ("whole ladder".to_owned(), whole)));
    let reach = rows
        .iter()
        .flat_map(|(_, compared)| [Some(compared.ratio.value), compared.ratio.low, compared.ratio.high])
        .flatten()
        .map(|ratio| ratio.ln().abs())
        .filter(|reach| reach.is_finite())
        .reduce(f64::max)?;
    let reach = (reach * 1.1).clamp(LEAST, MOST);
    let x = |ratio: f64| {
        let part = (ratio.ln() / reach).clamp(-1.0, 1.0);
        LEFT + (part + 1.0) / 2.0 * (WIDTH - LEFT - RIGHT)
    };
    let height = ROW * (rows.len() as f64 + 1.0);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Ratios of throughput by connections; the figures are in the table \
         below\">\n"
    );
    for (at, (name, compared)) in rows.iter().enumerate() {
        let middle = ROW * (at as f64 + 0.5);
        let band = (x(1.0 / (1.0 + compared.margin)), x(1.0 + compared.margin));
        out.push_str(&format!(
            "<rect class=\"band\" x=\"{:.1}\" width=\"{:.1}\" y=\"{:.1}\" height=\"{:.1}\"/>\n",
            band.0,
            band.1 - band.0,
            middle - ROW / 2.0,
            ROW
        ));
        out.push_str(&format!(
            "<text x=\"0\" y=\"{:.1}\">{}</text>\n",
            middle + 4.0,
            for_markup(name)
        ));
        if let Some((low, high)) = compared.ratio.low.zip(compared.ratio.high) {
            out.push_str(&format!(
                "<line class=\"whisker c1\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\n",
                x(low),
                x(high)
            ));
        }
        out.push_str(&format!(
            "<circle class=\"mark f1\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4\"/>\n<text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            x(compared.ratio.value),
            WIDTH - RIGHT + 15.0,
            middle + 4.0,
            for_markup(&words(compared, comparison.same_work))
        ));
    }
    let one = x(1.0);
    out.push_str(&format!(
        "<line class=\"zero\" x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"0\" y2=\"{:.1}\"/>\n",
        height - ROW
    ));
    for (ratio, anchor) in [((-reach).exp(), "start"), (1.0, "middle"), (reach.exp(), "end")] {
        out.push_str(&format!(
            "<text class=\"quiet\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            x(ratio),
            height - 8.0,
            change(ratio)
        ));
    }
    out.push_str("</svg>\n<p class=\"muted\">Throughput by connections. The shaded band is the margin within which a difference is none.</p>\n");
    Some(out)
}

fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = match percent {
        p if p.abs() < 0.05 => "",
        p if p < 0.0 => "\u{2212}",
        _ => "+",
    };
    format!("{sign}{:.1} %", percent.abs())
}

fn words(compared: &Compared, same_work: bool) -> String {
    let change = change(compared.ratio.value);
    if !same_work {
        return change;
    }
    format!("{change}, {}", compared.verdict.label())
}
