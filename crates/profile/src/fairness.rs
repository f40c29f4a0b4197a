//! Whether a recording with call graphs is a fair sample: it is held against a flat one of the same load.
//!
//! Copying stacks takes time where samples are taken, and a server under watch may behave differently: it holds its locks for
//! longer, and others wait more. A flat recording costs little, so where the two disagree about which functions the CPU
//! time goes to, the stacks are not to be believed either.

use crate::{Profile, Sample, ThreadState};
use std::collections::HashMap;

/// Standard errors by which shares must differ: 5 % over some 800 functions at once (Bonferroni).
const SIGNIFICANT: f64 = 4.0;
/// Smaller differences matter to nobody.
const LEAST_DIFFERENCE: f64 = 0.01;
/// Seconds from which on their scatter says how sure a share is.
const LEAST_SECONDS: usize = 5;
/// Where there are fewer: samples come in bursts, so that they are worth less than so many throws of a die.
const BURSTS: f64 = 2.0;

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

/// CPU time by innermost function and second.
struct Shares {
    functions: HashMap<String, HashMap<u64, f64>>,
    seconds: HashMap<u64, f64>,
    samples: f64,
}

struct Share {
    share: f64,
    variance: f64,
}

impl Shares {
    fn of(profile: &Profile) -> Option<Shares> {
        let on_cpu = |sample: &&Sample| matches!(sample.state, ThreadState::Cpu | ThreadState::Spin);
        let mut shares = Shares {
            functions: HashMap::new(),
            seconds: HashMap::new(),
            samples: 0.0,
        };
        for sample in profile.samples.iter().filter(on_cpu) {
            let node = profile.stacks.get(sample.stack);
            let Some(frame) = node.and_then(|node| profile.frames.get(node.frame)) else {
                continue;
            };
            let function = frame.function.as_ref().unwrap_or(&frame.module);
            let second = sample.time_ns / 1_000_000_000;
            if !shares.functions.contains_key(function) {
                shares.functions.insert(function.clone(), HashMap::new());
            }
            if let Some(seconds) = shares.functions.get_mut(function) {
                *seconds.entry(second).or_default() += sample.weight_ns;
            }
            *shares.seconds.entry(second).or_default() += sample.weight_ns;
            shares.samples += 1.0;
        }
        (shares.total() > 0.0).then_some(shares)
    }

    fn total(&self) -> f64 {
        self.seconds.values().sum()
    }

    /// With the larger of two variances: that of so many independent samples, and that of the ratio of two sums over seconds
    /// (Cochran, Sampling Techniques, 3rd ed., 2.11).
    fn share(&self, function: &str) -> Share {
        let none = HashMap::new();
        let by_second = self.functions.get(function).unwrap_or(&none);
        let total = self.total();
        // A sum of nothing is -0.
        let share = by_second.values().sum::<f64>() / total + 0.0;
        // What was never seen, or always, is not sure: Agresti and Coull (1998) add two of each.
        let careful = (share * self.samples + 2.0) / (self.samples + 4.0);
        let of_samples = careful * (1.0 - careful) / (self.samples + 4.0);
        let blocks = self.seconds.len();
        let variance = match blocks >= LEAST_SECONDS {
            false => of_samples * BURSTS,
            true => {
                let squares: f64 = self
                    .seconds
                    .iter()
                    .map(|(second, all)| (by_second.get(second).unwrap_or(&0.0) - share * all).powi(2))
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
    use crate::{Ending, Frame};

    /// `counts`: samples of each function in every second.
    fn profile(seconds: u64, counts: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::default();
        for (function, count) in counts {
            let frame = profile
                .frames
                .intern(Frame::named("server".to_owned(), Some((*function).to_owned())));
            let stack = profile.stacks.child(None, frame);
            for sample in 0..seconds * count {
                profile.samples.push(Sample {
                    time_ns: sample % seconds * 1_000_000_000,
                    thread: 1,
                    cpu: 0,
                    state: ThreadState::Cpu,
                    weight_ns: 1e7,
                    stack,
                    ending: Ending::Complete,
                    lock: None,
                    waker_kind: None,
                    waker_stack: None,
                    owner_stack: None,
                    owner_state: None,
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
