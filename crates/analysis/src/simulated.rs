//! Series with a known truth, for the tests.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub struct Noise {
    /// Relative standard deviation of one value.
    pub sd: f64,
    /// Autocorrelation at lag 1 of an AR(1) series.
    pub lag: f64,
}

pub struct Normal(Xoshiro256PlusPlus);

impl Normal {
    pub fn new(seed: u64) -> Normal {
        Normal(Xoshiro256PlusPlus::seed_from_u64(
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ))
    }

    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn draw(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

/// `level` with noise, a figure a second.
pub fn noisy(seed: u64, length: usize, level: f64, noise: Noise) -> Vec<f64> {
    let mut normal = Normal::new(seed);
    let mut state = normal.draw();
    (0..length)
        .map(|_| {
            let value = level * (1.0 + noise.sd * state);
            state = noise.lag * state + (1.0 - noise.lag * noise.lag).sqrt() * normal.draw();
            value
        })
        .collect()
}
