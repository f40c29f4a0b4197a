//! A column in which the same few values stand again and again: each value once, and for every row the place of its own.

use foldhash::HashMap;
use std::hash::Hash;

/// One column of a table. Rows name their values by code, so that whoever looks at millions of rows looks at each value once.
#[derive(Debug, Clone)]
pub struct Coded<T> {
    values: Vec<T>,
    codes: Vec<u32>,
}

/// A column of no rows.
impl<T> Default for Coded<T> {
    fn default() -> Coded<T> {
        Coded {
            values: Vec::new(),
            codes: Vec::new(),
        }
    }
}

impl<T> Coded<T> {
    /// A column of `values` by the codes of its rows; none where a code is no place in `values`.
    pub(crate) fn new(values: Vec<T>, codes: Vec<u32>) -> Option<Coded<T>> {
        let largest = codes.iter().copied().max();
        let fits = largest.is_none_or(|code| (code as usize) < values.len());
        fits.then_some(Coded { values, codes })
    }

    /// The values, by code. Two of them may be equal, and one may be that of no row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The code of every row's value, always a place in [`values`](Coded::values).
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// What follows from each value, by code: asked once a value instead of once a row.
    pub fn by_code<'a, U>(&'a self, of: impl FnMut(&'a T) -> U) -> Vec<U> {
        self.values.iter().map(of).collect()
    }

    /// The value of a row; none past the last.
    pub fn get(&self, row: usize) -> Option<&T> {
        self.values.get(*self.codes.get(row)? as usize)
    }
}

impl<T> Coded<T> {
    /// The column of these keys, one a row, of each of which `value` makes what is kept. Rows one behind the other are often alike.
    pub(crate) fn by<K: Hash + Eq + Copy>(keys: impl Iterator<Item = K>, value: impl Fn(K) -> T) -> Coded<T> {
        let mut values: Vec<T> = Vec::new();
        let mut known: HashMap<K, u32> = HashMap::default();
        let mut last: Option<(K, u32)> = None;
        let codes = keys.map(|key| {
            let code = match last {
                Some((same, code)) if same == key => code,
                _ => *known.entry(key).or_insert_with(|| {
                    values.push(value(key));
                    // More values than that do not fit into memory.
                    (values.len() - 1) as u32
                }),
            };
            last = Some((key, code));
            code
        });
        let codes = codes.collect();
        Coded { values, codes }
    }
}

impl<T: Hash + Eq + Clone> FromIterator<T> for Coded<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Coded<T> {
        let mut values: Vec<T> = Vec::new();
        let mut known: HashMap<T, u32> = HashMap::default();
        let codes = rows.into_iter().map(|value| {
            *known.entry(value).or_insert_with_key(|value| {
                values.push(value.clone());
                // More values than that do not fit into memory.
                (values.len() - 1) as u32
            })
        });
        let codes = codes.collect();
        Coded { values, codes }
    }
}
