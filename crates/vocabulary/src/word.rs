//! What all words have in common.

use std::fmt;

/// A closed set of words.
pub trait Word: Copy + Eq + 'static {
    /// What the set is called in an error, such as `ThreadState`.
    const SET: &'static str;
    /// All of them, in their order.
    const WORDS: &'static [Self];

    /// As it is stored: in tables, JSON and records.
    fn name(self) -> &'static str;

    /// As people are shown it.
    fn label(self) -> &'static str;

    /// The one that is stored so.
    ///
    /// # Errors
    /// None is: whoever wrote it is newer, or wrote something else.
    fn parse(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::WORDS.iter().copied().find(|known| known.name() == word);
        found.ok_or_else(|| UnknownWord::new(Self::SET, word))
    }
}

/// A word that its set does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    set: &'static str,
    word: String,
}

impl UnknownWord {
    /// So much of a word is told: what is no word may be long.
    const MOST: usize = 64;

    fn new(set: &'static str, word: &str) -> UnknownWord {
        let word = word.chars().take(UnknownWord::MOST).collect();
        UnknownWord { set, word }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no {} that this version knows", self.word, self.set)
    }
}

impl std::error::Error for UnknownWord {}

/// Makes an enum of words: each variant with its documentation, the stored name, and the label where it is another.
macro_rules! words {
    ($(#[$about:meta])* $set:ident { $($(#[$what:meta])* $variant:ident: $name:literal $(($label:literal))?,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $set {
            $($(#[$what])* $variant,)+
        }

        impl $set {
            /// All of them, in the order of their numbers.
            pub const ALL: [$set; [$($name),+].len()] = [$($set::$variant),+];

            /// As it is stored.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($set::$variant => $name,)+
                }
            }

            /// As people are shown it.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $($set::$variant => $crate::word::label!($name $($label)?),)+
                }
            }

            /// The one that is stored so.
            ///
            /// # Errors
            /// None is: whoever wrote it is newer, or wrote something else.
            pub fn parse(word: &str) -> Result<$set, $crate::UnknownWord> {
                <$set as $crate::Word>::parse(word)
            }
        }

        impl $crate::Word for $set {
            const SET: &'static str = stringify!($set);
            const WORDS: &'static [$set] = &$set::ALL;

            fn name(self) -> &'static str {
                $set::name(self)
            }

            fn label(self) -> &'static str {
                $set::label(self)
            }
        }

        impl serde::Serialize for $set {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $set {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$set, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                $set::parse(&word).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The label of a word: its name, where it has no other.
macro_rules! label {
    ($name:literal) => {
        $name
    };
    ($name:literal $label:literal) => {
        $label
    };
}

pub(crate) use {label, words};

#[cfg(test)]
mod tests {
    use crate::*;
    use std::collections::BTreeSet;

    fn leads_back<W: Word + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned>() {
        let names: BTreeSet<&str> = W::WORDS.iter().map(|word| word.name()).collect();
        assert_eq!(names.len(), W::WORDS.len(), "{}: a name stands for one word", W::SET);
        for word in W::WORDS {
            assert_eq!(W::parse(word.name()), Ok(*word));
            assert!(!word.label().is_empty());
            let json = serde_json::to_string(word).expect("a string");
            assert_eq!(json, format!("{:?}", word.name()));
            assert_eq!(serde_json::from_str::<W>(&json).expect("the same word"), *word);
            assert!(
                word.name()
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            );
        }
    }

    #[test]
    fn names_lead_back_to_their_words_in_tables_and_in_json() {
        leads_back::<ThreadState>();
        leads_back::<Role>();
        leads_back::<UnwindStatus>();
        leads_back::<WakerKind>();
        leads_back::<SymbolSource>();
        leads_back::<MeasurementOutcome>();
        leads_back::<LatencyKind>();
        leads_back::<Operation>();
        leads_back::<BranchKind>();
        leads_back::<AccessKind>();
        leads_back::<FindingKind>();
        leads_back::<ShareOf>();
        leads_back::<GrowthShape>();
        leads_back::<RunState>();
        leads_back::<LadderVerdict>();
        leads_back::<ExperimentVerdict>();
        leads_back::<SettingSource>();
        leads_back::<WorkloadName>();
        leads_back::<LoopWord>();
        leads_back::<TpccTransaction>();
    }

    #[test]
    fn a_word_that_is_not_known_is_told_and_no_more_of_it_than_a_word() {
        let problem = ThreadState::parse("CPU").expect_err("names are in small letters");
        assert_eq!(problem.to_string(), "\"CPU\" is no ThreadState that this version knows");
        let long = Role::parse(&"x".repeat(5000)).expect_err("no role");
        assert!(long.to_string().len() < 120);
        assert!(serde_json::from_str::<ThreadState>("\"dreaming\"").is_err());
    }
}
