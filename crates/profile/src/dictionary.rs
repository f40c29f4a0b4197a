//! Things that are kept once, each under a number that follows from its content.

use crate::ContentHash;
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// Something that a [`Dictionary`] can hold.
pub trait Content: PartialEq {
    /// Takes all of it into the hash.
    fn hash(&self, hash: &mut ContentHash);
}

/// Entries in the order in which they came, each with its number.
///
/// Two entries whose hashes are equal are never merged: the later one gets the first free hash of its content with a count
/// from 1 behind it. Which of the two was the later one depends on the run, so in that case, and in no other, the number in
/// another bundle may differ.
#[derive(Debug, Clone)]
pub struct Dictionary<T> {
    entries: Vec<(i64, T)>,
    places: HashMap<i64, usize>,
    /// Bits of the hash that are used; fewer only to make collisions in tests.
    bits: i64,
}

impl<T> Default for Dictionary<T> {
    fn default() -> Self {
        Dictionary {
            entries: Vec::new(),
            places: HashMap::default(),
            bits: -1,
        }
    }
}

/// Content with its hash: that takes longer than to look for the content, and can be made anywhere.
#[derive(Debug, Clone)]
pub(crate) struct Hashed<T> {
    content: T,
    hash: ContentHash,
}

impl<T: Content> Hashed<T> {
    pub(crate) fn of(content: T) -> Hashed<T> {
        let mut hash = ContentHash::new();
        content.hash(&mut hash);
        Hashed { content, hash }
    }

    pub(crate) fn content(&self) -> &T {
        &self.content
    }
}

impl<T: Content> Dictionary<T> {
    /// The number of the entry, which is kept if it is new.
    pub fn intern(&mut self, content: T) -> i64 {
        self.intern_hashed(Hashed::of(content))
    }

    /// The same of one whose hash was made before.
    pub(crate) fn intern_hashed(&mut self, content: Hashed<T>) -> i64 {
        self.intern_hashed_as(content, |content| content)
    }

    /// The same; a new one is kept as `keep` gives it, which is equal to it.
    pub(crate) fn intern_hashed_as(&mut self, Hashed { content, hash }: Hashed<T>, keep: impl FnOnce(T) -> T) -> i64 {
        let mut number = hash.number() & self.bits;
        let mut count = 0;
        loop {
            match self.places.entry(number) {
                Entry::Vacant(free) => {
                    free.insert(self.entries.len());
                    self.entries.push((number, keep(content)));
                    return number;
                }
                Entry::Occupied(taken) if self.entries[*taken.get()].1 == content => return number,
                Entry::Occupied(_) => {}
            }
            count += 1;
            let mut again = hash;
            again.integer(count);
            number = again.number() & self.bits;
        }
    }

    /// How many entries came before the one of that number.
    pub(crate) fn place(&self, number: i64) -> Option<usize> {
        self.places.get(&number).copied()
    }

    /// Makes room for so many further entries, so that less is moved. Without the room it grows as needed.
    pub(crate) fn reserve(&mut self, entries: usize) {
        let _ = self.entries.try_reserve(entries);
        let _ = self.places.try_reserve(entries);
    }

    /// The entry of that number.
    pub fn get(&self, number: i64) -> Option<&T> {
        self.place(number).map(|place| &self.entries[place].1)
    }

    /// All entries with their numbers, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (i64, &T)> {
        self.entries.iter().map(|(number, content)| (*number, content))
    }

    /// The same, where nobody looks for one any more.
    pub(crate) fn into_entries(self) -> Vec<(i64, T)> {
        self.entries
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    impl Content for String {
        fn hash(&self, hash: &mut ContentHash) {
            hash.string(self);
        }
    }

    #[test]
    fn equal_content_has_one_number_in_every_dictionary() {
        let mut one = Dictionary::default();
        let mut other = Dictionary::default();
        other.intern("first".to_owned());
        let number = one.intern("main".to_owned());
        assert_eq!(one.intern("main".to_owned()), number);
        assert_eq!(other.intern("main".to_owned()), number);
        assert_eq!((one.len(), one.is_empty()), (1, false));
        assert_eq!(one.get(number).map(String::as_str), Some("main"));
        assert_eq!(one.get(number + 1), None);
    }

    proptest! {
        #[test]
        fn nothing_is_merged_that_differs_even_where_hashes_collide(words in vec("[a-c]{0,4}", 0..120), bits in 8i64..12) {
            let mut dictionary = Dictionary { bits: (1 << bits) - 1, ..Dictionary::default() };
            let numbers: Vec<i64> = words.iter().map(|word| dictionary.intern(word.clone())).collect();
            for (word, number) in words.iter().zip(&numbers) {
                prop_assert_eq!(dictionary.get(*number), Some(word));
                prop_assert_eq!(dictionary.intern(word.clone()), *number);
            }
            let distinct: std::collections::HashSet<&String> = words.iter().collect();
            prop_assert_eq!(distinct.len(), dictionary.len());
        }
    }
}
