//! Which functions of the server took most CPU time over a whole run.

use crate::call_paths::CallPaths;
use crate::instruction_costs::innermost;
use scaleprof_bundle::{Bundle, NumberMap};
use std::collections::BTreeMap;

/// A function of user space, as the machine runs it: with all that the compiler built into it.
#[derive(Debug, Clone, PartialEq)]
pub struct HotCode {
    /// File name of the executable or library.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// The function; none where nothing names it.
    pub function: Option<String>,
    /// The addresses in the file at which threads were seen, those with most samples first.
    pub addresses: Vec<i64>,
    /// Samples at each of them.
    pub samples: Vec<u64>,
    /// Its part of the samples of all threads of the server that ran, in the kernel or not; 0 to 1.
    pub share: f64,
}

/// The functions with at least this share of the samples that were taken on CPUs, the hottest first. All rungs and all threads of
/// the server count, the warm-up too. What the kernel does for a function is not the function's.
pub fn hot_code(bundle: &Bundle, least_share: f64) -> Vec<HotCode> {
    let call_paths = CallPaths::of(bundle);
    let mut by_stack: NumberMap<i64, u64> = NumberMap::default();
    for block in bundle.samples.blocks() {
        let runs = block.states().by_code(|state| state.is_on_cpu());
        let mut counts = vec![0_u64; block.stacks().values().len()];
        for (state, stack) in block.states().codes().iter().zip(block.stacks().codes()) {
            counts[*stack as usize] += u64::from(runs[*state as usize]);
        }
        let seen = block
            .stacks()
            .values()
            .iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0);
        for (stack, count) in seen {
            *by_stack.entry(*stack).or_default() += count;
        }
    }
    let all: u64 = by_stack.values().sum();
    type Function = (String, Option<String>, Option<String>);
    let mut functions: BTreeMap<Function, BTreeMap<i64, u64>> = BTreeMap::new();
    for (stack, samples) in by_stack {
        let Some((instruction, false)) = innermost(call_paths.frames_outwards(stack)) else {
            continue;
        };
        let function = instruction.source.last().and_then(|place| place.function.clone());
        let key = (instruction.at.module, instruction.at.build_id, function);
        let addresses = functions.entry(key).or_default();
        *addresses.entry(instruction.at.address).or_default() += samples;
    }
    let mut hot: Vec<HotCode> = functions
        .into_iter()
        .map(|((module, build_id, function), addresses)| {
            let samples: u64 = addresses.values().sum();
            let mut addresses: Vec<(i64, u64)> = addresses.into_iter().collect();
            addresses.sort_by_key(|(address, samples)| (std::cmp::Reverse(*samples), *address));
            HotCode {
                module,
                build_id,
                function,
                samples: addresses.iter().map(|(_, samples)| *samples).collect(),
                addresses: addresses.into_iter().map(|(address, _)| address).collect(),
                share: samples as f64 / all as f64,
            }
        })
        .filter(|function| function.share >= least_share)
        .collect();
    hot.sort_by(|a, b| b.share.total_cmp(&a.share));
    hot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction_costs::tests::bundle;
    use crate::made_up_sample::sample;
    use scaleprof_bundle::Samples;
    use scaleprof_vocabulary::ThreadState;

    #[test]
    fn functions_are_ranked_by_their_samples_and_the_rare_left_out() {
        let mut bundle = bundle();
        bundle.samples = Samples::default();
        // 8: another instruction of `walk`; 6: in the kernel from `read`; 7: a stack that was lost; 2: `caller`.
        for (stack, state, count) in [
            (4, ThreadState::Cpu, 30),
            (8, ThreadState::Spin, 50),
            (6, ThreadState::Cpu, 9),
            (7, ThreadState::Cpu, 9),
            (2, ThreadState::Cpu, 1),
            (1, ThreadState::Cpu, 1),
            (1, ThreadState::Lock, 99),
        ] {
            bundle.samples.extend((0..count).map(|_| sample(5, state, stack, 1.0)));
        }
        let found = hot_code(&bundle, 0.015);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].function.as_deref(), found[0].module.as_str()),
            (Some("walk"), "mysqld")
        );
        assert_eq!(found[0].addresses, [0x2018, 0x2010]);
        assert_eq!(found[0].samples, [50, 30]);
        assert!((found[0].share - 0.8).abs() < 1e-9);
        assert_eq!(hot_code(&bundle, 0.01).len(), 3);
    }
}
