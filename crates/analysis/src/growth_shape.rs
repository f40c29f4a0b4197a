//! How a path's time per transaction grows with the connections.

use scaleprof_vocabulary::GrowthShape;

/// Fewer rungs than this fit anything.
const LEAST_RUNGS: usize = 4;
/// So much smaller must the error of a steeper curve be to be believed.
const CLEARLY: f64 = 0.7;

/// Chooses among `a`, `a + bN` and `a + bN^2` (b >= 0) by the error with which each predicts a rung from the others (leave one
/// out), the flatter one unless the steeper is clearly better. Errors are relative to the measured values, so that a rung of
/// 1 connection counts as much as one of 512. `points`: connections and seconds per transaction. None where there are too few
/// rungs, or nothing fits within a third.
pub(crate) fn shape(points: &[(f64, f64)]) -> Option<GrowthShape> {
    let positive: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(n, seconds)| *n > 0.0 && *seconds > 0.0 && seconds.is_finite())
        .collect();
    if positive.len() < LEAST_RUNGS {
        return None;
    }
    let candidates = [
        (GrowthShape::Constant, 0),
        (GrowthShape::Linear, 1),
        (GrowthShape::Worse, 2),
    ];
    let mut best: Option<(GrowthShape, f64)> = None;
    for (shape, power) in candidates {
        let error = left_out_error(&positive, power);
        if best.is_none_or(|(_, least)| error < CLEARLY * least) {
            best = Some((shape, error));
        }
    }
    best.filter(|(_, error)| *error < 1.0 / 3.0).map(|(shape, _)| shape)
}

/// Root of the mean squared relative error of each point by a curve through the others.
fn left_out_error(points: &[(f64, f64)], power: i32) -> f64 {
    let squares = (0..points.len()).map(|left_out| {
        let others = points.iter().enumerate().filter(|(place, _)| *place != left_out);
        let (a, b) = fit(others.map(|(_, point)| *point), power);
        let (n, seconds) = points[left_out];
        ((a + b * n.powi(power)) / seconds - 1.0).powi(2)
    });
    (squares.sum::<f64>() / points.len() as f64).sqrt()
}

/// Least squares of relative errors: each point weighs one over its square. b is not below 0, and is 0 with the power 0.
fn fit(points: impl Iterator<Item = (f64, f64)>, power: i32) -> (f64, f64) {
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (n, y) in points {
        let (x, weight) = (if power == 0 { 0.0 } else { n.powi(power) }, 1.0 / (y * y));
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    let determinant = w * wxx - wx * wx;
    if determinant <= f64::EPSILON * w * wxx {
        return (wy / w, 0.0);
    }
    let slope = (w * wxy - wx * wy) / determinant;
    match slope > 0.0 {
        true => ((wy - slope * wx) / w, slope),
        false => (wy / w, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RUNGS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 32.0, 128.0, 512.0];

    fn of(curve: impl Fn(f64) -> f64) -> Option<GrowthShape> {
        let points: Vec<(f64, f64)> = RUNGS.iter().map(|n| (*n, curve(*n))).collect();
        shape(&points)
    }

    #[test]
    fn a_queue_grows_in_proportion_and_a_storm_faster() {
        assert_eq!(of(|_| 3e-4), Some(GrowthShape::Constant));
        assert_eq!(of(|n| 1e-5 + 2e-6 * n), Some(GrowthShape::Linear));
        assert_eq!(of(|n| 1e-5 + 2e-8 * n * n), Some(GrowthShape::Worse));
    }

    #[test]
    fn what_shrinks_or_jumps_has_no_steeper_shape_than_it_shows() {
        assert_eq!(of(|n| 1e-4 * (1.0 + 0.1 / n)), Some(GrowthShape::Constant));
        assert_eq!(of(|n| if n > 100.0 { 1e-2 } else { 1e-6 }), None);
        assert_eq!(
            shape(&[(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)]),
            None,
            "three rungs are too few"
        );
        assert_eq!(shape(&[(1.0, 0.0); 8]), None);
    }

    proptest! {
        #[test]
        fn noise_of_a_tenth_does_not_bend_a_line(noise in proptest::collection::vec(-0.1..0.1f64, RUNGS.len()), slope in 1e-7..1e-4f64) {
            let points: Vec<(f64, f64)> = RUNGS.iter().zip(&noise).map(|(n, off)| (*n, slope * n * (1.0 + off))).collect();
            prop_assert_eq!(shape(&points), Some(GrowthShape::Linear));
        }
    }
}
