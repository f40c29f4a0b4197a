//! One frame: `    7f8c1234abcd pthread_mutex_lock+0x12 (/usr/lib/x86_64-linux-gnu/libc.so.6)`.

use crate::KERNEL;
use crate::named_stacks::UNKNOWN_MODULE;
use crate::names::OWN_MAKING;
use scaleprof_binary::perf_map::is_anonymous;
use std::borrow::Cow;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrameLine<'a> {
    /// All of it but its address: equal ones are one frame.
    pub text: &'a str,
    /// Its function; none where perf did not find one.
    pub function: Option<&'a str>,
    /// File name of the executable or library, without its folder.
    pub module: Cow<'a, str>,
    /// Whether the compiler built it into the next one.
    pub inlined: bool,
}

impl<'a> FrameLine<'a> {
    /// Takes a line apart; none where it is no such line.
    pub(super) fn parse(line: &'a str) -> Option<FrameLine<'a>> {
        let line = line.trim();
        let (symbol, file) = split_file(line)?;
        let (first, rest) = symbol.split_once(char::is_whitespace).unwrap_or((symbol, ""));
        // perf prints no address where it was not asked for one, and a function's name may look like a number.
        let is_address = first.bytes().all(|byte| byte.is_ascii_hexdigit()) && !rest.trim().is_empty();
        let symbol = if is_address { rest.trim() } else { symbol };
        // `perf script -F +srcline` prints it below the frame, with what looks like a file behind it.
        if !is_address && is_place_in_source(symbol) {
            return None;
        }
        let symbol = without_offset(symbol);
        let inlined = file == "inlined";
        Some(FrameLine {
            text: &line[symbol.as_ptr() as usize - line.as_ptr() as usize..],
            function: Some(symbol).filter(|symbol| !symbol.is_empty() && *symbol != "[unknown]"),
            module: if inlined { UNKNOWN_MODULE.into() } else { module(file) },
            inlined,
        })
    }
}

/// The function of a line that ends behind it, as `-F +srcline` prints that of an inlined function: `  1619d dl_init_cacheinfo+0xb0d`,
/// which says on the next line that it is inlined.
pub(super) fn function_alone(line: &str) -> Option<&str> {
    let (address, symbol) = line.trim().split_once(char::is_whitespace)?;
    let is_address = address.len() > 3 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let symbol = without_offset(symbol.trim());
    (is_address && split_file(line.trim()).is_none() && !symbol.is_empty()).then_some(symbol)
}

/// Whether a line is the place in the source of an inlined function: `  dl-cacheinfo.h:777 (inlined)`.
pub(super) fn is_source_of_inlined(line: &str) -> bool {
    line.trim()
        .strip_suffix("(inlined)")
        .is_some_and(|rest| is_place_in_source(rest.trim()))
}

/// `row0sel.cc:4911`, or `:0`. Scopes of C++ have two colons before a name.
fn is_place_in_source(word: &str) -> bool {
    let line = word.rsplit_once(':').map(|(_, line)| line);
    // Names of functions of other languages have places behind a space.
    !word.contains(char::is_whitespace)
        && line.is_some_and(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What stands before the last brackets, and what stands in them. A file that was removed has brackets of its own.
fn split_file(line: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (place, byte) in line.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            // The bracket that was just closed is ASCII, and so is the one at the end.
            let inside = line.get(place + 1..line.len() - 1)?;
            let before = line.get(..place)?;
            let is_own_word = before.is_empty() || before.ends_with(char::is_whitespace);
            return (byte == b'(' && is_own_word).then(|| (before.trim_end(), inside));
        }
    }
    None
}

/// `f` of `f+0x12`.
fn without_offset(symbol: &str) -> &str {
    match symbol.rsplit_once("+0x") {
        Some((name, offset)) if !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    }
}

/// File name of a path; the kernel is `[kernel.kallsyms]`, `[guest.kernel.kallsyms]`, its image under any name that distributions give it, or
/// its memory.
fn module(file: &str) -> Cow<'_, str> {
    let path = file.strip_suffix(" (deleted)").unwrap_or(file);
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_image = ["vmlinux", "vmlinuz"].iter().any(|image| {
        let rest = name.strip_prefix(image);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    });
    if path.contains("[kernel.") || path.contains("[guest.kernel.") || is_image || path == "/proc/kcore" {
        return KERNEL.into();
    }
    // Code that the program made itself, as perf calls it with and without the file that names it.
    let is_named = name.starts_with("perf-") && name.ends_with(".map");
    if is_named || is_anonymous(path) || path.starts_with("[JIT]") {
        return OWN_MAKING.into();
    }
    // As /proc/kallsyms has modules and programs: `[nvme_core]` of nvme-core.ko.xz, `[bpf]`.
    if name.starts_with("bpf_prog_") {
        return "[bpf]".into();
    }
    if let Some((of_kernel, "" | ".xz" | ".zst" | ".gz")) = name.split_once(".ko")
        && !of_kernel.is_empty()
    {
        return format!("[{}]", of_kernel.replace('-', "_")).into();
    }
    match name {
        "" | "[unknown]" => UNKNOWN_MODULE.into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_shapes_are_taken_apart() {
        for (line, function, module, inlined) in [
            (
                "\t    7f8c12 pthread_mutex_lock+0x12 (/usr/lib/libc.so.6)",
                Some("pthread_mutex_lock"),
                "libc.so.6",
                false,
            ),
            ("\tffffffff81 [unknown] ([kernel.kallsyms])", None, KERNEL, false),
            (
                "\t    55 operator()(int) const+0x1 (/opt/a b/mysqld (deleted))",
                Some("operator()(int) const"),
                "mysqld",
                false,
            ),
            (
                "  55d0 std::max<int> (inlined)",
                Some("std::max<int>"),
                UNKNOWN_MODULE,
                true,
            ),
            ("\t   add+0x2 (/opt/x)", Some("add"), "x", false),
            ("\t   add (/opt/x)", Some("add"), "x", false),
            ("\t   7f00 made+0x2 (/tmp/perf-77.map)", Some("made"), OWN_MAKING, false),
            ("\t   7f00 [unknown] (//anon)", None, OWN_MAKING, false),
            ("\t   55d0 [unknown] ([unknown])", None, UNKNOWN_MODULE, false),
            (
                "\t   ext4_sync_file+0x1 ([ext4])",
                Some("ext4_sync_file"),
                "[ext4]",
                false,
            ),
        ] {
            let found = FrameLine::parse(line).expect(line);
            assert_eq!(
                (found.function, &*found.module, found.inlined),
                (function, module, inlined),
                "{line}"
            );
        }
    }

    #[test]
    fn frames_of_one_function_have_one_text() {
        let parse = |line| FrameLine::parse(line).unwrap().text;
        assert_eq!(parse("\t 7f01 f+0x1 (/x)").split("+0x").next(), Some("f"));
        assert_ne!(parse("\t 7f01 f (/x)"), parse("\t 7f01 f (/y)"));
        assert_eq!(parse("\t 7f01 f (/x)"), parse("\t 7f02 f (/x)"));
    }

    #[test]
    fn other_lines_are_no_frames() {
        for line in [
            "",
            "main",
            "storage/latch.h:12",
            "  row0sel.cc:4911 (discriminator 2)",
            "  handler.h:3010 (inlined)",
            "f()",
            ")",
            "(",
            "a (b",
            "prev_comm=x ==> next",
            "ä)",
        ] {
            assert_eq!(FrameLine::parse(line), None, "{line}");
        }
    }
}
