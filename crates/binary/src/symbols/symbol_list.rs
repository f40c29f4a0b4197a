//! Lists of all symbols beside a stripped file: the text that `nm` prints, which Debian keeps as `mariadbd.sym.gz`.
//!
//! They name static functions too, which `.dynsym` does not. But nothing ties a list to its file: one of another build
//! names everything wrongly. So what both name must lie at the same addresses.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;

use super::name_table::Binding;

/// Of the names that list and file share, how many of a thousand may have other addresses.
const DIFFERENT_PER_MILLE: usize = 1;

/// The longest list that is read: the longest known has 12 MB.
const LONGEST: u64 = 1 << 30;

/// A line with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed<'text> {
    pub(super) address: u64,
    pub(super) kind: char,
    pub(super) name: &'text str,
}

impl Listed<'_> {
    pub(super) fn binding(&self) -> Binding {
        match self.kind {
            'w' | 'W' | 'v' | 'V' | 'u' => Binding::Weak,
            kind if kind.is_ascii_lowercase() => Binding::Local,
            _ => Binding::Global,
        }
    }
}

/// The text of a list, unpacked if its name ends in `.gz`.
pub(super) fn read(path: &Path) -> std::io::Result<String> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        let unpacked = flate2::bufread::MultiGzDecoder::new(std::io::BufReader::new(file));
        unpacked.take(LONGEST).read_to_end(&mut bytes)?;
    } else {
        file.take(LONGEST).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The lines of a list that have an address (undefined symbols have none, absolute ones are no places).
pub(super) fn lines(text: &str) -> impl Iterator<Item = Listed<'_>> {
    text.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let mut kind = fields.next()?.chars();
        let (kind, None) = (kind.next()?, kind.next()) else {
            return None;
        };
        let name = fields.next()?;
        let name = name.split('@').next().unwrap_or(name);
        let placed = kind.is_ascii_alphabetic() && !matches!(kind, 'A' | 'a' | 'N' | 'U');
        (placed && !name.is_empty()).then_some(Listed { address, kind, name })
    })
}

/// Checks a list against the symbols that its file exports; says why it is not believed.
pub(super) fn check(text: &str, exported: &HashMap<&str, u64>) -> Result<(), String> {
    // A name may stand for several static functions: one of them at the right place is enough.
    let mut agrees: HashMap<&str, bool> = HashMap::new();
    for listed in lines(text) {
        if let Some(address) = exported.get(listed.name) {
            *agrees.entry(listed.name).or_default() |= *address == listed.address;
        }
    }
    let shared = agrees.len();
    let different = agrees.values().filter(|agrees| !**agrees).count();
    if shared == 0 {
        Err("it shares no name with the file's dynamic symbols, so it cannot be checked".to_owned())
    } else if different * 1000 > shared * DIFFERENT_PER_MILLE {
        Err(format!(
            "{different} of the {shared} names that it shares with the file's dynamic symbols have other addresses: \
             it is of another build"
        ))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIST: &str = "\
0000000000000010 b thread_local
0000000000001000 T main
0000000000001100 t helper
0000000000001200 t helper
                 U malloc@GLIBC_2.2.5
                 w __gmon_start__
0000000000000123 A absolute
0000000000002000 W _ZN3fooD1Ev
0000000000003000 V _ZTV3foo
";

    #[test]
    fn lines_with_places_are_read_and_others_left() {
        let names: Vec<&str> = lines(LIST).map(|listed| listed.name).collect();
        assert_eq!(
            names,
            ["thread_local", "main", "helper", "helper", "_ZN3fooD1Ev", "_ZTV3foo"]
        );
        let bindings: Vec<Binding> = lines(LIST).map(|listed| listed.binding()).collect();
        use Binding::{Global, Local, Weak};
        assert_eq!(bindings, [Local, Global, Local, Local, Weak, Weak]);
    }

    #[test]
    fn a_list_of_the_same_build_is_believed() {
        assert_eq!(
            check(
                LIST,
                &HashMap::from([("main", 0x1000), ("helper", 0x1200), ("other", 1)])
            ),
            Ok(())
        );
    }

    #[test]
    fn a_list_of_another_build_or_program_is_not() {
        let moved = check(LIST, &HashMap::from([("main", 0x1000), ("helper", 0x1300)])).expect_err("moved");
        assert!(moved.contains("1 of the 2 names"), "{moved}");
        assert!(check(LIST, &HashMap::from([("other", 1)])).is_err());
        assert!(check("", &HashMap::new()).is_err());
    }

    #[test]
    fn packed_and_plain_lists_are_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let (plain, packed) = (folder.path().join("a.sym"), folder.path().join("a.sym.gz"));
        std::fs::write(&plain, LIST).expect("written");
        let file = std::fs::File::create(&packed).expect("a file");
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, LIST.as_bytes()).expect("written");
        encoder.finish().expect("finished");
        assert_eq!(read(&plain).expect("plain"), LIST);
        assert_eq!(read(&packed).expect("packed"), LIST);
        std::fs::write(&packed, LIST).expect("written");
        assert!(read(&packed).is_err(), "not packed at all");
    }

    proptest! {
        #[test]
        fn any_list_is_read_without_harm(text in "([0-9a-f]{0,17} [a-zA-Z@]{0,2} [^\n]{0,9}\n?){0,20}") {
            let exported: HashMap<&str, u64> = lines(&text).map(|listed| (listed.name, listed.address)).collect();
            prop_assert_eq!(check(&text, &exported).is_ok(), !exported.is_empty());
        }
    }
}
