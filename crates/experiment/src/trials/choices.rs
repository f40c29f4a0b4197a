//! What the command line adds to compare: values of settings (`--vary`) and servers (`--server`, given several times).
//!
//! A plan without variants gets one for every choice, all held against the first. Of a plan that has variants each one is measured
//! with every choice and held against itself with the first: so the same change can be asked of several loads.

use super::plan_error::PlanError;
use super::plan_file::{PlanFile, Value, VariantText, set_over};
use scaleprof_server::one_spelling;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One combination of what the command line compares.
#[derive(Debug, Clone, Default)]
struct Choice {
    /// Such as `innodb_sync_array_size=8`.
    words: Vec<String>,
    set: Vec<(String, String)>,
    path: Option<String>,
}

impl Choice {
    fn of(&self, variant: &VariantText, own: Option<&str>) -> VariantText {
        let mut chosen = variant.clone();
        let set = self.set.iter().cloned();
        set_over(&mut chosen.set, set.map(|(name, value)| (name, Value::Text(value))));
        chosen.path = self.path.clone().or(chosen.path);
        chosen.name = Some(self.name(own));
        chosen
    }

    fn name(&self, own: Option<&str>) -> String {
        let words = own.into_iter().chain(self.words.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }
}

impl PlanFile {
    /// Adds what the command line compares: the values of each `--vary NAME=VALUE,VALUE...`, and the servers where there are
    /// several; every combination of them. One server is that of all variants. Servers are called by the last parts of their paths.
    ///
    /// # Errors
    /// A text that names fewer than two values, or one twice; several servers for a plan whose variants name their own.
    pub fn compare(&mut self, varied: &[String], servers: &[PathBuf]) -> Result<(), PlanError> {
        let written = |path: &PathBuf| path.to_string_lossy().into_owned();
        let mut choices = vec![Choice::default()];
        if let [one] = servers {
            self.server.path = Some(written(one));
        } else if !servers.is_empty() {
            if self.variants.iter().any(|variant| variant.path.is_some()) {
                return Err(PlanError::key(
                    "--server",
                    "the plan's variants have servers of their own",
                    "give it once, or take `path` out of the plan",
                ));
            }
            let named = server_names(servers).into_iter().zip(servers);
            choices = named
                .map(|(name, path)| Choice {
                    words: vec![name],
                    path: Some(written(path)),
                    set: Vec::new(),
                })
                .collect();
        }
        let mut seen = BTreeSet::new();
        for text in varied {
            let (name, values) = values(text)?;
            if !seen.insert(one_spelling(name)) {
                return Err(PlanError::key(
                    "--vary",
                    format!("{name} is varied twice"),
                    "give all values in one option: --vary NAME=VALUE,VALUE",
                ));
            }
            let with = |choice: &Choice, value: &str| {
                let mut choice = choice.clone();
                choice.words.push(format!("{name}={value}"));
                choice.set.push((name.to_owned(), value.to_owned()));
                choice
            };
            let each = choices.iter();
            choices = each
                .flat_map(|choice| values.iter().map(|value| with(choice, value)).collect::<Vec<_>>())
                .collect();
        }
        if choices.len() > 1 {
            self.choose(&choices);
        }
        Ok(())
    }

    fn choose(&mut self, choices: &[Choice]) {
        self.requires.comparison = None;
        let own = std::mem::take(&mut self.variants);
        if own.is_empty() {
            let all = choices.iter().map(|choice| choice.of(&VariantText::default(), None));
            self.variants = all.collect();
            return;
        }
        for (at, variant) in own.iter().enumerate() {
            let name = variant.name.clone().unwrap_or_else(|| format!("variant {}", at + 1));
            let all = choices.iter().enumerate().map(|(place, choice)| VariantText {
                base: (place > 0).then(|| choices[0].name(Some(&name))),
                ..choice.of(variant, Some(&name))
            });
            self.variants.extend(all);
        }
    }
}

/// The last parts of paths, with their numbers where these are not enough to tell them apart.
fn server_names(paths: &[PathBuf]) -> Vec<String> {
    let last = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(Path::new("server").as_os_str());
        name.to_string_lossy().into_owned()
    };
    let names: Vec<String> = paths.iter().map(last).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let numbered = names.iter().enumerate().map(|(at, name)| match is_twice(name) {
        true => format!("{name} {}", at + 1),
        false => name.clone(),
    });
    numbered.collect()
}

fn values(text: &str) -> Result<(&str, Vec<&str>), PlanError> {
    let wrong = |problem: &str| {
        PlanError::key(
            "--vary",
            format!("'{text}' {problem}"),
            "write --vary NAME=VALUE,VALUE, such as innodb_sync_array_size=1,8,64",
        )
    };
    let (name, values) = text.split_once('=').ok_or_else(|| wrong("has no values"))?;
    let (name, values): (_, Vec<&str>) = (name.trim(), values.split(',').map(str::trim).collect());
    if name.is_empty() || values.len() < 2 || values.iter().any(|value| value.is_empty()) {
        return Err(wrong("needs a name and two values at least"));
    }
    let mut sorted = values.clone();
    sorted.sort_unstable();
    sorted.dedup();
    match sorted.len() == values.len() {
        true => Ok((name, values)),
        false => Err(wrong("names a value twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plan: &PlanFile) -> Vec<(&str, Option<&str>)> {
        let each = plan.variants.iter();
        each.filter_map(|v| Some((v.name.as_deref()?, v.base.as_deref())))
            .collect()
    }

    #[test]
    fn varying_two_settings_gives_every_choice() {
        let mut plan = PlanFile::default();
        plan.compare(&["a=1,2".to_owned(), "b=x,y".to_owned()], &[]).unwrap();
        let all = ["a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"];
        assert_eq!(names(&plan), all.map(|name| (name, None)));
    }

    #[test]
    fn a_setting_is_one_however_its_name_is_written() {
        let text = "[[variant]]\nname = \"a\"\nset = { innodb-spin-wait-delay = 6, x = 1 }\n";
        let mut plan = PlanFile::parse(text, "a.toml").unwrap();
        plan.compare(&["innodb_spin_wait_delay=2,30".to_owned()], &[]).unwrap();
        let settings = plan.variants.iter().map(|variant| variant.set.len());
        assert_eq!(settings.collect::<Vec<_>>(), [2, 2], "one of each");
        let varied = ["a-b=1,2".to_owned(), "A_b=3,4".to_owned()];
        let error = PlanFile::default().compare(&varied, &[]).unwrap_err().to_string();
        assert!(error.contains("A_b is varied twice"), "{error}");
    }

    #[test]
    fn a_plans_own_variants_are_each_held_against_themselves() {
        let text = "requires = { comparison = \"two builds\" }\n[[variant]]\nname = \"sysbench\"\n[[variant]]\nworkload = \"tpcc\"\n";
        let mut plan = PlanFile::parse(text, "a.toml").unwrap();
        plan.compare(&[], &["/old/mysql".into(), "/new/mysql".into()]).unwrap();
        assert_eq!(
            names(&plan),
            [
                ("sysbench mysql 1", None),
                ("sysbench mysql 2", Some("sysbench mysql 1")),
                ("variant 2 mysql 1", None),
                ("variant 2 mysql 2", Some("variant 2 mysql 1")),
            ]
        );
        let paths: Vec<_> = plan.variants.iter().filter_map(|v| v.path.as_deref()).collect();
        assert_eq!(paths, ["/old/mysql", "/new/mysql", "/old/mysql", "/new/mysql"]);
        assert_eq!(plan.requires.comparison, None);
        let again = plan.compare(&[], &["/a".into(), "/b".into()]).unwrap_err().to_string();
        assert!(again.contains("servers of their own"), "{again}");
    }

    #[test]
    fn one_server_is_that_of_all_and_several_are_compared() {
        let mut plan = PlanFile::default();
        plan.compare(&[], &["/opt/one".into()]).unwrap();
        assert_eq!(
            (plan.server.path.as_deref(), plan.variants.len()),
            (Some("/opt/one"), 0)
        );
        let mut plan = PlanFile::default();
        plan.compare(&["x=1,2".to_owned()], &["/opt/one".into(), "/opt/two".into()])
            .unwrap();
        let all = ["one x=1", "one x=2", "two x=1", "two x=2"];
        assert_eq!(names(&plan), all.map(|name| (name, None)));
    }

    #[test]
    fn what_cannot_be_varied_is_refused_with_the_way_to_write_it() {
        for text in ["a", "a=1", "=1,2", "a=1,,2", "a=1,1"] {
            let error = PlanFile::default()
                .compare(&[text.to_owned()], &[])
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("--vary") && error.contains("NAME=VALUE,VALUE"),
                "{error}"
            );
        }
    }
}
