//! Quantiles of Student's t distribution.

/// The 97.5 % quantile of Student's t, the factor of a two-sided 95 % interval, for `degrees` of freedom (not
/// necessarily whole, at least 1 is taken).
///
/// Found by bisection on the distribution function, which is a regularised incomplete beta function (Abramowitz and
/// Stegun 26.7.1); right to 1e-9.
pub fn t_quantile_975(degrees: f64) -> f64 {
    let degrees = degrees.clamp(1.0, 1e6);
    let (mut low, mut high) = (1.9, 12.8);
    while high - low > 1e-10 {
        let middle = 0.5 * (low + high);
        if two_sided_p(middle, degrees) > 0.05 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Probability that |t| is at least `t` by chance.
pub fn two_sided_p(t: f64, degrees: f64) -> f64 {
    incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + t * t))
}

/// I_x(a, b) by its continued fraction (Lentz; DLMF 8.17.22).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let tiny = 1e-300;
    let guard = |v: f64| if v.abs() < tiny { tiny } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// ln Γ(x) for x > 0 by Stirling's series after shifting x above 10 (DLMF 5.11.1).
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (1.0, 12.7062),
            (2.0, 4.3027),
            (3.0, 3.1824),
            (5.0, 2.5706),
            (10.0, 2.2281),
            (30.0, 2.0423),
            (1e6, 1.9600),
        ];
        for (degrees, quantile) in table {
            assert!(
                (t_quantile_975(degrees) - quantile).abs() < 6e-5,
                "{degrees}: {}",
                t_quantile_975(degrees)
            );
        }
        assert!(t_quantile_975(2.5) < 4.3027 && t_quantile_975(2.5) > 3.1824);
    }
}
