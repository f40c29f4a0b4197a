//! Call paths by function, for formats that know nothing of addresses.

use crate::{CostProfile, FrameId};
use foldhash::HashMap;

/// The call paths of some profiles as one, each a list of functions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FunctionPaths {
    /// Names of the functions in the order of the alphabet.
    pub functions: Vec<String>,
    /// The paths, as places in `functions` from the outermost on, each with the thread-seconds in each of the profiles. A path stands before
    /// those within it, and these before all others.
    pub paths: Vec<(Vec<u32>, Vec<f64>)>,
}

impl FunctionPaths {
    /// Those of the profiles, which may be rungs of one bundle or of several.
    pub(crate) fn of(profiles: &[&CostProfile]) -> FunctionPaths {
        let names_of = |profile: &&CostProfile| -> Vec<(FrameId, String)> {
            let frames = profile.frames.iter();
            frames.map(|(id, frame)| (id, frame.function_name())).collect()
        };
        let names: Vec<Vec<(FrameId, String)>> = profiles.iter().map(names_of).collect();
        let mut functions: Vec<&str> = names.iter().flatten().map(|(_, name)| name.as_str()).collect();
        functions.sort_unstable();
        functions.dedup();
        let mut tree = FunctionTree::new(profiles.len());
        for (at, (profile, names)) in profiles.iter().zip(&names).enumerate() {
            let number = |name: &String| functions.binary_search(&name.as_str()).ok()?.try_into().ok();
            let of_frames = names.iter().filter_map(|(id, name)| Some((*id, number(name)?)));
            tree.add(at, profile, &of_frames.collect());
        }
        FunctionPaths {
            paths: tree.paths(),
            functions: functions.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Call paths that share their outer functions.
struct FunctionTree {
    /// The path without a function first, and each before those within it.
    nodes: Vec<Node>,
    /// Nodes by their parents and functions.
    known: HashMap<(usize, u32), usize>,
    profiles: usize,
}

#[derive(Default)]
struct Node {
    function: u32,
    within: Vec<usize>,
    /// In each of the profiles; none where threads were only within it.
    seconds: Option<Vec<f64>>,
}

impl FunctionTree {
    fn new(profiles: usize) -> FunctionTree {
        FunctionTree {
            nodes: vec![Node::default()],
            known: HashMap::default(),
            profiles,
        }
    }

    /// Adds the costs of the profile that is `at` that place, in their order, so that sums are the same to the last digit every time.
    fn add(&mut self, at: usize, profile: &CostProfile, of_frames: &HashMap<FrameId, u32>) {
        const ROOT: usize = 0;
        let mut nodes: Vec<usize> = Vec::with_capacity(profile.stacks.iter().len());
        for (_, stack) in profile.stacks.iter() {
            let parent = stack.parent.and_then(|parent| profile.stacks.place(parent));
            let parent = parent.and_then(|place| nodes.get(place).copied()).unwrap_or(ROOT);
            nodes.push(match of_frames.get(&stack.frame) {
                Some(function) => self.child(parent, *function),
                None => parent,
            });
        }
        for cost in &profile.costs {
            let place = profile.stacks.place(cost.stack);
            let node = place.and_then(|place| nodes.get(place).copied()).unwrap_or(ROOT);
            let seconds = self.nodes[node].seconds.get_or_insert_with(|| vec![0.0; self.profiles]);
            seconds[at] += cost.thread_seconds;
        }
    }

    fn child(&mut self, parent: usize, function: u32) -> usize {
        *self.known.entry((parent, function)).or_insert_with(|| {
            let child = self.nodes.len();
            self.nodes.push(Node {
                function,
                ..Node::default()
            });
            self.nodes[parent].within.push(child);
            child
        })
    }

    /// All paths that have costs of their own, in order.
    fn paths(mut self) -> Vec<(Vec<u32>, Vec<f64>)> {
        let mut paths = Vec::new();
        let mut path: Vec<u32> = Vec::new();
        // Nodes whose turn comes, the next one last, each with the length of the path to its parent.
        let mut to_come = vec![(0, 0)];
        while let Some((node, length)) = to_come.pop() {
            path.truncate(length);
            let Node {
                function,
                mut within,
                seconds,
            } = std::mem::take(&mut self.nodes[node]);
            if node > 0 {
                path.push(function);
            }
            paths.extend(seconds.map(|seconds| (path.clone(), seconds)));
            within.sort_unstable_by_key(|child| std::cmp::Reverse(self.nodes[*child].function));
            to_come.extend(within.into_iter().map(|child| (child, path.len())));
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cost, Frame, StackId};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use scaleprof_vocabulary::{Role, ThreadState};
    use std::collections::BTreeMap;

    /// Costs of call paths, as letters from the outermost function on. Functions have several places in the code each.
    fn profile(paths: &[(Vec<u8>, u32)]) -> CostProfile {
        let mut profile = CostProfile::default();
        for (number, (path, seconds)) in paths.iter().enumerate() {
            let mut stack = None;
            for letter in path {
                let frame = Frame {
                    function: Some(char::from(b'a' + letter % 3).to_string().into()),
                    address: i64::from(*letter),
                    ..Frame::placeholder(String::new())
                };
                let frame = profile.frames.intern(frame);
                stack = Some(profile.stacks.child(stack, frame));
            }
            profile.costs.push(Cost {
                // Of a damaged table it may be one that is not there.
                stack: stack.unwrap_or(StackId(-1)),
                state: ThreadState::Cpu,
                role: Role::Connection,
                thread: None,
                lock: Some(number),
                thread_seconds: f64::from(*seconds) * 0.1,
                samples: 1,
            });
        }
        profile
    }

    proptest! {
        #[test]
        fn they_are_what_adding_path_by_path_gives(
            one in vec((vec(0..9_u8, 0..5), 0..100_u32), 0..20),
            other in vec((vec(0..9_u8, 0..5), 0..100_u32), 0..20),
        ) {
            let profiles = [profile(&one), profile(&other)];
            let found = FunctionPaths::of(&[&profiles[0], &profiles[1]]);
            let mut expected: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for (at, paths) in [&one, &other].into_iter().enumerate() {
                for (path, seconds) in paths {
                    let path = path.iter().map(|letter| char::from(b'a' + letter % 3)).collect();
                    expected.entry(path).or_insert_with(|| vec![0.0; 2])[at] += f64::from(*seconds) * 0.1;
                }
            }
            let named = |path: &[u32]| path.iter().map(|number| found.functions[*number as usize].as_str()).collect();
            let named: Vec<(String, Vec<f64>)> = found.paths.iter().map(|(path, seconds)| (named(path), seconds.clone())).collect();
            prop_assert_eq!(named, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
