//! A figure for each state.

use crate::ThreadState;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

const STATES: usize = ThreadState::ALL.len();

/// One `T` for each state. As JSON an object whose keys are the states' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerState<T>([T; STATES]);

impl<T> PerState<T> {
    /// That of each state.
    pub fn from_fn(of: impl FnMut(ThreadState) -> T) -> PerState<T> {
        PerState(ThreadState::ALL.map(of))
    }

    /// The states with theirs, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadState, &T)> {
        ThreadState::ALL.into_iter().zip(&self.0)
    }
}

impl PerState<Option<f64>> {
    /// All that are known, together.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.0.iter().flatten().sum()
    }
}

impl<T> Index<ThreadState> for PerState<T> {
    type Output = T;

    fn index(&self, state: ThreadState) -> &T {
        &self.0[state as usize]
    }
}

impl<T> IndexMut<ThreadState> for PerState<T> {
    fn index_mut(&mut self, state: ThreadState) -> &mut T {
        &mut self.0[state as usize]
    }
}

impl<T: Default> FromIterator<(ThreadState, T)> for PerState<T> {
    /// States that are not told have the default.
    fn from_iter<I: IntoIterator<Item = (ThreadState, T)>>(told: I) -> PerState<T> {
        let mut all = PerState::from_fn(|_| T::default());
        for (state, value) in told {
            all[state] = value;
        }
        all
    }
}

impl<T: Serialize> Serialize for PerState<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(STATES))?;
        for (state, value) in self.iter() {
            map.serialize_entry(state.name(), value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for PerState<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PerState<T>, D::Error> {
        deserializer.deserialize_map(ByName(PhantomData))
    }
}

/// Reads the object again. A state of a newer version is an error: without it the sum would be too small.
struct ByName<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for ByName<T> {
    type Value = PerState<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object by state")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerState<T>, A::Error> {
        let mut all = PerState::from_fn(|_| T::default());
        while let Some(name) = map.next_key::<String>()? {
            let state = ThreadState::parse(&name).map_err(A::Error::custom)?;
            all[state] = map.next_value()?;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_an_object_by_name_and_read_again() {
        let told = [(ThreadState::Cpu, Some(1.5)), (ThreadState::RunQueue, Some(0.25))];
        let seconds: PerState<Option<f64>> = told.into_iter().collect();
        assert_eq!(seconds.sum(), 1.75);
        let json = serde_json::to_string(&seconds).expect("an object");
        let expected = r#"{"cpu":1.5,"spin":null,"runq":0.25,"lock":null,"io":null,"net":null,"sleep":null,"other":null,"idle":null}"#;
        assert_eq!(json, expected);
        assert_eq!(
            serde_json::from_str::<PerState<Option<f64>>>(&json).expect("read"),
            seconds
        );
        let newer = r#"{"dreaming": 1.0, "cpu": 1.5, "runq": 0.25}"#;
        let problem = serde_json::from_str::<PerState<Option<f64>>>(newer).expect_err("a newer state");
        assert!(
            problem.to_string().contains("\"dreaming\" is no ThreadState"),
            "{problem}"
        );
    }
}
