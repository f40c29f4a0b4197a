//! Whether the symbolic links of an unpacked tree stay in it, from their texts alone.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows in one path (`MAXSYMLINKS` of include/linux/namei.h).
const MOST_LINKS: u32 = 40;

/// Symbolic links of a tree: place and text, both from its top.
pub(crate) type Links = BTreeMap<PathBuf, PathBuf>;

/// Whether following this path from the tree's top ever leaves the tree, or never ends.
///
/// It is followed as the kernel does: each link on the way is replaced by its text before what comes behind it is looked at. To
/// take `..` away before would be wrong, as `link/..` is the folder above what the link leads to.
pub(crate) fn leads_out(links: &Links, path: &Path) -> bool {
    let parts = |path: &Path| -> Vec<OsString> { path.components().map(|part| part.as_os_str().to_owned()).collect() };
    let mut ahead = VecDeque::from(parts(path));
    let mut here = PathBuf::new();
    let mut followed = 0;
    while let Some(part) = ahead.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::Normal(name)) => here.push(name),
            Some(Component::ParentDir) => {
                if !here.pop() {
                    return true;
                }
            }
            Some(Component::CurDir) | None => {}
            Some(Component::RootDir | Component::Prefix(_)) => return true,
        }
        if let Some(text) = links.get(&here) {
            followed += 1;
            if followed > MOST_LINKS {
                return true;
            }
            here.pop();
            for part in parts(text).into_iter().rev() {
                ahead.push_front(part);
            }
        }
    }
    false
}

/// The text that leads from a link's place to what an absolute text means if the tree's top is the root.
pub(crate) fn rerooted(place: &Path, text: &Path) -> PathBuf {
    let Ok(below_root) = text.strip_prefix("/") else {
        return text.to_owned();
    };
    let depth = place.components().count().saturating_sub(1);
    let mut relative: PathBuf = std::iter::repeat_n("..", depth).collect();
    relative.push(below_root);
    match relative.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => relative,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn links(pairs: &[(&str, &str)]) -> Links {
        pairs.iter().map(|(place, text)| (place.into(), text.into())).collect()
    }

    #[test]
    fn a_link_that_leaves_by_way_of_another_is_found() {
        let chain = links(&[("d/up", ".."), ("d/out", "up/../x"), ("d/fine", "up/x")]);
        assert!(leads_out(&chain, Path::new("d/out")));
        assert!(!leads_out(&chain, Path::new("d/fine")));
        assert!(leads_out(&links(&[("a", "/etc")]), Path::new("a")));
        assert!(leads_out(&links(&[("a", "b"), ("b", "a")]), Path::new("a")), "no end");
    }

    #[test]
    fn absolute_texts_of_packages_mean_the_tree() {
        let to = |place: &str, text: &str| rerooted(Path::new(place), Path::new(text));
        assert_eq!(
            to("lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-2.31.so"),
            Path::new("../lib/x86_64-linux-gnu/ld-2.31.so")
        );
        assert_eq!(to("a", "/b"), Path::new("b"));
        assert_eq!(to("a", "/"), Path::new("."));
        assert_eq!(to("x/a", "b"), Path::new("b"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// The kernel itself is asked: a file is in the tree if its resolved path is.
        #[test]
        fn agrees_with_the_kernel(
            folders in proptest::collection::vec("[abc](/[abc]){0,2}", 1..5),
            made in proptest::collection::vec(("[abc](/[abc]){0,2}", "(\\.\\.|[abc])(/(\\.\\.|[abc]|\\.)){0,4}"), 1..6),
        ) {
            let above = tempfile::tempdir().expect("a folder");
            let above = above.path().canonicalize().expect("its path");
            // Deep enough that no `..` of the texts reaches what others own.
            let root = above.join("1/2/3/4/5/6/7/8/9");
            fs::create_dir_all(&root).expect("a folder");
            for folder in &folders {
                fs::create_dir_all(root.join(folder)).expect("a folder");
            }
            let mut links = Links::new();
            for (place, text) in &made {
                let parents_are_real = Path::new(place).ancestors().skip(1).all(|above| !links.contains_key(above));
                if parents_are_real
                    && fs::create_dir_all(root.join(place).parent().expect("a parent")).is_ok()
                    && std::os::unix::fs::symlink(text, root.join(place)).is_ok()
                {
                    links.insert(place.into(), text.into());
                }
            }
            for place in links.keys() {
                // What does not exist has no resolved path: then nothing can be said.
                if let Ok(resolved) = root.join(place).canonicalize() {
                    if !resolved.starts_with(&root) {
                        prop_assert!(leads_out(&links, place), "{place:?} of {links:?} leads to {resolved:?}");
                    }
                    // With `..` it may leave the tree on its way and come back by name, which the tree's other place would break.
                    if links.values().all(|text| !text.to_string_lossy().contains("..")) {
                        prop_assert!(!leads_out(&links, place), "{place:?} of {links:?} leads to {resolved:?}");
                    }
                }
            }
        }
    }
}
