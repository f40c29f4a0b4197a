//! Which blocks of a function lie in a loop: those that can be reached from themselves (Tarjan 1972, "Depth-First Search and
//! Linear Graph Algorithms"). A backward branch alone says nothing: compilers put unlikely code behind the end of a function,
//! from where it jumps back.

/// What has been found out about a block.
#[derive(Clone, Copy)]
struct TarjanNode {
    /// In which order it was reached.
    number: usize,
    /// The first block that it leads back to.
    lowest: usize,
    is_open: bool,
}

/// For each block whether it lies in a loop. `successors` gives the blocks behind one.
pub(super) fn in_loops(blocks: usize, successors: impl Fn(usize) -> [Option<usize>; 2]) -> Vec<bool> {
    let mut found = vec![false; blocks];
    // Whoever only goes on comes to no place twice.
    let leads_back = |block: usize| successors(block).into_iter().flatten().any(|target| target <= block);
    if !(0..blocks).any(leads_back) {
        return found;
    }
    let mut nodes: Vec<Option<TarjanNode>> = vec![None; blocks];
    let mut open: Vec<usize> = Vec::new();
    let mut count = 0;
    for first in 0..blocks {
        // The way to the current block, each with how many of its successors were looked at.
        let mut way: Vec<(usize, usize)> = vec![(first, 0)];
        while let Some((block, looked_at)) = way.last_mut() {
            let block = *block;
            let Some(node) = nodes.get_mut(block) else {
                way.pop();
                continue;
            };
            if node.is_none() {
                *node = Some(TarjanNode {
                    number: count,
                    lowest: count,
                    is_open: true,
                });
                count += 1;
                open.push(block);
            } else if *looked_at == 0 {
                // Seen from elsewhere already.
                way.pop();
                continue;
            }
            let next = *looked_at;
            *looked_at += 1;
            if let Some(target) = successors(block).get(next) {
                if let Some(target) = target.filter(|target| *target < blocks) {
                    match nodes.get(target).copied().flatten() {
                        None => way.push((target, 0)),
                        Some(seen) if seen.is_open => lower(&mut nodes, block, seen.number),
                        Some(_) => {}
                    }
                    if target == block {
                        mark(&mut found, block);
                    }
                }
                continue;
            }
            way.pop();
            let Some(done) = nodes.get(block).copied().flatten() else {
                continue;
            };
            if let Some((before, _)) = way.last() {
                lower(&mut nodes, *before, done.lowest);
            }
            if done.lowest == done.number {
                let start = open.iter().rposition(|member| *member == block).unwrap_or(open.len());
                let members = open.split_off(start);
                for member in &members {
                    if let Some(Some(node)) = nodes.get_mut(*member) {
                        node.is_open = false;
                    }
                    if members.len() > 1 {
                        mark(&mut found, *member);
                    }
                }
            }
        }
    }
    found
}

fn lower(nodes: &mut [Option<TarjanNode>], block: usize, to: usize) {
    if let Some(Some(node)) = nodes.get_mut(block) {
        node.lowest = node.lowest.min(to);
    }
}

fn mark(found: &mut [bool], block: usize) {
    if let Some(is_in_loop) = found.get_mut(block) {
        *is_in_loop = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Against the definition: a block lies in a loop if some way leads from it back to it.
        #[test]
        fn a_block_is_in_a_loop_if_it_can_be_reached_from_itself(
            edges in proptest::collection::vec((proptest::option::of(0_usize..12), proptest::option::of(0_usize..12)), 0..12)
        ) {
            let successors = |block: usize| edges.get(block).map_or([None, None], |(a, b)| [*a, *b]);
            let found = in_loops(edges.len(), successors);
            for (block, is_in_loop) in found.into_iter().enumerate() {
                let mut reached = std::collections::BTreeSet::new();
                let mut open: Vec<usize> = successors(block).into_iter().flatten().collect();
                while let Some(next) = open.pop() {
                    if next < edges.len() && reached.insert(next) {
                        open.extend(successors(next).into_iter().flatten());
                    }
                }
                proptest::prop_assert_eq!(is_in_loop, reached.contains(&block), "{} of {:?}", block, &edges);
            }
        }
    }
}
