//! Whether a recording with call graphs is a fair sample: it is held against a flat one of the same load.
//!
//! Copying stacks takes time where samples are taken, and a server under watch may behave differently: it holds its locks for
//! longer, and others wait more. A flat recording costs little, so where the two disagree about which functions the CPU
//! time goes to, the stacks are not to be believed either.

use crate::{Profile, Sample};
use std::collections::HashMap;

/// Standard errors by which shares must differ: 5 % over some 800 functions at once (Bonferroni).
const SIGNIFICANT: f64 = 4.0;
/// Smaller differences matter to nobody.
const LEAST_DIFFERENCE: f64 = 0.01;
/// Stretches of time, of a second at most, whose scatter says how sure a share is: samples come in bursts, above all where other
/// programs send packets, whose work the kernel does in whichever thread runs.
const STRETCHES: u64 = 20;
/// So many of them with samples, or the scatter says nothing.
const LEAST_STRETCHES: usize = 5;
/// Where there are fewer, samples count as worth less than so many throws of a die.
const BURSTS: f64 = 2.0;
/// The longest stretch.
const SECOND_NS: u64 = 1_000_000_000;

/// A function whose share of the CPU time differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Distortion {
    /// The innermost function.
    pub function: String,
    /// Its share in the flat recording, 0 to 1.
    pub flat: f64,
    /// Its share in the one with call graphs.
    pub graph: f64,
}

/// The innermost functions whose shares of CPU time differ by more than chance allows and by a hundredth at least, the largest
/// difference first. None where one of the two has no samples on a CPU.
pub fn distortions(flat: &Profile, graph: &Profile) -> Option<Vec<Distortion>> {
    let (flat, graph) = (Shares::of(flat)?, Shares::of(graph)?);
    let functions = flat.functions.keys().chain(graph.functions.keys());
    let mut found: HashMap<&str, Distortion> = HashMap::new();
    for function in functions {
        let (a, b) = (flat.share(function), graph.share(function));
        let error = a.variance + b.variance;
        let difference = (b.share - a.share).abs();
        if difference >= LEAST_DIFFERENCE && difference > SIGNIFICANT * error.sqrt() {
            let distortion = Distortion {
                function: function.clone(),
                flat: a.share,
                graph: b.share,
            };
            found.insert(function, distortion);
        }
    }
    let mut found: Vec<Distortion> = found.into_values().collect();
    // To a millionth, so that equal ones stand by name.
    let by = |one: &Distortion| ((one.graph - one.flat).abs() * 1e6).round() as i64;
    found.sort_by(|a, b| by(b).cmp(&by(a)).then_with(|| a.function.cmp(&b.function)));
    Some(found)
}

/// CPU time by innermost function and stretch.
struct Shares {
    functions: HashMap<String, HashMap<u64, f64>>,
    stretches: HashMap<u64, f64>,
    samples: f64,
}

struct Share {
    share: f64,
    variance: f64,
}

impl Shares {
    fn of(profile: &Profile) -> Option<Shares> {
        let on_cpu = |sample: &&Sample| sample.state.is_on_cpu();
        let mut shares = Shares {
            functions: HashMap::new(),
            stretches: HashMap::new(),
            samples: 0.0,
        };
        let times = profile.samples.iter().filter(on_cpu).map(|sample| sample.time_ns);
        let (first, last) = (times.clone().min()?, times.max()?);
        let stretch_ns = ((last - first) / STRETCHES + 1).min(SECOND_NS);
        for sample in profile.samples.iter().filter(on_cpu) {
            let node = profile.stacks.get(sample.stack);
            let Some(frame) = node.and_then(|node| profile.frames.get(node.frame)) else {
                continue;
            };
            let function: &str = frame.function.as_ref().unwrap_or(&frame.module);
            let stretch = (sample.time_ns - first) / stretch_ns;
            if !shares.functions.contains_key(function) {
                shares.functions.insert(function.to_owned(), HashMap::new());
            }
            if let Some(stretches) = shares.functions.get_mut(function) {
                *stretches.entry(stretch).or_default() += sample.weight_ns;
            }
            *shares.stretches.entry(stretch).or_default() += sample.weight_ns;
            shares.samples += 1.0;
        }
        (shares.total() > 0.0).then_some(shares)
    }

    fn total(&self) -> f64 {
        self.stretches.values().sum()
    }

    /// With the larger of two variances: that of so many independent samples, and that of the ratio of two sums over stretches
    /// (Cochran, Sampling Techniques, 3rd ed., 2.11).
    fn share(&self, function: &str) -> Share {
        let none = HashMap::new();
        let by_stretch = self.functions.get(function).unwrap_or(&none);
        let total = self.total();
        // A sum of nothing is -0.
        let share = by_stretch.values().sum::<f64>() / total + 0.0;
        // What was never seen, or always, is not sure: Agresti and Coull (1998) add two of each.
        let careful = (share * self.samples + 2.0) / (self.samples + 4.0);
        let of_samples = careful * (1.0 - careful) / (self.samples + 4.0);
        let blocks = self.stretches.len();
        let variance = match blocks >= LEAST_STRETCHES {
            false => of_samples * BURSTS,
            true => {
                let squares: f64 = self
                    .stretches
                    .iter()
                    .map(|(stretch, all)| (by_stretch.get(stretch).unwrap_or(&0.0) - share * all).powi(2))
                    .sum();
                let blocks = blocks as f64;
                of_samples.max(squares * blocks / (blocks - 1.0) / total.powi(2))
            }
        };
        Share { share, variance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;
    use scaleprof_vocabulary::{ThreadState, UnwindStatus};

    /// `counts`: samples of each function in every second.
    fn profile(seconds: u64, counts: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::default();
        for (function, count) in counts {
            let frame = profile.frames.intern(Frame::named("server", Some(*function)));
            let stack = profile.stacks.child(None, frame);
            for sample in 0..seconds * count {
                profile.samples.push(Sample {
                    time_ns: sample % seconds * 1_000_000_000,
                    thread: 1,
                    cpu: 0,
                    state: ThreadState::Cpu,
                    weight_ns: 1e7,
                    stack,
                    ending: UnwindStatus::Complete,
                    wait: None,
                });
            }
        }
        profile
    }

    #[test]
    fn the_function_that_watching_makes_dearer_is_told() {
        let flat = profile(20, &[("works", 80), ("waits", 20)]);
        let graph = profile(20, &[("works", 60), ("waits", 40)]);
        let found = distortions(&flat, &graph).expect("samples");
        let told: Vec<(&str, f64, f64)> = found.iter().map(|one| (&*one.function, one.flat, one.graph)).collect();
        assert_eq!(told, [("waits", 0.2, 0.4), ("works", 0.8, 0.6)]);
    }

    #[test]
    fn what_chance_explains_and_small_differences_are_not_told() {
        // Ten samples.
        let few = [profile(1, &[("a", 6), ("b", 4)]), profile(1, &[("a", 4), ("b", 6)])];
        assert_eq!(distortions(&few[0], &few[1]), Some(Vec::new()));
        // Half of a hundredth, however sure.
        let near = [
            profile(1000, &[("a", 995), ("b", 5)]),
            profile(1000, &[("a", 990), ("b", 10)]),
        ];
        assert_eq!(distortions(&near[0], &near[1]), Some(Vec::new()));
        assert_eq!(distortions(&Profile::default(), &few[0]), None);
    }

    /// Packets of another program, whose work the kernel did in this one's threads for a tenth of a second.
    #[test]
    fn one_burst_in_a_short_recording_is_chance() {
        let in_a_second = |mut profile: Profile| {
            let count = profile.samples.len() as u64;
            for (at, sample) in (0..count).zip(&mut profile.samples) {
                sample.time_ns = at * 1_000_000_000 / count;
            }
            profile
        };
        let flat = in_a_second(profile(1, &[("works", 400)]));
        let burst = in_a_second(profile(1, &[("works", 360), ("net_rx_action", 40)]));
        assert_eq!(distortions(&flat, &burst), Some(Vec::new()));
    }

    #[test]
    fn a_function_of_one_recording_only_is_told() {
        let flat = profile(20, &[("works", 100)]);
        let graph = profile(20, &[("works", 90), ("copies_stacks", 10)]);
        let found = distortions(&flat, &graph).expect("samples");
        assert!(
            found
                .iter()
                .any(|one| one.function == "copies_stacks" && one.flat == 0.0),
            "{found:?}"
        );
    }
}
