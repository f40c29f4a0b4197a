//! Least squares for the Universal Scalability Law: Levenberg-Marquardt from several starts, parameters as logarithms.

/// One rung as the fit sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub connections: f64,
    pub throughput: f64,
    pub weight: f64,
}

/// The law with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Curve {
    pub gamma: f64,
    pub sigma: f64,
    pub kappa: f64,
}

impl Curve {
    pub fn throughput(&self, n: f64) -> f64 {
        self.gamma * n / self.slowdown(n)
    }

    /// Where the law has its top: √((1-σ)/κ); none where it has none.
    pub fn peak(&self) -> Option<f64> {
        (self.sigma < 1.0 && self.kappa > SMALLEST * 1.01).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }

    fn slowdown(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }
}

/// σ and κ are kept as logarithms, so they cannot be negative; this small they are nothing.
const SMALLEST: f64 = 1e-12;
const LARGEST: f64 = 100.0;

/// The best of several starts, or from `start` alone where a good one is known; none for points that allow no fit.
pub(crate) fn fit_curve(points: &[Point], start: Option<Curve>) -> Option<Curve> {
    let gamma = points.iter().map(|p| p.throughput / p.connections).fold(0.0, f64::max);
    let starts: Vec<Curve> = match start {
        Some(curve) => vec![curve],
        None => [1e-4, 1e-2, 0.3]
            .iter()
            .flat_map(|sigma| {
                [1e-7, 1e-5, 1e-3].map(|kappa| Curve {
                    gamma,
                    sigma: *sigma,
                    kappa,
                })
            })
            .collect(),
    };
    starts
        .into_iter()
        .map(|start| descend(points, start))
        .filter(|(_, cost)| cost.is_finite())
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(curve, _)| curve)
}

fn cost(points: &[Point], curve: &Curve) -> f64 {
    points
        .iter()
        .map(|p| p.weight * (p.throughput / curve.throughput(p.connections)).ln().powi(2))
        .sum()
}

/// Levenberg-Marquardt (Marquardt 1963) with the exact derivatives of ln X by ln γ, ln σ and ln κ.
fn descend(points: &[Point], mut curve: Curve) -> (Curve, f64) {
    let mut best = cost(points, &curve);
    let mut damping = 1e-2;
    for _ in 0..200 {
        let mut normal = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        for p in points {
            let n = p.connections;
            let slow = curve.slowdown(n);
            let slopes = [
                1.0,
                -curve.sigma * (n - 1.0) / slow,
                -curve.kappa * n * (n - 1.0) / slow,
            ];
            let gap = (p.throughput / curve.throughput(n)).ln();
            for i in 0..3 {
                right[i] += p.weight * slopes[i] * gap;
                for j in 0..3 {
                    normal[i][j] += p.weight * slopes[i] * slopes[j];
                }
            }
        }
        let mut moved = false;
        while damping < 1e12 {
            let mut damped = normal;
            for (i, row) in damped.iter_mut().enumerate() {
                row[i] += damping * (row[i] + 1e-9);
            }
            let step = solve(damped, right).map(|v| v.clamp(-3.0, 3.0));
            let bounded = |v: f64| v.clamp(SMALLEST, LARGEST);
            let next = Curve {
                gamma: curve.gamma * step[0].exp(),
                sigma: bounded(curve.sigma * step[1].exp()),
                kappa: bounded(curve.kappa * step[2].exp()),
            };
            let price = cost(points, &next);
            if price < best {
                moved = best - price > 1e-13 * best;
                (curve, best) = (next, price);
                damping = (damping * 0.2).max(1e-12);
                break;
            }
            damping *= 4.0;
        }
        if !moved {
            break;
        }
    }
    (curve, best)
}

/// Cramer's rule for a 3 by 3 system that damping keeps regular.
fn solve(m: [[f64; 3]; 3], right: [f64; 3]) -> [f64; 3] {
    let determinant = |m: &[[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let whole = determinant(&m);
    std::array::from_fn(|column| {
        let mut replaced = m;
        for (row, value) in replaced.iter_mut().zip(right) {
            row[column] = value;
        }
        let share = determinant(&replaced) / whole;
        if share.is_finite() { share } else { 0.0 }
    })
}
