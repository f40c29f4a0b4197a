//! What the instruction costs with which a waiting loop tells the CPU that it waits: about 5 ns on Intel's cores before Skylake
//! and 40 on those after it, so that one setting of a spin delay means eight times as long on the newer machine.

use std::time::Instant;

const BATCHES: u32 = 20;
const TURNS: u32 = 2_000;

/// Nanoseconds of one PAUSE (x86-64) or ISB (aarch64, as servers use it there), the least of several batches: interruptions only
/// ever add.
pub fn relax_nanoseconds() -> f64 {
    let batch = |_| {
        let begin = Instant::now();
        for _ in 0..TURNS {
            std::hint::spin_loop();
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(TURNS)
    };
    (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_turn_takes_some_nanoseconds() {
        let cost = super::relax_nanoseconds();
        // PAUSE and ISB take 1 to 70 ns, by the CPU; the test's build is slower by a call.
        assert!((0.5..500.0).contains(&cost), "{cost}");
    }
}
