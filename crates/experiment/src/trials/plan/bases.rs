//! Which variant each one is held against.

use super::super::plan_error::PlanError;
use super::super::plan_file::VariantText;
use super::of_variant;

/// The place of each variant's base; its own place for one that is a base. One that says nothing is held against the first, unless
/// another is held against it.
pub(super) fn bases(texts: &[VariantText], names: &[String]) -> Result<Vec<usize>, PlanError> {
    let named = |at: usize, wanted: &str| {
        names.iter().position(|name| name == wanted).ok_or_else(|| {
            PlanError::key(
                of_variant(at, "base"),
                format!("no variant is called '{wanted}'"),
                "write the name of another variant",
            )
        })
    };
    let said = texts
        .iter()
        .enumerate()
        .map(|(at, text)| text.base.as_deref().map(|name| named(at, name)).transpose());
    let said: Vec<Option<usize>> = said.collect::<Result<_, _>>()?;
    let is_base = |at: usize| said.contains(&Some(at));
    let bases: Vec<usize> = (0..texts.len())
        .map(|at| said[at].unwrap_or(if is_base(at) { at } else { 0 }))
        .collect();
    match (0..bases.len()).find(|at| bases[bases[*at]] != bases[*at]) {
        None => Ok(bases),
        Some(at) => Err(PlanError::key(
            of_variant(at, "base"),
            format!("{} is held against another one itself", names[bases[at]]),
            "name one that is held against none",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(said: &[(&str, Option<&str>)]) -> Result<Vec<usize>, String> {
        let texts: Vec<VariantText> = said
            .iter()
            .map(|(_, against)| VariantText {
                base: against.map(str::to_owned),
                ..VariantText::default()
            })
            .collect();
        let names: Vec<String> = said.iter().map(|(name, _)| (*name).to_owned()).collect();
        bases(&texts, &names).map_err(|error| error.to_string())
    }

    #[test]
    fn all_are_held_against_the_first_where_none_says_otherwise() {
        assert_eq!(of(&[("a", None), ("b", None), ("c", None)]), Ok(vec![0, 0, 0]));
    }

    #[test]
    fn one_that_others_are_held_against_is_a_base_itself() {
        let found = of(&[("a", None), ("b", None), ("x", None), ("y", Some("x"))]);
        assert_eq!(found, Ok(vec![0, 0, 2, 2]));
    }

    #[test]
    fn chains_and_unknown_names_are_refused() {
        let error = of(&[("a", None), ("b", Some("c"))]).unwrap_err();
        assert!(error.contains("variant 2, base: no variant is called 'c'"), "{error}");
        let error = of(&[("a", None), ("b", Some("a")), ("c", Some("b"))]).unwrap_err();
        assert!(error.contains("b is held against another one itself"), "{error}");
        let error = of(&[("a", Some("b")), ("b", None), ("c", None)]).unwrap_err();
        assert!(error.contains("variant 3, base"), "{error}");
    }
}
