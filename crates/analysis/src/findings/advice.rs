//! What to try with a setting, in view of what it is set to: advice for the default is wrong where somebody has set it far from it.

use scaleprof_bundle::SettingRow;
use serde::Deserialize;

/// From this factor on a number is far from another.
const FAR: f64 = 2.0;

/// One setting that may relieve a place, as `knowledge/*.toml` has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Advice {
    /// Its name.
    pub setting: String,
    /// What to try.
    value: String,
    /// Its default by the manual, for servers that do not say.
    default: String,
    /// What that brings, or costs; the end of a sentence.
    why: String,
    /// Values, but for the one to try, with which there is no more to gain.
    #[serde(default)]
    enough: Vec<String>,
    /// Where only it is advised, in words.
    #[serde(default)]
    only_where: Option<String>,
    /// The same in numbers: fewest connections, fewest CPUs of the server.
    #[serde(default)]
    from_connections: Option<u32>,
    #[serde(default)]
    from_cpus: Option<u32>,
}

/// Where it is to help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scene {
    /// Connections at the rung that is explained.
    pub connections: u32,
    /// CPUs of the server; none where that is not known.
    pub cpus: Option<u32>,
}

impl Advice {
    /// In words; none where it does not fit the scene, or is followed already. `now` is the server's setting.
    pub(super) fn words(&self, now: Option<&SettingRow>, scene: Scene) -> Option<String> {
        let Advice {
            setting, value, why, ..
        } = self;
        let default = now
            .and_then(|row| row.default_value.as_deref())
            .unwrap_or(&self.default);
        let fits = self.from_connections.is_none_or(|least| scene.connections >= least)
            && self
                .from_cpus
                .is_none_or(|least| scene.cpus.is_none_or(|cpus| cpus >= least));
        let only_where = self.only_where.as_ref();
        let condition = only_where.map_or(String::new(), |words| format!(", where {words}"));
        let set = now.map(|row| row.value.as_str()).filter(|now| !is_same(now, default));
        let Some(set) = set else {
            return fits.then(|| format!("{setting} = {value} ({default} is the default){condition}: {why}"));
        };
        let is_set_by_nobody = now
            .and_then(|row| row.set_by.as_deref())
            .is_some_and(|by| by == "computed" || by == "default");
        match self.distance(set, default) {
            Distance::Followed if fits => None,
            // Whoever goes that way without need pays for it.
            Distance::Followed | Distance::FarThatWay if !fits => only_where.map(|words| {
                format!(
                    "{setting} is set to {set}, far from its default of {default}: that is advised only where {words}"
                )
            }),
            Distance::FarOtherWay if !is_set_by_nobody => Some(match fits {
                true => format!(
                    "{setting} is set to {set}, far from its default of {default}: try the default first, then {value}: {why}"
                ),
                false => format!("{setting} is set to {set}, far from its default of {default}: try the default"),
            }),
            _ => {
                fits.then(|| format!("{setting} = {value} ({default} is the default, {set} is set){condition}: {why}"))
            }
        }
    }

    /// How what is set lies to the default, in view of what is advised.
    fn distance(&self, set: &str, default: &str) -> Distance {
        if is_same(set, &self.value) || self.enough.iter().any(|enough| is_same(set, enough)) {
            return Distance::Followed;
        }
        let numbers = number(set).zip(number(default)).zip(number(&self.value));
        let Some(((set, default), advised)) = numbers else {
            return Distance::Near;
        };
        let (way, wanted) = (set - default, advised - default);
        let is_far = default == 0.0 || set / default >= FAR || set / default <= 1.0 / FAR;
        match way * wanted > 0.0 {
            true if way.abs() >= wanted.abs() => Distance::Followed,
            true if is_far => Distance::FarThatWay,
            false if is_far => Distance::FarOtherWay,
            _ => Distance::Near,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distance {
    /// As advised, or farther that way.
    Followed,
    /// On the way there, and far from the default.
    FarThatWay,
    /// Far from the default on the other side.
    FarOtherWay,
    Near,
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// Servers write one number in several ways, and words in capitals or not.
fn is_same(one: &str, other: &str) -> bool {
    let numbers = number(one).zip(number(other));
    numbers.map_or_else(|| one.eq_ignore_ascii_case(other), |(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(text: &str) -> Advice {
        toml::from_str(text).expect("as it should be")
    }

    fn rounds() -> Advice {
        advice("setting = \"rounds\"\nvalue = \"5\"\ndefault = \"30\"\nwhy = \"threads sleep sooner\"")
    }

    fn array() -> Advice {
        advice(
            "setting = \"array\"\nvalue = \"16\"\ndefault = \"1\"\nwhy = \"more mutexes\"\nonly_where = \"more than 768 wait\"\n\
             from_connections = 769",
        )
    }

    const SMALL: Scene = Scene {
        connections: 512,
        cpus: Some(2),
    };
    const LARGE: Scene = Scene {
        connections: 1024,
        cpus: Some(64),
    };

    fn at(advice: &Advice, value: &str, scene: Scene) -> Option<String> {
        advice.words(Some(&SettingRow::new("x", value)), scene)
    }

    #[test]
    fn at_the_default_it_is_told_plainly() {
        let expected = Some("rounds = 5 (30 is the default): threads sleep sooner".to_owned());
        assert_eq!(at(&rounds(), "30", SMALL), expected);
        assert_eq!(rounds().words(None, SMALL), expected);
    }

    #[test]
    fn what_is_set_far_from_the_default_is_told_as_such() {
        assert_eq!(
            at(&rounds(), "200", SMALL).as_deref(),
            Some(
                "rounds is set to 200, far from its default of 30: try the default first, then 5: threads sleep sooner"
            )
        );
        assert_eq!(
            at(&rounds(), "20", SMALL).as_deref(),
            Some("rounds = 5 (30 is the default, 20 is set): threads sleep sooner")
        );
    }

    #[test]
    fn what_is_followed_already_is_not_advised() {
        assert_eq!(at(&rounds(), "5", SMALL), None);
        assert_eq!(at(&rounds(), "1", SMALL), None);
        assert_eq!(at(&array(), "16", LARGE), None);
        let flush = advice("setting = \"flush\"\nvalue = \"2\"\ndefault = \"1\"\nwhy = \"x\"\nenough = [\"0\"]");
        assert_eq!(at(&flush, "0", SMALL), None);
    }

    #[test]
    fn within_the_manuals_limits_only() {
        assert_eq!(at(&array(), "1", SMALL), None);
        let large = at(&array(), "1", LARGE).expect("advice");
        assert_eq!(
            large,
            "array = 16 (1 is the default), where more than 768 wait: more mutexes"
        );
        let needless = at(&array(), "16", SMALL).expect("a word");
        assert_eq!(
            needless,
            "array is set to 16, far from its default of 1: that is advised only where more than 768 wait"
        );
    }

    #[test]
    fn the_servers_own_default_counts_before_the_manuals() {
        let row = SettingRow {
            default_value: Some("100".into()),
            ..SettingRow::new("rounds", "100")
        };
        let words = rounds().words(Some(&row), SMALL).expect("advice");
        assert!(words.contains("(100 is the default)"), "{words}");
    }

    #[test]
    fn words_are_compared_as_words() {
        let pool = advice(
            "setting = \"thread_handling\"\nvalue = \"pool-of-threads\"\ndefault = \"one-thread-per-connection\"\nwhy = \"fewer\"",
        );
        assert_eq!(at(&pool, "Pool-of-Threads", SMALL), None);
        assert!(at(&pool, "one-thread-per-connection", SMALL).is_some());
    }
}
