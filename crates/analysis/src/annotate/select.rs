//! Which function is meant.

use super::FunctionCost;

/// What a name, or a part of one, stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection<'a> {
    /// This function.
    One(&'a FunctionCost),
    /// One of these, those that cost most first.
    Several(Vec<&'a FunctionCost>),
    /// The compiler built it into these.
    BuiltInto(Vec<&'a FunctionCost>),
    /// Nothing that is known.
    Unknown,
}

/// Finds the function with this name, which may have its module before it (`libc.so.6!memcpy`); where there is none, those whose
/// name holds it. `functions` are those of [`catalogue`](super::catalogue).
pub fn select<'a>(functions: &'a [FunctionCost], wanted: &str) -> Selection<'a> {
    let has_name = |one: &FunctionCost| {
        let of_module = wanted
            .strip_prefix(one.module.as_str())
            .and_then(|rest| rest.strip_prefix('!'));
        one.function == wanted || of_module.is_some_and(|rest| one.function == rest)
    };
    // A method may be asked for without its class.
    let is_method = |one: &FunctionCost| {
        let class = one.function.strip_suffix(wanted);
        class.is_some_and(|class| class.ends_with("::"))
    };
    let holds_name = |one: &FunctionCost| one.function.contains(wanted);
    let ways: [&dyn Fn(&FunctionCost) -> bool; 3] = [&has_name, &is_method, &holds_name];
    for is_meant in ways {
        let found: Vec<&FunctionCost> = functions.iter().filter(|one| is_meant(one)).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Selection::One(one),
            _ => return Selection::Several(found),
        }
    }
    let holds_it = |one: &&FunctionCost| one.inlined.iter().any(|inner| inner.contains(wanted));
    let holders: Vec<&FunctionCost> = functions.iter().filter(holds_it).collect();
    match holders.is_empty() {
        true => Selection::Unknown,
        false => Selection::BuiltInto(holders),
    }
}
