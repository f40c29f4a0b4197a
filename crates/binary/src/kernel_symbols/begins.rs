//! Where a kernel begins: other names that lie there may be better known.

use std::collections::BTreeMap;

use super::list_line::{Line, Lines};

/// Names of that place.
const NAMES: [&str; 2] = ["_text", "_stext"];

/// In front of a name stand at most sixteen digits, a letter and two spaces.
const IN_FRONT: usize = 19;

/// The addresses of those names that a list has, of each the first.
#[derive(Debug, Clone, Default)]
pub(super) struct Begins(BTreeMap<&'static str, u64>);

impl Begins {
    /// Those in a text; they are looked for by their bytes, as there are very many lines.
    pub(super) fn of(text: &[u8]) -> Begins {
        let found = NAMES
            .into_iter()
            .filter_map(|name| Some((name, address_of(name, text)?)));
        Begins(found.collect())
    }

    /// Takes in a line that stands behind those.
    pub(super) fn note(&mut self, text: &[u8], line: &Line<'_>) {
        let is_it = |name: &&str| text[line.name.clone()] == *name.as_bytes();
        let name = NAMES.into_iter().find(is_it);
        if let Some(name) = name.filter(|_| line.module.is_none()) {
            self.0.entry(name).or_insert(line.address);
        }
    }

    /// The address of one of them.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// All are so much further up from now on.
    pub(super) fn move_up(&mut self, by: u64) {
        for begin in self.0.values_mut() {
            *begin = begin.wrapping_add(by);
        }
    }
}

/// The address of the first symbol of that name that is not a module's.
pub(super) fn address_of(name: &str, text: &[u8]) -> Option<u64> {
    memchr::memmem::find_iter(text, name).find_map(|at| {
        let front = at.saturating_sub(IN_FRONT + 1);
        let start = match memchr::memrchr(b'\n', &text[front..at]) {
            Some(end) => front + end + 1,
            None if front == 0 => 0,
            None => return None,
        };
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
        let line = Lines::from(&text[..end], start).next()?;
        (line.name == (at..at + name.len()) && line.module.is_none()).then_some(line.address)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_found_as_by_looking_at_every_line(
            lines in prop::collection::vec("[0-9a-f]{0,17} [Tt] (_text|_stext|x_text|_texts)([ \t](_text|\\[mod\\]))?[ \t\r]?|_text", 0..9),
        ) {
            let text = lines.join("\n").into_bytes();
            let mut plainly = Begins::default();
            for line in Lines::from(&text, 0) {
                plainly.note(&text, &line);
            }
            prop_assert_eq!(Begins::of(&text).0, plainly.0);
        }
    }
}
