//! From instructions to loops.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::step::{Does, Relax, Step};
use super::{SpinFault, SpinKind, SpinLoop};

/// A loop with more instructions does more than wait.
const MOST_INSTRUCTIONS: usize = 96;
/// A function that does nothing but wait has no more than these.
const MOST_OF_HELPER: usize = 64;

/// The code of a file.
pub(super) struct Code<'a> {
    /// Address and bytes of the executable sections.
    pub sections: Vec<(u64, &'a [u8])>,
    pub functions: &'a [Range<u64>],
    pub decode: fn(&[u8], u64) -> Vec<Step>,
    /// Places where a waiting instruction may stand.
    pub relaxes: fn(&[u8]) -> Vec<usize>,
}

pub(super) fn loops(code: &Code<'_>) -> Vec<SpinLoop> {
    let mut found = Vec::new();
    let mut helpers: BTreeMap<u64, Relax> = BTreeMap::new();
    for function in with_relaxes(code) {
        let Some(bytes) = code.bytes(&function) else { continue };
        let body = Body::of((code.decode)(bytes, function.start), function);
        let (own, helper) = body.spin_loops();
        found.extend(own);
        if let Some(relax) = helper {
            helpers.insert(body.function.start, relax);
        }
    }
    if !helpers.is_empty() {
        found.extend(callers(code, &helpers));
    }
    found
}

/// Functions in which a waiting instruction stands.
fn with_relaxes(code: &Code<'_>) -> Vec<Range<u64>> {
    let mut functions = BTreeSet::new();
    for (address, bytes) in &code.sections {
        for place in (code.relaxes)(bytes) {
            let at = address + place as u64;
            let after = code.functions.partition_point(|function| function.start <= at);
            let function = after.checked_sub(1).and_then(|index| code.functions.get(index));
            if let Some(function) = function.filter(|function| function.contains(&at)) {
                functions.insert((function.start, function.end));
            }
        }
    }
    functions.into_iter().map(|(start, end)| start..end).collect()
}

/// Loops that call a helper in every turn. Every function has to be taken apart for it, once: any may call one.
fn callers(code: &Code<'_>, helpers: &BTreeMap<u64, Relax>) -> Vec<SpinLoop> {
    let mut found = Vec::new();
    for function in code.functions {
        let Some(bytes) = code.bytes(function) else { continue };
        let steps = (code.decode)(bytes, function.start);
        let calls: Vec<(usize, Relax)> = steps
            .iter()
            .enumerate()
            .filter_map(|(place, step)| match step.does {
                Does::Call(Some(target)) => Some((place, *helpers.get(&target)?)),
                _ => None,
            })
            .collect();
        if calls.is_empty() {
            continue;
        }
        let body = Body::of(steps, function.clone());
        for (place, relax) in calls {
            // The call of the helper is the only one.
            if let Some(around) = body.loops_around(place).next()
                && body.calls(around) == 1
            {
                found.push(body.spin_loop(around, relax, SpinKind::Retry));
            }
        }
    }
    found
}

impl<'a> Code<'a> {
    fn bytes(&self, range: &Range<u64>) -> Option<&'a [u8]> {
        self.sections.iter().find_map(|(address, bytes)| {
            let start = usize::try_from(range.start.checked_sub(*address)?).ok()?;
            let end = usize::try_from(range.end.checked_sub(*address)?).ok()?;
            bytes.get(start..end)
        })
    }
}

/// A function taken apart.
struct Body {
    function: Range<u64>,
    steps: Vec<Step>,
    /// First and last instruction of each loop, the shortest first.
    loops: Vec<(usize, usize)>,
}

impl Body {
    fn of(steps: Vec<Step>, function: Range<u64>) -> Body {
        let place_of = |address: u64| steps.binary_search_by_key(&address, |step| step.address).ok();
        let mut loops: Vec<(usize, usize)> = steps
            .iter()
            .enumerate()
            .filter_map(|(last, step)| match step.does {
                Does::Branch(target) if target <= step.address => Some((place_of(target)?, last)),
                _ => None,
            })
            .filter(|(first, last)| last - first < MOST_INSTRUCTIONS)
            .collect();
        loops.sort_by_key(|(first, last)| last - first);
        loops.dedup();
        Body { function, steps, loops }
    }

    /// Loops that hold an instruction, the innermost first.
    fn loops_around(&self, place: usize) -> impl Iterator<Item = (usize, usize)> {
        let loops = self.loops.iter().copied();
        loops.filter(move |(first, last)| (*first..=*last).contains(&place))
    }

    fn within(&self, (first, last): (usize, usize)) -> &[Step] {
        self.steps.get(first..=last).unwrap_or_default()
    }

    fn calls(&self, around: (usize, usize)) -> usize {
        let is_call = |step: &&Step| matches!(step.does, Does::Call(_));
        self.within(around).iter().filter(is_call).count()
    }

    fn looks_at_memory(&self, around: (usize, usize)) -> bool {
        let looks = |step: &Step| matches!(step.does, Does::Load | Does::Locked);
        self.within(around).iter().any(looks)
    }

    /// Its waiting loops; and how it waits if it does nothing else, so that the loop is around its callers' calls.
    fn spin_loops(&self) -> (Vec<SpinLoop>, Option<Relax>) {
        let mut found = Vec::new();
        let mut helper = None;
        let does_little = self.steps.len() <= MOST_OF_HELPER;
        for (place, step) in self.steps.iter().enumerate() {
            let Does::Relax(relax) = step.does else { continue };
            let mut around = self.loops_around(place);
            let Some(inner) = around.next().filter(|inner| self.calls(*inner) == 0) else {
                // A helper that says it once: the loop is its caller's.
                if does_little && !self.steps.iter().any(|step| matches!(step.does, Does::Call(_))) {
                    helper = Some(relax);
                }
                continue;
            };
            if self.looks_at_memory(inner) {
                found.push(self.spin_loop(inner, relax, SpinKind::Poll));
                continue;
            }
            found.push(self.spin_loop(inner, relax, SpinKind::Delay));
            // Whoever counts down inside of a loop that looks at memory waits in all of that loop.
            match around.find(|outer| self.looks_at_memory(*outer)) {
                Some(outer) if self.calls(outer) == 0 => found.push(self.spin_loop(outer, relax, SpinKind::Poll)),
                Some(_) => {}
                None if does_little => helper = Some(relax),
                None => {}
            }
        }
        (found, helper)
    }

    fn spin_loop(&self, around: (usize, usize), relax: Relax, kind: SpinKind) -> SpinLoop {
        let steps = self.within(around);
        let mut faults = Vec::new();
        let does = |wanted: Does| steps.iter().any(|step| step.does == wanted);
        // A retry that tries by a locked instruction after each delay is as it should be.
        if kind == SpinKind::Poll && does(Does::Locked) && !does(Does::Load) {
            faults.push(SpinFault::LockedInstruction);
        }
        if does(Does::Barrier) {
            faults.push(SpinFault::MemoryBarrier);
        }
        let start = steps.first().map_or(self.function.start, |step| step.address);
        let end = steps.last().map_or(start, |step| step.end);
        SpinLoop {
            range: start..end,
            function: self.function.clone(),
            relax,
            kind,
            instructions: steps.len() as u32,
            faults,
        }
    }
}
