//! One frame: `    7f8c1234abcd pthread_mutex_lock+0x12 (/usr/lib/x86_64-linux-gnu/libc.so.6)`.

use crate::KERNEL;
use crate::named_stacks::UNKNOWN_MODULE;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameLine<'a> {
    /// All of it but its address: equal ones are one frame.
    pub text: &'a str,
    /// Its function; none where perf did not find one.
    pub function: Option<&'a str>,
    /// File name of the executable or library, without its folder.
    pub module: &'a str,
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
        let symbol = without_offset(symbol);
        let inlined = file == "inlined";
        Some(FrameLine {
            text: &line[symbol.as_ptr() as usize - line.as_ptr() as usize..],
            function: Some(symbol).filter(|symbol| !symbol.is_empty() && *symbol != "[unknown]"),
            module: if inlined { UNKNOWN_MODULE } else { module(file) },
            inlined,
        })
    }
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

/// File name of a path; the kernel is `[kernel.kallsyms]`, `[guest.kernel.kallsyms]` or its image.
fn module(file: &str) -> &str {
    let path = file.strip_suffix(" (deleted)").unwrap_or(file);
    if path.contains("[kernel.") || path.contains("[guest.kernel.") || path.ends_with("/vmlinux") || path == "vmlinux" {
        return KERNEL;
    }
    match path.rsplit('/').next().unwrap_or(path) {
        "" | "[unknown]" => UNKNOWN_MODULE,
        // A module of the kernel: its own file, or as /proc/modules has it.
        name => name,
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
                (found.function, found.module, found.inlined),
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
