//! From instructions to loops.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::counting::waits_around;
use super::flow::Flow;
use super::step::{Does, Relax, Step};
use super::turns::Turns;
use super::unrelaxed::Unrelaxed;
use super::{SpinFault, SpinKind, SpinLoop};

/// A function that does nothing but wait has no more than these.
const MOST_OF_HELPER: usize = 64;

/// Tells of bytes, their address and some functions whether they may call one of these.
pub(super) type MayCall = fn(&[u8], u64, &dyn Fn(u64) -> bool) -> bool;

/// The code of a file.
pub(super) struct Code<'a> {
    /// Address and bytes of the executable sections.
    pub sections: Vec<(u64, &'a [u8])>,
    pub functions: &'a [Range<u64>],
    pub decode: fn(&[u8], u64) -> Vec<Step>,
    /// Whether bytes stand there that would call a function at one of these places; what lies there may be no instructions at all.
    pub may_call: MayCall,
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
                Unrelaxed::Poll(_) if body.looks_at_memory(&around) && body.is_a_loop_of_its_own(&around) => {
                    found.push(body.spin_loop(&around, None, SpinKind::Poll));
                }
                Unrelaxed::Poll(_) => {}
                // Ordinary code counts too: it is a delay where somebody looks at memory around it, or where nothing comes of it.
                Unrelaxed::Count(_) | Unrelaxed::Delay(_) => {
                    let mut delay = body.spin_loop(&around, None, SpinKind::Delay);
                    if matches!(likely, Unrelaxed::Count(_)) {
                        delay.faults.push(SpinFault::OnlyCounts);
                    }
                    let first = around.first().copied().unwrap_or_default();
                    let mut outer = body.loops_around(first).filter(|outer| **outer != around);
                    if outer.any(|outer| body.looks_at_memory(outer) && code.waits_around(body, outer)) {
                        found.push(delay);
                        continue;
                    }
                    if matches!(likely, Unrelaxed::Delay(_)) {
                        found.push(delay.clone());
                    }
                    if body.steps.len() <= MOST_OF_HELPER && !body.steps.iter().any(Step::calls) {
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
    // Where only some functions are asked for, it takes longer to look through all code of a server than through these.
    if code.is_mostly_not_asked_for() {
        let has_one = |function: &&Range<u64>| {
            code.bytes(function)
                .is_some_and(|bytes| !(code.relaxes)(bytes).is_empty())
        };
        return code.functions.iter().filter(has_one).cloned().collect();
    }
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

/// Loops that call a helper in every turn, with the helper. Any function may call one; those are taken apart whose bytes look like it.
/// Those whose helper does not say that it waits must look at memory themselves.
fn callers(code: &Code<'_>, helpers: &BTreeMap<u64, Option<Relax>>) -> Vec<(u64, SpinLoop)> {
    let mut found = Vec::new();
    for function in code.functions {
        let Some(bytes) = code.bytes(function) else { continue };
        if !(code.may_call)(bytes, function.start, &|target| helpers.contains_key(&target)) {
            continue;
        }
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
            let around = body.loops_around(place).next().filter(|around| body.calls(around) == 1);
            let turn = around.cloned().or_else(|| body.turns().through(place, &body.room));
            if let Some(turn) = turn.filter(|turn| relax.is_some() || body.looks_at_memory(turn)) {
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
    fn waits_around(&self, body: &Body, outer: &[usize]) -> bool {
        let parts = body.parts(outer).into_iter();
        let flows: Option<Vec<Vec<Flow>>> = parts.map(|part| (self.flows)(self.bytes(&part)?, part.start)).collect();
        flows.is_some_and(|flows| waits_around(&flows.concat()))
    }

    fn is_mostly_not_asked_for(&self) -> bool {
        let asked_for: u64 = self
            .functions
            .iter()
            .map(|function| function.end - function.start)
            .sum();
        let all: usize = self.sections.iter().map(|(_, bytes)| bytes.len()).sum();
        asked_for < all as u64 / 4
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
    /// The places of those that may run before an instruction, by its place.
    before: Vec<Vec<usize>>,
    /// The instructions of each loop by rising place, the loop of the fewest first.
    loops: Vec<Vec<usize>>,
    /// The loops that hold an instruction, by its place, in the order of the loops.
    around: HashMap<usize, Vec<usize>>,
    /// Instructions that may still be looked at for ways back to one.
    room: Cell<usize>,
}

/// Instructions that are looked at for ways back, in a function: enough for a hundred waits in one of twenty thousand instructions.
const ROOM: usize = 2_000_000;

impl Body {
    fn of(steps: Vec<Step>, function: Range<u64>) -> Body {
        let turns = Turns::of(&steps);
        let before = turns.predecessors();
        let loops = turns.loops(&before);
        let mut around: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, turn) in loops.iter().enumerate() {
            for place in turn {
                around.entry(*place).or_default().push(number);
            }
        }
        Body {
            function,
            steps,
            before,
            loops,
            around,
            room: Cell::new(ROOM),
        }
    }

    fn turns(&self) -> Turns<'_> {
        Turns::of(&self.steps)
    }

    /// The places of the instructions that make up these addresses; none where they do not begin and end there.
    fn places_of(&self, range: &Range<u64>) -> Option<Vec<usize>> {
        let first = self
            .steps
            .binary_search_by_key(&range.start, |step| step.address)
            .ok()?;
        let last = self.steps.binary_search_by_key(&range.end, |step| step.end).ok()?;
        Some((first..=last).collect())
    }

    /// Loops that hold an instruction, the innermost first.
    fn loops_around(&self, place: usize) -> impl Iterator<Item = &Vec<usize>> {
        let around = self.around.get(&place).into_iter().flatten();
        around.filter_map(|number| self.loops.get(*number))
    }

    fn steps_of<'a>(&'a self, turn: &'a [usize]) -> impl Iterator<Item = &'a Step> {
        turn.iter().filter_map(|place| self.steps.get(*place))
    }

    fn calls(&self, turn: &[usize]) -> usize {
        self.steps_of(turn).filter(|step| step.calls()).count()
    }

    fn looks_at_memory(&self, turn: &[usize]) -> bool {
        self.steps_of(turn).any(looks)
    }

    /// Whether a loop in one piece is one, and no way of another through its beginning: nobody enters it behind its first instruction,
    /// where its first turn is then not as the others; and if it can be left at several places, a loop around it begins elsewhere. Else
    /// it is what `continue` makes of `while (a) { if (!b) continue; ... }`.
    fn is_a_loop_of_its_own(&self, turn: &[usize]) -> bool {
        let (Some(first), Some(last)) = (turn.first(), turn.last()) else {
            return false;
        };
        let comes_from = |place: usize| self.before.get(place).into_iter().flatten();
        let is_outside = |from: &usize| !(first..=last).contains(&from);
        let is_entered_inside = turn[1..].iter().any(|place| comes_from(*place).any(is_outside));
        let beginning = self.steps.get(*first).map(|step| step.address);
        let leaves = |step: &&Step| matches!(step.does, Does::Branch(to) if Some(to) != beginning);
        let ends_by_leaving = self.steps.get(*last).is_some_and(|step| step.goes_on);
        let ways_out = self.steps_of(turn).filter(leaves).count() + usize::from(ends_by_leaving);
        let begins = |outer: &Vec<usize>| {
            let holds = outer.len() > turn.len() && turn.iter().all(|place| outer.binary_search(place).is_ok());
            holds && (*first == 0 || comes_from(*first).any(|from| outer.binary_search(from).is_err()))
        };
        let continues = ways_out > 1 && self.loops_around(*first).any(begins);
        !is_entered_inside && !continues
    }

    /// The addresses of a loop, in as many parts as it is laid in.
    fn parts(&self, turn: &[usize]) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for step in self.steps_of(turn) {
            match parts.last_mut().filter(|part| part.end == step.address) {
                Some(part) => part.end = step.end,
                None => parts.push(step.address..step.end),
            }
        }
        parts
    }

    /// Its waiting loops; and how it waits if it does nothing else, so that the loop is around its callers' calls.
    fn spin_loops(&self) -> (Vec<SpinLoop>, Option<Relax>) {
        let mut found = Vec::new();
        let mut helper = None;
        let does_little = self.steps.len() <= MOST_OF_HELPER;
        for (place, step) in self.steps.iter().enumerate() {
            let Does::Relax(relax) = step.does else { continue };
            let mut around = self.loops_around(place);
            let Some(inner) = around.next().filter(|inner| self.calls(inner) == 0) else {
                // Another way through the same loop may call somebody.
                if let Some(turn) = self
                    .turns()
                    .through(place, &self.room)
                    .filter(|turn| self.looks_at_memory(turn))
                {
                    found.push(self.spin_loop(&turn, Some(relax), SpinKind::Poll));
                    continue;
                }
                // A helper that says it once: the loop is its caller's.
                if does_little && !self.steps.iter().any(Step::calls) {
                    helper = Some(relax);
                }
                continue;
            };
            if self.looks_at_memory(inner) {
                found.push(self.spin_loop(inner, Some(relax), SpinKind::Poll));
                continue;
            }
            found.push(self.spin_loop(inner, Some(relax), SpinKind::Delay));
            // Whoever counts down inside of a loop that looks at memory waits in all of that loop.
            match around.find(|outer| self.looks_at_memory(outer)) {
                Some(outer) if self.calls(outer) == 0 => found.push(self.spin_loop(outer, Some(relax), SpinKind::Poll)),
                Some(_) => {}
                None if does_little => helper = Some(relax),
                None => {}
            }
        }
        (found, helper)
    }

    /// `turn`: its instructions, by place.
    fn spin_loop(&self, turn: &[usize], relax: Option<Relax>, kind: SpinKind) -> SpinLoop {
        let mut faults = Vec::new();
        let does = |wanted: Does| self.steps_of(turn).any(|step| step.does == wanted);
        // A retry that tries by a locked instruction after each delay is as it should be.
        if kind == SpinKind::Poll && does(Does::Locked) && !does(Does::Load) {
            faults.push(SpinFault::LockedInstruction);
        }
        if does(Does::Barrier) {
            faults.push(SpinFault::MemoryBarrier);
        }
        if relax.is_none() {
            faults.push(SpinFault::NoRelax);
        }
        SpinLoop {
            parts: self.parts(turn),
            function: self.function.clone(),
            relax,
            kind,
            instructions: turn.len() as u32,
            faults,
        }
    }
}

fn looks(step: &Step) -> bool {
    matches!(step.does, Does::Load | Does::Locked)
}
