//! Lists of a kernel's symbols, made up and this machine's own.

use proptest::prelude::*;

use super::*;

const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 t __local
ffffffff81000040 T do_syscall_64
ffffffff81000100 T schedule
ffffffff81000200 D jiffies
ffffffffc0000000 t ext4_sync_file\t[ext4]
ffffffffc0000100 t bpf_prog_6deef7357e7b4530\t[bpf]
";

#[test]
fn an_address_has_the_name_of_the_function_that_holds_it() {
    let table = KernelSymbols::from_text(TEXT).expect("a table");
    assert_eq!(table.function(0xffff_ffff_8100_0043), Some(("do_syscall_64", 3, None)));
    assert_eq!(
        table.function(0xffff_ffff_c000_00ff),
        Some(("ext4_sync_file", 0xff, Some("ext4")))
    );
    assert_eq!(
        table.function(0xffff_ffff_c000_0101),
        Some(("bpf_prog_6deef7357e7b4530", 1, Some("bpf")))
    );
    assert_eq!(table.functions(), 5);
}

#[test]
fn what_is_no_code_ends_a_function_and_names_none() {
    let table = KernelSymbols::from_text(TEXT).expect("a table");
    assert_eq!(table.function(0xffff_ffff_8100_01ff), Some(("schedule", 0xff, None)));
    for address in [0, 5, 0xffff_ffff_8100_0200, 0xffff_ffff_c001_0100, u64::MAX] {
        assert_eq!(table.function(address), None, "{address:#x}");
    }
}

#[test]
fn after_another_start_the_kernel_lies_elsewhere_and_modules_where_they_are_said_to() {
    let table = KernelSymbols::from_text(TEXT).expect("a table");
    let moved = table.after_another_start(0x0120_0000, |module, begin| {
        module == "ext4" && begin == 0xffff_ffff_c000_0000
    });
    assert_eq!(moved.function(0xffff_ffff_8220_0043), Some(("do_syscall_64", 3, None)));
    assert_eq!(moved.function(0xffff_ffff_8100_0043), None);
    assert_eq!(
        moved.function(0xffff_ffff_c000_00ff),
        Some(("ext4_sync_file", 0xff, Some("ext4")))
    );
    assert_eq!(
        moved.function(0xffff_ffff_c000_0101),
        None,
        "of that nobody knows where it lay"
    );
    assert_eq!(moved.variable(0xffff_ffff_c000_0101), None, "nor is it a variable then");
    assert_eq!(moved.functions(), 4);
    assert_eq!(moved.begin("_text"), Some(0xffff_ffff_8220_0000));
    let down = moved.after_another_start(0x0120_0000_u64.wrapping_neg(), |_, _| true);
    assert_eq!(down.function(0xffff_ffff_8100_0040), Some(("do_syscall_64", 0, None)));
}

#[test]
fn the_kernels_begin_is_known_though_another_name_is_shown_for_it() {
    let text = "ffffffff81000000 T srso_alias_untrain_ret\nffffffff81000000 T _stext\nffffffff81000000 T _text\n";
    let table = KernelSymbols::from_text(text).expect("a table");
    assert_eq!(
        table.function(0xffff_ffff_8100_0000),
        Some(("srso_alias_untrain_ret", 0, None))
    );
    assert_eq!(table.begin("_text"), Some(0xffff_ffff_8100_0000));
    assert_eq!(table.begin("_stext"), Some(0xffff_ffff_8100_0000));
    assert_eq!(table.begin("schedule"), None);
}

#[test]
fn of_the_names_of_one_address_perfs_is_taken_and_no_section_mark() {
    let text = "\
ffffffff81000000 T __sched_text_start
ffffffff81000000 t __schedule
ffffffff81000040 T memmove
ffffffff81000040 T __memmove
ffffffff81000080 t irq_entries_start
ffffffff81000080 T __irqentry_text_start
ffffffff810000c0 T _einittext
";
    let table = KernelSymbols::from_text(text).expect("a table");
    let name = |place: u64| table.function(0xffff_ffff_8100_0000 + place).map(|(name, ..)| name);
    assert_eq!(name(0x20), Some("__schedule"), "Linux 5.15 has both there");
    assert_eq!(name(0x41), Some("__memmove"));
    assert_eq!(name(0x81), Some("irq_entries_start"));
    assert_eq!(name(0xc1), Some("_einittext"), "a mark names what nothing else does");
}

#[test]
fn names_are_bytes_and_those_that_begin_with_no_text_are_none() {
    let text = b"ffffffff81000000 T go\xff\xfe\nffffffff81000040 T \xff\xfe\nffffffff81000040 T schedule\nffffffff81000080 T \xff\n";
    let table = KernelSymbols::from_text(&text[..]).expect("a table");
    let name = |address| table.function(address).map(|(name, ..)| name);
    assert_eq!(name(0xffff_ffff_8100_0000), Some("go"));
    assert_eq!(name(0xffff_ffff_8100_0041), Some("schedule"));
    assert_eq!(name(0xffff_ffff_8100_0081), None);
}

#[test]
fn what_stands_behind_very_much_that_is_no_line_is_found() {
    let gap = "\n".repeat(1 << 16);
    let text = format!("ffffffff81000000 T first\n{gap}ffffffff81000040 T second\nffffffff81000080 T third\n");
    let table = KernelSymbols::from_text(text).expect("a table");
    assert!(table.in_order.end() < 100, "the gap is not looked through again");
    for (place, expected) in [(0x20, "first"), (0x40, "second"), (0x81, "third")] {
        let found = table.function(0xffff_ffff_8100_0000 + place);
        assert_eq!(found.map(|(name, ..)| name), Some(expected));
    }
}

#[test]
fn one_of_very_many_names_of_an_address_is_found() {
    let mut text: String = (0..3000)
        .map(|number| format!("ffffffff81000000 t __name_{number:04}\n"))
        .collect();
    text.push_str("ffffffff81000000 T schedule\nffffffff81000040 t next\n");
    let table = KernelSymbols::from_text(text).expect("a table");
    let name = |address| table.function(address).map(|(name, ..)| name);
    assert_eq!(name(0xffff_ffff_8100_0020), Some("schedule"));
    assert_eq!(name(0xffff_ffff_8100_0041), Some("next"));
    assert_eq!(table.functions(), 2);
}

/// A list of that many functions, each with another name in front; the last line of the kernel's own is `end`.
fn long_list(functions: u64, behind: &str) -> String {
    let lines = (0..functions).map(|number| {
        let address = 0xffff_ffff_8100_0000 + number * 0x40;
        format!("{address:016x} t __alias_{number}\n{address:016x} T function_{number}\n")
    });
    let own: String = lines.collect();
    format!("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n{own}ffffffffa0000000 B end\n{behind}")
}

#[test]
fn of_a_long_list_every_line_is_found_though_few_are_looked_at() {
    // Wherever the modules begin between two places that are looked at.
    let modules = "ffffffffc0000000 t ext4_sync_file\t[ext4]\nffffffffc0000100 t bpf_prog\t[bpf]\n";
    for functions in (4000..4040).chain([9000]) {
        let table = KernelSymbols::from_text(long_list(functions, modules)).expect("a table");
        let name = |address| table.function(address).map(|(name, ..)| name.to_owned());
        for number in 0..functions {
            let own = 0xffff_ffff_8100_0000 + number * 0x40;
            assert_eq!(name(own + 0x3f), Some(format!("function_{number}")));
        }
        assert_eq!(name(0xffff_ffff_a000_0000), None);
        let of_module = table.function(0xffff_ffff_c000_00ff);
        assert_eq!(of_module, Some(("ext4_sync_file", 0xff, Some("ext4"))), "{functions}");
        assert_eq!(
            table.function(0xffff_ffff_c000_0101),
            Some(("bpf_prog", 1, Some("bpf")))
        );
        assert_eq!(table.begin("_text"), Some(0xffff_ffff_8100_0000));
        assert_eq!(table.begin("_stext"), None);
        assert_eq!(table.functions() as u64, functions + 2);
    }
}

#[test]
fn in_a_long_list_of_somebody_else_a_misplaced_line_costs_no_more_than_a_name() {
    let mut lines: Vec<String> = long_list(9000, "").lines().map(str::to_owned).collect();
    let misplaced = lines
        .iter()
        .position(|line| line.ends_with("T function_4000"))
        .expect("there");
    let line = lines.remove(misplaced);
    lines.insert(misplaced + 3, line);
    let table = KernelSymbols::from_text(lines.join("\n")).expect("a table");
    for number in (0..3990).chain(4010..9000) {
        let found = table
            .function(0xffff_ffff_8100_0001 + number * 0x40)
            .map(|(name, ..)| name);
        assert_eq!(found, Some(format!("function_{number}").as_str()));
    }
    for number in 3990..4010 {
        assert!(table.function(0xffff_ffff_8100_0001 + number * 0x40).is_some());
    }
}

#[test]
fn a_long_list_that_is_not_by_address_is_looked_through() {
    let mut lines: Vec<String> = long_list(9000, "").lines().map(str::to_owned).collect();
    lines.reverse();
    let backwards = KernelSymbols::from_text(lines.join("\n")).expect("a table");
    lines.sort_unstable_by_key(|line| line.split_once("function").map(|(_, name)| name.to_owned()));
    let by_name = KernelSymbols::from_text(lines.join("\n")).expect("a table");
    // Of the two names of an address the last in the list.
    for (table, last) in [(backwards, "__alias"), (by_name, "function")] {
        assert!(table.in_order.end() < 100_000, "{}", table.in_order.end());
        for number in 0..9000 {
            let own = 0xffff_ffff_8100_0000 + number * 0x40;
            let found = table.function(own + 1).map(|(name, ..)| name);
            assert_eq!(found, Some(format!("{last}_{number}").as_str()));
        }
    }
}

#[test]
fn hidden_addresses_are_an_error_that_names_the_remedy() {
    let hidden = "0000000000000000 T _text\n0000000000000000 t schedule\n";
    let error = KernelSymbols::from_text(hidden).expect_err("hidden");
    assert!(
        error.to_string().contains("sysctl -w kernel.kptr_restrict=0"),
        "{error}"
    );
    assert!(matches!(KernelSymbols::from_text("\n"), Err(KernelSymbolsError::Empty)));
}

#[test]
fn this_kernels_functions_have_names_or_the_reason_is_told() {
    match KernelSymbols::of_this_kernel() {
        Ok(table) => assert!(table.functions() > 1000, "only {}", table.functions()),
        Err(error) => testing::skip!("{error}"),
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in "([0-9a-f]{0,17}[ \t][a-zA-Z]{0,2}[ \t][^\n]{0,9}\n?){0,20}", address: u64) {
        if let Ok(table) = KernelSymbols::from_text(text.as_str()) {
            let _ = table.function(address);
        }
    }

    #[test]
    fn what_is_found_does_not_depend_on_the_order_of_the_lines(
        lines in prop::collection::vec((0_u64..40, "[tTwd]", "[_a-c]{1,3}"), 1..120),
        by in prop_oneof![Just(0_i64), -0x3000_i64..0x3000],
        low in any::<bool>(),
    ) {
        let base = if low { 0x1_0000 } else { 0xffff_ffff_8100_0000 };
        let mut lines: Vec<String> = lines
            .into_iter()
            .map(|(place, kind, name)| format!("{:016x} {kind} {name}\n", base + place * 0x40))
            .collect();
        // Backwards they are not by address, and none is read when it is asked for.
        lines.sort();
        let read = |lines: &[String]| {
            let table = KernelSymbols::from_text(lines.concat()).expect("a table");
            table.after_another_start(by.cast_unsigned(), |_, _| true)
        };
        let in_order = read(&lines);
        // Of the names of one address the last is taken, so these stay in order.
        lines.sort_by_key(|line| Reverse(line[..16].to_owned()));
        let backwards = read(&lines);
        prop_assert_eq!(in_order.functions(), backwards.functions());
        for address in (base - 0x4000..base + 0x6000).step_by(0x20) {
            prop_assert_eq!(in_order.function(address), backwards.function(address));
            prop_assert_eq!(in_order.variable(address), backwards.variable(address));
        }
    }

    #[test]
    fn every_function_is_found_from_its_first_byte_to_its_last(starts in prop::collection::btree_set(1_u64..1 << 40, 1..50)) {
        let text: String = starts.iter().map(|start| format!("{start:016x} t f{start}\n")).collect();
        let table = KernelSymbols::from_text(text.as_str()).expect("a table");
        let ends = starts.iter().skip(1).copied().map(Some).chain([None]);
        for (start, end) in starts.iter().zip(ends) {
            let name = format!("f{start}");
            prop_assert_eq!(table.function(*start), Some((name.as_str(), 0, None)));
            if let Some(end) = end {
                prop_assert_eq!(table.function(end - 1), Some((name.as_str(), end - 1 - start, None)));
            }
        }
    }
}
