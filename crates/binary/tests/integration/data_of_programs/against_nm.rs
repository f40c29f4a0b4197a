//! Variables by `nm`.

use super::*;
use scaleprof_vocabulary::AccessKind;

/// Every variable with a size that `nm` lists (`dynamic`: what is exported), by address.
fn nm(path: &Path, dynamic: bool) -> Option<BTreeMap<u64, BTreeSet<(u64, String)>>> {
    let options: &[&str] = if dynamic {
        &["-D", "-S", "--defined-only"]
    } else {
        &["-S", "--defined-only"]
    };
    let output = match Command::new("nm").args(options).arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            testing::skip!("nm: {error}. apt-get install binutils");
            return None;
        }
    };
    let mut found: BTreeMap<u64, BTreeSet<(u64, String)>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let [address, size, "b" | "B" | "d" | "D" | "V" | "v" | "u", name] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        {
            let number = |text| u64::from_str_radix(text, 16).expect("a number");
            let name = name.split('@').next().expect("a name").to_owned();
            found.entry(number(address)).or_default().insert((number(size), name));
        }
    }
    Some(found)
}

fn agrees_with_nm(layout: &DataLayout, path: &Path, dynamic: bool, fewest: usize) {
    let Some(listed) = nm(path, dynamic) else { return };
    let mut compared = 0;
    for (address, names) in &listed {
        let same_place = layout
            .variables()
            .iter()
            .filter(|variable| variable.address == *address);
        // nm does not say which are thread-local: an offset may be equal to nothing else, but is in no shared section.
        let found: Vec<_> = same_place.collect();
        let is_data = layout.sections().iter().any(|section| section.range.contains(address));
        if !is_data {
            continue;
        }
        compared += 1;
        let known = found
            .iter()
            .any(|variable| names.contains(&(variable.size, variable.linkage_name.clone())));
        assert!(
            known,
            "{}: nm has {names:?} at {address:#x}, not {found:?}",
            path.display()
        );
    }
    println!("{}: {compared} variables as nm has them", path.display());
    assert!(compared >= fewest, "{compared}");
    for variable in layout
        .variables()
        .iter()
        .filter(|variable| variable.kind.is_shared() && variable.size_is_known)
    {
        assert!(listed.contains_key(&variable.address), "nm does not have {variable:?}");
    }
}

#[test]
fn variables_have_the_addresses_and_sizes_that_nm_gives_them() {
    every_build(&["-O2"], |built| {
        agrees_with_nm(&built.layout(false), &built.path, false, 8)
    });
    for (name, dynamic, fewest) in [
        ("mysql-5.6.14", false, 6000),
        ("mariadb", true, 400),
        ("mysql-9.7", true, 400),
    ] {
        let Some(binary) = binary(name) else { continue };
        let layout = DataLayout::of(name, &binary.bytes).expect("ELF");
        agrees_with_nm(&layout, &binary.path, dynamic, fewest);
    }
}

#[test]
fn the_neighbours_of_bug_97777_are_found_in_mysql_5_6() {
    let Some(binary) = binary("mysql-5.6.14") else { return };
    let symbols = SymbolFile::open(&binary.path, &SymbolSearch::nowhere()).expect("symbols");
    let mut layout = DataLayout::of("mysqld", &binary.bytes).expect("ELF");
    assert!(layout.add_debug_info(&binary.bytes).expect("DWARF") > 4000);
    let accesses = DataAccesses::of("mysqld", &binary.bytes, symbols.function_ranges()).expect("ELF");
    let places = touched_places(&layout, &accesses);
    let functions = |name: &str, wanted: &[AccessKind]| -> BTreeSet<String> {
        let place = places.iter().find(|place| place.name == name).expect(name);
        let of_kind = place
            .accesses
            .iter()
            .filter(|(_, access)| wanted.contains(&access.kind));
        let named = of_kind.filter_map(|(function, _)| symbols.function(accesses.functions[*function].function.start));
        named.map(|function| function.name).collect()
    };
    let read = functions("btr_search_enabled", &[AccessKind::Read]);
    assert!(
        read.contains("btr_cur_search_to_nth_level") && read.contains("btr_search_guess_on_hash"),
        "{read:?}"
    );
    let changed = functions("btr_search_enabled", &[AccessKind::Write, AccessKind::Update]);
    let expected = BTreeSet::from(["btr_search_disable".to_owned(), "btr_search_enable".to_owned()]);
    assert_eq!(changed, expected);
    // The counter is reached through the global offset table only.
    let written = functions("ut_rnd_ulint_counter", &[AccessKind::Write]);
    assert!(
        written.contains("mutex_spin_wait") && written.contains("rw_lock_s_lock_spin"),
        "{written:?}"
    );
    let address = |name: &str| {
        layout
            .variables()
            .iter()
            .find(|one| one.name == name)
            .expect(name)
            .address
    };
    assert_eq!(address("btr_search_enabled") / 64, address("ut_rnd_ulint_counter") / 64);
    // Members of structures, two levels deep and in arrays.
    let counted = functions("srv_stats.n_rows_updated.m_counter", &[AccessKind::Update]);
    assert!(counted.contains("row_update_for_mysql"), "{counted:?}");
}
