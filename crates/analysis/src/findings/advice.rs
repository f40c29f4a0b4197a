//! What to try with a setting, in view of what it is set to: advice for the default is wrong where somebody has set it far from it.

use scaleprof_bundle::{Remedy, SettingRow};
use scaleprof_vocabulary::SettingSource;
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
    /// The same as a number of the server's CPUs, where the value is words.
    #[serde(default)]
    times_cpus: Option<u32>,
    /// The least that follows it, as a number of the server's CPUs too.
    #[serde(default)]
    least_times_cpus: Option<u32>,
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
    /// Whether only some versions have it: nothing is said to a server that does not tell of it.
    #[serde(default)]
    where_known: bool,
    /// Where that is documented, if not where the place is.
    #[serde(default)]
    source: Option<String>,
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
        if self.where_known && now.is_none() {
            return None;
        }
        let words = self.plain_words(now, scene)?;
        Some(match &self.source {
            Some(source) => format!("{words} ({source})"),
            None => words,
        })
    }

    fn plain_words(&self, now: Option<&SettingRow>, scene: Scene) -> Option<String> {
        let Advice {
            setting, value, why, ..
        } = self;
        let default = self.default(now);
        let fits = self.fits(scene);
        let only_where = self.only_where.as_ref();
        let condition = only_where.map_or(String::new(), |words| format!(", where {words}"));
        let set = now.map(|row| row.value.as_str()).filter(|now| !is_same(now, default));
        let is_far = |set: &str| format!("{setting} is set to {set}, far from its default of {default}");
        match (self.way(now, scene), set) {
            (Way::Nowhere, _) => None,
            (Way::There, None) => Some(format!(
                "{setting} = {value} ({default} is the default){condition}: {why}"
            )),
            (Way::There, Some(set)) => Some(format!(
                "{setting} = {value} ({default} is the default, {set} is set){condition}: {why}"
            )),
            (Way::BackFirst, set) => Some(match fits {
                true => format!("{}: try the default first, then {value}: {why}", is_far(set?)),
                false => format!("{}: try the default", is_far(set?)),
            }),
            (Way::Needless, set) => {
                only_where.and_then(|words| Some(format!("{}: that is advised only where {words}", is_far(set?))))
            }
        }
    }

    /// The same as a setting to try; none where there is nothing to, or where the value is words.
    pub(super) fn remedy(&self, now: Option<&SettingRow>, scene: Scene) -> Option<Remedy> {
        let value = match self.way(now, scene) {
            Way::Nowhere => return None,
            Way::BackFirst | Way::Needless => self.default(now).to_owned(),
            Way::There => match self.times_cpus {
                Some(times) => (times * scene.cpus?).to_string(),
                None => self.value.clone(),
            },
        };
        let is_a_value = !value.is_empty() && !value.contains(char::is_whitespace);
        let is_set = now.is_some_and(|row| is_same(&row.value, &value));
        (is_a_value && !is_set).then(|| Remedy {
            setting: self.setting.clone(),
            value,
        })
    }

    fn default<'a>(&'a self, now: Option<&'a SettingRow>) -> &'a str {
        now.and_then(|row| row.default_value.as_deref())
            .unwrap_or(&self.default)
    }

    /// Where to go from what is set.
    fn way(&self, now: Option<&SettingRow>, scene: Scene) -> Way {
        let default = self.default(now);
        let fits = self.fits(scene);
        let is_enough = |row: &SettingRow| self.enough.iter().any(|enough| is_same(&row.value, enough));
        if now.is_some_and(is_enough) {
            return Way::Nowhere;
        }
        let there = if fits { Way::There } else { Way::Nowhere };
        let Some(set) = now.map(|row| row.value.as_str()).filter(|now| !is_same(now, default)) else {
            return there;
        };
        let is_chosen = now.and_then(|row| row.set_by).is_none_or(SettingSource::is_chosen);
        match self.distance(set, default, scene) {
            Distance::Followed if fits => Way::Nowhere,
            // Whoever goes that way without need pays for it.
            Distance::Followed | Distance::FarThatWay if !fits => match self.only_where {
                Some(_) => Way::Needless,
                None => Way::Nowhere,
            },
            Distance::FarOtherWay if is_chosen => Way::BackFirst,
            _ => there,
        }
    }

    fn fits(&self, scene: Scene) -> bool {
        let cpus = self.from_cpus;
        self.from_connections.is_none_or(|least| scene.connections >= least)
            && cpus.is_none_or(|least| scene.cpus.is_none_or(|cpus| cpus >= least))
    }

    /// How what is set lies to the default, in view of what is advised.
    fn distance(&self, set: &str, default: &str, scene: Scene) -> Distance {
        if is_same(set, &self.value) {
            return Distance::Followed;
        }
        if let Some((most, cpus)) = self.times_cpus.zip(scene.cpus) {
            let least = self.least_times_cpus.unwrap_or(most);
            let follows = (least * cpus..=most * cpus).contains(&set.trim().parse().unwrap_or(0));
            return if follows { Distance::Followed } else { Distance::Near };
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

/// Where advice leads from what is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is followed already, or does not fit.
    Nowhere,
    /// To the value that is advised.
    There,
    /// To the default, as what is set lies far on its other side.
    BackFirst,
    /// Back to the default, as what is set is advised for other scenes only.
    Needless,
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
        let row = SettingRow {
            default_value: Some("0".into()),
            ..SettingRow::new("flush", "0")
        };
        assert_eq!(
            flush.words(Some(&row), SMALL),
            None,
            "though it is that server's own default"
        );
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
    fn what_is_to_be_tried_is_told_as_a_setting_too() {
        let remedy = |advice: &Advice, value: &str, scene| {
            let found = advice.remedy(Some(&SettingRow::new("x", value)), scene)?;
            Some(found.to_string())
        };
        assert_eq!(remedy(&rounds(), "30", SMALL).as_deref(), Some("rounds = 5"));
        // Far on the other side the default comes first; so it does where what is set is needless.
        assert_eq!(remedy(&rounds(), "200", SMALL).as_deref(), Some("rounds = 30"));
        assert_eq!(remedy(&rounds(), "5", SMALL), None);
        assert_eq!(remedy(&array(), "1", SMALL), None);
        assert_eq!(remedy(&array(), "1", LARGE).as_deref(), Some("array = 16"));
        assert_eq!(remedy(&array(), "16", SMALL).as_deref(), Some("array = 1"));
        let words = "setting = \"threads\"\nvalue = \"twice the CPUs\"\ndefault = \"0\"\nwhy = \"x\"\n";
        assert_eq!(remedy(&advice(words), "0", LARGE), None);
        let counted = advice(&format!("{words}times_cpus = 2"));
        assert_eq!(remedy(&counted, "0", LARGE).as_deref(), Some("threads = 128"));
        assert_eq!(remedy(&counted, "128", LARGE), None);
        assert_eq!(at(&counted, "128", LARGE), None);
        assert_eq!(remedy(&counted, "1000", LARGE).as_deref(), Some("threads = 128"));
        let ranged = advice(&format!("{words}times_cpus = 4\nleast_times_cpus = 2"));
        assert_eq!((at(&ranged, "128", LARGE), at(&ranged, "256", LARGE)), (None, None));
        assert!(at(&ranged, "64", LARGE).is_some() && at(&ranged, "257", LARGE).is_some());
        let unknown = Scene { cpus: None, ..LARGE };
        assert_eq!(remedy(&counted, "0", unknown), None);
    }

    #[test]
    fn what_only_some_versions_have_is_advised_where_the_server_tells_of_it() {
        let detect = advice(
            "setting = \"detect\"\nvalue = \"OFF\"\ndefault = \"ON\"\nwhere_known = true\nwhy = \"no search\"\nsource = \"the manual\"",
        );
        assert_eq!(detect.words(None, SMALL), None);
        assert_eq!(
            at(&detect, "ON", SMALL).as_deref(),
            Some("detect = OFF (ON is the default): no search (the manual)")
        );
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
