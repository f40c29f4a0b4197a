//! From instructions to loops.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::counting::waits_around;
use super::step::{Does, Relax, Step};
use super::unrelaxed::{Flow, Unrelaxed};
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
    /// Loops that may wait without any such instruction; what lies there may be no instructions at all.
    pub unrelaxed: fn(&[u8], u64) -> Vec<Unrelaxed>,
    /// What instructions read and set; none where one of them rules a waiting loop out.
    pub flows: fn(&[u8], u64) -> Option<Vec<Flow>>,
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
        let helpers = helpers
            .into_iter()
            .map(|(helper, relax)| (helper, Some(relax)))
            .collect();
        found.extend(callers(code, &helpers).into_iter().map(|(_, retry)| retry));
    }
    found
}

/// Loops that wait without saying so. Their bytes were found anywhere: they count where a function's instructions fall on them.
pub(super) fn unrelaxed(code: &Code<'_>) -> Vec<SpinLoop> {
    let mut found = Vec::new();
    // Delays by the function that they are all of.
    let mut helpers: BTreeMap<u64, SpinLoop> = BTreeMap::new();
    // They come by address, so that a function is taken apart once, however many of them are in it.
    let mut body: Option<Body> = None;
    for (address, bytes) in &code.sections {
        for likely in (code.unrelaxed)(bytes, *address) {
            let range = likely.range();
            let Some(function) = code.function_at(range.start) else {
                continue;
            };
            if body.as_ref().is_none_or(|body| body.function != *function) {
                body = code
                    .bytes(function)
                    .map(|bytes| Body::of((code.decode)(bytes, function.start), function.clone()));
            }
            let Some((body, around)) = body.as_ref().and_then(|body| Some((body, body.places_of(range)?))) else {
                continue;
            };
            match likely {
                Unrelaxed::Poll(_) if body.looks_at_memory(around) => {
                    found.push(body.spin_loop(&all_of(around), None, SpinKind::Poll));
                }
                Unrelaxed::Poll(_) => {}
                // Ordinary code counts too: it is a delay where somebody looks at memory around it.
                Unrelaxed::Count(_) => {
                    let delay = body.spin_loop(&all_of(around), None, SpinKind::Delay);
                    let mut outer = body.loops_around(around.0).filter(|outer| *outer != around);
                    if outer.any(|outer| body.looks_at_memory(outer) && code.waits_around(body, outer)) {
                        found.push(delay);
                    } else if body.steps.len() <= MOST_OF_HELPER && body.calls((0, body.steps.len() - 1)) == 0 {
                        helpers.insert(function.start, delay);
                    }
                }
            }
        }
    }
    if !helpers.is_empty() {
        let callees = helpers.keys().map(|helper| (*helper, None)).collect();
        for (helper, retry) in callers(code, &callees) {
            found.extend(helpers.remove(&helper));
            found.push(retry);
        }
    }
    found
}

/// Functions in which a waiting instruction stands.
fn with_relaxes(code: &Code<'_>) -> Vec<Range<u64>> {
    let mut functions = BTreeSet::new();
    for (address, bytes) in &code.sections {
        for place in (code.relaxes)(bytes) {
            let at = address + place as u64;
            if let Some(function) = code.function_at(at) {
                functions.insert((function.start, function.end));
            }
        }
    }
    functions.into_iter().map(|(start, end)| start..end).collect()
}

/// Loops that call a helper in every turn, with the helper. Every function has to be taken apart for it, once: any may call one.
/// Those whose helper does not say that it waits must look at memory themselves.
fn callers(code: &Code<'_>, helpers: &BTreeMap<u64, Option<Relax>>) -> Vec<(u64, SpinLoop)> {
    let mut found = Vec::new();
    for function in code.functions {
        let Some(bytes) = code.bytes(function) else { continue };
        let steps = (code.decode)(bytes, function.start);
        let calls: Vec<(usize, u64, Option<Relax>)> = steps
            .iter()
            .enumerate()
            .filter_map(|(place, step)| match step.does {
                Does::Call(Some(target)) => Some((place, target, *helpers.get(&target)?)),
                _ => None,
            })
            .collect();
        if calls.is_empty() {
            continue;
        }
        let body = Body::of(steps, function.clone());
        for (place, helper, relax) in calls {
            // The call of the helper is the only one.
            let around = body
                .loops_around(place)
                .next()
                .filter(|around| body.calls(*around) == 1);
            let turn = match around {
                Some(around) => Some(all_of(around)),
                None => body.turn_through(place),
            };
            if let Some(turn) = turn.filter(|turn| relax.is_some() || body.turn_looks_at_memory(turn)) {
                found.push((helper, body.spin_loop(&turn, relax, SpinKind::Retry)));
            }
        }
    }
    found
}

impl<'a> Code<'a> {
    fn function_at(&self, address: u64) -> Option<&'a Range<u64>> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = after.checked_sub(1).and_then(|index| self.functions.get(index));
        function.filter(|function| function.contains(&address))
    }

    /// Whether a loop around a delay waits.
    fn waits_around(&self, body: &Body, outer: (usize, usize)) -> bool {
        let steps = body.within(outer);
        let Some((first, last)) = steps.first().zip(steps.last()) else {
            return false;
        };
        let bytes = self.bytes(&(first.address..last.end));
        bytes
            .and_then(|bytes| (self.flows)(bytes, first.address))
            .is_some_and(|flows| waits_around(&flows))
    }

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

    /// The shortest way from an instruction back to itself without a call of others: a loop whose parts the compiler laid apart.
    fn turn_through(&self, place: usize) -> Option<Vec<usize>> {
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut rim = vec![place];
        for _ in 0..MOST_INSTRUCTIONS {
            let mut next_rim = Vec::new();
            for at in std::mem::take(&mut rim) {
                for next in self.successors(at) {
                    if next == place {
                        let mut turn = vec![at];
                        let mut back = at;
                        while back != place {
                            back = *came_from.get(&back)?;
                            turn.push(back);
                        }
                        turn.sort_unstable();
                        return Some(turn);
                    }
                    let is_call = matches!(self.steps.get(next)?.does, Does::Call(_));
                    if !is_call && !came_from.contains_key(&next) {
                        came_from.insert(next, at);
                        next_rim.push(next);
                    }
                }
            }
            rim = next_rim;
        }
        None
    }

    fn successors(&self, place: usize) -> impl Iterator<Item = usize> {
        let step = self.steps.get(place);
        let target = step.and_then(|step| match step.does {
            Does::Branch(target) => self.steps.binary_search_by_key(&target, |step| step.address).ok(),
            _ => None,
        });
        let next = step
            .filter(|step| step.goes_on && place + 1 < self.steps.len())
            .map(|_| place + 1);
        next.into_iter().chain(target)
    }

    /// First and last of the instructions that make up these addresses; none where they do not begin and end there.
    fn places_of(&self, range: &Range<u64>) -> Option<(usize, usize)> {
        let first = self
            .steps
            .binary_search_by_key(&range.start, |step| step.address)
            .ok()?;
        let last = self.steps.binary_search_by_key(&range.end, |step| step.end).ok()?;
        Some((first, last))
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
        self.within(around).iter().any(looks)
    }

    /// `turn`: its instructions, by place.
    fn turn_looks_at_memory(&self, turn: &[usize]) -> bool {
        turn.iter().filter_map(|place| self.steps.get(*place)).any(looks)
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
                // What lies between the branch and its target may be other code, when the compiler laid the turn apart.
                if let Some(turn) = self.turn_through(place).filter(|turn| self.turn_looks_at_memory(turn)) {
                    found.push(self.spin_loop(&turn, Some(relax), SpinKind::Poll));
                    continue;
                }
                // A helper that says it once: the loop is its caller's.
                if does_little && !self.steps.iter().any(|step| matches!(step.does, Does::Call(_))) {
                    helper = Some(relax);
                }
                continue;
            };
            if self.looks_at_memory(inner) {
                found.push(self.spin_loop(&all_of(inner), Some(relax), SpinKind::Poll));
                continue;
            }
            found.push(self.spin_loop(&all_of(inner), Some(relax), SpinKind::Delay));
            // Whoever counts down inside of a loop that looks at memory waits in all of that loop.
            match around.find(|outer| self.looks_at_memory(*outer)) {
                Some(outer) if self.calls(outer) == 0 => {
                    found.push(self.spin_loop(&all_of(outer), Some(relax), SpinKind::Poll))
                }
                Some(_) => {}
                None if does_little => helper = Some(relax),
                None => {}
            }
        }
        (found, helper)
    }

    /// `turn`: its instructions, by place.
    fn spin_loop(&self, turn: &[usize], relax: Option<Relax>, kind: SpinKind) -> SpinLoop {
        let steps: Vec<&Step> = turn.iter().filter_map(|place| self.steps.get(*place)).collect();
        let mut faults = Vec::new();
        let does = |wanted: Does| steps.iter().any(|step| step.does == wanted);
        // A retry that tries by a locked instruction after each delay is as it should be.
        if kind == SpinKind::Poll && does(Does::Locked) && !does(Does::Load) {
            faults.push(SpinFault::LockedInstruction);
        }
        if does(Does::Barrier) {
            faults.push(SpinFault::MemoryBarrier);
        }
        if relax.is_none() {
            faults.push(SpinFault::NoRelax);
            if kind == SpinKind::Delay {
                faults.push(SpinFault::OnlyCounts);
            }
        }
        let mut parts: Vec<Range<u64>> = Vec::new();
        for step in &steps {
            match parts.last_mut().filter(|part| part.end == step.address) {
                Some(part) => part.end = step.end,
                None => parts.push(step.address..step.end),
            }
        }
        SpinLoop {
            parts,
            function: self.function.clone(),
            relax,
            kind,
            instructions: steps.len() as u32,
            faults,
        }
    }
}

fn looks(step: &Step) -> bool {
    matches!(step.does, Does::Load | Does::Locked)
}

fn all_of((first, last): (usize, usize)) -> Vec<usize> {
    (first..=last).collect()
}
